package supervisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// check is the interval of the supervisor's counts.
const check = 50 * time.Millisecond

func init() {
	switch {
	case len(os.Args) > 0 && os.Args[0] == Name:
		serve()
		syscall.Exit(0) // os.Exit would wait for the race detector
	case entered(os.Args):
		_, _ = os.Stderr.WriteString("agentteam: " + enter(os.Args[1:]).Error() + "\n")
		syscall.Exit(1)
	}
}

// spare is how many extra threads a supervisor creates: the 2 that [Environ] allows Go, and one each that has started the command,
// waits for orders and for the end of a process, counts processes, and creates threads.
const spare = 2 + 5

// spareThreads creates threads, which then wait for work: beside a fork bomb there may be no more, and Go would end.
func spareThreads(n int) {
	var there sync.WaitGroup
	there.Add(n)
	made := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread() // for itself: while it waits, others need another thread
			defer runtime.UnlockOSThread()
			there.Done()
			<-made
		}()
	}
	there.Wait()
	close(made)
}

// serve runs the supervisor.
func serve() {
	// The command gets no file of this process: the end of one is a message, others lead out of the sandbox.
	if closeOnExec(controlFD) != nil { // before Linux 5.11
		for _, fd := range []int{controlFD, reportFD, moreFD} {
			syscall.CloseOnExec(fd)
		}
	}
	control, report := os.NewFile(controlFD, "control"), os.NewFile(reportFD, "report")
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		// Caught, not ignored: an ignored signal stays ignored in the command.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
		spareThreads(spare)
	}()
	s, err := receiveSpec(control)
	if err != nil {
		return // the process that wanted it is gone
	}
	r, err := run(s, ready, orders(control))
	if err != nil {
		r.Failed = err.Error()
	}
	// Nothing is written after this, so no reader waits for this process to end.
	os.Stdout.Close()
	os.Stderr.Close()
	_ = r.send(report) // fails only if its reader is gone
}

// orders passes on the time that the command may run. The channel closes with control.
func orders(control io.Reader) <-chan time.Duration {
	left := make(chan time.Duration)
	go func() {
		defer close(left)
		for {
			d, err := receiveLeft(control)
			if err != nil {
				return
			}
			left <- d
		}
	}()
	return left
}

// run runs the command, once this process is ready for it, and returns when none of its processes is left.
func run(s Spec, ready <-chan struct{}, left <-chan time.Duration) (Report, error) {
	if err := prctl(prSetChildSubreaper, 1); err != nil {
		return Report{}, os.NewSyscallError("become a subreaper", err)
	}
	if err := bound(s); err != nil {
		return Report{}, err
	}
	c, err := start(s, ready)
	if err != nil {
		return Report{}, err
	}
	use := &meter{spec: s}
	tick := time.NewTicker(check)
	defer tick.Stop()
	over := time.NewTimer(time.Hour)
	over.Stop()
	end := ByItself
	for end == ByItself {
		select {
		case <-c.ended:
			c.killAll()
			return c.report(ByItself), nil
		case d, ok := <-left:
			over.Reset(d)
			if !ok {
				end = Ordered
			}
		case <-over.C:
			end = Ordered
		case <-tick.C:
			end = use.exceeded()
		}
	}
	c.killAll()
	return c.report(end), nil
}

// bound sets the limits that the kernel enforces, for this process and so for the command.
func bound(s Spec) error {
	for which, want := range map[int]uint64{syscall.RLIMIT_FSIZE: uint64(s.FileSize), syscall.RLIMIT_CORE: 0} {
		var have syscall.Rlimit
		if err := syscall.Getrlimit(which, &have); err != nil {
			return os.NewSyscallError("read a limit", err)
		}
		want = min(want, have.Max)
		if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: want, Max: want}); err != nil {
			return os.NewSyscallError("set a limit", err)
		}
	}
	// If the machine runs out of memory, it ends a command first, not a member.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	return nil
}

