// Package childproc starts programs of agentteam as child processes, tied to the owner of the
// cluster: they end when it ends, in whatever way.
//
// It does not know what the programs do, and restarts none (package local does).
package childproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"agentteam/pkg/team"
)

// lifelineEnv names the file descriptor of a pipe to which no process writes. The `teamctl up` or
// `run` that owns the cluster holds its other end; when that process ends, in whatever way, the
// pipe closes and every process that reads it stops.
const lifelineEnv = "AGENTTEAM_LIFELINE"

// clusterEnv contains the id of the cluster for which this process was started.
const clusterEnv = "AGENTTEAM_CLUSTER"

// Cluster returns the id of the embedded cluster of which this process is a child, "" if there is
// none. The cluster's NATS server and all its processes end with it.
func Cluster() string { return os.Getenv(clusterEnv) }

// OfCluster returns the environment of a child of the cluster with that id.
func OfCluster(id string) []string { return []string{clusterEnv + "=" + id} }

// Lifeline returns the pipe that this process was given, or nil. It must be called once.
func Lifeline() *os.File {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil || fd < 3 {
		return nil
	}
	syscall.CloseOnExec(fd) // tools must not inherit it
	return os.NewFile(uintptr(fd), "lifeline")
}

// WithLifeline returns a context that ends when the lifeline closes; with a nil lifeline it returns
// ctx.
func WithLifeline(ctx context.Context, lifeline *os.File) context.Context {
	if lifeline == nil {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		cancel(errors.New("the cluster's owner has ended"))
	}()
	return ctx
}

// FindBinary returns the path of one of agentteam's programs: in the folder of the running one,
// else in PATH.
func FindBinary(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		p := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(p); err == nil && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	p, err := exec.LookPath(name)
	if err != nil {
		return "", team.Errorf(team.NotFound, "the program %q is neither beside this one nor in PATH", name).
			WithHint("`make build` builds leader, teammate and teamctl into one folder")
	}
	return p, nil
}

// Process is a program of agentteam that this process has started. Safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a program of agentteam in a separate process group, so that Ctrl-C in the terminal
// reaches only its owner, and on the lifeline. env is added to this process's environment; output
// gets the program's output.
func Start(bin string, args, env []string, lifeline *os.File, output io.Writer) (*Process, error) {
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // its own children, which may outlive it, have the output too
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if lifeline != nil {
		cmd.ExtraFiles = []*os.File{lifeline} // the first one becomes descriptor 3
		cmd.Env = append(cmd.Env, lifelineEnv+"=3")
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(bin), err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, nil for exit status 0; call it after Done.
func (p *Process) Err() error { return p.err }

// Terminate asks the process to stop.
func (p *Process) Terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the process immediately.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }
