package watchdog

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// All notices of the watchdog as a leader reads them, in each dialect where they differ.
func TestNotices(t *testing.T) {
	var b strings.Builder
	show := func(when, text string) {
		fmt.Fprintf(&b, "# %s\n%s\n\n", when, text)
		if other := team.Claude.Say(text); other != text {
			fmt.Fprintf(&b, "## In the dialect claude\n%s\n\n", other)
		}
	}
	tasks := []team.Task{
		{ID: "T-001", Title: "Count", Status: team.Completed},
		{ID: "T-002", Title: "Report", Status: team.Failed, Reason: "given up after 3 attempts; the last: disk full"},
		{ID: "T-003", Title: "Print it", Status: team.Pending, Dependencies: []team.TaskID{"T-002"}},
		{ID: "T-004", Title: "Ask", Status: team.InProgress, Assignee: "coder-1"},
		{ID: "T-005", Title: "Bind it", Status: team.Pending, Dependencies: []team.TaskID{"T-001", "T-004"}},
		{ID: "T-006", Title: "Test it", Status: team.Pending, Role: "tester"},
		{ID: "T-007", Title: "Sell it", Status: team.Pending, ReservedFor: "coder-4"},
	}
	look := func(change ...func(*snapshot)) snapshot {
		l := quiet()
		for _, f := range change {
			f(&l)
		}
		return l
	}
	with := func(tasks ...team.Task) func(*snapshot) {
		return func(l *snapshot) { l.Snapshot = on(l.Snapshot, tasks) }
	}
	member := func(a team.AgentID, state team.MemberState, change func(*team.Member, *team.Heartbeat)) func(*snapshot) {
		return func(l *snapshot) {
			m, b := joined(a, "coder"), beat(a, state)
			change(&m, &b)
			l.Members = append(l.Members, m)
			l.Beats[a] = b
		}
	}
	asks := func(of team.AgentID, id, about string) func(*team.Member, *team.Heartbeat) {
		return func(_ *team.Member, b *team.Heartbeat) { b.Awaits, b.Asked, b.About = of, id, about }
	}

	done := tasks[0]
	done.Assignee, done.ResultSummary = "coder-1", "42 lines in 3 files;\nwc printed the same."
	show("Nobody has anything left to do, and all is done.", look(with(tasks[0]), func(l *snapshot) { l.Done = []team.Task{done} }).Notice(unfinished(tasks[:1], maxNamed)))
	alone := look()
	alone.Members = alone.Members[:1]
	show("The same, and the leader is alone.", alone.Notice(nil, 0))
	show("Nobody goes on, for every reason that there is.", look(
		member("coder-2", team.WaitingAnswer, asks(team.Leader, "m1", "Which colour?")),
		member("coder-3", team.WaitingAnswer, asks("coder-2", "m2", "Which size?")),
		member("coder-4", team.WaitingApproval, asks(team.Leader, "9f0c", "first the lexer")),
		member("coder-5", team.Idle, func(m *team.Member, _ *team.Heartbeat) { m.State = team.Lost }),
		with(tasks...),
		func(l *snapshot) { l.Quarantined = []team.Quarantined{{Key: "task.T-009", Error: "it is damaged"}} },
	).Notice(unfinished(tasks, 5)))
	show("Commands run in the background and print nothing.", look(
		member("coder-2", team.Idle, func(_ *team.Member, b *team.Heartbeat) {
			b.Jobs = []team.Job{{ID: "b1a2b3c", Kind: team.JobCommand, About: "make serve", Background: true, Still: 720}}
		}),
		member("coder-3", team.WaitingAnswer, func(_ *team.Member, b *team.Heartbeat) {
			b.Jobs = []team.Job{{ID: "bd4e5f6", Kind: team.JobCommand, About: "make test", Background: true, Still: 720}}
		}),
	).Notice(nil, 0))
	show("A person is waited for.", look(
		member("coder-2", team.WaitingUser, asks("ann", "m1", "Which colour?")),
		member("coder-3", team.WaitingApproval, asks(team.UserAgent, "9f0c", "first the lexer")),
		member("coder-4", team.WaitingModel, func(m *team.Member, b *team.Heartbeat) { m.LastError = "no credit"; *b = parked("coder-4") }),
		member("coder-6", team.Idle, func(_ *team.Member, b *team.Heartbeat) {
			b.Jobs = []team.Job{{ID: "a1b2c3d", Kind: team.JobSubagent, About: "find callers", Background: true, Asked: "7a1e"}}
		}),
		member("coder-5", team.WaitingRepair, func(m *team.Member, b *team.Heartbeat) { m.LastError = "record 7 cannot be read" }),
		member("ann", team.Idle, func(m *team.Member, _ *team.Heartbeat) { m.Backend = team.Person }),
		with(team.Task{ID: "T-001", Title: "Decide", Status: team.InProgress, Assignee: "ann"}),
	).Notice(unfinished([]team.Task{{ID: "T-001", Title: "Decide", Status: team.InProgress, Assignee: "ann"}}, maxNamed)))

	show("A task has ended without success, and others wait for it.",
		blockedText(index.End{Task: tasks[1], Blocks: []team.TaskID{"T-003", "T-008"}}))
	lost := tasks[1]
	lost.UpdatedBy = team.Watchdog
	show("A task has failed since its holders were lost.", failedText(lost))
	show("What was reserved for a member is not any more.",
		UnreachableReservation{Member: "coder-4", Why: team.Member{State: team.WaitingRepair}.Absent(team.Policies{}), Tasks: tasks[5:7]}.Text())
	for _, why := range []string{noPing, noInbox, noOffer} {
		show("A member beats, and does not answer.", silentText("coder-1", why))
	}
	still := beat("coder-1", team.Running)
	still.Still, still.Task = int(15*time.Minute/time.Second), "T-004"
	show("A member makes no progress: its model is silent.", stalledText(still))
	still.Tool = "bash"
	show("The same, in a call.", stalledText(still))
	still.Tool, still.Task, still.Trouble = "", "", "503 Service Unavailable"
	show("The same, since its model refuses, and without a task.", stalledText(still))
	show("A member is lost again and again.", GivenUpText("coder-1", hopeless(team.Member{Losses: maxCrashes})))
	show("A member cannot be brought back.", stillLostText("coder-1", "no process is free"))
	show("A member joined without leave.", RefusedText("bob", "the team has its 10 teammates (max_teammates) without it"))

	const file = "testdata/notices.txt"
	got := b.String()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || got != string(want) {
		t.Errorf("%s is another (%v; go test -update accepts it):\n%s", file, err, got)
	}
}
