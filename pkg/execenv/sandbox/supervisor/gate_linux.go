package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

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
