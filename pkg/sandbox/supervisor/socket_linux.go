package supervisor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// stream makes a file of a socket. Its reads and writes wait without a thread, and take deadlines.
func stream(fd int, name string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
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
			fd, _, failed = unix.Accept4(int(s), unix.SOCK_CLOEXEC)
			return !errors.Is(failed, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return nil, err
		case errors.Is(failed, unix.EINTR), errors.Is(failed, unix.ECONNABORTED):
			continue
		case failed != nil:
			return nil, failed
		}
		return stream(fd, "connection")
	}
}

// dial connects to a unix socket.
func dial(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return stream(fd, path)
}

// closeWrite has the other end read the end of the file.
func closeWrite(f *os.File) {
	raw, err := f.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) }) // it is closed already
	}
}
