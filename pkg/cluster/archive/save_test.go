package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// site is a server with its teams.
type site struct {
	url   string
	conn  *broker.Conn
	reg   *registry.Registry
	store *archive.Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	return siteAt(t, brokertest.Server(t))
}

func siteAt(t *testing.T, url string) *site {
	t.Helper()
	s := &site{url: url}
	s.conn = brokertest.Connect(t, s.url)
	var err error
	if s.reg, err = registry.Open(t.Context(), s.conn); err != nil {
		t.Fatal(err)
	}
	if s.store, err = archive.Connect(t.Context(), archive.Options{URL: s.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	return s
}

// work makes team a with something in each of its streams, and returns its storage. It is at work
// on a goal, and no process works for it.
func (s *site) work(t *testing.T) *broker.Storage {
	t.Helper()
	ctx := t.Context()
	bt, _, err := s.reg.Make(ctx, team.Team{ID: "a", MaxTeammates: 3, Roles: map[string]team.Role{"coder": {Name: "coder"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.reg.StartGoal(ctx, bt, registry.NewGoal{Text: "a goal", Workspace: "/somewhere"}); err != nil {
		t.Fatal(err)
	}
	b := board.New(bt.Bucket, board.Options{})
	var tasks []team.NewTask
	for i := range 20 {
		tasks = append(tasks, team.NewTask{Title: fmt.Sprintf("task %d", i), Description: strings.Repeat("words ", 100*i)})
	}
	if _, err := b.Create(ctx, team.UserAgent, tasks...); err != nil {
		t.Fatal(err)
	}
	members := roster.New(bt)
	if _, err := members.Create(ctx, team.Member{AgentID: "coder-1", Role: "coder"}, roster.Limit{Team: 3}); err != nil {
		t.Fatal(err)
	}
	box := mailbox.New(bt, mailbox.Options{Members: members})
	for i := range 10 {
		m := team.Message{Type: team.MsgUser, From: team.UserAgent, To: "coder-1", Content: fmt.Sprintf("message %d", i)}
		if _, _, err := box.Send(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(5) {
		if _, err := bt.Logs.Append(ctx, subject.Log("a", "coder-1"), fmt.Appendf(nil, `{"n":%d}`, i), i); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bt.Events.Publish(ctx, subject.Event("a", "coder-1", "RUN_STARTED"), "id", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Files.Put(ctx, "T-001/1/report.md", bytes.NewReader(bytes.Repeat([]byte("report\n"), 50_000))); err != nil {
		t.Fatal(err)
	}
	return bt
}

// all is what every stream of a team holds, by sequence, but for what a load writes.
func all(t *testing.T, bt *broker.Storage) (lines []string) {
	t.Helper()
	for _, s := range bt.Streams() {
		err := s.Read(t.Context(), 1, func(m broker.Msg) error {
			lines = append(lines, fmt.Sprintf("%s %d %s %d %x", s.Name(), m.Seq, m.Subject, m.Time.UnixNano(), m.Data[:min(len(m.Data), 200)]))
			return nil
		})
		if err != nil && !errors.Is(err, broker.ErrEnough) {
			t.Fatal(err)
		}
	}
	return lines
}

// A team that was saved is on another server as it was, with every sequence, and is marked where it
// was.
func TestSaveAndLoad(t *testing.T) {
	from, to := newSite(t), newSite(t)
	bt := from.work(t)
	before := all(t, bt)
	file := filepath.Join(t.TempDir(), "a.save")
	saved, err := from.store.Save(t.Context(), "a", file, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != saved.Bytes || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; it should have %d bytes", info, err, saved.Bytes)
	}
	f, err := archive.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	loaded, err := to.store.Load(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Status != team.Active || loaded.Goal != "a goal" || loaded.Saved != nil || loaded.Loaded == nil || loaded.Loaded.Save != saved.ID {
		t.Errorf("loaded %+v", loaded)
	}
	there, record, err := to.reg.Open(t.Context(), "a")
	if err != nil || record.Revision != loaded.Revision {
		t.Fatalf("opened %+v, %v", record, err)
	}
	got := all(t, there)
	for _, line := range before {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if extra := len(got) - len(before); extra != 2 { // the mark, and where it was loaded from
		t.Errorf("%d messages more than before", extra)
	}
	if r, err := there.Files.Open(t.Context(), "T-001/1/report.md"); err != nil {
		t.Error(err)
	} else {
		r.Close()
	}
	if _, err := to.store.Load(t.Context(), f); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "already") {
		t.Errorf("loaded twice: %v, want conflict", err)
	}
	if _, _, err := from.reg.StartGoal(t.Context(), bt, registry.NewGoal{Text: "again"}); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), file) {
		t.Errorf("it is set a goal where it was saved: %v, want conflict", err)
	}
	if _, marked, err := from.reg.Unsave(t.Context(), bt); !marked || err != nil {
		t.Errorf("the mark is taken back: %v, %v", marked, err)
	}
	if record, err := registry.Record(t.Context(), bt); err != nil || record.Status != team.Active || record.Saved != nil {
		t.Errorf("without the mark: %+v, %v", record, err)
	}
}

// streams are those on the server.
func streams(t *testing.T, c *broker.Conn) (all []string) {
	t.Helper()
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(context.Background()).Name() {
		if name != "KV_"+subject.Registry {
			all = append(all, name)
		}
	}
	return all
}
