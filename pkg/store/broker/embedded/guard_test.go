package embedded

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The room is counted in the file system's own blocks, and one that does not tell its size
// is not taken for full.
func TestSpaceIn(t *testing.T) {
	for name, tt := range map[string]struct {
		fs   unix.Statfs_t
		want Space
		ok   bool
	}{
		"a disk":                 {unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 100, Bavail: 50, Bfree: 60}, Space{Free: 50 << 12, Total: 100 << 12}, true},
		"a folder of another":    {unix.Statfs_t{Bsize: 1 << 20, Frsize: 4096, Blocks: 100, Bavail: 50}, Space{Free: 50 << 12, Total: 100 << 12}, true},
		"an old system":          {unix.Statfs_t{Bsize: 4096, Blocks: 100, Bavail: 50}, Space{Free: 50 << 12, Total: 100 << 12}, true},
		"a tmpfs without a size": {unix.Statfs_t{Bsize: 4096, Frsize: 4096}, Space{}, false},
	} {
		if got, err := spaceIn(tt.fs); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Who shuts down does not wait for a server that does not come up again, since its port is
// another's by now.
func TestRestartEnds(t *testing.T) {
	s, err := Start(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	<-s.guarded
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s.opt.Port = taken.Addr().(*net.TCPAddr).Port
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	s.restart(ctx)
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	s.Shutdown()
}
