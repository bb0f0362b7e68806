package supervisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A command with a proxy is started by this program once more, inside bubblewrap: it opens the socket at [ProxyAddress], passes it to
// the supervisor and becomes the command. Nothing inside can end the process that serves the socket, or see the proxy's.

// gateName is the first argument of this program when it is started so.
const gateName = "agentteam-gate"

// descriptors is the folder of a process's open files.
const descriptors = "/proc/self/fd/"

// The bounds of a gate. Connections beyond the number wait in the kernel.
const (
	mostConnections = 256
	mostNotices     = 20
	lastWords       = 5 * time.Second // for a command to read an answer after the proxy's end
)

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

// openGate returns the two files of an entrance, and forwards connections to the unix socket until this process ends.
func openGate(proxy string) (inside []*os.File, err error) {
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		program.Close()
		return nil, err
	}
	ours := os.NewFile(uintptr(pair[0]), "gate")
	go func() {
		defer ours.Close()
		socket, err := handedOut(ours)
		if err != nil {
			return // the program inside has said why, if anything can
		}
		defer socket.Close()
		(&gate{proxy: proxy, said: map[string]bool{}}).serve(socket)
	}()
	return []*os.File{program, os.NewFile(uintptr(pair[1]), "gate inside")}, nil
}

// handedOut waits for the socket from inside.
func handedOut(f *os.File) (*os.File, error) {
	control := make([]byte, syscall.CmsgSpace(4))
	for {
		_, n, _, _, err := syscall.Recvmsg(int(f.Fd()), make([]byte, 1), control, syscall.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, err
		}
		messages, err := syscall.ParseSocketControlMessage(control[:n])
		if err != nil {
			return nil, err
		}
		if len(messages) == 0 {
			return nil, io.ErrUnexpectedEOF // it has ended
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil {
			return nil, err
		}
		return stream(fds[0], "proxy inside")
	}
}

// gate forwards connections of one command to its proxy. Its sockets are files: package net would be initialised each time.
type gate struct {
	proxy string

	mu   sync.Mutex
	said map[string]bool // refusals that the command's output has
}

func (g *gate) serve(socket *os.File) {
	free := make(chan struct{}, mostConnections)
	for {
		free <- struct{}{}
		conn, err := accept(socket)
		if err != nil {
			return
		}
		go func() {
			defer func() { <-free }()
			g.pass(conn)
		}()
	}
}

// pass forwards one connection; it returns when both ends are finished.
func (g *gate) pass(inside *os.File) {
	defer inside.Close()
	proxy, err := dial(g.proxy)
	if err != nil {
		return // the member that serves it is gone
	}
	defer proxy.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(proxy, inside)
		closeWrite(proxy)
		_, _ = io.Copy(io.Discard, inside) // to end with unread bytes would take the answer back
	}()
	first := make([]byte, 4096)
	n, _ := proxy.Read(first)
	g.notice(first[:n])
	if _, err := inside.Write(first[:n]); err == nil && n > 0 {
		_, _ = io.Copy(inside, proxy)
	}
	closeWrite(inside)
	_ = inside.SetReadDeadline(time.Now().Add(lastWords))
	<-sent
}

// mark begins the reason of an answer of package proxy: "HTTP/1.1 403 network: ...".
const mark = "network: "

// notice writes the reason of such an answer to the command's output, once: most programs print only the number.
func (g *gate) notice(answer []byte) {
	line, _, _ := bytes.Cut(answer, []byte("\r\n"))
	fields := bytes.SplitN(line, []byte(" "), 3)
	if len(fields) < 3 || !bytes.HasPrefix(fields[2], []byte(mark)) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if text := string(fields[2]); !g.said[text] && len(g.said) < mostNotices {
		g.said[text] = true
		_, _ = os.Stderr.WriteString(text + "\n")
	}
}
