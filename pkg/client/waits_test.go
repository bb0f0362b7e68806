package client_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// beats has a member's process answer each ping with b.
func (r *rig) beats(t *testing.T, b team.Heartbeat) {
	t.Helper()
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: b.AgentID}, control.Handlers{Ping: func() team.Heartbeat { return b }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

// answering lists the members once the processes of all have answered: a slow machine takes longer than a list waits for one.
func (r *rig) answering(t *testing.T) (agents []client.Agent) {
	t.Helper()
	brokertest.Until(t, "the processes of all members answer", func() bool {
		var err error
		if agents, err = r.Members().List(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(agents, func(a client.Agent) bool { return a.State == team.Lost || a.State == team.Unknown })
	})
	return agents
}

// Of a member whose process does not answer in time nothing is known: it is not lost. A process that is gone is.
func TestSlowProcessIsNotLost(t *testing.T) {
	r := newRig(t)
	slow, gone := r.join(t), r.join(t)
	answers := make(chan struct{})
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: slow.AgentID}, control.Handlers{Ping: func() team.Heartbeat {
		<-answers
		return team.Heartbeat{AgentID: slow.AgentID, Incarnation: 1, State: team.Idle}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	ok(t, r.bt.Conn.Flush(t.Context())) // else the member may seem to be gone
	var once sync.Once
	answer := func() { once.Do(func() { close(answers) }) }
	t.Cleanup(answer)
	agents, err := r.Members().List(t.Context(), false)
	if err != nil || len(agents) != 2 || agents[0].State != team.Unknown || agents[1].AgentID != gone.AgentID || agents[1].State != team.Lost {
		t.Errorf("the members are %+v, %v", agents, err)
	}
	answer()
	brokertest.Until(t, "the slow one is known again", func() bool {
		m, err := r.Members().Get(t.Context(), slow.AgentID)
		return err == nil && m.State == team.Idle
	})
}

// What a member waits for is shown with its first words and since when; whether it is a plan or a
// call is looked up.
func TestWhatMembersWaitFor(t *testing.T) {
	r := newRig(t)
	since := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	call := team.Approval{V: team.Protocol, Kind: team.OfPermission, ID: "0a1b", AgentID: "coder-1", Incarnation: 1, Approver: team.ByHuman,
		Call: &team.AskedCall{Tool: "bash"}, Status: team.PlanPending, CreatedAt: since}
	plan := team.Approval{V: team.Protocol, ID: "0a1c", AgentID: "coder-2", Incarnation: 1, Approver: team.ByHuman, Plan: "First I look.", Status: team.PlanPending, CreatedAt: since}
	leaders := plan
	leaders.ID, leaders.Approver = "0a1d", team.ByLeader
	for _, a := range []team.Approval{call, plan, leaders} {
		value, err := json.Marshal(a)
		if err == nil {
			_, err = r.bt.Bucket.Put(t.Context(), subject.KeyPlan(a.ID), value, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []team.Heartbeat{
		{State: team.WaitingApproval, Awaits: team.UserAgent, Asked: call.ID, About: "git push"},
		{State: team.WaitingApproval, Awaits: team.Leader, Asked: "another"},
		{State: team.WaitingUser, Awaits: team.UserAgent, Asked: "01", About: "Which port?"},
		{State: team.Idle},
	} {
		b.AgentID, b.Incarnation, b.ProgressAt = r.join(t).AgentID, 1, since
		r.beats(t, b)
	}
	agents := r.answering(t)
	if len(agents) != 4 {
		t.Fatalf("%d members", len(agents))
	}
	for i, want := range []team.WaitFor{team.ForPermission, team.ForPlan, team.ForPerson, ""} {
		a := agents[i]
		if a.WaitsFor != want || (want != "") != (a.Since != nil && a.Since.Equal(since)) {
			t.Errorf("%s waits for %q since %v, want %q", a.AgentID, a.WaitsFor, a.Since, want)
		}
	}
	if agents[0].About != "git push" || agents[2].About != "Which port?" {
		t.Errorf("they ask %q and %q", agents[0].About, agents[2].About)
	}
	r.active(t)
	r.post(t, team.Message{Type: team.MsgMessage, From: "coder-3", To: team.UserAgent, Content: "Which port?", AwaitReply: true})
	var teams []client.TeamStatus
	brokertest.Until(t, "three wait for a person", func() bool {
		var err error
		teams, err = r.client.Teams(t.Context())
		return err == nil && len(teams) == 1 && teams[0].Waiting == 3
	})
	if s := teams[0]; len(s.Questions) != 1 || len(s.Requests) != 1 || len(s.Plans) != 1 || s.Plans[0].ID != plan.ID {
		t.Errorf("for a person wait %d: %d questions, %d calls, plans %v", s.Waiting, len(s.Questions), len(s.Requests), s.Plans)
	}
}

// A member whose work was submitted waits for the line, as long as that has not taken it.
func TestMembersWaitForTheLine(t *testing.T) {
	r := newLineRig(t)
	r.add(t, 1)
	m := r.join(t)
	task, err := r.board.Claim(t.Context(), "T-001", m.Holder())
	if err != nil {
		t.Fatal(err)
	}
	r.beats(t, team.Heartbeat{AgentID: m.AgentID, Incarnation: 1, State: team.Running, Task: task.ID, Epoch: task.Epoch, Tool: "update_task"})
	of := func() team.WaitFor { return r.answering(t)[0].WaitsFor }
	explained := func() team.TaskView {
		t.Helper()
		all, err := r.Board().Tasks(t.Context())
		if err == nil {
			err = r.Board().Explain(t.Context(), all, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	listed := func() (ids []team.TaskID) {
		t.Helper()
		q, err := team.Query{}.InStatuses([]string{"merging"}, false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Board().List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range p.Tasks {
			ids = append(ids, v.ID)
		}
		return ids
	}
	if v := explained(); v.Shown() != string(team.InProgress) || len(listed()) != 0 {
		t.Errorf("before its work is submitted its task is %s, and merging are %s", v.Shown(), listed())
	}
	if got := of(); got != "" {
		t.Errorf("before its work is submitted it waits for %q", got)
	}
	e := mergequeue.Entry{Task: task.ID, Epoch: task.Epoch, Incarnation: 1, Agent: m.AgentID, Base: gitrepo.Hash(r.git(t, "git rev-parse HEAD"))}
	if _, err := mergequeue.New(r.bt).Submit(t.Context(), e, []byte("bundle")); err != nil {
		t.Fatal(err)
	}
	if got := of(); got != team.ForMerge {
		t.Errorf("then it waits for %q", got)
	}
	if v := explained(); v.Shown() != "merging" || v.Status != team.InProgress || time.Since(*v.Merging) > time.Hour {
		t.Errorf("its task is %s since %v", v.Shown(), v.Merging)
	}
	if got := listed(); len(got) != 1 || got[0] != task.ID {
		t.Errorf("merging are %s", got)
	}
	if err := r.board.Reap(t.Context(), task.ID, task.Epoch, team.Freed{Reason: "its holder is lost", Attempt: true}); err != nil {
		t.Fatal(err)
	}
	if v := explained(); v.Shown() != string(team.Pending) || v.Merging != nil {
		t.Errorf("taken from its holder its task is %s since %v", v.Shown(), v.Merging)
	}
	if _, err := r.board.Claim(t.Context(), task.ID, m.Holder()); err != nil {
		t.Fatal(err)
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("with a new hold merging are %s", got)
	}
}

// A person waits for the line like any member, once the work of the seat was submitted.
func TestSeatsWaitForTheLine(t *testing.T) {
	r := newLineRig(t)
	r.add(t, 1)
	task := r.claim(t, "T-001", "alice")
	of := func() team.WaitFor {
		t.Helper()
		all, err := r.Members().List(t.Context(), false)
		if err != nil || len(all) != 1 || all[0].Task != task.ID {
			t.Fatalf("the members are %+v, %v", all, err)
		}
		return all[0].WaitsFor
	}
	if got := of(); got != "" {
		t.Errorf("before its work is submitted the seat waits for %q", got)
	}
	e := mergequeue.Entry{Task: task.ID, Epoch: task.Epoch, Incarnation: task.Incarnation, Agent: "alice", Base: gitrepo.Hash(r.git(t, "git rev-parse HEAD"))}
	if _, err := mergequeue.New(r.bt).Submit(t.Context(), e, []byte("bundle")); err != nil {
		t.Fatal(err)
	}
	if got := of(); got != team.ForMerge {
		t.Errorf("then the seat waits for %q", got)
	}
}

// Which members wait for the line is asked once, not for each of them.
func TestLineIsAskedOnce(t *testing.T) {
	r := newLineRig(t)
	r.add(t, 3)
	for _, id := range []team.TaskID{"T-001", "T-002", "T-003"} {
		m := r.join(t)
		task, err := r.board.Claim(t.Context(), id, m.Holder())
		if err != nil {
			t.Fatal(err)
		}
		r.beats(t, team.Heartbeat{AgentID: m.AgentID, Incarnation: 1, State: team.Running, Task: task.ID, Epoch: task.Epoch, Tool: "bash"})
	}
	sub, err := r.bt.Conn.NATS().SubscribeSync("$JS.API.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.bt.Conn.Flush(t.Context()); err != nil { // the server knows that we listen
		t.Fatal(err)
	}
	if agents, err := r.Members().List(t.Context(), false); err != nil || len(agents) != 3 {
		t.Fatalf("%d members, %v", len(agents), err)
	}
	if err := r.bt.Conn.Flush(t.Context()); err != nil { // what was asked is here
		t.Fatal(err)
	}
	n, _, err := sub.Pending()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for range n {
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m.Subject+string(m.Data), "merge.") {
			asked++
		}
	}
	if asked == 0 || asked > 2 { // a list takes two
		t.Errorf("it was asked %d times", asked)
	}
}

// A member that was restarted while its work waits to be merged is shown with that, though its process holds no task; the process that
// has submitted it holds none once it has learned that the work is merged.
func TestRestartedMembersWaitForTheLine(t *testing.T) {
	for _, incarnation := range []uint64{1, 2} {
		r := newLineRig(t)
		r.add(t, 1)
		m := r.join(t)
		task, err := r.board.Claim(t.Context(), "T-001", m.Holder())
		if err != nil {
			t.Fatal(err)
		}
		e := mergequeue.Entry{Task: task.ID, Epoch: task.Epoch, Incarnation: 1, Agent: m.AgentID, Base: gitrepo.Hash(r.git(t, "git rev-parse HEAD"))}
		if _, err := mergequeue.New(r.bt).Submit(t.Context(), e, []byte("bundle")); err != nil {
			t.Fatal(err)
		}
		m.Incarnation = incarnation
		if _, err := r.roster.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		r.beats(t, team.Heartbeat{AgentID: m.AgentID, Incarnation: incarnation, State: team.Idle})
		a := r.answering(t)[0]
		if (a.WaitsFor == team.ForMerge && a.Task == task.ID && a.Since != nil) != (incarnation == 2) {
			t.Errorf("incarnation %d waits for %q, with task %q since %v", incarnation, a.WaitsFor, a.Task, a.Since)
		}
	}
}
