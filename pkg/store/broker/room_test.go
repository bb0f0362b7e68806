package broker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// patient connects as leaders and teammates do.
func patient(t *testing.T, url string) *broker.Conn {
	t.Helper()
	c, err := broker.Connect(t.Context(), broker.Options{URL: url, Wait: 20 * time.Second, WaitForRoom: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve starts a server, and a team on it for one who waits for room; other is the team of
// one who does not.
func serve(t *testing.T, o embedded.Options) (waiting *broker.Conn, bt, other *broker.Storage) {
	t.Helper()
	srv, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	c, waiting := brokertest.Connect(t, srv.URL()), patient(t, srv.URL())
	if _, err := c.Registry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bt, err = waiting.Make(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if other, err = c.Open(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	return waiting, bt, other
}

// untilFull writes to the team of one who does not wait until the server refuses, and
// checks what is said of that.
func untilFull(t *testing.T, bt *broker.Storage) {
	t.Helper()
	var err error
	c := bt.Conn
	for n := 0; err == nil; n++ {
		_, err = bt.Messages.Publish(t.Context(), "at.t.inbox.a.b", fmt.Sprint("full", n), []byte("x"))
	}
	if !errors.Is(err, team.Unavailable) || !errors.Is(err, broker.ErrNoRoom) || !strings.Contains(team.HintOf(err), "make room") {
		t.Fatalf("a write without room: %v (hint %q)", err, team.HintOf(err))
	}
	reg, err := registry.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Stores": c.Stores(t.Context()), "another's": brokertest.Connect(t, c.Server()).Stores(t.Context()), "Probe": reg.Probe(t.Context())} {
		if !errors.Is(err, broker.ErrNoRoom) {
			t.Errorf("%s: %v, want no room", what, err)
		}
	}
}

// goesOn waits until a write that began without room is stored.
func goesOn(t *testing.T, put <-chan error) {
	t.Helper()
	select {
	case err := <-put:
		if err != nil {
			t.Errorf("a write that waited for room: %v", err)
		}
	case <-time.After(brokertest.Longest):
		t.Fatal("nothing goes on although there is room")
	}
}

// A server whose disk is nearly full refuses every write at once, and says so; writes of
// those who wait go on when there is room.
func TestReserve(t *testing.T) {
	const total = 10 << 30
	reserve := embedded.Reserve(total)
	var free atomic.Uint64
	free.Store(2 * reserve)
	waiting, bt, other := serve(t, embedded.Options{Dir: t.TempDir(), Space: func(string) (embedded.Space, error) {
		return embedded.Space{Free: free.Load(), Total: total}, nil
	}})
	free.Store(reserve - 1)
	untilFull(t, other)
	put := make(chan error, 2)
	go func() {
		_, err := bt.Bucket.Put(t.Context(), "graph", []byte("x"), 0)
		put <- err
	}()
	go func() {
		_, err := bt.Files.Put(t.Context(), "f", strings.NewReader("text"))
		put <- err
	}()
	brokertest.Until(t, "a write is refused", func() bool { return waiting.Stores(t.Context()) != nil })
	free.Store(2 * reserve)
	goesOn(t, put)
	goesOn(t, put)
	if err := waiting.Stores(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// diskEnv tells a test that runs in a space of its own which folder is its small disk.
const diskEnv = "AGENTTEAM_TEST_DISK"

// smallDisk runs the test again where it may mount a disk, and returns its folder there;
// here it returns "" once that has ended. Where nobody may, it skips the test.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	if dir := os.Getenv(diskEnv); dir != "" {
		if err := syscall.Mount("none", dir, "tmpfs", 0, options); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if testing.Short() {
		t.Skip("a disk of its own")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), diskEnv+"="+t.TempDir())
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids(os.Getuid()), GidMappings: ids(os.Getgid())}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		testenv.Need(t, fmt.Errorf("no disk can be mounted here: %w", err))
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return ""
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// A server that nobody mends gives up the streams that are written while its disk is full, and
// goes on with others. That is known, by its streams, until it is restarted.
func TestFullDiskOfAnotherServer(t *testing.T) {
	dir := smallDisk(t, "size=160m")
	if dir == "" {
		return
	}
	cluster := brokertest.NewClusterIn(t, dir, 1)
	c := patient(t, cluster.URL())
	if _, err := c.Registry(t.Context()); err != nil {
		t.Fatal(err)
	}
	bt, err := c.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	put := make(chan error, 1)
	full := make(chan struct{})
	go func() {
		var rev uint64
		var err error
		text := make([]byte, 200<<10) // more than is left of a block that is laid out already
		for last := false; !last && err == nil; {
			select {
			case <-full:
				last = true
			default:
			}
			rev, err = bt.Bucket.Put(t.Context(), "graph", text, rev)
		}
		put <- err
	}()
	fill(t, filepath.Join(dir, "ballast"))
	brokertest.Until(t, "a write is refused", func() bool { return c.Stores(t.Context()) != nil })
	close(full)
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Messages.Publish(t.Context(), "at.t.inbox.a.b", "1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	err = c.Stores(t.Context())
	if why := c.Refused(); !errors.Is(err, broker.ErrNoRoom) || !strings.Contains(why, "in the stream KV_at-t:") || !strings.Contains(why, "then restart it") {
		t.Errorf("Stores: %v; Refused: %q", err, why)
	}
	cluster.Kill(0)
	cluster.Restart(0)
	goesOn(t, put)
	if err := c.Stores(t.Context()); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

// A disk that somebody fills to the last byte breaks the streams that are written
// meanwhile. Everybody is told within seconds, and with room the server mends itself:
// what waited goes on, once.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t, "size=96m")
	if dir == "" {
		return
	}
	waiting, bt, other := serve(t, embedded.Options{Dir: filepath.Join(dir, "data")})
	ctx, enough := context.WithCancel(t.Context())
	written := make(chan uint64, 1)
	put := make(chan error, 1)
	go func() { // writes all the time, so that one meets the full disk
		var rev uint64
		var err error
		for n := uint64(0); ctx.Err() == nil && err == nil; n++ {
			rev, err = bt.Bucket.Put(t.Context(), "graph", fmt.Appendf(make([]byte, 2000), "%d", n), rev)
		}
		written <- rev
		put <- err
	}()
	fill(t, filepath.Join(dir, "ballast"))
	untilFull(t, other)
	brokertest.Until(t, "a write is refused", func() bool { return waiting.Stores(t.Context()) != nil })
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	enough()
	goesOn(t, put)
	if err := waiting.Stores(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	e, err := bt.Bucket.Get(t.Context(), "graph")
	if rev := brokertest.Receive(t, "the writer ends", written); err != nil || e.Revision != rev {
		t.Errorf("the key is at %d, %v; the last write was told %d", e.Revision, err, rev)
	}
	seen := map[string]bool{}
	if err := bt.Bucket.Past(t.Context(), 1, func(e broker.Entry) error {
		if seen[string(e.Value)] {
			t.Error("a write is stored twice")
		}
		seen[string(e.Value)] = true
		return nil
	}, "graph"); err != nil {
		t.Error(err)
	}
	if _, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Space: func(string) (embedded.Space, error) {
		return embedded.Space{Free: 1, Total: 1 << 30}, nil
	}}); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "is full: 0 MiB are free, and 32 MiB are left free") {
		t.Errorf("a start on a full disk: %v", err)
	}
}

// A stream whose server is down, while others of its cluster answer, is named by the process whose
// write waits for it; once it is back the write is stored, and nothing is named.
func TestUnreachableStream(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a cluster")
	}
	c := brokertest.NewCluster(t, 3)
	conn, err := broker.Connect(t.Context(), broker.Options{URL: c.URL(), Wait: brokertest.Longest, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	brokertest.Bound(t, conn.Close, conn.Follow)
	bt, err := conn.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	down := c.Leader("AT_t_MSG")
	c.Kill(down)
	stored := make(chan error, 1)
	go func() {
		_, err := bt.Messages.Publish(context.Background(), "at.t.all.a", "id", []byte("x"))
		stored <- err
	}()
	brokertest.Until(t, "the stream is named", func() bool {
		return strings.Contains(conn.Refused(), "in the stream AT_t_MSG: it answers neither writes nor reads")
	})
	c.Restart(down)
	if err := brokertest.Receive(t, "the write is stored", stored); err != nil || conn.Refused() != "" {
		t.Errorf("the write: %v; still said: %q", err, conn.Refused())
	}
}
