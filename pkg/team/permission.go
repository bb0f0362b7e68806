package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ApprovalKind states what an approval is for.
type ApprovalKind string

// The kinds. The zero value means OfPlan.
const (
	OfPlan       ApprovalKind = "plan"       // to carry out a plan, in plan mode
	OfPermission ApprovalKind = "permission" // to make one call
	OfRespawn    ApprovalKind = "respawn"    // to bring its member back, which is lost
)

// Scope is how far the approval of a call goes.
type Scope string

// The scopes.
const (
	Once    Scope = "once"   // the call is made once
	ForTask Scope = "task"   // the same call until the task has ended, whichever member holds it; without a task until its member goes idle
	Always  Scope = "always" // as ForTask, and a rule of the team allows such calls from then on
)

// MaxAskedBytes bounds the arguments of a call that a person has to allow, and so to read.
const MaxAskedBytes = 256 << 10

// AskedCall is a call that a person has to allow. Calls with the same Tool, Arguments and Dir are the same.
type AskedCall struct {
	Tool      string `json:"tool"`           // by the name that the model has called
	Arguments string `json:"arguments"`      // the text of a JSON object
	Dir       string `json:"dir"`            // where it would run: a folder, or in words the tree of its task, which has a new folder with each hold
	Why       string `json:"why"`            // why a person is asked
	Rule      string `json:"rule,omitempty"` // that an answer of scope always adds to what is allowed; "" = no such answer is taken
	Digest    string `json:"digest"`         // SHA-256 of tool, arguments and dir, in hexadecimal digits
	Number    int    `json:"number"`         // tells requests for the same call apart, from 1: what was allowed once is asked anew
}

func (c AskedCall) digest() string {
	return hashOf(fmt.Sprintf("%q\n%q\n%q", c.Tool, c.Arguments, c.Dir), wholeHash)
}

// Shown returns the call as people read it: a command alone, of any other call its tool and each argument. It
// is whole, and invisible characters are escaped, see [Escaped].
func (c AskedCall) Shown() string {
	var arguments map[string]any
	d := json.NewDecoder(strings.NewReader(c.Arguments))
	d.UseNumber()
	if err := d.Decode(&arguments); err != nil {
		return Escaped(c.Tool + " " + c.Arguments)
	}
	if command, ok := arguments["command"].(string); ok && len(arguments) == 1 {
		return Escaped(command)
	}
	lines := []string{c.Tool}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		value, ok := arguments[name].(string)
		if !ok {
			text, _ := json.Marshal(arguments[name]) // it was read as JSON
			value = string(text)
		}
		lines = append(lines, name+": "+value)
	}
	return Escaped(strings.Join(lines, "\n"))
}

// Quoted returns the call as people read it among other text: each line of [AskedCall.Shown] behind a bar, at
// most that many characters, with a note if it is cut.
func (c AskedCall) Quoted(most int) string {
	shown := []rune(c.Shown())
	rest := ""
	if n := len(shown); n > most {
		shown, rest = shown[:most], fmt.Sprintf("\n(the first %d of %d characters)", most, n)
	}
	return "│ " + strings.ReplaceAll(string(shown), "\n", "\n│ ") + rest
}

// Brief returns the beginning of the call on one line.
func (c AskedCall) Brief() string {
	shown := OneLine(c.Shown())
	if tool := Escaped(c.Tool); shown != tool && !strings.HasPrefix(shown, tool+" ") {
		shown = tool + ": " + shown
	}
	return Clip(shown, 100)
}

// Escaped returns a text in which every character is visible: an invisible one, except space, tab and line
// end, is written as ⟨U+001B⟩, and so is the first of these brackets.
func Escaped(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟨0x%02X⟩", s[i])
		case r == ' ', r == '\n', r == '\t', r != '⟨' && visible(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "⟨%U⟩", r)
		}
	}
	return b.String()
}

