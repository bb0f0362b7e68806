package archive_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// opened is a save of team a that was verified.
func opened(t *testing.T) *archive.File {
	t.Helper()
	s := newSite(t)
	s.work(t)
	file, err := s.save(t, false)
	if err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// killed makes a load that ends without cleaning up, as one does whose process is killed once the
// first stream is there.
func killed(t *testing.T, to *site) {
	t.Helper()
	l, err := to.reg.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	err = l.Hold(t.Context(), func(ctx context.Context) (team.Team, error) {
		_, err := to.conn.Make(ctx, "a") // what is there is not what it should be
		return team.Team{}, errors.Join(err, errors.New("killed"))
	})
	if err == nil || err.Error() != "killed" {
		t.Fatal(err)
	}
}

// A server without room takes nothing of a team, and has it once there is room.
func TestLoadWithoutRoom(t *testing.T) {
	f := opened(t)
	dir := t.TempDir()
	start := func(most int64) *server.Server {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir, JetStreamMaxStore: most})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(s.Shutdown)
		return s
	}
	full := start(32 << 20) // less than a team reserves for its events
	to := siteAt(t, full.ClientURL())
	if _, err := to.store.Load(t.Context(), f); !errors.Is(err, broker.ErrNoRoom) {
		t.Fatalf("it is loaded: %v", err)
	}
	if left := streams(t, to.conn); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	full.Shutdown()
	full.WaitForShutdown()
	to = siteAt(t, start(1<<30).ClientURL())
	if loaded, err := to.store.Load(t.Context(), f); err != nil || loaded.Status != team.Active {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
}

// A load that was killed leaves a team that cannot be used. It is repeated, or taken back.
func TestLoadKilled(t *testing.T) {
	f := opened(t)
	for name, then := range map[string]func(t *testing.T, to *site){
		"repeated": func(t *testing.T, to *site) {
			loaded, err := to.store.Load(t.Context(), f)
			if err != nil || loaded.Status != team.Active {
				t.Fatalf("loaded %+v, %v", loaded, err)
			}
			bt, _, err := to.reg.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bt.Bucket.Get(t.Context(), subject.KeyTask("T-020")); err != nil {
				t.Errorf("its last task: %v", err)
			}
		},
		"taken back": func(t *testing.T, to *site) {
			if err := to.reg.Delete(t.Context(), "a", false, nil); err != nil {
				t.Fatal(err)
			}
			if left := streams(t, to.conn); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, _, err := to.reg.Make(t.Context(), team.Team{ID: "a"}); err != nil {
				t.Errorf("the name is not free: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newSite(t)
			killed(t, to)
			if s, err := to.reg.Small(t.Context(), "a"); err != nil || s.Status != team.TeamLoading {
				t.Errorf("it is listed as %+v, %v", s, err)
			}
			for what, err := range map[string]error{
				"opened": second(to.reg.Storage(t.Context(), "a")),
				"made":   third(to.reg.Make(t.Context(), team.Team{ID: "a"})),
			} {
				if team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "being loaded") {
					t.Errorf("%s: %v, want conflict", what, err)
				}
			}
			then(t, to)
		})
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// Of two that load the same team at the same time one is refused, and the other one's team is whole.
func TestLoadIsNotDisturbed(t *testing.T) {
	f := opened(t)
	to := newSite(t)
	other, err := archive.Connect(t.Context(), archive.Options{URL: to.url})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l, err := to.reg.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- l.Hold(t.Context(), func(context.Context) (team.Team, error) {
			<-ended
			return team.Team{}, errors.New("enough")
		})
	}()
	_, lerr := other.Load(t.Context(), f)
	derr := to.reg.Delete(t.Context(), "a", true, nil)
	close(ended)
	if err := brokertest.Receive(t, "the first load ends", held); err == nil || err.Error() != "enough" {
		t.Errorf("the first was disturbed: %v", err)
	}
	for what, err := range map[string]error{"loaded": lerr, "deleted": derr} {
		if team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "being loaded") {
			t.Errorf("%s meanwhile: %v, want conflict", what, err)
		}
	}
	if err := l.Forget(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Load(t.Context(), f); err != nil {
		t.Errorf("loaded after that: %v", err)
	}
}

// Streams of the name that are no team's stay, and nothing else is left of a load that meets them.
func TestLoadMeetsForeignStreams(t *testing.T) {
	f := opened(t)
	to := newSite(t)
	if _, err := to.conn.Make(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	before := streams(t, to.conn)
	if _, err := to.store.Load(t.Context(), f); team.CodeOf(err) != team.Conflict {
		t.Errorf("loaded: %v, want conflict", err)
	}
	if after := streams(t, to.conn); !slices.Equal(before, after) {
		t.Errorf("there are %v, and were %v", after, before)
	}
	if _, err := to.reg.Small(t.Context(), "a"); team.CodeOf(err) != team.NotFound {
		t.Errorf("it is listed: %v", err)
	}
}

// A file that changes while it is loaded makes no team.
func TestFileChangesWhileItIsLoaded(t *testing.T) {
	f := opened(t)
	to := newSite(t)
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(f.Name(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := to.store.Load(t.Context(), f); err == nil {
		t.Error("it was loaded")
	}
	if left := streams(t, to.conn); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Places in the feed keep their meaning in a team that was moved; of a copy they may name what it
// does not have.
func TestCursorsAfterLoad(t *testing.T) {
	for _, asCopy := range []bool{false, true} {
		from, to := newSite(t), newSite(t)
		bt := from.work(t)
		file, err := from.save(t, asCopy)
		if err != nil {
			t.Fatal(err)
		}
		f, err := archive.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := to.store.Load(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		there, _, err := to.reg.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		a, aerr := bt.Logs.State(t.Context())
		b, berr := there.Logs.State(t.Context())
		if err := errors.Join(aerr, berr); err != nil {
			t.Fatal(err)
		}
		if same := a.Created.Truncate(time.Microsecond).Equal(b.Created.Truncate(time.Microsecond)); same == asCopy || a.Last != b.Last {
			t.Errorf("copy %v: made %v and %v, last %d and %d", asCopy, a.Created, b.Created, a.Last, b.Last)
		}
	}
}

// A team moves between one server and a cluster of three, and its streams have the replicas of where
// they are.
func TestLoadIntoCluster(t *testing.T) {
	f := opened(t)
	cluster := brokertest.NewCluster(t, 3)
	store, err := archive.Connect(t.Context(), archive.Options{URL: cluster.URL(), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Load(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	conn, err := broker.Connect(t.Context(), broker.Options{URL: cluster.URL(), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reg, err := registry.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	bt, record, err := reg.Open(t.Context(), "a")
	if err != nil || record.Goal != "a goal" {
		t.Fatalf("%+v, %v", record, err)
	}
	for _, s := range bt.Streams() {
		if s.Replicas() != 3 {
			t.Errorf("%s has %d replicas", s.Name(), s.Replicas())
		}
	}
	back := t.TempDir() + "/b.save"
	if _, err := store.Save(t.Context(), "a", back, false); err != nil {
		t.Fatal(err)
	}
	g, err := archive.Open(back)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	to := newSite(t)
	if loaded, err := to.store.Load(t.Context(), g); err != nil || loaded.Goal != "a goal" {
		t.Errorf("loaded again: %+v, %v", loaded, err)
	}
}
