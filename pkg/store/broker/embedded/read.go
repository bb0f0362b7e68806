package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"agentteam/pkg/team"
)

// mostRead bounds the bytes of data that Read copies.
const mostRead = 1 << 30

// storeDir is JetStream's folder in a data folder.
const storeDir = server.JetStreamStoreDir

// Reader is a NATS server inside this process that shows the data of a folder in which no server runs. It works on a copy,
// so the folder stays as it is, and listens at no address: only this process connects to it. The copy is removed with the
// process, also if that is killed.
type Reader struct {
	s      *server.Server
	remove func()    // the copy
	stored time.Time // as of Stored
}

// Read copies a data folder and starts a Reader. It takes no lock, so that a [Server] can start in the folder at any time.
// Errors: InvalidState if a server runs there or starts meanwhile ([ErrInUse]); Unavailable if the folder cannot be read or
// copied, or has too much data; ctx's.
func Read(ctx context.Context, dir string) (*Reader, error) {
	r := &Reader{remove: func() {}}
	var tmp string
	err := undisturbed(dir, func() (err error) {
		from := filepath.Join(dir, storeDir)
		var size int64
		if size, r.stored, err = measure(from); err != nil {
			return err
		}
		if err = fits(size, os.TempDir()); err != nil {
			return err
		}
		if tmp, r.remove, err = scratch(); err != nil {
			return err
		}
		return os.CopyFS(filepath.Join(tmp, storeDir), until{os.DirFS(from), ctx})
	})
	if err == nil {
		so := settings(tmp)
		so.DontListen = true
		r.s, err = startWith(ctx, so, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// InProcessConn returns a new connection to the server; see nats.InProcessServer.
func (r *Reader) InProcessConn() (net.Conn, error) { return r.s.InProcessConn() }

// Stored returns the time at which the newest data was stored.
func (r *Reader) Stored() time.Time { return r.stored }

// Close ends the server, and returns once its copy is removed.
func (r *Reader) Close() {
	r.s.Shutdown()
	r.s.WaitForShutdown()
	r.remove()
}

// undisturbed runs read, which reads the data folder. Errors: ErrInUse if a server ran there in the meantime, also if read
// fails; else read's, as Unavailable.
func undisturbed(dir string, read func() error) error {
	before, err := lastLocked(dir)
	if err != nil {
		return err
	}
	rerr := read()
	after, err := lastLocked(dir)
	switch {
	case err != nil:
		return err
	case !after.Equal(before):
		return team.Errorf(team.InvalidState, "%w: a server has begun there: %s", ErrInUse, absolute(dir))
	case rerr != nil && team.CodeOf(rerr) == "":
		return unreadable(rerr)
	}
	return rerr
}

// lastLocked returns the time at which a server last locked the data folder, which each does first. Errors: ErrInUse while
// a server has it locked; Unavailable.
func lastLocked(dir string) (time.Time, error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) { // the folder was copied to here
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, unreadable(err)
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return time.Time{}, unreadable(err)
	}
	if lock.Type != unix.F_UNLCK {
		return time.Time{}, inUse(dir, f)
	}
	info, err := f.Stat()
	if err != nil {
		return time.Time{}, unreadable(err)
	}
	return info.ModTime(), nil
}

func unreadable(err error) error {
	return team.Errorf(team.Unavailable, "the stored data cannot be read: %w", err)
}

// measure returns the total bytes of the files below dir, and the time of the newest write.
func measure(dir string) (size int64, newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return size, newest, err
}

// fits returns an error if data of that size is too large for a copy in the folder tmp.
func fits(size int64, tmp string) error {
	const unit = 1 << 20
	if size > mostRead {
		return team.Errorf(team.Unavailable, "the stored data has %d MiB, and at most %d MiB are read without a cluster", size/unit, mostRead/unit)
	}
	if space, err := spaceOf(tmp); err == nil && space.Free < uint64(size)+Reserve(space.Total) {
		return team.Errorf(team.Unavailable, "the stored data has %d MiB to be copied, and %s has %d MiB free", size/unit, tmp, space.Free/unit).
			WithHint("make room there, or name another folder in TMPDIR")
	}
	return nil
}

// until is a file system that opens no more files once ctx has ended. It follows no links.
type until struct {
	files fs.FS
	ctx   context.Context
}

func (u until) Open(name string) (fs.File, error) {
	if err := context.Cause(u.ctx); err != nil {
		return nil, err
	}
	return u.files.Open(name)
}

// scratch makes a folder that only this user may open, and that is removed with this process, also if that is killed: a
// shell in a separate session waits for the end of its input, and then removes the folder.
func scratch() (dir string, remove func(), err error) {
	dir = filepath.Join(os.TempDir(), "agentteam-read-"+ulid.Make().String())
	input, life, err := os.Pipe()
	if err != nil {
		return "", func() {}, err
	}
	sh := exec.Command("/bin/sh", "-c", `read -r _; exec rm -rf -- "$1"`, "sh", dir)
	sh.Dir, sh.Stdin, sh.SysProcAttr = "/", input, &syscall.SysProcAttr{Setsid: true}
	err = sh.Start()
	input.Close()
	if err != nil {
		life.Close()
		return "", func() {}, fmt.Errorf("no shell that removes the copy: %w", err)
	}
	remove = func() {
		life.Close()
		_ = sh.Wait() // rm has no way to report
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", remove, err
	}
	return dir, remove, nil
}
