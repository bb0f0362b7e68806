package supervisor

import (
	"errors"
	"os"
	"syscall"
)

// stream returns a file for a socket. Its reads and writes wait without a thread, and take deadlines.
func stream(fd int, name string) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// accept waits for a connection to a socket that listens.
func accept(socket *os.File) (*os.File, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	for {
		fd, failed := 0, error(nil)
		err := raw.Read(func(s uintptr) bool {
			fd, _, failed = syscall.Accept4(int(s), syscall.SOCK_CLOEXEC)
			return !errors.Is(failed, syscall.EAGAIN)
		})
		switch {
		case err != nil:
			return nil, err
		case errors.Is(failed, syscall.EINTR), errors.Is(failed, syscall.ECONNABORTED):
			continue
		case failed != nil:
			return nil, failed
		}
		return stream(fd, "connection")
	}
}

// dial connects to a unix socket.
func dial(path string) (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return stream(fd, path)
}

// closeWrite makes the other end read the end of the file.
func closeWrite(f *os.File) {
	raw, err := f.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_WR) }) // it is closed already
	}
}
