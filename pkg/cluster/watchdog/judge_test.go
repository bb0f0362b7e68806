package watchdog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
)

func joined(a team.AgentID, role string) team.Member {
	return team.Member{AgentID: a, Role: role, State: team.Joined, Backend: team.Pool, Incarnation: 1}
}

func beat(a team.AgentID, s team.MemberState) team.Heartbeat {
	return team.Heartbeat{AgentID: a, Incarnation: 1, State: s, Turn: 3, InboxSeq: 7}
}

// quiet is a look at a team of a leader and a coder that have nothing to do.
func quiet() snapshot {
	return snapshot{
		Snapshot: index.Snapshot{
			Team:    team.Team{ID: "t", MaxTeammates: 10, Status: team.Active, Goal: "build it", LeaseSeconds: int(lease / time.Second)},
			Members: []team.Member{joined(team.Leader, "leader"), joined("coder-1", "coder")},
			Seq:     9,
		},
		Beats: map[team.AgentID]team.Heartbeat{team.Leader: beat(team.Leader, team.Idle), "coder-1": beat("coder-1", team.Idle)},
	}
}

// parkedAt has the model of a member refuse it.
func parkedAt(a team.AgentID) func(*snapshot) {
	return func(l *snapshot) { l.Beats[a] = parked(a) }
}

func parked(a team.AgentID) team.Heartbeat {
	b, later := beat(a, team.WaitingModel), time.Now().Add(time.Minute)
	b.RetryAt, b.Unseen = &later, true
	return b
}

