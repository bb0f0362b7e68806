package team

import (
	"strings"
	"testing"
	"time"
)

var push = AskedCall{Tool: "bash", Arguments: `{"command":"git push"}`, Dir: "/w", Why: "no rule allows it", Rule: "Bash(git push)", Number: 1}

func asked(t *testing.T, task Task, c AskedCall) Approval {
	t.Helper()
	a, err := NewPermission(planner, task, c, claimedAt.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A request has one id for one call in one hold, whoever asks and when.
func TestNewPermission(t *testing.T) {
	a := asked(t, planned, push)
	if a.Kind != OfPermission || a.IsPlan() || !a.Intact() || a.Asks() != UserAgent || a.Task != "T-001" || len(a.ID) != 16 {
		t.Errorf("asked: %+v", a)
	}
	successor, err := NewPermission(Holder{Agent: "coder-1", Incarnation: 3}, planned, push, claimedAt.Add(time.Hour))
	if err != nil || successor.ID != a.ID {
		t.Errorf("a successor asks with the id %s, want %s: %v", successor.ID, a.ID, err)
	}
	other := func(f func(*AskedCall)) AskedCall { c := push; f(&c); return c }
	later := claimedAt.Add(time.Second)
	again := planned
	again.ClaimedAt = &later
	for name, b := range map[string]Approval{
		"another command":   asked(t, planned, other(func(c *AskedCall) { c.Arguments = `{"command":"git push "}` })),
		"another tool":      asked(t, planned, other(func(c *AskedCall) { c.Tool = "Bash" })),
		"another directory": asked(t, planned, other(func(c *AskedCall) { c.Dir = "/w2" })),
		"a second time":     asked(t, planned, other(func(c *AskedCall) { c.Number = 2 })),
		"another hold":      asked(t, again, push),
		"no task":           asked(t, Task{}, push),
	} {
		if b.ID == a.ID || !b.Intact() {
			t.Errorf("%s: id %s, intact %v", name, b.ID, b.Intact())
		}
	}
	if _, err := NewPermission(planner, planned, other(func(c *AskedCall) { c.Arguments = strings.Repeat("x", MaxAskedBytes+1) }), claimedAt); CodeOf(err) != InvalidArgument {
		t.Errorf("a call that no person can read: %v", err)
	}
	for name, change := range map[string]func(*Approval){
		"the command":      func(a *Approval) { a.Call.Arguments = `{"command":"rm -rf /"}` },
		"and its digest":   func(a *Approval) { a.Call.Arguments = `{"command":"rm -rf /"}`; a.Call.Digest = a.Call.digest() },
		"the kind":         func(a *Approval) { a.Kind = OfPlan },
		"no kind":          func(a *Approval) { a.Kind = "" },
		"an unknown kind":  func(a *Approval) { a.Kind = "wish" },
		"the call is gone": func(a *Approval) { a.Call = nil },
		"the agent":        func(a *Approval) { a.AgentID = "coder-2" },
	} {
		b := asked(t, planned, push)
		change(&b)
		if b.Intact() {
			t.Errorf("%s is changed, and the record passes", name)
		}
	}
}

func TestDecidePermission(t *testing.T) {
	now := claimedAt.Add(time.Hour)
	noRule := push
	noRule.Rule = ""
	for name, tt := range map[string]struct {
		call *AskedCall
		with func(*Approval)
		d    Decision
		void string
		want Scope
		code Code
	}{
		"the user":               {d: Decision{By: UserAgent, Approve: true}, want: Once},
		"for the task":           {d: Decision{By: UserAgent, Approve: true, Scope: ForTask}, want: ForTask},
		"always":                 {d: Decision{By: UserAgent, Approve: true, Scope: Always}, want: Always},
		"a seat":                 {d: Decision{By: "ann", Seated: true, Approve: true}, want: Once},
		"a refusal":              {d: Decision{By: UserAgent}},
		"a refusal with a word":  {d: Decision{By: UserAgent, Feedback: "not today"}},
		"no seat":                {d: Decision{By: "ann", Approve: true}, code: PermissionDenied},
		"the leader":             {d: Decision{By: Leader, Approve: true}, code: PermissionDenied},
		"the leader refuses":     {d: Decision{By: Leader}, code: PermissionDenied},
		"the leader, as asked":   {with: func(a *Approval) { a.Approver = ByLeader }, d: Decision{By: Leader, Approve: true}, code: PermissionDenied},
		"the leader, as a plan":  {with: func(a *Approval) { a.Kind = ""; a.Approver = ByLeader }, d: Decision{By: Leader, Approve: true}, code: PermissionDenied},
		"as a plan without call": {with: func(a *Approval) { a.Kind, a.Call, a.Approver = "", nil, ByLeader }, d: Decision{By: Leader, Approve: true}, code: Conflict},
		"the agent itself":       {d: Decision{By: "coder-1", Seated: true, Approve: true}, code: PermissionDenied},
		"of another command":     {with: func(a *Approval) { a.Call.Arguments = `{"command":"rm"}` }, d: Decision{By: UserAgent, Approve: true}, code: Conflict},
		"a second time":          {with: func(a *Approval) { a.Status = PlanRejected }, d: Decision{By: UserAgent, Approve: true}, code: Conflict},
		"too late":               {void: "gone", d: Decision{By: UserAgent, Approve: true}, code: Conflict},
		"no such scope":          {d: Decision{By: UserAgent, Approve: true, Scope: "ever"}, code: InvalidArgument},
		"a refusal with a scope": {d: Decision{By: UserAgent, Scope: ForTask}, code: InvalidArgument},
		"always without a rule":  {call: &noRule, d: Decision{By: UserAgent, Approve: true, Scope: Always}, code: InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			call := push
			if tt.call != nil {
				call = *tt.call
			}
			a := asked(t, planned, call)
			if tt.with != nil {
				tt.with(&a)
			}
			got, err := a.Decide(tt.d, tt.void, now)
			if CodeOf(err) != tt.code || err == nil && (got.Scope != tt.want || (got.Status == PlanApproved) != tt.d.Approve || got.DecidedBy != tt.d.By) {
				t.Errorf("%+v, %v, want %q %q", got, err, tt.want, tt.code)
			}
			if err != nil && got.Status != a.Status {
				t.Errorf("refused, and %s becomes %s", a.Status, got.Status)
			}
		})
	}
	plan := submitted(t, planned, ByLeader)
	if _, err := plan.Decide(Decision{By: Leader, Approve: true, Scope: Always}, "", now); CodeOf(err) != InvalidArgument {
		t.Errorf("a plan with a scope: %v", err)
	}
	if _, err := plan.Decide(Decision{By: "ann", Seated: true, Approve: true}, "", now); CodeOf(err) != PermissionDenied {
		t.Errorf("a seat decides on a plan: %v", err)
	}
}

// anothers is a call that coder-2 has asked for a task; with a scope it is allowed.
func anothers(t *testing.T, task Task, s Scope) Approval {
	t.Helper()
	a, err := NewPermission(Holder{Agent: "coder-2", Incarnation: 7}, task, push, claimedAt)
	if err != nil {
		t.Fatal(err)
	}
	if s != "" {
		a.Status, a.Scope, a.DecidedBy = PlanUsed, s, UserAgent
	}
	return a
}

func TestPermits(t *testing.T) {
	approved := func(f func(*Approval)) Approval {
		a := asked(t, planned, push)
		a.Status, a.Scope, a.DecidedBy = PlanApproved, Once, UserAgent
		if f != nil {
			f(&a)
		}
		return a
	}
	for name, tt := range map[string]struct {
		a    Approval
		want string // in the refusal
	}{
		"allowed":             {a: approved(nil)},
		"by a seat":           {a: approved(func(a *Approval) { a.DecidedBy = "ann" })},
		"pending":             {a: asked(t, planned, push), want: "is asked (request "},
		"refused":             {a: approved(func(a *Approval) { a.Status, a.Feedback = PlanRejected, "not today" }), want: ": not today"},
		"refused by an agent": {a: approved(func(a *Approval) { a.Status, a.DecidedBy = PlanRejected, Leader }), want: "is not valid"},
		"by the leader":       {a: approved(func(a *Approval) { a.DecidedBy = Leader }), want: "is not valid"},
		"by another agent":    {a: approved(func(a *Approval) { a.DecidedBy = "coder-2" }), want: "is not valid"},
		"by itself":           {a: approved(func(a *Approval) { a.DecidedBy = "coder-1" }), want: "is not valid"},
		"by no one":           {a: approved(func(a *Approval) { a.DecidedBy = "" }), want: "is not valid"},
		"without a scope":     {a: approved(func(a *Approval) { a.Scope = "" }), want: "is not valid"},
		"of a newer status":   {a: approved(func(a *Approval) { a.Status = "perhaps" }), want: "is not valid"},
		"of another command":  {a: approved(func(a *Approval) { a.Call.Arguments = "{}" }), want: "is not valid"},
		"an approved plan":    {a: approved(func(a *Approval) { a.Kind = OfPlan }), want: "is not valid"},
		"of another member":   {a: approved(func(a *Approval) { a.AgentID = "coder-2" }), want: "is of coder-2"},
		"of another member, until the task has ended": {a: anothers(t, planned, ForTask)},
		"of another member, for another task":         {a: anothers(t, Task{ID: "T-002", ClaimedAt: &claimedAt}, ForTask), want: "is of coder-2"},
		"of another member, without a task":           {a: anothers(t, Task{}, ForTask), want: "is of coder-2"},
		"of another member, and not decided on":       {a: anothers(t, planned, ""), want: "is of coder-2"},
		"of a newer process":                          {a: approved(func(a *Approval) { a.Incarnation = 9 }), want: "replaced yours"},
		"the plan gate's own":                         {a: submitted(t, planned, ByLeader), want: "is not valid"},
	} {
		err := tt.a.Permits(planner, planned, tt.a.DecidedBy == "ann")
		if (err == nil) != (tt.want == "") || err != nil && (CodeOf(err) != PermissionDenied || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := approved(nil).Covers(planner, true); CodeOf(err) != PermissionDenied {
		t.Errorf("an allowed call lets a plan be carried out: %v", err)
	}
}

// What can still be of use is found by the call, and by nothing else.
func TestAsked(t *testing.T) {
	now := claimedAt
	for name, tt := range map[string]struct {
		with        func(*Approval)
		other, open bool
	}{
		"pending":       {func(*Approval) {}, true, true},
		"refused":       {func(a *Approval) { a.Status = PlanRejected }, true, true},
		"used once":     {func(a *Approval) { a.Status, a.Scope = PlanUsed, Once }, true, false},
		"used for now":  {func(a *Approval) { a.Status, a.Scope = PlanUsed, ForTask }, true, true},
		"ended":         {func(a *Approval) { a.EndedAt = &now }, true, false},
		"another call":  {func(a *Approval) { a.Call.Digest = "0" }, false, false},
		"a plan":        {func(a *Approval) { a.Kind, a.Call = "", nil }, false, false},
		"without calls": {func(a *Approval) { a.Call = nil }, false, false},
	} {
		a := asked(t, planned, push)
		tt.with(&a)
		if other, open := a.Asked(push); other != tt.other || open != tt.open {
			t.Errorf("%s: the same call %v, of use %v", name, other, open)
		}
	}
}

// What people read is all of the call, and nothing in it does something to their terminal.
func TestShown(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"command":"git push"}`:                      "git push",
		`{"command":"a\nb\tc"}`:                       "a\nb\tc",
		`{"command":"x\u0000y\u001b[2Jz\r"}`:          "x⟨U+0000⟩y⟨U+001B⟩[2Jz⟨U+000D⟩",
		`{"command":"a\u202eb\u200bc\u2028d\u00a0e"}`: "a⟨U+202E⟩b⟨U+200B⟩c⟨U+2028⟩d⟨U+00A0⟩e",
		`{"command":"echo ⟨U+001B⟩ 写 🚀"}`:             "echo ⟨U+27E8⟩U+001B⟩ 写 🚀",
		`{"command":"make","timeout":60}`:             "bash\ncommand: make\ntimeout: 60",
		`{"path":"a","content":"x\u0007"}`:            "bash\ncontent: x⟨U+0007⟩\npath: a",
		`no JSON` + "\x1b":                            "bash no JSON⟨U+001B⟩",
		"\xff":                                        "bash ⟨0xFF⟩",
	} {
		if got := (AskedCall{Tool: "bash", Arguments: arguments}).Shown(); got != want {
			t.Errorf("%s is shown as %q, want %q", arguments, got, want)
		}
	}
	long := strings.Repeat("x", 100_000)
	quoted := AskedCall{Tool: "bash", Arguments: `{"command":"one\ntwo 🚀"}`}
	if got := quoted.Quoted(100); got != "│ one\n│ two 🚀" {
		t.Errorf("quoted as %q", got)
	}
	if got := quoted.Quoted(8); got != "│ one\n│ two \n(the first 8 of 9 characters)" {
		t.Errorf("cut to %q", got)
	}
	if got := (AskedCall{Tool: "bash", Arguments: `{"command":"` + long + `"}`}).Shown(); got != long {
		t.Errorf("of a long command %d characters are shown", len(got))
	}
	for arguments, want := range map[string]string{
		`{"command":"git\n push"}`: "bash: git push", `{"path":"a"}`: "bash path: a", `{}`: "bash", `{"command":"` + long + `"}`: "bash: " + long[:93] + "…",
	} {
		if got := (AskedCall{Tool: "bash", Arguments: arguments}).Brief(); got != want {
			t.Errorf("%.40s in short: %q, want %q", arguments, got, want)
		}
	}
}

// Its member is told what it may do now, in words.
func TestCallVerdict(t *testing.T) {
	a := asked(t, planned, push)
	for want, with := range map[string]func(*Approval){
		"Call it again, exactly as before: it then runs, once.":                                                func(a *Approval) { a.Status, a.Scope = PlanApproved, Once },
		"as often as you need, until T-001 has ended.":                                                         func(a *Approval) { a.Status, a.Scope = PlanApproved, ForTask },
		"by the rule Bash(git push).\nbut not on Friday":                                                       func(a *Approval) { a.Status, a.Scope, a.Feedback = PlanApproved, Always, "but not on Friday" },
		"A person has refused your call of bash (request " + a.ID + " for T-001: bash: git push): not today\n": func(a *Approval) { a.Status, a.Feedback = PlanRejected, "not today" },
		"is void": func(a *Approval) { a.EndedAt = &claimedAt },
	} {
		b := asked(t, planned, push)
		with(&b)
		if got := b.Verdict(); !strings.Contains(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}
