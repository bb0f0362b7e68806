package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

func (r *rig) start(t *testing.T, text string) *client.Goal {
	t.Helper()
	g, err := r.Goals().Start(t.Context(), text, "")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (r *rig) end(t *testing.T, summary string) {
	t.Helper()
	if _, err := r.registry.End(t.Context(), r.bt, team.Ending{Status: team.TeamFinished, Summary: summary}); err != nil {
		t.Fatal(err)
	}
}

func TestGoal(t *testing.T) {
	r := newRig(t)
	g := r.start(t, "migrate")
	if rec := record(t, r.Team); !g.Started() || rec.Goal != "migrate" || rec.GoalNumber != 1 || rec.Status != team.Active {
		t.Errorf("started: %v, the record is %+v", g.Started(), rec)
	}
	type outcome struct {
		record team.Team
		err    error
	}
	waited := make(chan outcome, 1)
	go func() {
		rec, err := g.Wait(brokertest.Context(t))
		waited <- outcome{rec, err}
	}()
	r.add(t, 1) // a change of the board is no end
	r.end(t, "migrated")
	if o := brokertest.Receive(t, "the wait ends with the goal", waited); o.err != nil || o.record.Status != team.TeamFinished || o.record.Summary != "migrated" || o.record.FinishedAt == nil {
		t.Errorf("Wait = %+v, %v", o.record, o.err)
	}
	if rec, err := g.Wait(brokertest.Context(t)); err != nil || rec.Summary != "migrated" { // it ended long ago
		t.Errorf("Wait after the end = %+v, %v", rec, err)
	}

	next := r.start(t, "and document it")
	if rec := record(t, r.Team); !next.Started() || rec.Goal != "and document it" || rec.GoalNumber != 2 || rec.Summary != "" {
		t.Errorf("started: %v, the record is %+v", next.Started(), rec)
	}
	// Who waits for the first goal does not wait for the second.
	if rec, err := g.Wait(brokertest.Context(t)); err != nil || rec.GoalNumber != 2 {
		t.Errorf("Wait for the goal before = %+v, %v", rec, err)
	}
}

func TestWaitGivesUp(t *testing.T) {
	r := newRig(t)
	g := r.start(t, "migrate")
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := g.Wait(ctx)
		waited <- err
	}()
	cancel()
	if err := brokertest.Receive(t, "the wait ends with its context", waited); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v, want the context's error", err)
	}
}

// A goal to a team at work is mail to its leader.
func TestSecondGoalIsMail(t *testing.T) {
	r := newRig(t)
	r.start(t, "migrate")
	before := record(t, r.Team)
	if g := r.start(t, "and document it"); g.Started() {
		t.Error("a team at work started another goal")
	}
	if after := record(t, r.Team); after.Goal != "migrate" || after.GoalNumber != 1 || after.Status != team.Active {
		t.Errorf("the record became %+v, was %+v", after, before)
	}
	if _, err := r.registry.EndAt(t.Context(), r.bt, before.Revision, team.Ending{Status: team.TeamFinished, Summary: "migrated"}); !errors.Is(err, team.Conflict) {
		t.Errorf("an end that was prepared before the mail came: %v, want conflict", err)
	}
	var texts []string
	err := r.bt.Messages.Read(t.Context(), 1, func(m broker.Msg) error {
		var msg team.Message
		err := json.Unmarshal(m.Data, &msg)
		if msg.Type != team.MsgUser || msg.From != team.UserAgent {
			t.Errorf("the leader has mail %+v", msg)
		}
		texts = append(texts, msg.Content)
		return err
	}, subject.Mail("t", team.Leader)...)
	if err != nil || len(texts) != 2 || texts[0] != "migrate" || texts[1] != "and document it" {
		t.Errorf("the leader has mail %q, %v", texts, err)
	}
}

// What is no goal changes nothing.
func TestGoalRefused(t *testing.T) {
	r := newRig(t)
	r.end(t, "done")
	before := record(t, r.Team)
	for _, text := range []string{" ", strings.Repeat("x", team.MaxMessageBytes+1), "\x1b[2J"} {
		_, err := r.Goals().Start(t.Context(), text, "")
		wantCode(t, "start", err, team.InvalidArgument)
	}
	if after := record(t, r.Team); after.Revision != before.Revision {
		t.Errorf("the record became %+v, was %+v", after, before)
	}
	if seq, err := r.bt.Messages.LastSeq(t.Context()); seq != 0 || err != nil {
		t.Errorf("%d messages were sent, %v", seq, err)
	}
}

// A goal has the tasks that were open when it was set, and those created since.
func TestTasksOfGoal(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	if _, err := r.Board().Cancel(t.Context(), "T-001", "", ""); err != nil {
		t.Fatal(err)
	}
	g := r.start(t, "migrate")
	r.add(t, 1)
	if _, err := r.Board().Cancel(t.Context(), "T-002", "", ""); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[team.TaskID]bool{"T-001": false, "T-002": true, "T-003": true} {
		if g.Has(id) != want {
			t.Errorf("the goal has %s: %v, want %v", id, g.Has(id), want)
		}
	}
}

