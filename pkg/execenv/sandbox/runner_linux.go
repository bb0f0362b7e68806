package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentteam/pkg/execenv/sandbox/supervisor"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// runner runs commands in one box.
type runner struct {
	Sandbox
	box Box
}

func (s Sandbox) runner(b Box) (command.Runner, error) {
	if s.level == team.Unconfined {
		return runner{s, b}, nil
	}
	if err := b.valid(); err != nil {
		return nil, err
	}
	if _, err := b.view(s.level, nil); err != nil {
		return nil, err
	}
	return runner{s, b}, nil
}

// Run implements [command.Runner].
func (r runner) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	o, err := r.order(c)
	if err != nil {
		return command.Exit{}, err
	}
	defer func() { o.more.Close() }() // nothing, if there is none
	w, err := c.Watch(ctx)
	if err != nil {
		return command.Exit{}, err
	}
	defer w.End()
	if r.box.Proxy != nil {
		var end func()
		if o.more, end, err = r.gate(w); err != nil {
			return command.Exit{}, err
		}
		defer end()
	}
	report, err := supervise(w, c.Dir, o)
	if err != nil {
		return command.Exit{}, err
	}
	exit := command.Exit{Code: int(report.Code), How: report.How, Sandbox: r.level, Offline: r.level != team.Unconfined && r.box.Proxy == nil, Divided: o.divided}
	switch report.Ended {
	case supervisor.Ordered:
		exit.Cause = w.Cause()
	case supervisor.Memory:
		exit.Cause = fmt.Errorf("%w: a command and what it starts may use %s", ErrMemory, size(r.box.Limits.Memory))
	case supervisor.Processes:
		exit.Cause = fmt.Errorf("%w: a command may have %d at the same time", ErrProcesses, r.box.Limits.Processes)
	case supervisor.Threads:
		exit.Cause = fmt.Errorf("%w: a command and what it starts may have %d at the same time", ErrThreads, r.box.Limits.Threads)
	case supervisor.FileSize:
		exit.Cause = fmt.Errorf("%w: a file may have %s", ErrFileSize, size(r.box.Limits.FileSize))
	}
	return exit, nil
}

// order is the task of a command's supervisor.
type order struct {
	supervisor.Spec
	more    *os.File // at level Confined the ruleset of Landlock, with a proxy the inner end of the gate; nil if there is neither
	divided bool     // whether the folder of the box is
}

// order translates a command's view for the level.
func (r runner) order(c command.Command) (o order, err error) {
	v, err := r.box.view(r.level, c.Env)
	if err != nil {
		return o, err
	}
	o.Spec = supervisor.Spec{Args: c.Args, Env: v.env, Memory: v.Memory, Processes: int64(v.Processes), Threads: int64(v.Threads), FileSize: v.FileSize}
	switch {
	case r.level == team.Unconfined:
		return o, nil
	case !below(c.Dir, v.dir):
		return o, team.Errorf(team.InvalidArgument, "a command in %s, outside of the workspace %s", c.Dir, v.dir)
	case r.level == team.Confined:
		if o.Filter, err = confinedFilter(); err == nil {
			o.Confined = true
			o.more, o.divided, err = v.ruleset()
		}
		return o, err
	}
	filter, err := bubblewrapFilter()
	if err != nil {
		return o, err
	}
	options, copied, err := v.bubblewrap(c.Dir, 5) // beside the standard files, and Files
	o.Open = copied
	o.Files = []string{filter, strings.Join(options, "\x00") + "\x00"}
	o.Under = []string{r.program, "--args", "4", "--"}
	o.Gate = r.box.Proxy != nil
	o.Processes, o.Threads = o.Processes+2, o.Threads+2 // bubblewrap, outside and as the first process inside
	return o, err
}

// gate serves the box's proxy on the socket that a command's gate hands out. It returns the inner end, and a function that closes all.
func (r runner) gate(w *command.Watch) (inside *os.File, end func(), err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	inside = os.NewFile(uintptr(pair[1]), "gate inside")
	ours := os.NewFile(uintptr(pair[0]), "gate")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		inside.Close()
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(w.Context)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l, err := handedOut(conn.(*net.UnixConn)); err == nil { // else the program inside has said why, if anything can
			r.box.Proxy(ctx, l, w.Output)
		}
	}()
	return inside, func() { cancel(); conn.Close(); <-done }, nil
}

// handedOut waits for the socket from inside. Error: the program there has ended.
func handedOut(conn *net.UnixConn) (net.Listener, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fds[0]), "proxy inside")
	defer socket.Close()
	return net.FileListener(socket)
}

// supervise runs a supervisor in a folder and returns its report.
func supervise(w *command.Watch, dir string, o order) (report supervisor.Report, err error) {
	in, control, err := os.Pipe()
	if err != nil {
		return report, err
	}
	defer control.Close()
	defer in.Close()
	out, reports, err := os.Pipe()
	if err != nil {
		return report, err
	}
	defer out.Close()
	defer reports.Close()
	// The running program, even if its file has been replaced or removed since.
	cmd := exec.CommandContext(w.Context, "/proc/self/exe")
	cmd.Args = []string{supervisor.Name}
	cmd.Dir, cmd.Env = dir, []string{supervisor.Environ} // not ours, secrets and all
	cmd.Stdout, cmd.Stderr = w.Output, w.Output
	cmd.ExtraFiles = []*os.File{in, reports, o.more} // from descriptor 3 on
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = control.Close     // it kills everything and reports
	cmd.WaitDelay = shutdown.Tools // or is killed; the kernel then kills the command
	if err := cmd.Start(); err != nil {
		return report, err
	}
	in.Close()
	reports.Close()
	o.more.Close() // the end of a gate inside shows when the program there has ended
	err = o.Send(control)
	if err == nil {
		err = w.Guard(func(left time.Duration) error { return supervisor.SendLeft(control, left) })
	}
	if err != nil {
		control.Close() // what has begun ends
	}
	report, err = supervisor.ReceiveReport(out)
	if err != nil {
		ended := cmd.Wait()
		if w.Cause() != nil {
			return supervisor.Report{Code: -1, How: "signal: killed", Ended: supervisor.Ordered}, nil
		}
		return report, fmt.Errorf("%w (the supervisor of the command has ended without a report: %v)", command.ErrLost, ended)
	}
	go func() { _ = cmd.Wait() }() // nothing of the command is left; the process that has said so takes a moment to end
	if report.Failed != "" {
		return report, errors.New(report.Failed)
	}
	return report, nil
}