// NewPermission returns the request of h, which holds t (the zero Task: none), to make a call. It fills in
// the Digest of the call. Errors: InvalidArgument for a call that is too long to judge.
func NewPermission(h Holder, t Task, c AskedCall, now time.Time) (Approval, error) {
	if len(c.Arguments) > MaxAskedBytes {
		return Approval{}, Errorf(InvalidArgument, "a person would have to allow it, and its arguments are %d bytes long, the limit is %d", len(c.Arguments), MaxAskedBytes).
			WithHint("do it in smaller parts")
	}
	c.Why = Clip(Escaped(c.Why), 2000)
	c.Digest = c.digest()
	a := Approval{Kind: OfPermission, AgentID: h.Agent, Incarnation: h.Incarnation, Task: t.ID, ClaimedAt: t.ClaimedAt, Approver: ByHuman,
		Call: &c, Status: PlanPending, CreatedAt: now}
	a.ID = a.requestID()
	return a, nil
}

// respawnCall is the tool of a request to bring a lost member back. No model calls it.
const respawnCall = "respawn"

// NewRespawn returns the request to a person to bring back the lost member m; why states how it was lost. It
// returns the same request until m is lost as another incarnation.
func NewRespawn(m Member, dir, why string, now time.Time) Approval {
	c := AskedCall{Tool: respawnCall, Arguments: fmt.Sprintf(`{"agent_id":%q,"incarnation":%d}`, m.AgentID, m.Incarnation), Dir: dir, Why: Clip(Escaped(why), 2000), Number: 1}
	c.Digest = c.digest()
	a := Approval{Kind: OfRespawn, AgentID: m.AgentID, Incarnation: m.Incarnation, Approver: ByHuman, Call: &c, Status: PlanPending, CreatedAt: now}
	a.ID = a.requestID()
	return a
}

// Brings reports whether a person has approved that a brings its member back.
func (a Approval) Brings(seated bool) bool {
	return a.Kind == OfRespawn && a.Status == PlanApproved && a.Intact() && a.mayDecide(a.DecidedBy, seated)
}

// IsPlan reports whether a is about a plan. A kind that only a newer program knows is not.
func (a Approval) IsPlan() bool { return (a.Kind == "" || a.Kind == OfPlan) && a.Call == nil }

// noun returns the word for a that people read.
func (a Approval) noun() string {
	if a.IsPlan() {
		return "plan"
	}
	return "request"
}

// takes returns an error for a decision with a scope that a does not take.
func (a Approval) takes(d Decision) error {
	switch {
	case d.Scope == "":
		return nil
	case a.Kind == OfRespawn && d.Scope != Once:
		return Errorf(InvalidArgument, "a respawn has no scope").WithHint("the policy respawn says what becomes of the members that are lost from now on")
	case a.IsPlan():
		return Errorf(InvalidArgument, "a plan has no scope").WithHint("it is approved until its task has ended")
	case !d.Approve:
		return Errorf(InvalidArgument, "a refusal has no scope").WithHint("it holds %s", a.lasts())
	case !slices.Contains([]Scope{Once, ForTask, Always}, d.Scope):
		return Errorf(InvalidArgument, "there is no scope %q", Clean(string(d.Scope), 40)).WithHint("%s, %s or %s", Once, ForTask, Always)
	case d.Scope == Always && a.Call.Rule == "":
		return Errorf(InvalidArgument, "no rule can allow this call from now on: %s", a.Call.Why).WithHint("allow it with the scope %s or %s, or change the rules", Once, ForTask)
	}
	return nil
}

// lasts states how long an answer to a holds.
func (a Approval) lasts() string {
	if a.Task == "" {
		return "until " + string(a.AgentID) + " goes idle"
	}
	return "while " + string(a.AgentID) + " holds " + string(a.Task)
}

// Asked returns whether a is for the same call as c (other), and whether it can still be used as well (open):
// it has not ended, and is not an approval for one call that was made.
func (a Approval) Asked(c AskedCall) (other, open bool) {
	other = a.Kind == OfPermission && a.Call != nil && a.Call.Digest == c.digest()
	return other, other && a.EndedAt == nil && (a.Status != PlanUsed || a.Scope != Once)
}

