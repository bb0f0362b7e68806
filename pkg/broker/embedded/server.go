// Package embedded runs a NATS server with JetStream inside this process: for a
// cluster on one machine, and for tests.
//
// It stands apart from package broker so that the programs which only connect, the
// leader and the teammate, do not carry a server that they never start.
package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"agentteam/pkg/team"
)

// Options says where the server listens and keeps its data.
type Options struct {
	Dir    string       // JetStream's folder, made if absent; required
	Port   int          // on 127.0.0.1; 0 = a free one
	Logger *slog.Logger // default: discard

	// SyncAlways makes JetStream sync each write to disk before it acknowledges it,
	// which takes several times as long.
	SyncAlways bool
}

// Server is a NATS server with JetStream inside this process.
type Server struct {
	s    *server.Server
	lock *os.File
}

// ErrInUse is the error of a data folder in which another server is at work.
var ErrInUse = errors.New("the data folder is in use")

// Start starts a server and returns once it takes connections. Errors:
// InvalidState for a port in use, for a folder that cannot be written, and for one
// that another server uses ([ErrInUse]); Unavailable if it is not up within 20 s.
func Start(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := checkDir(o.Dir); err != nil {
		return nil, err
	}
	if err := checkPort(o.Port); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := start(o)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Server{s, lock}, nil
}

func start(o Options) (*server.Server, error) {
	port := o.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "agentteam", Host: "127.0.0.1", Port: port,
		JetStream: true, StoreDir: o.Dir, NoSigs: true, DisableJetStreamBanner: true,
		// JetStream acknowledges before it syncs to disk, by default every two
		// minutes. Killing the process loses nothing; a power cut loses at most
		// this much. One second costs nothing that we could measure.
		SyncInterval: time.Second, SyncAlways: o.SyncAlways,
	})
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: %w", err)
	}
	s.SetLoggerV2(serverLog{o.Logger}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return nil, team.Errorf(team.Unavailable, "the embedded NATS server did not start within 20 s").WithHint("look at its log lines above")
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

// lockDir makes the folder this server's until the file that it returns is closed,
// or the process ends in whatever way: two servers on one store destroy it. The
// file stays, since one that is removed could be locked by two.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, unlockable(dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		owner, _ := io.ReadAll(f) // may not stand there yet
		f.Close()
		return nil, team.Errorf(team.InvalidState, "%w by process %s: %s", ErrInUse, cmp.Or(strings.TrimSpace(string(owner)), "unknown"), absolute(dir)).
			WithHint("use the cluster that runs there, end it, or name another folder with --data")
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

func unlockable(dir string, err error) error {
	return team.Errorf(team.InvalidState, "the data folder %s cannot be locked: %w", absolute(dir), err).WithHint("name another one with --data")
}

// absolute is dir for messages.
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

// URL is the address to connect to.
func (s *Server) URL() string { return s.s.ClientURL() }

// Shutdown stops the server and waits until its files are closed.
func (s *Server) Shutdown() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
	s.lock.Close()
}

// serverLog passes on what an operator must know; the server's notices are
// Debug here.
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
