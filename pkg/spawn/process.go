package spawn

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

	"agentteam/pkg/team"
)

// lifelineEnv names the file descriptor of a pipe that nobody writes to. Its other
// end is held by the `teamctl up` or `run` that owns the cluster; when that ends,
// in whatever way, the pipe closes and everybody who reads it stops.
const lifelineEnv = "AGENTTEAM_LIFELINE"

// Lifeline returns the pipe this process was given, or nil. It must be called
// once.
func Lifeline() *os.File {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil || fd < 3 {
		return nil
	}
	syscall.CloseOnExec(fd) // tools must not inherit it
	return os.NewFile(uintptr(fd), "lifeline")
}

// WithLifeline returns a context that ends when the lifeline closes; with a nil
// lifeline it is ctx itself.
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

// FindBinary returns the path of one of agentteam's programs: beside the running
// one, else in PATH.
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

// Child is a process of agentteam started by this one.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartChild starts a program of agentteam in a process group of its own, so that
// Ctrl-C in the terminal reaches only its owner, and on the lifeline. env is added
// to this process's environment.
func StartChild(bin string, args, env []string, lifeline *os.File, output io.Writer) (*Child, error) {
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if lifeline != nil {
		cmd.ExtraFiles = []*os.File{lifeline} // the first one becomes descriptor 3
		cmd.Env = append(cmd.Env, lifelineEnv+"=3")
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(bin), err)
	}
	c := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// PID is the child's process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is how the child ended; call it after Done.
func (c *Child) Err() error { return c.err }

// Terminate asks the child to stop.
func (c *Child) Terminate() { _ = c.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the child at once.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() }