// Who comes back to a goal follows what happens from then on; its tasks, and what it has
// used, are those since it was set.
func TestResumeGoal(t *testing.T) {
	r := newRig(t)
	_, err := r.Goals().Resume(t.Context(), time.Time{})
	wantCode(t, "resume without a goal", err, team.InvalidState)
	j, _, err := journal.Open(t.Context(), r.bt, team.Leader, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turn := func() {
		t.Helper()
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Turn, Turn: json.RawMessage(`{"usage":{"prompt_tokens":100,"completion_tokens":20}}`)}); err != nil {
			t.Fatal(err)
		}
	}
	cancel := func(id team.TaskID) {
		t.Helper()
		if _, err := r.Board().Cancel(t.Context(), id, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	r.add(t, 2)
	cancel("T-001")
	turn()
	r.start(t, "migrate")
	turn()
	turn()
	cancel("T-002")
	back := time.Now()
	g, err := r.Goals().Resume(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := g.Usage(t.Context()); err != nil || u.ModelCalls != 2 {
		t.Errorf("the goal has used %+v, %v, want 2 calls", u, err)
	}
	if g.Has("T-001") || !g.Has("T-002") || g.Elapsed(g.Record()) <= 0 {
		t.Errorf("it has T-001: %v, T-002: %v, and was set %v ago", g.Has("T-001"), g.Has("T-002"), g.Elapsed(g.Record()))
	}
	r.add(t, 1)
	stop := errors.New("enough")
	if err := g.Follow(brokertest.Context(t), g.After(), func(e client.Entry) error {
		if e.Time.Before(back) {
			t.Errorf("an entry from before: %+v", e)
		}
		return stop
	}); !errors.Is(err, stop) {
		t.Error(err)
	}
	r.end(t, "migrated")
	set := g
	if g, err = r.Goals().Resume(t.Context(), back); err != nil { // it ended while its follower came
		t.Fatal(err)
	}
	record, err := g.Wait(brokertest.Context(t))
	if err != nil || record.Summary != "migrated" {
		t.Fatalf("Wait = %+v, %v", record, err)
	}
	if is, want := set.Elapsed(record), record.FinishedAt.Sub(g.Begun()); is != want { // whenever it is asked for
		t.Errorf("it took %v, want %v", is, want)
	}
	_, err = r.Goals().Resume(t.Context(), time.Now())
	wantCode(t, "resume after the end", err, team.InvalidState)
}

// A goal's usage is that of the calls since it was set; refused ones count with what
// their tries have used.
func TestUsageOfGoal(t *testing.T) {
	r := newRig(t)
	j, _, err := journal.Open(t.Context(), r.bt, team.Leader, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	note := func(k journal.Record) {
		t.Helper()
		if _, err := j.Append(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	turn := journal.Record{Kind: journal.Turn, Turn: json.RawMessage(`{"alias":"strong","usage":{"prompt_tokens":100,"cached_tokens":60,"completion_tokens":20,"reasoning_tokens":5,"wasted_prompt":7,"cost":0.5,"currency":"USD"}}`)}
	note(turn)
	g := r.start(t, "migrate")
	if u, err := g.Usage(t.Context()); err != nil || u.ModelCalls != 0 || u.TotalTokens != 0 || u.Cost == nil || *u.Cost != 0 {
		t.Errorf("before its first call the goal has used %+v, %v", u, err)
	}
	note(turn)
	note(journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Usage: json.RawMessage(`{"wasted_prompt":30,"wasted_completion":3,"unpriced":1,"estimated":true}`)}})
	u, err := g.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(u)
	want := `{"model_calls":2,"prompt_tokens":100,"cached_tokens":60,"completion_tokens":20,"reasoning_tokens":5,"total_tokens":120,"wasted_tokens":40,"cost":0.5,"currency":"USD","unpriced_calls":1,"estimated":true}`
	if string(data) != want || err != nil {
		t.Errorf("the goal has used\n%s, %v, want\n%s", data, err, want)
	}
	all, err := r.Cost(t.Context(), 0, usage.ByAgent)
	if err != nil || all.Total.Calls != 3 || len(all.Rows) != 1 || all.Rows[0].Name != "leader" || all.Rows[0].Cost != 1 {
		t.Errorf("the team has used %+v, %v", all, err)
	}

	r.end(t, "migrated")
	note(turn) // of the first goal still: the next is not set
	r.start(t, "and document it")
	note(turn)
	note(turn)
	for goal, calls := range map[int]int{0: 6, 1: 3, 2: 2, -1: 2} {
		of, err := r.Cost(t.Context(), goal, usage.ByAgent, usage.ByAlias)
		if err != nil || of.Total.Calls != calls || len(of.Rows) != 1 || of.Rows[0].Calls != calls || of.Rows[0].Parts[0].Name != "strong" {
			t.Errorf("goal %d has used %+v, %v, want %d calls", goal, of, err, calls)
		}
	}
	if _, err := r.Cost(t.Context(), 3, usage.ByAgent); team.CodeOf(err) != team.NotFound {
		t.Errorf("the cost of a goal that there was not: %v", err)
	}

	took, err := r.Goals().Took(t.Context()) // the second has not ended
	first := record(t, r.Team).PastGoals[0]
	if err != nil || len(took) != 1 || took[0].Number != 1 || took[0].Summary != "migrated" || took[0].Usage.ModelCalls != 3 || *took[0].Usage.Cost != 1 ||
		*took[0].Elapsed != first.EndedAt.Sub(*first.SetAt).Seconds() {
		t.Errorf("past goals: %+v, %v", took, err)
	}
	r.end(t, "documented")
	if took, err = r.Goals().Took(t.Context()); err != nil || len(took) != 2 || took[1].Usage.ModelCalls != 2 || took[0].Usage.ModelCalls != 3 {
		t.Errorf("past goals, once all have ended: %+v, %v", took, err)
	}
}

// Whoever comes back finds the goal where it began, with the tasks that are for it.
func TestPresentGoal(t *testing.T) {
	r := newRig(t)
	if _, err := r.Goals().Present(t.Context()); team.CodeOf(err) != team.InvalidState {
		t.Errorf("without a goal: %v, want invalid_state", err)
	}
	r.start(t, "first")
	old := r.add(t, 1)[0]
	if _, err := r.Board().Cancel(t.Context(), old.ID, "", "not needed"); err != nil {
		t.Fatal(err)
	}
	r.end(t, "done")
	set := r.start(t, "second")
	own := r.add(t, 1)[0]
	g, err := r.Goals().Present(t.Context())
	if err != nil || g.Has(old.ID) || !g.Has(own.ID) || !slices.Equal(g.Earlier(), []team.TaskID{old.ID}) || !set.Has(own.ID) || g.Record().Goal != "second" || g.Begun().IsZero() {
		t.Fatalf("%+v, %v", g, err)
	}
	enough := errors.New("enough")
	err = g.Follow(brokertest.Context(t), g.After(), func(e client.Entry) error {
		if told(e) != "user TASK_CREATED" {
			t.Errorf("it begins with %s", told(e))
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	r.end(t, "all done")
	if record, err := g.Wait(brokertest.Context(t)); err != nil || record.Summary != "all done" {
		t.Errorf("Wait = %+v, %v", record, err)
	}
}

// A reader that has come to nothing when the goal has ended gets all that belongs to it.
func TestSlowReaderOfAGoal(t *testing.T) {
	r := newRig(t)
	g := r.start(t, "count")
	task := r.add(t, 1)[0]
	after, reads, got := g.After(), 0, []string{}
	r.end(t, "done")
	record, err := g.FollowToEnd(t.Context(), func(ctx context.Context, on bool, belongs func(time.Time) bool) error {
		if reads++; on {
			<-ctx.Done()
			return nil
		}
		return r.Feed(ctx, client.FeedOptions{After: after}, func(e client.Entry) error {
			if belongs(e.Time) {
				got = append(got, told(e))
			}
			return nil
		})
	})
	if err != nil || record.Summary != "done" || reads != 2 || !slices.Contains(got, "user TASK_CREATED") {
		t.Errorf("%v, %+v; of %s it has %q in %d readings", err, record.Summary, task.ID, got, reads)
	}
}

// The list of teams has what each has used; what was counted once is not read again, and is not
// taken for that of a team that was made again under the name.
func TestTeamsWithUsage(t *testing.T) {
	r := newRig(t)
	c := r.client
	turn := journal.Record{Kind: journal.Turn, Turn: json.RawMessage(`{"alias":"strong","usage":{"prompt_tokens":100,"completion_tokens":20}}`)}
	incarnation := uint64(0)
	works := func(turns int) {
		t.Helper()
		incarnation++
		j, _, err := journal.Open(t.Context(), r.bt, "coder-1", incarnation, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range turns {
			if _, err := j.Append(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
		}
	}
	used := func() (calls int) {
		t.Helper()
		teams, err := c.Teams(t.Context())
		if err == nil {
			err = c.WithUsage(t.Context(), teams)
		}
		if err != nil || len(teams) != 1 || teams[0].Usage == nil {
			t.Fatalf("the teams are %+v, %v", teams, err)
		}
		return teams[0].Usage.ModelCalls
	}
	if n := used(); n != 0 {
		t.Errorf("before its first call the team has used %d", n)
	}
	works(2)
	for range 2 {
		if n := used(); n != 2 {
			t.Errorf("after two calls the team has used %d", n)
		}
	}
	works(1)
	if n := used(); n != 3 {
		t.Errorf("after one more the team has used %d", n)
	}

	if _, err := c.DeleteTeam(t.Context(), "t", true, 0); err != nil {
		t.Fatal(err)
	}
	again := makeTeam(t, c, client.NewTeam{ID: "t", Roles: roles("coder")})
	if n := used(); n != 0 {
		t.Errorf("the team that was made again as %s has used %d", again.ID(), n)
	}
}
