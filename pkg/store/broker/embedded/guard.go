package embedded

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"agentteam/pkg/shutdown"
)

// Space is the room on a disk, in bytes.
type Space struct {
	Free  uint64 // what this process may still use of it
	Total uint64
}

// Reserve returns the bytes of a disk of this size that the server leaves free. The store needs room also when it accepts
// nothing new, and others may fill a disk between two checks.
func Reserve(total uint64) uint64 { return min(max(total/50, 32<<20), 256<<20) }

func spaceOf(dir string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Space{}, err
	}
	return spaceIn(fs)
}

// spaceIn returns the room on a file system. A file system without a size limit (a tmpfs with size=0) reports no blocks at
// all.
func spaceIn(fs unix.Statfs_t) (Space, error) {
	if fs.Blocks == 0 {
		return Space{}, errors.New("the file system does not tell its size")
	}
	block := uint64(cmp.Or(fs.Frsize, fs.Bsize)) // on FUSE, Bsize is the best size of a read
	return Space{Free: fs.Bavail * block, Total: fs.Blocks * block}, nil
}

const (
	pollEvery    = 250 * time.Millisecond
	firstBackoff = 5 * time.Second // between restarts, if writes fail again immediately
	maxBackoff   = time.Minute
)

// guard keeps the server from filling its disk, and restarts it after a failed write: the stream of such a write accepts no
// more writes, and does not answer them, for as long as its server runs.
type guard struct {
	s       *Server
	full    bool          // the server refuses writes
	backoff time.Duration // before it may be started again
	at      time.Time     // when it was last started again
}

func (g *guard) poll(ctx context.Context) {
	log := g.s.opt.Logger
	space, err := g.s.opt.Space(g.s.opt.Dir)
	if err != nil {
		log.Debug("room on the disk not known", "dir", g.s.opt.Dir, "err", err)
	}
	reserve := Reserve(space.Total)
	low := err == nil && space.Free < reserve // else it is still seen whether writes fail
	if g.full {
		low = low || err != nil || space.Free < reserve+reserve/8 // the freed room must last a little
	}
	switch {
	case low && !g.full:
		if g.full = g.limit(refuseAll); g.full {
			log.Error("the disk is nearly full: nothing is stored until there is room", "dir", absolute(g.s.opt.Dir), "free_bytes", space.Free, "reserve_bytes", reserve)
		}
		return
	case low:
		return
	}
	if what := g.broken(); what != "" && time.Since(g.at) >= g.backoff {
		log.Warn("a write has failed: the server is started again", "err", what)
		if time.Since(g.at) > maxBackoff+g.backoff {
			g.backoff = 0
		}
		g.s.restart(ctx)
		g.full, g.at, g.backoff = false, time.Now(), min(max(2*g.backoff, firstBackoff), maxBackoff)
		return
	}
	if g.full && g.limit(nil) {
		g.full = false
		log.Info("there is room on the disk again", "dir", absolute(g.s.opt.Dir), "free_bytes", space.Free)
	}
}

// refuseAll leaves the account no storage: the server refuses every write, with an answer.
var refuseAll = map[string]server.JetStreamAccountLimits{"": {
	MaxMemory: -1, MaxStore: 0, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1,
}}

// limit sets the limits of the storage; nil is no limit. It reports whether that succeeded.
func (g *guard) limit(limits map[string]server.JetStreamAccountLimits) bool {
	err := g.s.s.GlobalAccount().UpdateJetStreamLimits(limits)
	if err != nil {
		g.s.opt.Logger.Error("limit of the storage not set", "err", err)
	}
	return err == nil
}

// broken returns the error of a stream that accepts no more writes; "" if there is none.
func (g *guard) broken() string {
	for _, e := range g.s.s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return e.Error
		}
	}
	return ""
}

// restart restarts the server, at the same address, and tries until ctx ends.
func (s *Server) restart(ctx context.Context) {
	s.s.Shutdown()
	s.s.WaitForShutdown()
	for {
		fresh, err := start(ctx, s.opt)
		if err == nil {
			s.s = fresh
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.opt.Logger.Error("the NATS server does not start; it is tried again", "err", err)
		if !shutdown.Sleep(ctx, time.Second) {
			return
		}
	}
}