// child is the command, the first of its processes.
type child struct {
	pid    int
	status syscall.WaitStatus // once ended is closed
	ended  chan struct{}      // closed when the command has ended
	gone   chan struct{}      // closed when all processes have
	apart  bool               // with it the kernel ends all the others, however many they are

	collecting sync.Mutex // until the command is collected, its number is no other's
	collected  bool
}

// start starts the command once this process is ready.
func start(s Spec, ready <-chan struct{}) (*child, error) {
	path, args, env, err := program(s)
	if err != nil {
		return nil, err
	}
	if s.Gate {
		args = slices.Concat(s.Under, entrance(3+len(s.Files)+len(s.Open)), s.Args)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []*os.File{null, os.Stdout, os.Stderr}
	for _, content := range s.Files {
		f, err := feed(content)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files = append(files, f)
	}
	for _, path := range s.Open {
		f, err := os.Open(path)
		if err != nil {
			files = append(files, null)
			continue
		}
		defer f.Close()
		files = append(files, f)
	}
	if s.Gate {
		program, err := os.Open("/proc/self/exe")
		if err != nil {
			return nil, err
		}
		out := os.NewFile(moreFD, "gate inside")
		defer program.Close()
		defer out.Close() // its other end is to see when the program inside has ended
		files = append(files, program, out)
	}
	// The kernel shares out the processors by sessions: thousands of processes do not keep the supervisor from ending them.
	attr := &os.ProcAttr{Env: env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	c := &child{ended: make(chan struct{}), gone: make(chan struct{}), apart: len(s.Under) > 0}
	started := make(chan error)
	go func() {
		// Only this thread is confined. It is never released: its end is that of the command's parent.
		runtime.LockOSThread()
		started <- c.launch(s, ready, path, args, attr)
		select {}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	go c.reap()
	return c, nil
}

// launch confines the calling thread, if required, and starts the command on it once this process is ready.
func (c *child) launch(s Spec, ready <-chan struct{}, path string, args []string, attr *os.ProcAttr) error {
	if s.Confined {
		if err := confine([]byte(s.Filter)); err != nil {
			return err
		}
	}
	<-ready
	p, err := os.StartProcess(path, args, attr)
	if err == nil {
		c.pid = p.Pid
	}
	return err
}

// program returns the program to start.
func program(s Spec) (path string, args, env []string, err error) {
	for _, v := range s.Env {
		if value, ok := bytes.CutPrefix([]byte(v), []byte("PATH=")); ok {
			_ = os.Setenv("PATH", string(value)) // the last one counts
		}
	}
	if path, err = lookPath(s.Args[0]); err != nil {
		return "", nil, nil, err
	}
	if len(s.Under) > 0 {
		return s.Under[0], append(s.Under, s.Args...), []string{}, nil
	}
	return path, s.Args, s.Env, nil
}

// lookPath is exec.LookPath, whose package would be initialised in each supervisor.
func lookPath(name string) (string, error) {
	if bytes.Contains([]byte(name), []byte("/")) {
		return name, nil
	}
	const execute = 1 // X_OK of access(2)
	for dir := range bytes.SplitSeq([]byte(os.Getenv("PATH")), []byte(":")) {
		path := string(dir) + "/" + name
		info, err := os.Stat(path)
		if err == nil && path[0] == '/' && info.Mode().IsRegular() && syscall.Access(path, execute) == nil {
			return path, nil
		}
	}
	return "", errors.New(name + " is in no folder of PATH")
}

// feed returns a file from which content is read once.
func feed(content string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() { // a pipe takes 64 KiB until somebody reads
		_, _ = w.WriteString(content)
		w.Close()
	}()
	return r, nil
}

// reap collects every process that ends, orphans too: with the last child the last of them is gone. The rest of the command's process
// group ends with the command.
func (c *child) reap() {
	defer close(c.gone)
	for {
		var next siginfo
		switch err := waitid(waitAll, 0, &next, waitExited|waitLeave); {
		case err == syscall.EINTR:
		case err != nil:
			return
		default:
			c.take(int(next.pid))
		}
	}
}

// take collects the command and ends its group if it has ended, else the process pid.
func (c *child) take(pid int) {
	var first siginfo
	// Once the command is collected, its number may belong to another process.
	if c.collected || waitid(waitPid, c.pid, &first, waitExited|waitLeave|syscall.WNOHANG) != nil || first.signo == 0 {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return
	}
	c.killGroup()
	c.collecting.Lock()
	defer c.collecting.Unlock()
	_, _ = syscall.Wait4(c.pid, &c.status, 0, nil)
	c.collected = true
	close(c.ended)
}

// killGroup kills the process group of the command in one call: finding processes one by one is too slow for a fork bomb.
func (c *child) killGroup() {
	c.collecting.Lock()
	defer c.collecting.Unlock()
	if !c.collected {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	}
}

// killAll returns when no process of the command is left.
func (c *child) killAll() {
	c.killGroup()
	if c.apart { // to look for the others takes longer than they take to end
		c.wait()
	}
	for {
		select {
		case <-c.gone:
			return
		default:
		}
		killDescendants()
		c.wait() // one was started in between, or takes its time to end
	}
}

// wait waits until all processes have ended, but not long.
func (c *child) wait() {
	select {
	case <-c.gone:
	case <-time.After(check):
	}
}

// report returns how the command has ended, given why the supervisor ended it.
func (c *child) report(end End) Report {
	s := c.status
	switch {
	case s.Exited():
		r := Report{Code: int64(s.ExitStatus()), How: "exit status " + strconv.Itoa(s.ExitStatus()), Ended: end}
		if end == Ordered { // too late: it had ended
			r.Ended = ByItself
		}
		// As a shell, and bubblewrap, report that a signal ended their command.
		if end == ByItself && s.ExitStatus() == 128+int(syscall.SIGXFSZ) {
			r.Ended = FileSize
		}
		return r
	case end == ByItself && s.Signal() == syscall.SIGXFSZ:
		end = FileSize
	}
	return Report{Code: -1, How: "signal: " + s.Signal().String(), Ended: end}
}

// A command with a proxy is started by this program once more, inside bubblewrap: the gate opens the socket at [ProxyAddress], passes
// it to the member's process, which serves it, and becomes the command. Nothing inside can end that process.

// gateName is the first argument of this program when it is started so.
const gateName = "agentteam-gate"

// descriptors is the folder of a process's open files.
const descriptors = "/proc/self/fd/"

// entrance returns the arguments that start this program inside. Its file is the descriptor fd; the next one leads outside.
func entrance(fd int) []string {
	return []string{descriptors + strconv.Itoa(fd), gateName, strconv.Itoa(fd + 1)}
}

// entered reports whether this process was started by an entrance.
func entered(args []string) bool {
	return len(args) > 3 && bytes.HasPrefix([]byte(args[0]), []byte(descriptors)) && args[1] == gateName
}

// enter opens the socket, passes it out and becomes the command. It returns only if that fails.
func enter(args []string) error {
	out, err := strconv.Atoi(args[1])
	if err != nil {
		return &os.PathError{Op: "find the way out", Path: args[1], Err: err}
	}
	// The command gets neither this program's file nor the descriptor that leads outside.
	syscall.CloseOnExec(out - 1)
	syscall.CloseOnExec(out)
	socket, err := listen()
	if err != nil {
		return os.NewSyscallError("listen on "+ProxyAddress+" inside", err)
	}
	if err := syscall.Sendmsg(out, []byte{0}, syscall.UnixRights(socket), nil, 0); err != nil {
		return os.NewSyscallError("hand out the socket of the proxy", err)
	}
	command := args[2:]
	path, err := lookPath(command[0])
	if err != nil {
		return err
	}
	return os.NewSyscallError(path, syscall.Exec(path, command, os.Environ()))
}

// listen returns a socket that listens on [ProxyAddress].
func listen() (fd int, err error) {
	if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	return fd, syscall.Listen(fd, syscall.SOMAXCONN)
}
