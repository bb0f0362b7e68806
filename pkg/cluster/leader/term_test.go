package leader

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/execenv"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// A notice that is sent again, since the leader before died before it noted that it was
// sent, is stored once.
func TestToldOnce(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	before, err := bt.Messages.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		next := &term{team: bt, mailbox: mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})}
		if err := next.Notify(ctx, "blocked-T-001-7", "[Blocked] T-001"); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := bt.Messages.LastSeq(ctx); err != nil || after != before+1 {
		t.Errorf("%d notices were stored, %v", after-before, err)
	}
}

// What kept a leader from its work is not said of its successor, which begins well.
func TestNewTermForgets(t *testing.T) {
	bt := brokertest.Team(t, "t")
	cause := team.Member{AgentID: team.Leader, State: team.WaitingModel, LastError: "no model is configured", Incarnation: 1}
	if _, err := roster.New(bt).Put(t.Context(), cause); err != nil {
		t.Fatal(err)
	}
	m, err := new(leader).join(t.Context(), bt, team.Role{Name: "leader"}, 2, "")
	if err != nil || m.State != team.Joined || m.Incarnation != 2 || m.LastError != "" {
		t.Errorf("the next term begins as %+v, %v", m, err)
	}
}

// Why a team cannot be led is written once for each goal, however often it is tried: who follows
// the next goal finds it there.
func TestCannotIsToldInEachGoal(t *testing.T) {
	bt := brokertest.Team(t, "t")
	var record team.Team
	var last team.Member
	for goal := range 2 {
		for try := range 3 {
			if err := new(leader).cannot(t.Context(), bt, record, uint64(try+1), errors.New("there is no such folder")); err != nil {
				t.Fatal(err)
			}
			m, err := roster.New(bt).Get(t.Context(), team.Leader)
			if err != nil || m.State != team.Lost || m.LastError != "there is no such folder" || (m.Incarnation > last.Incarnation) != (try == 0) {
				t.Errorf("goal %d, try %d: %+v, %v", goal, try, m, err)
			}
			last = m
		}
		seq, err := bt.Bucket.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		record.GoalSeq = seq
	}
}

// Why a term has failed before its leader was at work is written for those who wait for it; not of a term that has worked,
// nor while NATS is away, nor of one that was to end.
func TestTermThatNeverBegan(t *testing.T) {
	fault := team.Errorf(team.InvalidState, "the folder is gone")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx    context.Context
		worked bool
		err    error
		lost   bool
	}{
		"never at work": {t.Context(), false, fault, true},
		"after work":    {t.Context(), true, fault, false},
		"NATS is away":  {t.Context(), false, team.Errorf(team.Unavailable, "no answer"), false},
		"to end":        {ended, false, fault, false},
		"superseded":    {t.Context(), false, fmt.Errorf("journal: %w", team.ErrSuperseded), false},
	} {
		bt := brokertest.Team(t, "t")
		m, err := new(leader).join(t.Context(), bt, team.Role{Name: "leader"}, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		now := &term{team: bt, member: m}
		if tt.worked {
			now.agent.Store(new(agent.Agent))
		}
		if err := new(leader).over(tt.ctx, now, team.Team{}, tt.err); err == nil == (name != "superseded") {
			t.Errorf("%s: %v", name, err)
		}
		m, err = roster.New(bt).Get(t.Context(), team.Leader)
		if err != nil || (m.State == team.Lost) != tt.lost || tt.lost && m.LastError != "the folder is gone" {
			t.Errorf("%s: its record is %s: %q, %v", name, m.State, m.LastError, err)
		}
	}
}

