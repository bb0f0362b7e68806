package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

type sent struct {
	to   team.AgentID
	task team.Task
}

// rig is a team with an index.
type rig struct {
	*index.Index
	t      *testing.T
	team   *broker.Storage
	board  *board.Board
	offers chan sent
	stop   func()
}

func run(t *testing.T, bt *broker.Storage) *rig {
	t.Helper()
	r := &rig{t: t, team: bt, board: board.New(bt.Bucket, board.Options{}), offers: make(chan sent, 1000)}
	r.Index = index.New(index.Options{Team: bt, Finish: r.board.FinishCreate, Send: func(to team.AgentID, task team.Task) error { r.offers <- sent{to, task}; return nil }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := brokertest.Receive(t, "the index ends", done); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rig) create(tasks ...team.NewTask) []team.Task {
	r.t.Helper()
	created, err := r.board.Create(r.t.Context(), "leader", tasks...)
	if err != nil {
		r.t.Fatal(err)
	}
	return created
}

func (r *rig) last() uint64 {
	r.t.Helper()
	seq, err := r.team.Bucket.LastSeq(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return seq
}

// ask asks for a page that has seen all that was written; it waits for the index
// to begin.
func (r *rig) ask(q team.Query) (p team.Page) {
	r.t.Helper()
	brokertest.Until(r.t, "the index answers", func() bool {
		var err error
		if p, err = index.Ask(r.t.Context(), r.team, q, r.last()); err != nil && !errors.Is(err, team.Unavailable) {
			r.t.Fatal(err)
		}
		return err == nil
	})
	return p
}

// On a real feed: a task is offered with the revision at which it can be claimed,
// and its completion makes the next one claimable.
func TestOffers(t *testing.T) {
	r := run(t, brokertest.Team(t, "t"))
	first := r.create(team.NewTask{Title: "first"})
	r.create(team.NewTask{Title: "second", Dependencies: []team.TaskID{first[0].ID}})
	beat := team.Heartbeat{AgentID: "coder-1", Incarnation: 1, State: team.Idle}
	hand := board.NewClaimSlot(t.Context(), r.board, team.Holder{Agent: "coder-1", Incarnation: 1})
	for _, title := range []string{"first", "second"} {
		beat.N++
		_, beat.BoardSeq = hand.Now()
		r.Hear(beat)
		got := brokertest.Receive(t, "a task is offered", r.offers)
		if got.to != "coder-1" || got.task.Title != title || got.task.Revision == 0 {
			t.Fatalf("offered %+v, want %s to coder-1", got, title)
		}
		if _, err := hand.Take(t.Context(), got.task); err != nil {
			t.Fatalf("the offered task cannot be claimed: %v", err)
		}
		if _, err := hand.Complete(t.Context(), got.task.ID, team.Done{Summary: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	r.ask(team.Query{})
	if look := r.Snapshot(); look.Tasks[team.Completed] != 2 || len(look.Running) != 0 || look.Seq < r.last() {
		t.Errorf("Look = %+v", look)
	}
}

// A creator that dies leaves half a plan; it is finished by the process that
// leads, and nobody sees it before.
func TestFinishesPlan(t *testing.T) {
	t.Parallel()
	r := run(t, brokertest.Team(t, "t"))
	now := r.create(team.NewTask{Title: "before"})[0].CreatedAt
	seq := board.Sequence{V: team.Protocol, Op: "x", Next: 4, Intent: []team.Task{
		team.NewTask{Title: "one"}.Task("T-002", "leader", now), team.NewTask{Title: "two"}.Task("T-003", "leader", now)}}
	e, err := r.team.Bucket.Get(t.Context(), subject.KeySequence)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, v any, revision uint64) {
		t.Helper()
		data, err := json.Marshal(v)
		if err == nil {
			_, err = r.team.Bucket.Put(t.Context(), key, data, revision)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(subject.KeySequence, seq, e.Revision)
	put(subject.KeyTask("T-002"), seq.Intent[0], 0)
	brokertest.Until(t, "the plan is there", func() bool {
		p := r.ask(team.Query{})
		if p.Total != 1 && p.Total != 3 {
			t.Fatalf("of half a plan something is to be seen: %+v", p.Tasks)
		}
		return p.Total == 3
	})
}

// Who has just written sees that.
func TestReadsOwnWrites(t *testing.T) {
	r := run(t, brokertest.Team(t, "t"))
	for n := range 100 {
		created := r.create(team.NewTask{Title: fmt.Sprint("task ", n)})
		p := r.ask(team.Query{IDs: []team.TaskID{created[0].ID}})
		if len(p.Tasks) != 1 || p.Tasks[0].Revision != created[0].Revision || p.Tasks[0].Task.Revision != created[0].Revision {
			t.Fatalf("task %d was written and is not there: %+v", n, p)
		}
	}
}

// An index that has not come so far does not answer, and neither does one that has
// ended.
func TestSilentRatherThanBehind(t *testing.T) {
	t.Parallel()
	r := run(t, brokertest.Team(t, "t"))
	r.create(team.NewTask{Title: "x"})
	r.ask(team.Query{})
	if _, err := index.Ask(t.Context(), r.team, team.Query{}, r.last()+1); !errors.Is(err, team.Unavailable) {
		t.Errorf("asked for what was not written yet: %v", err)
	}
	if _, err := index.Ask(t.Context(), r.team, team.Query{Limit: -1}, 0); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("asked nonsense: %v", err)
	}
	r.stop()
	if _, err := index.Ask(t.Context(), r.team, team.Query{}, 0); !errors.Is(err, team.Unavailable) {
		t.Errorf("asked an index that has ended: %v", err)
	}
}

// Other programs may ask too, and what they get wrong they are told.
func TestRefusesNonsense(t *testing.T) {
	r := run(t, brokertest.Team(t, "t"))
	r.ask(team.Query{})
	for _, data := range []string{"", "{", `{"status":"colour"}`, `{"limit":-1}`} {
		m, err := r.team.Conn.NATS().RequestWithContext(t.Context(), subject.Query("t"), []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		var reply struct{ Error string }
		if err := json.Unmarshal(m.Data, &reply); err != nil || reply.Error == "" {
			t.Errorf("%q is answered with %s", data, m.Data)
		}
	}
}

// A page never outgrows a message; what does not fit is on the next.
func TestLongPages(t *testing.T) {
	t.Parallel()
	r := run(t, brokertest.Team(t, "t"))
	var want []string
	for range 6 {
		for _, created := range r.create(slices.Repeat([]team.NewTask{{Title: "x", Description: strings.Repeat("long ", 13000)}}, 5)...) {
			want = append(want, string(created.ID))
		}
	}
	var got []string
	q, pages := team.Query{Limit: team.MaxPage}, 0
	for pages = 1; ; pages++ {
		p := r.ask(q)
		for _, v := range p.Tasks {
			got = append(got, string(v.ID))
		}
		if p.Total != 30 {
			t.Errorf("Total = %d", p.Total)
		}
		if q.After = p.Next; q.After == "" {
			break
		}
	}
	if pages != 3 || !slices.Equal(got, want) {
		t.Errorf("on %d pages: %v", pages, got)
	}
}

// A damaged record does not stop the rest, and whoever lists is told of it.
func TestDamagedRecord(t *testing.T) {
	r := run(t, brokertest.Team(t, "t"))
	created := r.create(team.NewTask{Title: "x"}, team.NewTask{Title: "y"})
	rev, err := r.team.Bucket.Put(t.Context(), subject.KeyTask("T-001"), []byte("{"), created[0].Revision)
	if err != nil {
		t.Fatal(err)
	}
	p := r.ask(team.Query{})
	if p.Total != 1 || p.Tasks[0].ID != "T-002" || len(p.Quarantined) != 1 || p.Quarantined[0].Key != "task.T-001" || p.Quarantined[0].Revision != rev {
		t.Errorf("the page is %+v", p)
	}
}
