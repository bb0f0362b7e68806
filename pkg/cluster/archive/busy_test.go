package archive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/spawn"
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

// save tries to save team a, and returns the file, which may not be there, and the error.
func (s *site) save(t *testing.T, asCopy bool) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.save")
	_, err := s.store.Save(t.Context(), "a", file, asCopy)
	if left, _ := os.ReadDir(filepath.Dir(file)); err != nil && len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	return file, err
}

// A team that is worked for is not saved, and who does is named; it is not marked, since that
// would end the work. A copy of it is saved.
func TestSaveNamesWhoWorks(t *testing.T) {
	for name, tt := range map[string]struct {
		begin func(t *testing.T, s *site, bt *broker.Storage)
		who   string
	}{
		"a member that answers": {func(t *testing.T, _ *site, bt *broker.Storage) {
			beat := func() team.Heartbeat { return team.Heartbeat{AgentID: "coder-1", State: team.Running} }
			stop, err := control.Serve(t.Context(), bt.Conn, control.Membership{Process: "host/1/y", Team: "a", AgentID: "coder-1", Role: "coder"}, control.Handlers{Ping: beat})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
		}, "coder-1 (running)"},
		"a process that leads": {func(t *testing.T, s *site, _ *broker.Storage) {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for n, rev := uint64(1), uint64(0); ctx.Err() == nil; n++ {
					data, _ := json.Marshal(team.Lease{Process: "host/1/x", Incarnation: 1, N: n})
					rev, _ = s.reg.Bucket().Put(ctx, subject.KeyLead("a"), data, rev)
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}()
			t.Cleanup(func() { cancel(); <-ended })
			brokertest.Until(t, "it leads", func() bool {
				_, err := s.reg.Bucket().Get(t.Context(), subject.KeyLead("a"))
				return err == nil
			})
		}, "process host/1/x, which leads it"},
		"a person with a task": {func(t *testing.T, _ *site, bt *broker.Storage) {
			if _, err := roster.New(bt).Put(t.Context(), team.Member{AgentID: "ann", Role: "person", Backend: team.Person, State: team.Joined, Incarnation: 1, JoinedAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if _, err := board.New(bt.Bucket, board.Options{}).Claim(t.Context(), "T-001", team.Holder{Agent: "ann", Incarnation: 1}); err != nil {
				t.Fatal(err)
			}
		}, "ann (has T-001)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			bt := s.work(t)
			tt.begin(t, s, bt)
			before, err := registry.Record(t.Context(), bt)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.save(t, false); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "at work: "+tt.who) {
				t.Errorf("saved: %v, want conflict", err)
			}
			if record, err := registry.Record(t.Context(), bt); err != nil || record.Revision != before.Revision {
				t.Errorf("it was marked meanwhile, which ends the work: %+v, %v", record, err)
			}
			if _, err := s.save(t, true); err != nil {
				t.Errorf("copied: %v", err)
			}
		})
	}
}

// A process that was killed while it led keeps no team from being saved.
func TestSaveAfterLeaderWasKilled(t *testing.T) {
	s := newSite(t)
	s.work(t)
	data, _ := json.Marshal(team.Lease{Process: "host/1/x", Incarnation: 1, N: 7})
	if _, err := s.reg.Bucket().Put(t.Context(), subject.KeyLead("a"), data, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.save(t, false); err != nil {
		t.Error(err)
	}
}

// A spawn that was under way when the team was saved ends without a member: it looks for the mark
// after it has written its own record.
func TestSpawnMeetsTheMark(t *testing.T) {
	s := newSite(t)
	bt := s.work(t)
	if _, err := s.save(t, false); err != nil {
		t.Fatal(err)
	}
	members := roster.New(bt)
	_, err := spawn.New(spawn.Options{Team: bt, Roster: members}).Spawn(t.Context(), team.Member{AgentID: "coder-2", Role: "coder"}, 3)
	if team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "was saved") {
		t.Errorf("spawned: %v, want conflict", err)
	}
	if m, err := members.Get(t.Context(), "coder-2"); err != nil || m.State != team.Stopped {
		t.Errorf("its record: %+v, %v", m, err)
	}
}

