package team

import (
	"strings"
	"testing"
	"time"
)

var (
	claimedAt = time.Date(2026, 5, 1, 12, 0, 0, 42, time.UTC)
	planner   = Holder{Agent: "coder-1", Incarnation: 2, Role: "coder"}
	planned   = Task{ID: "T-001", Status: InProgress, Assignee: "coder-1", Incarnation: 2, Epoch: 1, ClaimedAt: &claimedAt}
)

func submitted(t *testing.T, task Task, by Approver) Approval {
	t.Helper()
	a, err := NewApproval(planner, task, by, "1. change api.go 🚀", claimedAt.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNewApproval(t *testing.T) {
	a := submitted(t, planned, ByLeader)
	if a.Status != PlanPending || a.Task != "T-001" || !a.Intact() || a.Asks() != Leader || len(a.ID) != 16 {
		t.Errorf("submitted: %+v", a)
	}
	for name, other := range map[string]Approval{
		"without a task": submitted(t, Task{}, ByLeader), "to a person": submitted(t, planned, ByHuman),
	} {
		if other.ID == a.ID || !other.Intact() {
			t.Errorf("%s: id %s, intact %v", name, other.ID, other.Intact())
		}
	}
	for plan, want := range map[string]Code{
		"": InvalidArgument, " \n": InvalidArgument, "a\x00b": InvalidArgument, strings.Repeat("x", maxPlanBytes+1): InvalidArgument, strings.Repeat("x", maxPlanBytes): "",
	} {
		if _, err := NewApproval(planner, planned, ByLeader, plan, claimedAt); CodeOf(err) != want {
			t.Errorf("a plan of %d bytes: %v, want %q", len(plan), err, want)
		}
	}
}

func TestDecide(t *testing.T) {
	now := claimedAt.Add(time.Hour)
	yes := func(by AgentID) Decision { return Decision{By: by, Approve: true} }
	for name, tt := range map[string]struct {
		by   Approver
		with func(*Approval)
		d    Decision
		void string
		want ApprovalStatus
		code Code
	}{
		"the leader":                       {by: ByLeader, d: yes(Leader), want: PlanApproved},
		"a person in the leader's place":   {by: ByLeader, d: yes(UserAgent), want: PlanApproved},
		"a person":                         {by: ByHuman, d: yes(UserAgent), want: PlanApproved},
		"the leader in a person's place":   {by: ByHuman, d: yes(Leader), code: PermissionDenied},
		"another teammate":                 {by: ByLeader, d: yes("coder-2"), code: PermissionDenied},
		"the agent itself":                 {by: ByLeader, d: yes("coder-1"), code: PermissionDenied},
		"a rejection":                      {by: ByLeader, d: Decision{By: Leader, Feedback: "smaller"}, want: PlanRejected},
		"a rejection without feedback":     {by: ByLeader, d: Decision{By: Leader, Feedback: " "}, code: InvalidArgument},
		"feedback that no record may hold": {by: ByLeader, d: Decision{By: Leader, Feedback: "\x1b[2J"}, code: InvalidArgument},
		"of another text":                  {by: ByLeader, with: func(a *Approval) { a.Plan = "rm -rf /" }, d: yes(Leader), code: Conflict},
		"of another text with its hash":    {by: ByLeader, with: func(a *Approval) { a.Plan = "rm -rf /"; a.PlanHash = hashOf(a.Plan, wholeHash) }, d: yes(Leader), code: Conflict},
		"for another approver":             {by: ByHuman, with: func(a *Approval) { a.Approver = ByLeader }, d: yes(Leader), code: Conflict},
		"a second time":                    {by: ByLeader, with: func(a *Approval) { a.Status = PlanApproved }, d: yes(Leader), code: Conflict},
		"after a rejection":                {by: ByLeader, with: func(a *Approval) { a.Status = PlanRejected }, d: yes(Leader), code: Conflict},
		"after it was used":                {by: ByLeader, with: func(a *Approval) { a.Status = PlanUsed }, d: yes(Leader), code: Conflict},
		"too late":                         {by: ByLeader, d: yes(Leader), void: "T-001 has changed hands since", code: Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			a := submitted(t, planned, tt.by)
			if tt.with != nil {
				tt.with(&a)
			}
			got, err := a.Decide(tt.d, tt.void, now)
			if CodeOf(err) != tt.code || err == nil && (got.Status != tt.want || got.DecidedBy != tt.d.By || got.DecidedAt == nil || got.Feedback != tt.d.Feedback) {
				t.Errorf("%+v, %v, want %s %q", got, err, tt.want, tt.code)
			}
			if err != nil && got.Status != a.Status {
				t.Errorf("refused, and %s becomes %s", a.Status, got.Status)
			}
		})
	}
}

func TestHeld(t *testing.T) {
	member := Member{AgentID: "coder-1", State: Joined}
	later := claimedAt.Add(time.Second)
	mine := func(claimed *time.Time, incarnation uint64) Task {
		return Task{ID: "T-001", Status: InProgress, Assignee: "coder-1", Incarnation: incarnation, ClaimedAt: claimed}
	}
	free := Task{ID: "T-001", Status: Pending, Assignee: "coder-1"}
	other := Task{ID: "T-001", Status: InProgress, Assignee: "coder-2", ClaimedAt: &later}
	done := Task{ID: "T-001", Status: Completed, Assignee: "coder-1", ClaimedAt: &claimedAt}
	for name, tt := range map[string]struct {
		copies []Task
		want   bool
	}{
		"as it was submitted":             {[]Task{free, planned}, true},
		"edited since":                    {[]Task{planned, planned}, true},
		"adopted by a successor":          {[]Task{planned, mine(&claimedAt, 3)}, true},
		"lost, and claimed again":         {[]Task{planned, free, mine(&later, 3)}, true},
		"somebody else's before":          {[]Task{other, free, planned}, true},
		"given back":                      {[]Task{planned, free}, false},
		"of another holder":               {[]Task{planned, free, other}, false},
		"of another holder in between":    {[]Task{planned, free, other, free, mine(&later, 3)}, false},
		"given to another, and back":      {[]Task{planned, other, mine(&later, 2)}, false},
		"completed":                       {[]Task{planned, done}, false},
		"its claim is not told any more":  {[]Task{free, mine(&later, 3)}, false},
		"of a task that nobody knows":     {nil, false},
		"claimed only after the plan":     {[]Task{mine(&later, 2)}, false},
		"a hold of another, at that time": {[]Task{{ID: "T-001", Status: InProgress, Assignee: "coder-2", ClaimedAt: &claimedAt}, mine(&later, 2)}, false},
	} {
		a := submitted(t, planned, ByLeader)
		if got := a.Held(tt.copies); got != tt.want {
			t.Errorf("%s: held %v, want %v", name, got, tt.want)
		}
		if got := a.Void(member, tt.copies); (got == "") != tt.want {
			t.Errorf("%s: void %q", name, got)
		}
	}
	whole := []Task{planned}
	ended := submitted(t, planned, ByLeader)
	ended.EndedAt = &later
	for name, void := range map[string]string{
		"ended":                    ended.Void(member, whole),
		"of a member that left":    submitted(t, planned, ByLeader).Void(Member{AgentID: "coder-1", State: Stopped}, whole),
		"of nobody":                submitted(t, planned, ByLeader).Void(Member{}, whole),
		"taskless, of one stopped": submitted(t, Task{}, ByLeader).Void(Member{AgentID: "coder-1", State: Stopped}, nil),
	} {
		if void == "" {
			t.Errorf("%s: it is not void", name)
		}
	}
	for name, void := range map[string]string{
		"of a member that is lost": submitted(t, planned, ByLeader).Void(Member{AgentID: "coder-1", State: Lost}, whole),
		"without a task":           submitted(t, Task{}, ByLeader).Void(member, nil),
	} {
		if void != "" {
			t.Errorf("%s: %s", name, void)
		}
	}
}

func TestCovers(t *testing.T) {
	later := claimedAt.Add(time.Second)
	approved := func(a *Approval) { a.Status, a.DecidedBy = PlanApproved, Leader }
	successor := Holder{Agent: "coder-1", Incarnation: 3}
	for name, tt := range map[string]struct {
		with func(*Approval)
		h    Holder
		away bool // it is for another task
		ok   bool
	}{
		"approved":                          {with: approved, h: planner, ok: true},
		"used":                              {with: func(a *Approval) { approved(a); a.Status = PlanUsed }, h: planner, ok: true},
		"after a respawn":                   {with: approved, h: successor, ok: true},
		"used before a respawn":             {with: func(a *Approval) { approved(a); a.Status = PlanUsed }, h: successor, ok: true},
		"pending":                           {with: func(*Approval) {}, h: planner},
		"rejected":                          {with: func(a *Approval) { approved(a); a.Status = PlanRejected }, h: planner},
		"ended":                             {with: func(a *Approval) { approved(a); a.EndedAt = &later }, h: planner},
		"for another task":                  {with: approved, h: planner, away: true},
		"of another agent":                  {with: approved, h: Holder{Agent: "coder-2", Incarnation: 2}},
		"used by a successor":               {with: func(a *Approval) { approved(a); a.Status, a.Incarnation = PlanUsed, 3 }, h: planner},
		"approved by itself":                {with: func(a *Approval) { approved(a); a.DecidedBy = "coder-1" }, h: planner},
		"approved by another teammate":      {with: func(a *Approval) { approved(a); a.DecidedBy = "coder-2" }, h: planner},
		"approved by nobody":                {with: func(a *Approval) { approved(a); a.DecidedBy = "" }, h: planner},
		"with another plan":                 {with: func(a *Approval) { approved(a); a.Plan = "rm" }, h: planner},
		"with another plan and its hash":    {with: func(a *Approval) { approved(a); a.Plan = "rm"; a.PlanHash = hashOf("rm", wholeHash) }, h: planner},
		"of a status that nobody has heard": {with: func(a *Approval) { approved(a); a.Status = "fine" }, h: planner},
		"that was copied under another id":  {with: func(a *Approval) { approved(a); a.ID = "0123456789abcdef" }, h: planner},
	} {
		t.Run(name, func(t *testing.T) {
			a := submitted(t, planned, ByLeader)
			tt.with(&a)
			if err := a.Covers(tt.h, !tt.away); (err == nil) != tt.ok || err != nil && CodeOf(err) != PermissionDenied {
				t.Errorf("%v, want covered: %v", err, tt.ok)
			}
		})
	}
	if err := (Approval{}).Covers(planner, true); CodeOf(err) != PermissionDenied || !strings.Contains(HintOf(err), "submit_plan") {
		t.Errorf("no plan at all: %v (%s)", err, HintOf(err))
	}
	human := submitted(t, planned, ByHuman)
	human.Status, human.DecidedBy = PlanApproved, Leader
	if human.Covers(planner, true) == nil {
		t.Error("the leader's word counts where a person decides")
	}
	for name, tt := range map[string]struct {
		a    Approval
		t    Task
		want bool
	}{
		"its task": {submitted(t, planned, ByLeader), planned, true}, "no task": {submitted(t, Task{}, ByLeader), Task{}, true},
		"once the task has ended": {submitted(t, planned, ByLeader), Task{}, false}, "a task, of a plan for none": {submitted(t, Task{}, ByLeader), planned, false},
		"another task": {submitted(t, planned, ByLeader), Task{ID: "T-002", ClaimedAt: &claimedAt}, false}, "another hold": {submitted(t, planned, ByLeader), Task{ID: "T-001", ClaimedAt: &later}, false},
	} {
		if got := tt.a.IsFor(tt.t); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestJoining(t *testing.T) {
	record := Team{Roles: map[string]Role{"coder": {Name: "coder"}, "careful": {Name: "careful", PlanMode: true, Approver: ByHuman}}}
	strict := record
	strict.Policies = Policies{PlanMode: true, Approver: ByHuman}
	for name, tt := range map[string]struct {
		team Team
		m    Member
		plan bool
		by   Approver
	}{
		"nobody asks for it": {record, Member{Role: "coder"}, false, ""},
		"the spawn":          {record, Member{Role: "coder", PlanMode: true, Approver: ByHuman}, true, ByHuman},
		"the role":           {record, Member{Role: "careful"}, true, ByHuman},
		"the team":           {strict, Member{Role: "coder"}, true, ByHuman},
		"a spawn cannot choose a milder approver": {strict, Member{Role: "coder", Approver: ByLeader}, true, ByHuman},
	} {
		if m := tt.team.Joining(tt.m); m.PlanMode != tt.plan || m.Approver != tt.by {
			t.Errorf("%s: plan mode %v, approver %q, want %v, %q", name, m.PlanMode, m.Approver, tt.plan, tt.by)
		}
	}
}