// Inherited reports whether a allows a call until the task t has ended, for any holder of t.
func (a Approval) Inherited(t Task) bool {
	allowed := a.Status == PlanApproved || a.Status == PlanUsed
	return a.Kind == OfPermission && allowed && (a.Scope == ForTask || a.Scope == Always) && a.Task != "" && a.Task == t.ID && a.EndedAt == nil
}

// Permits returns nil if a lets h, which holds t, make the call; seated: a person's seat made the decision.
// Errors: PermissionDenied, with a hint.
func (a Approval) Permits(h Holder, t Task, seated bool) error {
	switch own := a.AgentID == h.Agent; {
	case !own && !a.Inherited(t):
		return Errorf(PermissionDenied, "the request %s is of %s", a.ID, a.AgentID)
	case own && a.Incarnation > h.Incarnation:
		return Errorf(PermissionDenied, "the request %s is of a process that has replaced yours", a.ID)
	case a.IsPlan(), !a.Intact():
		return Errorf(PermissionDenied, "the record of your request %s is not valid", a.ID).WithHint("do it otherwise, or tell a person")
	case a.Status == PlanPending:
		return Errorf(PermissionDenied, "a person has to allow it, and is asked (request %s): %s", a.ID, a.Call.Why).
			WithHint("do what does not depend on it, or end your turn: you are woken when it is decided on")
	case a.Status == PlanRejected && a.mayDecide(a.DecidedBy, seated):
		return Errorf(PermissionDenied, "a person has refused it (request %s)%s", a.ID, a.described()).WithHint("do without it, or do it otherwise")
	case a.Status != PlanApproved && a.Status != PlanUsed, !a.mayDecide(a.DecidedBy, seated), a.Scope != Once && a.Scope != ForTask && a.Scope != Always:
		return Errorf(PermissionDenied, "the answer to your request %s is not valid", a.ID).WithHint("do it otherwise, or tell a person")
	}
	return nil
}

func (a Approval) described() string {
	if strings.TrimSpace(a.Feedback) == "" {
		return ""
	}
	return ": " + Clip(a.Feedback, 2000)
}

// callVerdict returns the notice to the agent of a decided call.
func (a Approval) callVerdict() string {
	if a.Call == nil || a.EndedAt != nil {
		return "The request " + a.ID + " is void: it waits for no decision any more."
	}
	what := fmt.Sprintf("your call of %s (request %s%s: %s)", a.Call.Tool, a.ID, a.about(), a.Call.Brief())
	if a.Status == PlanRejected {
		return "A person has refused " + what + a.described() + "\nDo without it, or do it otherwise."
	}
	text := "A person has allowed " + what + ". Call it again, exactly as before: it then runs"
	switch a.Scope {
	case Once:
		text += ", once."
	case Always:
		text += ". Such calls are allowed from now on, by the rule " + a.Call.Rule + "."
	default:
		text += " as often as you need, until " + cmp.Or(string(a.Task), "you go idle")
		if a.Task != "" {
			text += " has ended"
		}
		text += "."
	}
	if a.Feedback != "" {
		text += "\n" + a.Feedback
	}
	return text
}

// Scopes returns the scopes that an approval of a, which has a call, may have.
func (a Approval) Scopes() []Scope {
	switch {
	case a.Kind == OfRespawn:
		return []Scope{Once}
	case a.Call.Rule == "":
		return []Scope{Once, ForTask}
	}
	return []Scope{Once, ForTask, Always}
}

// Asking completes "coder-1 ..." with the request of a, which has a call.
func (a Approval) Asking() string {
	if a.Kind == OfRespawn {
		return "is lost, and a person decides whether it comes back"
	}
	return "asks whether it may call " + Escaped(a.Call.Tool) + a.about()
}

// Brief returns the beginning of the request on one line.
func (a Approval) Brief() string {
	if a.Call != nil {
		return a.Call.Brief()
	}
	return Summarize(a.Plan)
}