// After a save that fails there is neither a file nor a mark.
func TestSaveFails(t *testing.T) {
	s := newSite(t)
	bt := s.work(t)
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	watched := make(chan error, 1)
	go func() { // as soon as it is marked
		watched <- bt.Bucket.Watch(brokertest.Context(t), func(e broker.Entry) error {
			if record, err := registry.Decode(e); err == nil && record.Status == team.TeamSaved {
				cancel()
				return errors.New("seen")
			}
			return nil
		}, nil, subject.KeyTeam)
	}()
	_, err := s.store.Save(ctx, "a", filepath.Join(dir, "a.save"), false)
	brokertest.Receive(t, "the mark is seen", watched)
	if err == nil {
		t.Fatal("it was saved")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	if record, err := registry.Record(t.Context(), bt); err != nil || record.Status != team.Active || record.Saved != nil {
		t.Errorf("after that it is %+v, %v", record, err)
	}
	if _, err := s.store.Save(t.Context(), "a", dir, false); team.CodeOf(err) != team.Conflict {
		t.Errorf("a file that is there: %v, want conflict", err)
	}
	if _, err := s.store.Save(t.Context(), "a", filepath.Join(dir, "none", "a.save"), false); team.CodeOf(err) != team.InvalidState {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if _, err := s.store.Save(t.Context(), "b", filepath.Join(dir, "b.save"), false); team.CodeOf(err) != team.NotFound {
		t.Errorf("another team: %v", err)
	}
}

// A copy shows one instant, although the team writes while it is taken: what was stored later in
// one stream is not in it, if what came before in another stream is not.
func TestCopyShowsOneInstant(t *testing.T) {
	from, to := newSite(t), newSite(t)
	bt := from.work(t)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan uint64)
	begun := make(chan struct{})
	go func() { // a step is one message in each stream, one after the other
		box := mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})
		n := uint64(0)
		for ; ctx.Err() == nil; n++ {
			_, lerr := bt.Logs.Append(t.Context(), subject.Log("a", "coder-1"), fmt.Appendf(nil, `{"n":%d}`, 5+n), lastOf(t, bt.Logs, subject.Log("a", "coder-1")))
			berr := bt.Bucket.Set(t.Context(), "graph", fmt.Appendf(nil, `{"n":%d}`, n))
			_, _, merr := box.Send(t.Context(), team.Message{Type: team.MsgUser, From: team.UserAgent, To: "coder-1", Content: fmt.Sprint("step ", n)})
			if err := errors.Join(lerr, berr, merr); err != nil {
				t.Error(err)
				break
			}
			if n == 3 {
				close(begun)
			}
		}
		written <- n
	}()
	brokertest.Receive(t, "the team is written to", begun)
	file, err := from.save(t, true)
	cancel()
	n := brokertest.Receive(t, "the writer ends", written)
	if err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	loaded, err := to.store.Load(t.Context(), f)
	if err != nil || loaded.Status != team.Active || !loaded.Loaded.Copy {
		t.Fatalf("loaded %+v, %v", loaded, err)
	}
	there, _, err := to.reg.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	logs, mails := lastOf(t, there.Logs, subject.Log("a", "coder-1"))-5, uint64(0)
	if err := there.Messages.Read(t.Context(), 1, func(m broker.Msg) error {
		if strings.Contains(string(m.Data), `"step `) {
			mails++
		}
		return nil
	}); err != nil && !errors.Is(err, broker.ErrEnough) {
		t.Fatal(err)
	}
	e, err := there.Bucket.Get(t.Context(), "graph")
	if err != nil {
		t.Fatal(err)
	}
	var key struct{ N uint64 }
	if err := json.Unmarshal(e.Value, &key); err != nil {
		t.Fatal(err)
	}
	if sets := key.N + 1; logs < sets || sets < mails || logs > mails+1 {
		t.Errorf("of %d steps it has %d in the log, %d in the bucket, %d in the mail", n, logs, sets, mails)
	}
}

func lastOf(t *testing.T, s *broker.Stream, subject string) uint64 {
	t.Helper()
	m, err := s.Last(t.Context(), subject)
	if err != nil && !errors.Is(err, team.NotFound) {
		t.Error(err)
	}
	return m.Seq
}
