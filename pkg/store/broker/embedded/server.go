// Package embedded runs a NATS server with JetStream inside this process: for a cluster on one machine, and for tests.
//
// It is separate from package broker so that the leader and the teammate, which only connect, do not carry a server that
// they never start.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// Options configure a server.
type Options struct {
	Dir    string       // JetStream's folder, made if absent; required
	Port   int          // on 127.0.0.1; 0 = a free one
	Logger *slog.Logger // default: discard

	// SyncAlways makes JetStream sync each write to disk before it acknowledges it, which takes several times as
	// long.
	SyncAlways bool

	// Space returns the room on the disk of a folder; default: as the system reports it. It is called from one
	// goroutine, several times a second.
	Space func(dir string) (Space, error)
}

// Server is a NATS server with JetStream inside this process. It leaves a [Reserve] of its disk free: with less it refuses
// writes, and accepts them again once there is room. After a failed write it restarts automatically, at its address.
type Server struct {
	opt  Options // with the port that it has
	url  string
	s    *server.Server // the guard's, until that has ended
	lock *os.File

	stop    context.CancelFunc
	guarded chan struct{} // closed once the guard has ended
}

// ErrInUse is the error for a data folder in which another server runs.
var ErrInUse = errors.New("the data folder is in use")

// Start starts a server and returns once it takes connections. Errors: InvalidState for a port in use, for a folder that
// is not writable, whose disk is full, or that another server uses ([ErrInUse]); Unavailable if the server is not up within
// 20 s.
func Start(o Options) (*Server, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Space == nil {
		o.Space = spaceOf
	}
	if err := checkDir(o.Dir); err != nil {
		return nil, err
	}
	if err := checkSpace(o); err != nil {
		return nil, err
	}
	if err := checkPort(o.Port); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s, err := start(ctx, o)
	if err != nil {
		stop()
		lock.Close()
		return nil, err
	}
	o.Port = s.Addr().(*net.TCPAddr).Port
	e := &Server{opt: o, url: s.ClientURL(), s: s, lock: lock, stop: stop, guarded: make(chan struct{})}
	go func() {
		defer close(e.guarded)
		shutdown.Every(ctx, pollEvery, (&guard{s: e}).poll)
	}()
	return e, nil
}

// startWithin bounds the time in which a server must come up.
const startWithin = 20 * time.Second

// start starts a server that listens, unless ctx ends before it is up.
func start(ctx context.Context, o Options) (*server.Server, error) {
	so := settings(o.Dir)
	if so.Port = o.Port; so.Port == 0 {
		so.Port = server.RANDOM_PORT
	}
	// JetStream acknowledges before it syncs to disk, by default every two minutes. Killing the process loses nothing;
	// a power cut loses at most this interval. One second has no cost that we could measure.
	so.SyncInterval, so.SyncAlways = time.Second, o.SyncAlways
	return startWith(ctx, so, o.Logger)
}

// settings returns the options of each server that works on this data folder.
func settings(dir string) *server.Options {
	return &server.Options{
		ServerName: "agentteam", Host: "127.0.0.1",
		JetStream: true, StoreDir: dir, NoSigs: true, DisableJetStreamBanner: true,
		JetStreamMaxStore: 1 << 60, // by default what is free at the start, less a quarter, whatever becomes free later
	}
}

// startWith starts a server, unless ctx ends before it is up.
func startWith(ctx context.Context, so *server.Options, log *slog.Logger) (*server.Server, error) {
	s, err := server.NewServer(so)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: %w", err)
	}
	s.SetLoggerV2(serverLog{log}, false, false, false)
	s.Start()
	for begun := time.Now(); !s.ReadyForConnections(pollEvery); {
		if ctx.Err() != nil || time.Since(begun) > startWithin {
			s.Shutdown()
			s.WaitForShutdown() // before another opens its files
			return nil, team.Errorf(team.Unavailable, "the embedded NATS server did not start within %v", startWithin).WithHint("look at its log lines above")
		}
	}
	return s, nil
}

func checkDir(dir string) error {
	if dir == "" {
		return errors.New("embedded: Options.Dir is empty")
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".write-test-*"); err == nil {
			f.Close()
			err = os.Remove(f.Name())
		}
	}
	if err != nil {
		return team.Errorf(team.InvalidState, "the data folder %s cannot be written: %w", absolute(dir), err).WithHint("name another one with --data")
	}
	return nil
}

// checkSpace returns an error if the disk is too full to store anything.
func checkSpace(o Options) error {
	space, err := o.Space(o.Dir)
	if reserve := Reserve(space.Total); err == nil && space.Free < reserve {
		return team.Errorf(team.InvalidState, "the disk of the data folder %s is full: %d MiB are free, and %d MiB are left free", absolute(o.Dir), space.Free>>20, reserve>>20).
			WithHint("make room on it, or name a folder on another disk with --data")
	}
	return nil
}

const lockFile = "lock"

// lockDir locks the folder for this server until the returned file is closed, or the process ends in any way: two servers
// on one store destroy it. The file stays, since two servers could lock a removed one.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, unlockable(dir, err)
	}
	// The existence of such a lock can be checked without taking it: a reader must not block a server.
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = inUse(dir, f)
		f.Close()
		return nil, err
	}
	if err != nil {
		f.Close()
		return nil, unlockable(dir, err)
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, unlockable(dir, err)
	}
	return f, nil
}

// inUse returns the error for a folder whose lock file, f, another server has locked.
func inUse(dir string, f *os.File) error {
	owner, _ := io.ReadAll(f) // may not stand there yet
	return team.Errorf(team.InvalidState, "%w by process %s: %s", ErrInUse, cmp.Or(strings.TrimSpace(string(owner)), "unknown"), absolute(dir)).
		WithHint("use the cluster that runs there, end it, or name another folder with --data")
}

func unlockable(dir string, err error) error {
	return team.Errorf(team.InvalidState, "the data folder %s cannot be locked: %w", absolute(dir), err).WithHint("name another one with --data")
}

// absolute returns dir as an absolute path, for messages.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

func checkPort(port int) error {
	if port == 0 {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return team.Errorf(team.InvalidState, "port %d cannot be used: %w", port, err).WithHint("choose another port, or leave it out for a free one")
	}
	return l.Close()
}

// URL returns the address of the server.
func (s *Server) URL() string { return s.url }

// Shutdown stops the server and waits until its files are closed.
func (s *Server) Shutdown() {
	s.stop()
	<-s.guarded
	s.s.Shutdown()
	s.s.WaitForShutdown()
	s.lock.Close()
}

// serverLog logs the server's errors; its notices and warnings are Debug here.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(f string, a ...any) {
	l.log.Debug("nats-server", "msg", fmt.Sprintf(f, a...))
}
func (l serverLog) Warnf(f string, a ...any) { l.log.Debug("nats-server", "msg", fmt.Sprintf(f, a...)) }
func (l serverLog) Errorf(f string, a ...any) {
	l.log.Error("nats-server", "msg", fmt.Sprintf(f, a...))
}
func (l serverLog) Fatalf(f string, a ...any) {
	l.log.Error("nats-server", "msg", fmt.Sprintf(f, a...))
}
func (l serverLog) Debugf(string, ...any) {}
func (l serverLog) Tracef(string, ...any) {}