func TestStirs(t *testing.T) {
	state := func(a team.AgentID, s team.MemberState) func(*snapshot) {
		return func(l *snapshot) { l.Beats[a] = beat(a, s) }
	}
	tasks := func(all ...team.Task) func(*snapshot) { return func(l *snapshot) { l.Snapshot = on(l.Snapshot, all) } }
	held := team.Task{ID: "T-001", Status: team.InProgress, Assignee: "coder-1"}
	pending := team.Task{ID: "T-001", Status: team.Pending}
	forTester := team.Task{ID: "T-001", Status: team.Pending, Role: "tester"}
	reserved := func(a team.AgentID) team.Task {
		return team.Task{ID: "T-001", Status: team.Pending, ReservedFor: a}
	}
	rests := pending // coder-1 has put it back
	rests.Declined = []team.Declined{{By: "coder-1"}}
	looker := func(l *snapshot) { // one that only looks joins
		l.Team.Roles = map[string]team.Role{"explorer": {Name: "explorer", Tools: []string{"read_file"}}}
		l.Members, l.Beats = append(slices.Clone(l.Members), joined("explorer-1", "explorer")), maps.Clone(l.Beats)
		l.Beats["explorer-1"] = beat("explorer-1", team.Idle)
	}
	waits := func(l *snapshot) { // coders take only what is assigned to them
		l.Team.Roles = map[string]team.Role{"coder": {Name: "coder", AutoClaim: new(bool)}}
	}
	gone := func(l *snapshot) { l.Members[1].State = team.Lost; delete(l.Beats, "coder-1") }
	deaf := func(l *snapshot) { l.Deaf = []team.AgentID{"coder-1"} }
	blocked := team.Task{ID: "T-002", Status: team.Pending, Dependencies: []team.TaskID{"T-001"}}
	for name, tt := range map[string]struct {
		change []func(*snapshot)
		want   string
	}{
		"nobody moves":            {nil, ""},
		"who claims nothing":      {[]func(*snapshot){waits, tasks(pending)}, ""},
		"what it is to claim":     {[]func(*snapshot){waits, tasks(reserved("coder-1"))}, "T-001 is about to be claimed by coder-1"},
		"no goal":                 {[]func(*snapshot){func(l *snapshot) { l.Team.Goal = "" }}, "no goal"},
		"ended":                   {[]func(*snapshot){func(l *snapshot) { l.Team.Status = team.TeamFinished }}, "no goal"},
		"a spawn":                 {[]func(*snapshot){func(l *snapshot) { l.Members[1].State = team.Created }}, "a spawn is under way"},
		"the coder runs":          {[]func(*snapshot){state("coder-1", team.Running)}, "coder-1 is not idle"},
		"the leader runs":         {[]func(*snapshot){state(team.Leader, team.Running)}, "leader is not idle"},
		"not heard":               {[]func(*snapshot){func(l *snapshot) { delete(l.Beats, "coder-1") }}, "coder-1 is not idle"},
		"a predecessor was heard": {[]func(*snapshot){func(l *snapshot) { l.Members[1].Incarnation = 2 }}, "coder-1 is not idle"},
		"input not seen yet": {[]func(*snapshot){func(l *snapshot) {
			b := beat("coder-1", team.Idle)
			b.Unseen = true
			l.Beats["coder-1"] = b
		}}, "coder-1 is not idle"},
		"waits for its model":                            {[]func(*snapshot){state("coder-1", team.WaitingModel)}, "coder-1 is not idle"},
		"its model refuses it":                           {[]func(*snapshot){parkedAt("coder-1")}, ""},
		"a task while the only one that could is parked": {[]func(*snapshot){tasks(pending), parkedAt("coder-1")}, ""},
		"the leader's model refuses it":                  {[]func(*snapshot){parkedAt(team.Leader)}, "leader is not idle"},
		"a task that its idle member rests from":         {[]func(*snapshot){tasks(rests)}, "a task is about to be claimed"},
		"who only looks is idle, the coder is to answer": {[]func(*snapshot){looker, tasks(pending), state("coder-1", team.WaitingAnswer)}, ""},
		"who only looks is idle, so is the coder":        {[]func(*snapshot){looker, tasks(pending)}, "a task is about to be claimed"},
		"who only looks is left alone":                   {[]func(*snapshot){looker, tasks(pending), parkedAt("coder-1")}, "a task is about to be claimed"},
		"who only looks, and the coder takes nothing":    {[]func(*snapshot){looker, tasks(pending), deaf}, "a task is about to be claimed"},
		"waits for an answer":                            {[]func(*snapshot){state("coder-1", team.WaitingAnswer)}, ""},
		"its subagent waits for a person": {[]func(*snapshot){tasks(held), func(l *snapshot) {
			b := beat("coder-1", team.Running)
			b.Jobs = []team.Job{{Kind: team.JobSubagent, Asked: "p1"}}
			l.Beats["coder-1"] = b
		}}, ""},
		"waits with its task":                        {[]func(*snapshot){state("coder-1", team.WaitingAnswer), tasks(held)}, ""},
		"idle with a task":                           {[]func(*snapshot){tasks(held)}, "T-001 is in progress"},
		"a task for the taking":                      {[]func(*snapshot){tasks(pending)}, "a task is about to be claimed"},
		"a task while the only one that could waits": {[]func(*snapshot){tasks(pending), state("coder-1", team.WaitingAnswer)}, ""},
		"a task for a role that nobody plays":        {[]func(*snapshot){tasks(forTester)}, ""},
		"a task that waits for one of another role":  {[]func(*snapshot){tasks(forTester, blocked)}, ""},
		"reserved for an idle one":                   {[]func(*snapshot){tasks(reserved("coder-1"))}, "T-001 is about to be claimed by coder-1"},
		"reserved for the leader":                    {[]func(*snapshot){tasks(reserved(team.Leader))}, ""},
		"reserved for one who waits":                 {[]func(*snapshot){tasks(reserved("coder-1")), state("coder-1", team.WaitingAnswer)}, ""},
		"reserved for one who cannot come":           {[]func(*snapshot){tasks(reserved("coder-1")), parkedAt("coder-1")}, ""},
		"reserved for nobody who is there":           {[]func(*snapshot){tasks(reserved("coder-9"))}, ""},
		"lost, and to be brought back":               {[]func(*snapshot){gone}, "coder-1 is being brought back"},
		"lost, and left at that":                     {[]func(*snapshot){gone, func(l *snapshot) { l.Team.Policies.Respawn = team.RespawnRelease }}, ""},
		"lost, after several tries":                  {[]func(*snapshot){gone, func(l *snapshot) { l.Missed = map[team.AgentID]bool{"coder-1": true} }}, ""},
		"unread mail":                                {[]func(*snapshot){func(l *snapshot) { l.Unread = 1 }}, "there is unread mail"},
		"a member that left":                         {[]func(*snapshot){func(l *snapshot) { l.Members[1].State = team.Stopped; delete(l.Beats, "coder-1") }}, ""},
		"a task alone with the leader":               {[]func(*snapshot){tasks(pending), func(l *snapshot) { l.Members[1].State = team.Stopped; delete(l.Beats, "coder-1") }}, ""},
		"a person works": {[]func(*snapshot){tasks(team.Task{ID: "T-001", Status: team.InProgress, Assignee: "ann"}), func(l *snapshot) {
			l.Members = append(l.Members, team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person})
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := quiet()
			for _, change := range tt.change {
				change(&l)
			}
			if got := l.Activity(); got != tt.want {
				t.Errorf("Stirs = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	for name, tt := range map[string]struct {
		before, now func(*snapshot)
		want        bool
	}{
		"nothing moved":                {want: true},
		"busy before":                  {before: func(l *snapshot) { l.Beats["coder-1"] = beat("coder-1", team.Running) }},
		"busy now":                     {now: func(l *snapshot) { l.Beats["coder-1"] = beat("coder-1", team.Running) }},
		"a turn between":               {now: func(l *snapshot) { b := l.Beats["coder-1"]; b.Turn++; l.Beats["coder-1"] = b }},
		"a turn of the leader between": {now: func(l *snapshot) { b := l.Beats[team.Leader]; b.Turn++; l.Beats[team.Leader] = b }},
		"mail between":                 {now: func(l *snapshot) { b := l.Beats["coder-1"]; b.InboxSeq++; l.Beats["coder-1"] = b }},
		"the board moved":              {now: func(l *snapshot) { l.Seq++ }},
		"mail is there":                {now: func(l *snapshot) { l.Unread = 1 }},
		"restarted between": {now: func(l *snapshot) {
			l.Members[1].Incarnation = 2
			b := l.Beats["coder-1"]
			b.Incarnation = 2
			l.Beats["coder-1"] = b
		}},
		"somebody who was not there left": {before: func(l *snapshot) { l.Beats["coder-2"] = beat("coder-2", team.Idle) }},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := quiet(), quiet()
			before.Members, now.Members = slices.Clone(before.Members), slices.Clone(now.Members)
			before.Beats, now.Beats = maps.Clone(before.Beats), maps.Clone(now.Beats)
			if tt.before != nil {
				tt.before(&before)
			}
			if tt.now != nil {
				tt.now(&now)
			}
			if got := allQuiet(before, now); got != tt.want {
				t.Errorf("allQuiet = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestLosses(t *testing.T) {
	m := team.Member{AgentID: "coder-1", State: team.Joined, PID: 7, Cluster: "now", Losses: 3}
	for name, tt := range map[string]struct {
		change func(*team.Member)
		want   int
	}{
		"killed":                {func(*team.Member) {}, 4},
		"after it lived well":   {func(m *team.Member) { m.Losses = 0 }, 1},
		"nobody became it":      {func(m *team.Member) { m.State, m.PID = team.Created, 0 }, 3},
		"its cluster ended":     {func(m *team.Member) { m.Cluster = "before" }, 3},
		"it said why it failed": {func(m *team.Member) { m.State, m.LastError = team.Lost, "no folder" }, 3},
		"parked, and killed":    {func(m *team.Member) { m.State, m.LastError = team.WaitingModel, "no key" }, 4},
		"stopped in order":      {func(m *team.Member) { m.State = team.Lost }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := m
			tt.change(&m)
			if got := lossesOf(m, "now"); got != tt.want {
				t.Errorf("%d losses, want %d", got, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		state  team.MemberState
		losses int
		gone   bool
	}{{team.Joined, maxCrashes - 1, false}, {team.Joined, maxCrashes, true}, {team.Lost, maxLosses - 1, false}, {team.Lost, maxLosses, true}} {
		if why := hopeless(team.Member{State: tt.state, Losses: tt.losses}); (why != "") != tt.gone {
			t.Errorf("%s, lost %d times: %q", tt.state, tt.losses, why)
		}
	}
}

// A member that fails again and again is brought back more and more slowly; one that
// fell silent, or had worked well for a while, at once or soon.
func TestWait(t *testing.T) {
	var f failures
	at := time.Now()
	bob := team.Member{AgentID: "bob"}
	if wait := f.after(bob, at).wait(bob); wait != 0 {
		t.Errorf("a member that fell silent waits %v", wait)
	}
	for losses, want := range []time.Duration{0, 0, 1, 2, 4} {
		ann := team.Member{AgentID: "ann", Losses: losses}
		if wait := f.after(ann, at).wait(ann); wait != want*time.Second {
			t.Errorf("after %d losses in a row it waits %v, want %d s", losses, wait, want)
		}
	}
	bob.LastError = "no such folder"
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		f = f.after(bob, at)
		if wait := f.wait(bob); wait != want*time.Second {
			t.Errorf("after failure %d it waits %v, want %d s", i+1, wait, want)
		}
	}
	if wait := f.after(bob, at.Add(forgotten+time.Second)).wait(bob); wait != firstBackoff {
		t.Errorf("after a good while it waits %v", wait)
	}
}

func TestSilent(t *testing.T) {
	const lease = 30 * time.Second
	type silences map[team.AgentID]time.Duration
	members := []team.Member{joined(team.Leader, "leader"), joined("a", "coder"), joined("b", "coder"), joined("c", "coder"),
		{AgentID: "ann", State: team.Joined, Backend: team.Person}, {AgentID: "old", State: team.Stopped}, {AgentID: "new", State: team.Created}}
	for name, tt := range map[string]struct {
		silent    silences
		want      []team.AgentID
		held      bool
		restarted []team.AgentID
	}{
		"all are heard":                        {silences{}, nil, false, nil},
		"one is late":                          {silences{"a": lease - 1}, nil, false, nil},
		"one is silent":                        {silences{"a": lease}, []team.AgentID{"a"}, false, nil},
		"half of them, the leader counted":     {silences{"a": lease, "b": lease}, []team.AgentID{"a", "b"}, false, nil},
		"more than half":                       {silences{"a": lease, "b": lease, "c": lease}, nil, true, nil},
		"more than half, one for three leases": {silences{"a": 3 * lease, "b": 3*lease - 1, "c": lease}, []team.AgentID{"a"}, true, nil},
		"who has no process":                   {silences{"ann": 9 * lease, "old": 9 * lease, "new": 9 * lease}, nil, false, nil},
		"the leader itself":                    {silences{team.Leader: 9 * lease}, nil, false, nil},
		"more than half, the server restarted": {silences{"a": lease, "b": lease, "c": lease}, []team.AgentID{"a", "b", "c"}, false, []team.AgentID{"a", "b", "c"}},
		"and one was heard since":              {silences{"a": lease, "b": lease, "c": lease}, []team.AgentID{"a", "b"}, true, []team.AgentID{"a", "b"}},
		"a restart is no lease":                {silences{"a": lease - 1}, nil, false, []team.AgentID{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			lost, held := silentOf(members, func(m team.Member) (time.Duration, bool) {
				return tt.silent[m.AgentID], slices.Contains(tt.restarted, m.AgentID)
			}, lease)
			var got []team.AgentID
			for _, s := range lost {
				if got = append(got, s.Member.AgentID); s.For != tt.silent[s.Member.AgentID] {
					t.Errorf("%s is silent for %v", s.Member.AgentID, s.For)
				}
			}
			if !slices.Equal(got, tt.want) || held != tt.held {
				t.Errorf("silentOf = %v, %v; want %v, %v", got, held, tt.want, tt.held)
			}
		})
	}
}

func TestOrphans(t *testing.T) {
	stopped := joined("b", "coder")
	stopped.State = team.Stopped
	respawned := joined("c", "coder")
	respawned.Incarnation, respawned.State = 2, team.Created
	members := []team.Member{joined("a", "coder"), stopped, respawned, {AgentID: "ann", State: team.Joined, Backend: team.Person, Incarnation: 1}}
	for name, tt := range map[string]struct {
		task team.Task
		want bool
	}{
		"its holder works":         {team.Task{Status: team.InProgress, Assignee: "a", Incarnation: 1}, false},
		"its holder has left":      {team.Task{Status: team.InProgress, Assignee: "b", Incarnation: 1}, true},
		"its holder was restarted": {team.Task{Status: team.InProgress, Assignee: "c", Incarnation: 1}, true},
		"the successor adopted it": {team.Task{Status: team.InProgress, Assignee: "c", Incarnation: 2}, false},
		"its holder was removed":   {team.Task{Status: team.InProgress, Assignee: "gone", Incarnation: 1}, true},
		"a person holds it":        {team.Task{Status: team.InProgress, Assignee: "ann", Incarnation: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(orphansOf(members, []team.Task{tt.task})) == 1; got != tt.want {
				t.Errorf("an orphan: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNotice(t *testing.T) {
	l := quiet()
	waits := beat("coder-1", team.WaitingAnswer)
	waits.Awaits, waits.Asked, waits.About = team.Leader, "01M8", "Which colour?"
	l.Beats["coder-1"] = waits
	tasks := []team.Task{
		{ID: "T-001", Title: "Count", Status: team.Completed},
		{ID: "T-002", Title: "写一份报告 📝", Status: team.Failed, Reason: "given up after 3 attempts; the last: disk full"},
		{ID: "T-003", Title: "Print it", Status: team.Pending, Dependencies: []team.TaskID{"T-002"}},
		{ID: "T-004", Title: "Ask", Status: team.InProgress, Assignee: "coder-1"},
		{ID: "T-005", Title: "Bind it", Status: team.Pending, Dependencies: []team.TaskID{"T-001", "T-004"}},
		{ID: "T-006", Title: "Test it", Status: team.Pending, Role: "tester"},
		{ID: "T-007", Title: "Anything", Status: team.Pending},
		{ID: "T-008", Title: "No more", Status: team.Cancelled},
	}
	const want = `[All Idle] Nobody has anything left to do. Tasks: 1 completed, 1 in progress, 4 pending, 1 failed, 1 cancelled.
- T-002 (写一份报告 📝) failed: given up after 3 attempts; the last: disk full
- T-003 (Print it) is blocked for good: T-002 has failed
- T-004 (Ask) is in progress at coder-1, who waits
- T-005 (Bind it) waits for T-004
- T-006 (Test it) is pending: nobody has the role tester
- T-007 (Anything) is pending: coder-1: waits for an answer
- coder-1 waits for an answer of yours to mail 01M8 ("Which colour?"): answer with send_message
If the goal is reached, check the result and call finish_team with the summary. If not, say what is to be done: create tasks, spawn or write to teammates, cancel what is given up.`
	l.Snapshot = on(l.Snapshot, tasks)
	if got := l.Notice(unfinished(tasks, 50)); got != want {
		t.Errorf("Notice:\n%s\nwant:\n%s", got, want)
	}
	// It begins with what was done, the newest by name.
	for i := range maxNamed + 2 {
		l.Done = append(l.Done, team.Task{ID: team.TaskID(fmt.Sprintf("T-1%02d", i)), Title: "Count", Assignee: "coder-1", ResultSummary: strings.Repeat("long\n", 1000)})
	}
	got := strings.Split(l.Notice(nil, 0), "\n")
	if len(got[2]) > 300 || got[0] != "[All Idle] Done since you were last told:" || got[1] != "- 2 tasks before these, which list_tasks shows" ||
		!strings.HasPrefix(got[2], "- T-102 (Count) by coder-1: long long") || !strings.HasPrefix(got[maxNamed+2], "Nobody has anything left to do. Tasks: 1 completed") {
		t.Errorf("what was done: %q", got)
	}
	// However much there is to say, it must fit a message.
	l.Quarantined = []team.Quarantined{{Key: "task.T-009", Error: "it is damaged"}}
	short := l.Notice(unfinished(tasks, 1))
	for _, want := range []string{"- T-002", "- and 5 more, which list_tasks shows", "- the record task.T-009 cannot be read: it is damaged"} {
		if !strings.Contains(short, want) {
			t.Errorf("a short notice lacks %q:\n%s", want, short)
		}
	}
}

func TestNoticeToADesertedLeader(t *testing.T) {
	l := quiet()
	l.Members = l.Members[:1]
	const want = `[All Idle] Nobody has anything left to do. Tasks: 0 completed, 0 in progress, 0 pending, 0 failed, 0 cancelled.
If the goal is reached, check the result and call finish_team with the summary. If not, say what is to be done: create tasks, spawn or write to teammates, cancel what is given up. A text answer now ends the goal with that text as the summary.`
	if got := l.Notice(nil, 0); got != want {
		t.Errorf("Notice:\n%s\nwant:\n%s", got, want)
	}
}
