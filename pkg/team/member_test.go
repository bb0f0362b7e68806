package team_test

import (
	"testing"
	"time"

	"agentteam/pkg/team"
)

func TestBeatNewer(t *testing.T) {
	last := team.Heartbeat{Incarnation: 2, N: 10}
	for at, want := range map[struct{ incarnation, n uint64 }]bool{
		{2, 11}: true,
		{2, 10}: false, // the same once more
		{2, 9}:  false, // late, after a reconnect
		{3, 1}:  true,  // a new process counts from the start
		{1, 99}: false, // a predecessor that still lives
	} {
		if b := (team.Heartbeat{Incarnation: at.incarnation, N: at.n}); b.Newer(last) != want {
			t.Errorf("beat %d of incarnation %d is newer: %v, want %v", b.N, b.Incarnation, !want, want)
		}
	}
}

func TestBeatQuiet(t *testing.T) {
	for state, want := range map[team.MemberState]bool{team.Idle: true, team.WaitingAnswer: true, team.Running: false, team.WaitingModel: false} {
		if (team.Heartbeat{State: state}).Quiet() != want {
			t.Errorf("%s is quiet: %v, want %v", state, !want, want)
		}
		if (team.Heartbeat{State: state, Unseen: true}).Quiet() {
			t.Errorf("%s with input that the model has not seen is quiet", state)
		}
	}
}

// While something works for a member it does not count as quiet: a subagent always, a command in the
// background until it has printed nothing for ten minutes.
func TestBeatQuietWithJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		job  team.Job
		want bool
	}{
		"a subagent":                    {team.Job{Kind: team.JobSubagent, Background: true, Still: 900}, false},
		"a command":                     {team.Job{Kind: team.JobCommand, Background: true, Still: 599}, false},
		"a silent command":              {team.Job{Kind: team.JobCommand, Background: true, Still: 600}, true},
		"its end is yet to be told":     {team.Job{Kind: team.JobCommand, Background: true, Still: 900, Ended: "exit status 0"}, false},
		"a subagent that is waited for": {team.Job{Kind: team.JobSubagent}, false},
		"one that waits for a person":   {team.Job{Kind: team.JobSubagent, Background: true, Asked: "p1"}, true},
		"it did, and has ended":         {team.Job{Kind: team.JobSubagent, Background: true, Asked: "p1", Ended: "done"}, false},
	} {
		if got := (team.Heartbeat{State: team.Idle, Jobs: []team.Job{tt.job}}).Quiet(); got != tt.want {
			t.Errorf("%s: quiet %v, want %v", name, got, tt.want)
		}
	}
}

// An agent that waits in a call for its subagents waits for a person if all of them do.
func TestBeatHeldUp(t *testing.T) {
	asks, works := team.Job{Kind: team.JobSubagent, Asked: "p1"}, team.Job{Kind: team.JobSubagent}
	behind := asks
	behind.Background = true
	for name, tt := range map[string]struct {
		jobs []team.Job
		want bool
	}{
		"all":                           {[]team.Job{asks, asks}, true},
		"one still works":               {[]team.Job{asks, works}, false},
		"it is at something else":       {[]team.Job{behind}, false},
		"and another in the background": {[]team.Job{asks, behind}, true},
	} {
		b := team.Heartbeat{State: team.Running, Jobs: tt.jobs}
		if b.WaitsForPerson() != tt.want || b.Quiet() != tt.want || !b.JobAsks() {
			t.Errorf("%s: waits for a person %v, quiet %v, asks %v, want %v", name, b.WaitsForPerson(), b.Quiet(), b.JobAsks(), tt.want)
		}
	}
}

func TestParseConversation(t *testing.T) {
	for s, want := range map[string]team.AgentID{"coder-1": "coder-1", "coder-1.a1b2c3d": "coder-1.a1b2c3d", "coder-1.a1b2c3d@red": "coder-1.a1b2c3d", "coder-1.": "", "coder-1.a.b": "", ".a1": ""} {
		a, _, err := team.ParseConversation(s)
		if (err == nil) != (want != "") || err == nil && a != want {
			t.Errorf("%q: %q, %v", s, a, err)
		}
	}
	if o := team.AgentID("coder-1.a1b2c3d").Owner(); o != "coder-1" {
		t.Errorf("its owner is %q", o)
	}
}