// A leader asks of standbys the level that its own commands have, not what its operator has wished for.
func TestSpawnsAtItsLevel(t *testing.T) {
	r := newRig(t, brokertest.Server(t))
	source := execenv.New(execenv.Options{Sandbox: team.SandboxAuto})
	r.term.leader.Workspaces = source
	asked := make(chan team.Sandbox, 100)
	stop, err := control.ServePool(t.Context(), r.team.Conn, nil, func(_ context.Context, o control.Order) error {
		asked <- o.Sandbox
		return team.Errorf(team.InvalidState, "this standby takes no member")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := r.team.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.spawner.Spawn(t.Context(), team.Member{Role: "coder", Model: "strong"}, 10); !errors.Is(err, team.InvalidState) {
		t.Fatal(err)
	}
	if got, want := brokertest.Receive(t, "a standby is asked", asked), source.Level(t.Context(), team.Team{}, team.LeaderRole); got != want {
		t.Errorf("the order asks for the sandbox %q, the leader's commands have %q", got, want)
	}
}

// A member is asked to leave and answers, or has not answered when the leader's call is over;
// one whose process is gone is asked nothing.
func TestRemove(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	r := roster.New(bt)
	box := mailbox.New(bt, mailbox.Options{Members: r})
	leads := &term{team: bt, roster: r, mailbox: box, spawner: spawn.New(spawn.Options{Team: bt, Roster: r})}
	for name, state := range map[team.AgentID]team.MemberState{"coder-1": team.Lost, "coder-2": team.Joined} {
		if _, err := r.Put(ctx, team.Member{AgentID: name, Role: "coder", State: state, Incarnation: 1, Backend: team.Pool}); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := leads.Remove(ctx, "coder-1", ""); err != nil || !a.Left {
		t.Errorf("of one that is lost: %+v, %v", a, err)
	}
	short, cancel := context.WithTimeout(ctx, 3*time.Second) // time enough to ask
	defer cancel()
	if a, err := leads.Remove(short, "coder-2", ""); err != nil || a.Left || a.Refused || a.RequestID == "" {
		t.Errorf("of one that is silent: %+v, %v", a, err)
	}
	answering, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_ = box.Receive(answering, "coder-2", 1, mailbox.Mark{}, func(d mailbox.Delivery) error {
			d.Ack()
			if d.Content != "we are too many" {
				return nil
			}
			_, _, err := box.Send(ctx, team.Message{Type: team.MsgShutdownResponse, From: "coder-2", To: team.Leader, RequestID: d.RequestID, Approve: new(bool), Content: "not yet"})
			return err
		})
	}()
	if a, err := leads.Remove(ctx, "coder-2", "we are too many"); err != nil || !a.Refused || a.Reason != "not yet" {
		t.Errorf("of one that refuses: %+v, %v", a, err)
	}
	for name, want := range map[team.AgentID]team.MemberState{"coder-1": team.Stopped, "coder-2": team.Joined} {
		if m, err := r.Get(ctx, name); err != nil || m.State != want {
			t.Errorf("%s is %s, %v; want %s", name, m.State, err, want)
		}
	}
}

// Whoever leads hears all members for itself: the watchdog's record has their last beats,
// and an idle member is offered a task, and told when it is taken away.
func TestLeaderListens(t *testing.T) {
	r := newRig(t, brokertest.Server(t))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.index.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(t, "the index ends", ended); err != nil {
			t.Error(err)
		}
	})
	stop, err := r.listen()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	m, err := r.roster.Put(ctx, team.Member{AgentID: "coder-1", Role: "coder", Backend: team.Exec, State: team.Joined, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	offered, revoked := make(chan team.Task, 8), make(chan team.TaskID, 8)
	stopServing, err := control.Serve(ctx, r.team.Conn, control.Membership{Team: "t", AgentID: "coder-1"}, control.Handlers{
		Offer:   func(task team.Task) { offered <- task },
		Revoked: func(id team.TaskID) { revoked <- id },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stopServing()
	if _, err := r.board.Create(ctx, team.Leader, team.NewTask{Title: "first"}); err != nil {
		t.Fatal(err)
	}
	heart := roster.NewHeart(r.roster, m, team.DefaultLease)
	heart.Set(func(b *team.Heartbeat) { b.State = team.Idle })
	task := brokertest.Receive(t, "the task is offered", offered)
	if h, ok := r.pulse.Of("coder-1"); task.ID != "T-001" || !ok || h.Heartbeat.State != team.Idle || h.Incarnation != 1 {
		t.Errorf("offered %+v after the beat %+v", task, h)
	}
	for _, a := range []team.AgentID{"coder-1", team.Leader} { // of an incarnation that nobody has
		if err := r.team.Conn.NATS().Publish(subject.Heartbeat("t", a), fmt.Appendf(nil, `{"agent_id":%q,"incarnation":99,"n":1,"state":"running"}`, a)); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []team.MemberState{team.WaitingAnswer, team.Idle} {
		heart.Set(func(b *team.Heartbeat) { b.State = state })
		brokertest.Until(t, "the beat is heard", func() bool {
			h, _ := r.pulse.Of("coder-1")
			if h.Incarnation != 1 {
				t.Fatalf("after a forged beat heard %+v, want %s", h, state)
			}
			return h.Heartbeat.State == state
		})
	}
	if _, err := r.board.Create(ctx, team.Leader, team.NewTask{Title: "second", Dependencies: []team.TaskID{"T-001"}}); err != nil {
		t.Fatal(err)
	}
	box := mailbox.New(r.team, mailbox.Options{Members: r.roster})
	if _, _, err := box.Send(ctx, team.Message{Type: team.MsgMessage, From: "coder-2", To: "coder-1", Content: "Hello."}); err != nil {
		t.Fatal(err)
	}
	received := errors.New("received")
	if err := box.Receive(ctx, "coder-1", 1, mailbox.Mark{}, func(mailbox.Delivery) error { return received }); !errors.Is(err, received) {
		t.Fatal(err)
	}
	if task, err = board.NewClaimSlot(ctx, r.board, m.Holder()).Take(ctx, task); err != nil {
		t.Fatal(err)
	}
	brokertest.Until(t, "the index has one task that runs and one that waits", func() bool {
		l := r.index.Snapshot()
		return l.Tasks[team.InProgress] == 1 && l.Tasks[team.Pending] == 1
	})
	want := explain.Overview{Members: map[team.MemberState]int{team.Idle: 1}, Running: 1, Blocked: 1, Unread: 1}
	if got, err := r.overview(ctx); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the team stands as %+v (%v), want %+v", got, err, want)
	}
	if err := r.Reap(ctx, task, team.Freed{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	if id := brokertest.Receive(t, "the task is taken away", revoked); id != "T-001" {
		t.Errorf("told that %s is no longer its own", id)
	}
}

// A member that is given up has stopped, its record says why, and the leader is told once. At
// the end of a goal those that are lost have stopped, and who may live has not.
func TestGiveUpAndDismiss(t *testing.T) {
	t.Parallel()
	r := newRig(t, brokertest.Server(t))
	ctx := t.Context()
	members := map[team.AgentID]team.Member{}
	for a, state := range map[team.AgentID]team.MemberState{"coder-1": team.Joined, "coder-2": team.Lost, "coder-3": team.Created, "coder-4": team.Joined} {
		m, err := r.roster.Put(ctx, team.Member{AgentID: a, Role: "coder", Backend: team.Pool, State: state, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		members[a] = m
	}
	for range 2 { // the second time as a leader that goes on with what its predecessor began
		if err := r.GiveUp(ctx, members["coder-1"], "it crashes"); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.read(t); n != 1 {
		t.Errorf("the leader was told %d times", n)
	}
	if err := r.dismissLost(ctx); err != nil {
		t.Fatal(err)
	}
	for a, want := range map[team.AgentID]string{"coder-1": "stopped it crashes", "coder-2": "stopped ", "coder-3": "stopped ", "coder-4": "joined "} {
		m, err := r.roster.Get(ctx, a)
		if got := string(m.State) + " " + m.LastError; err != nil || got != want {
			t.Errorf("%s is %q, want %q, %v", a, got, want, err)
		}
	}
}

// The leader of a next goal is told of those who worked on the goals before, with what they
// did last, so that it can bring back who knows its way about.
func TestLeaderIsToldWhoIsAway(t *testing.T) {
	r := newRig(t, brokertest.Server(t))
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	joins := func(name team.AgentID, role string) team.Holder {
		m, err := r.roster.Put(ctx, team.Member{AgentID: name, Role: role, Backend: team.Pool, State: team.Joined, Incarnation: 1})
		must(err)
		return m.Holder()
	}
	r.goal(t, "the first")
	anna := board.NewClaimSlot(ctx, r.board, joins("anna", "coder"))
	joins("tester-1", "tester")
	_, err := r.board.Create(ctx, team.Leader, team.NewTask{Title: "Build it"})
	must(err)
	_, err = anna.Claim(ctx, "T-001")
	must(err)
	_, err = anna.Complete(ctx, "T-001", team.Done{Summary: "It is built."})
	must(err)
	must(r.roster.Leave(ctx, "anna", 1, ""))
	r.read(t)
	must(r.Finish(ctx, "It is built.", nil))
	r.goal(t, "the next")
	must(r.roster.Leave(ctx, "tester-1", 1, "")) // in this goal: who removed it knows

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.index.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(brokertest.Receive(t, "the index ends", ended))
	})
	brokertest.Until(t, "anna is away, with what she did last", func() bool {
		o, err := r.overview(ctx)
		must(err)
		return len(o.Away) == 1 && o.Away[0].Last.Title == "Build it" && o.Away[0].Name == "anna" && o.Away[0].Role == "coder" && len(r.index.Snapshot().Members) == 2
	})
}

// A task whose work waits to be merged is not taken from its holder, whatever became of that; once
// the team is not on the line any more, it is.
func TestReapSparesWhatIsMerged(t *testing.T) {
	ctx := t.Context()
	conn := brokertest.Connect(t, brokertest.Server(t))
	reg, err := registry.Open(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	bt, _, err := reg.Make(ctx, team.Team{ID: "red", Status: team.Active, Branch: &team.GoalBranch{Goal: 1}})
	if err != nil {
		t.Fatal(err)
	}
	records := mergequeue.New(bt)
	term := &term{team: bt, board: board.New(bt.Bucket, board.Options{Withdraw: records.Withdraw})}
	all, err := term.board.Create(ctx, team.UserAgent, team.NewTask{Title: "Three"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := term.board.Claim(ctx, all[0].ID, team.Holder{Agent: "coder-1", Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	base := gitrepo.Hash(strings.Repeat("a", 40))
	if _, err := records.Submit(ctx, mergequeue.Entry{Task: task.ID, Epoch: task.Epoch, Agent: "coder-1", Base: base}, []byte("work")); err != nil {
		t.Fatal(err)
	}
	reaped := func(want team.TaskStatus) {
		t.Helper()
		err := term.Reap(ctx, task, team.Freed{Reason: "its holder is lost", Attempt: true})
		if is, readErr := term.board.Get(ctx, task.ID); err != nil || readErr != nil || is.Status != want {
			t.Errorf("it is %s, want %s: %v, %v", is.Status, want, err, readErr)
		}
	}
	reaped(team.InProgress)
	if _, err := reg.Edit(ctx, bt, func(r *team.Team) { r.Branch.Why = "isolation is set to shared" }); err != nil {
		t.Fatal(err)
	}
	reaped(team.Pending)
}

// A lost member whose return a person has allowed comes back when there is room; of two for one
// place the first.
func TestReturnsWhereThereIsRoom(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	r := roster.New(bt)
	box := mailbox.New(bt, mailbox.Options{Members: r})
	leads := &term{team: bt, roster: r, returning: map[team.AgentID]uint64{}, mailbox: box,
		plans: approval.New(bt.Bucket, approval.Options{Members: r, Post: box})}
	record := team.Team{MaxTeammates: 1, Policies: team.Policies{Respawn: team.RespawnAsk}, Roles: map[string]team.Role{"coder": {Name: "coder"}}}
	members := map[team.AgentID]team.Member{}
	for name, state := range map[team.AgentID]team.MemberState{"coder-1": team.Lost, "coder-2": team.Lost, "coder-3": team.Joined} {
		m, err := r.Put(ctx, team.Member{AgentID: name, Role: "coder", State: state, Incarnation: 1, Backend: team.Pool})
		if err != nil {
			t.Fatal(err)
		}
		members[name] = m
	}
	may := func(name team.AgentID, want bool, when string) {
		t.Helper()
		if got, err := leads.MayReturn(ctx, members[name], record); got != want || err != nil {
			t.Errorf("%s, %s: %v, %v; want %v", name, when, got, err, want)
		}
	}
	for _, name := range []team.AgentID{"coder-1", "coder-2"} {
		may(name, false, "nobody has decided")
		if _, err := leads.plans.Decide(ctx, team.NewRespawn(members[name], "", "", time.Now()).ID, team.Decision{By: team.UserAgent, Approve: true}); err != nil {
			t.Fatal(err)
		}
		may(name, false, "the place is taken")
		waits, err := r.Get(ctx, name)
		if members[name] = waits; err != nil || !strings.Contains(waits.LastError, "there is no room: the team has 1 teammate,") {
			t.Errorf("the record of %s states %q, %v", name, waits.LastError, err)
		}
		may(name, false, "the place is still taken")
	}
	var notices []string
	if err := box.Read(ctx, team.Leader, 1, func(d mailbox.Delivery) error { notices = append(notices, d.Content); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(notices) != 2 || !strings.Contains(notices[0], "[Lost] A person has decided that coder-1 comes back, but the team has 1 teammate,") {
		t.Errorf("the leader gets %q", notices)
	}
	if err := r.Leave(ctx, "coder-3", 1, ""); err != nil {
		t.Fatal(err)
	}
	may("coder-2", true, "there is room")
	may("coder-1", false, "the other one has the place")
	may("coder-2", true, "asked again")
}
