package index

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Whatever the board writes, also what it soon overwrites, the index can read: what it
// sets aside is told to people as damage.
func TestReadsWhatTheBoardWrites(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := board.New(bt.Bucket, board.Options{})
	ctx := t.Context()
	leader := team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
	ann := team.Holder{Agent: "ann", Incarnation: 1}
	edit := func(e team.Edit) func() error {
		return func() error { _, _, err := b.Edit(ctx, "T-001", leader, e); return err }
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error {
			_, err := b.Create(ctx, team.Leader, team.NewTask{Title: "1"}, team.NewTask{Title: "2"})
			return err
		}},
		{"create once", func() error { _, _, err := b.CreateOnce(ctx, team.Leader, "key", team.NewTask{Title: "3"}); return err }},
		{"add a dependency", edit(team.Edit{AddDependencies: []team.TaskID{"T-002"}})},
		{"remove it", edit(team.Edit{RemoveDependencies: []team.TaskID{"T-002"}})},
		{"edit", edit(team.Edit{Metadata: []byte(`{"a":[1]}`)})},
		{"claim", func() error { _, err := b.Claim(ctx, "T-001", ann); return err }},
		{"fail a check", func() error { _, err := b.FailCheck(ctx, "T-001", ann, 1, team.Freed{Reason: "red"}); return err }},
		{"release", func() error {
			_, err := b.Release(ctx, "T-001", team.Actor{Holder: ann}, 1, team.Freed{Reason: "not now", Attempt: true})
			return err
		}},
		{"cancel all", func() error {
			var errs []error
			for _, id := range []team.TaskID{"T-001", "T-002", "T-003"} {
				_, err := b.Cancel(ctx, id, leader, "needless")
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}},
		{"close", func() error { return b.Close(ctx) }},
		{"reopen", func() error { return b.Reopen(ctx) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	s := newState()
	kinds := map[string]bool{}
	err := bt.Bucket.Read(ctx, 1, func(m broker.Msg) error {
		_, key, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$KV."), ".")
		kind, _, _ := strings.Cut(key, ".")
		kinds[kind] = true
		if err := s.take(broker.Entry{Key: key, Value: m.Data, Revision: m.Seq}, start); err != nil {
			t.Errorf("%s at %d: %v", key, m.Seq, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.unlawful) > 0 {
		t.Errorf("against the rules: %+v", s.unlawful)
	}
	if !kinds["task"] || !kinds["seq"] || !kinds[subject.KeyGraph] {
		t.Errorf("only these were written: %v", kinds)
	}
}