func TestBeatSameAs(t *testing.T) {
	b := team.Heartbeat{AgentID: "a", Incarnation: 1, N: 1, Turn: 3, InboxSeq: 7}
	next := b
	next.N, next.Nonce = 2, "x"
	if !b.SameAs(next) {
		t.Error("only the number of a beat grew, and it is not the same")
	}
	for _, change := range []func(*team.Heartbeat){func(b *team.Heartbeat) { b.Turn++ }, func(b *team.Heartbeat) { b.InboxSeq++ }, func(b *team.Heartbeat) { b.Incarnation++ }} {
		moved := b
		change(&moved)
		if b.SameAs(moved) {
			t.Errorf("%+v is the same as %+v", moved, b)
		}
	}
}

func TestMemberCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		m               team.Member
		counts, process bool
	}{
		"teammate":      {team.Member{AgentID: "coder-1", State: team.Joined, Backend: team.Pool}, true, true},
		"being started": {team.Member{AgentID: "coder-1", State: team.Created, Backend: team.Pool}, true, false},
		"stopped":       {team.Member{AgentID: "coder-1", State: team.Stopped, Backend: team.Exec}, false, false},
		"seat":          {team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person}, false, false},
		"leader":        {team.Member{AgentID: team.Leader, State: team.Joined, Backend: team.Exec}, false, true},
	} {
		if tt.m.Counts() != tt.counts || tt.m.HasProcess() != tt.process {
			t.Errorf("%s: counts %v, has a process %v", name, tt.m.Counts(), tt.m.HasProcess())
		}
	}
}

func TestColours(t *testing.T) {
	want := []string{"cyan", "yellow", "magenta", "green", "blue", "cyan", "yellow"}
	for i, c := range want {
		if got := team.Colour(i); got != c {
			t.Errorf("colour %d is %s, want %s", i, got, c)
		}
	}
}

// Who works and gets no further has stalled; who waits for somebody has not.
func TestStalled(t *testing.T) {
	retry := time.Now()
	for name, tt := range map[string]struct {
		b    team.Heartbeat
		want bool
	}{
		"works":                  {team.Heartbeat{State: team.Running, Still: 60}, true},
		"works, and gets on":     {team.Heartbeat{State: team.Running, Still: 59}, false},
		"its model is away":      {team.Heartbeat{State: team.WaitingModel, Unseen: true, Still: 60}, true},
		"has no model, nor work": {team.Heartbeat{State: team.WaitingModel, Still: 3600}, false},
		"is parked":              {team.Heartbeat{State: team.WaitingModel, Unseen: true, RetryAt: &retry, Still: 3600}, false},
		"is idle":                {team.Heartbeat{State: team.Idle, Still: 3600}, false},
		"waits for an answer":    {team.Heartbeat{State: team.WaitingAnswer, Task: "T-001", Still: 3600}, false},
		"waits for a person":     {team.Heartbeat{State: team.WaitingUser, Task: "T-001", Still: 3600}, false},
		"beats as programs did":  {team.Heartbeat{State: team.Running}, false},
	} {
		if got := tt.b.Stalled(time.Minute); got != tt.want {
			t.Errorf("%s: stalled %v, want %v", name, got, tt.want)
		}
	}
}

func TestToldIsShown(t *testing.T) {
	for want, told := range map[string]team.InstructionFile{
		"a.md 7 B":                          {File: "a.md", Bytes: 7},
		"a.md 7 B (3 left out)":             {File: "a.md", Bytes: 7, LeftOut: 3},
		"a.md 7 B (1 import not followed)":  {File: "a.md", Bytes: 7, Faults: 1},
		"a.md 7 B (2 imports not followed)": {File: "a.md", Bytes: 7, Faults: 2},
	} {
		if got := told.String(); got != want {
			t.Errorf("%+v: %s, want %s", told, got, want)
		}
	}
}
