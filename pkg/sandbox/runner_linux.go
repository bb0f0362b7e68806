package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/command"
	"agentteam/pkg/sandbox/supervisor"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// runner runs commands in one box.
type runner struct {
	Sandbox
	box Box
}

func (s Sandbox) runner(b Box) command.Runner { return runner{s, b} }

// Run implements [command.Runner].
func (r runner) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	o, err := r.order(c)
	if err != nil {
		return command.Exit{}, err
	}
	defer o.ruleset.Close() // nothing, if there is none
	w, err := c.Watch(ctx)
	if err != nil {
		return command.Exit{}, err
	}
	defer w.End()
	report, err := supervise(w, c.Dir, o)
	if err != nil {
		return command.Exit{}, err
	}
	exit := command.Exit{Code: report.Code, How: report.How, Sandbox: r.level, Offline: r.level != team.Unconfined && r.box.Proxy == "", Divided: o.divided}
	switch report.Ended {
	case supervisor.Ordered:
		exit.Cause = w.Cause()
	case supervisor.Memory:
		exit.Cause = fmt.Errorf("%w: a command and what it starts may use %s", ErrMemory, size(r.box.Limits.Memory))
	case supervisor.Processes:
		exit.Cause = fmt.Errorf("%w: a command may have %d at the same time", ErrProcesses, r.box.Limits.Processes)
	case supervisor.FileSize:
		exit.Cause = fmt.Errorf("%w: a file may have %s", ErrFileSize, size(r.box.Limits.FileSize))
	}
	return exit, nil
}

// order is what the supervisor of a command has to do.
type order struct {
	supervisor.Spec
	ruleset *os.File // of Landlock, at level Confined
	divided bool     // whether the folder of the box is
}

func (r runner) order(c command.Command) (o order, err error) {
	b, l := r.box, r.box.Limits
	o.Spec = supervisor.Spec{Args: c.Args, Env: r.env(c), Memory: l.Memory, Processes: l.Processes, FileSize: l.FileSize}
	if r.level == team.Unconfined {
		return o, nil
	}
	if !below(c.Dir, b.Dir) {
		return o, team.Errorf(team.InvalidArgument, "a command in %s, outside of the workspace %s", c.Dir, b.Dir)
	}
	if err := b.untouched(r.level); err != nil {
		return o, err
	}
	if r.level == team.Confined {
		err := o.confine(b) // before o is returned: Go does not say which of two results is evaluated first
		return o, err
	}
	filter, err := bubblewrapFilter()
	if err != nil {
		return o, err
	}
	options, copied, err := r.options(c.Dir, o.Env, 5) // beside the standard files, and Files
	o.Open = copied
	o.Files = [][]byte{filter, []byte(strings.Join(options, "\x00") + "\x00")}
	o.Under = []string{r.program, "--args", "4", "--"}
	o.Proxy = b.Proxy
	o.Processes += 2 // bubblewrap, outside and as the first process inside
	return o, err
}

// confine adds what commands in a box may do at level Confined.
func (o *order) confine(b Box) (err error) {
	o.Confined = true
	if o.Filter, err = confinedFilter(); err != nil {
		return err
	}
	write, parts, err := b.divide()
	if err != nil {
		return err
	}
	o.divided = slices.Contains(parts, b.Dir)
	o.ruleset, err = grants{read: slices.Concat(readable(), b.ReadOnly, parts), write: write, devices: devices}.ruleset()
	return err
}

// env returns the whole environment of a command.
func (r runner) env(c command.Command) []string {
	env := command.Environ(os.Environ())
	if r.level != team.Unconfined {
		temp := r.box.temp()
		if r.level == team.Bubblewrap && r.box.ownTmp() {
			temp = "/tmp"
		}
		env = append(env, "HOME="+r.box.Home, "TMPDIR="+temp)
		if r.box.Proxy != "" {
			env = append(env, proxied()...)
		}
	}
	return append(append(env, r.box.Env...), c.Env...)
}

// proxied returns the variables by which programs find the proxy. Some read lower case only, some
// upper case. What a command serves itself it reaches without the proxy, which would refuse.
func proxied() (env []string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://"+supervisor.ProxyAddress)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+own, "no_proxy="+own)
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
	// The running program, also if its file has been replaced or removed since.
	cmd := exec.CommandContext(w.Context, "/proc/self/exe")
	cmd.Args = []string{supervisor.Name}
	cmd.Dir, cmd.Env = dir, []string{supervisor.Environ} // not ours, secrets and all
	cmd.Stdout, cmd.Stderr = w.Output, w.Output
	cmd.ExtraFiles = []*os.File{in, reports, o.ruleset} // from descriptor 3 on
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = control.Close     // it kills everything and reports
	cmd.WaitDelay = shutdown.Tools // or is killed; the kernel then kills the command
	if err := cmd.Start(); err != nil {
		return report, err
	}
	in.Close()
	reports.Close()
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
