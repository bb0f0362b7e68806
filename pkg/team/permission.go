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

// ApprovalKind is what an approval is asked for.
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

// MaxAskedBytes bounds the arguments of a call for which a person is asked, who has to see them.
const MaxAskedBytes = 256 << 10

// AskedCall is a call for which a person is asked. It is the same call wherever Tool, Arguments and
// Dir are the same.
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

// Shown is the call as people read it: the command by itself, of any other call its tool and each
// argument. It is whole, and what cannot be seen is escaped, see [Escaped].
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

// Quoted is the call as people read it among other text: each line of [AskedCall.Shown] behind a
// bar, at most so many characters of it, and what is left out is said.
func (c AskedCall) Quoted(most int) string {
	shown := []rune(c.Shown())
	rest := ""
	if n := len(shown); n > most {
		shown, rest = shown[:most], fmt.Sprintf("\n(the first %d of %d characters)", most, n)
	}
	return "│ " + strings.ReplaceAll(string(shown), "\n", "\n│ ") + rest
}

// Brief is the call in its first words, on a line.
func (c AskedCall) Brief() string {
	shown := OneLine(c.Shown())
	if tool := Escaped(c.Tool); shown != tool && !strings.HasPrefix(shown, tool+" ") {
		shown = tool + ": " + shown
	}
	return Clip(shown, 100)
}

// Escaped is a text in which all can be seen: each character that leaves no ink, but for a space, a
// tab and a line end, is written as ⟨U+001B⟩, as is the first of these brackets itself.
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

// NewPermission is the request of h, a member that holds t (the zero Task: none), to make a call.
// Of the call its Digest is filled in. Errors: InvalidArgument for one that is too long to be
// judged.
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

// respawnCall names the call of a request to bring a lost member back. No model makes it.
const respawnCall = "respawn"

// NewRespawn asks a person whether m, which is lost, is to be brought back; why says how it was
// lost. It is the same request each time, until m is lost as another incarnation.
func NewRespawn(m Member, dir, why string, now time.Time) Approval {
	c := AskedCall{Tool: respawnCall, Arguments: fmt.Sprintf(`{"agent_id":%q,"incarnation":%d}`, m.AgentID, m.Incarnation), Dir: dir, Why: Clip(Escaped(why), 2000), Number: 1}
	c.Digest = c.digest()
	a := Approval{Kind: OfRespawn, AgentID: m.AgentID, Incarnation: m.Incarnation, Approver: ByHuman, Call: &c, Status: PlanPending, CreatedAt: now}
	a.ID = a.requestID()
	return a
}

// Brings reports whether a person has decided that a brings its member back.
func (a Approval) Brings(seated bool) bool {
	return a.Kind == OfRespawn && a.Status == PlanApproved && a.Intact() && a.mayDecide(a.DecidedBy, seated)
}

// IsPlan reports whether a is about a plan. What a newer program knows more of is none.
func (a Approval) IsPlan() bool { return (a.Kind == "" || a.Kind == OfPlan) && a.Call == nil }

// noun is what a is, for people.
func (a Approval) noun() string {
	if a.IsPlan() {
		return "plan"
	}
	return "request"
}

// takes refuses a decision with a scope that a does not have.
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

// lasts is how long an answer to a holds.
func (a Approval) lasts() string {
	if a.Task == "" {
		return "until " + string(a.AgentID) + " goes idle"
	}
	return "while " + string(a.AgentID) + " holds " + string(a.Task)
}

// Asked returns whether a is a request to make the call c that can still be of use: pending, decided
// and not used up. other is any request for the same call, of use or not.
func (a Approval) Asked(c AskedCall) (other, open bool) {
	other = a.Kind == OfPermission && a.Call != nil && a.Call.Digest == c.digest()
	return other, other && a.EndedAt == nil && (a.Status != PlanUsed || a.Scope != Once)
}

// Inherited reports whether a is a call that a person has allowed until the task t has ended: then it is the task's, also
// for a member that has not asked for it.
func (a Approval) Inherited(t Task) bool {
	allowed := a.Status == PlanApproved || a.Status == PlanUsed
	return a.Kind == OfPermission && allowed && (a.Scope == ForTask || a.Scope == Always) && a.Task != "" && a.Task == t.ID && a.EndedAt == nil
}

// Permits returns nil if a lets h, which holds t, make the call; seated is whether the decision is
// of a person's seat. Errors: PermissionDenied, which tells what to do.
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
		return Errorf(PermissionDenied, "a person has refused it (request %s)%s", a.ID, a.said()).WithHint("do without it, or do it otherwise")
	case a.Status != PlanApproved && a.Status != PlanUsed, !a.mayDecide(a.DecidedBy, seated), a.Scope != Once && a.Scope != ForTask && a.Scope != Always:
		return Errorf(PermissionDenied, "the answer to your request %s is not valid", a.ID).WithHint("do it otherwise, or tell a person")
	}
	return nil
}

func (a Approval) said() string {
	if strings.TrimSpace(a.Feedback) == "" {
		return ""
	}
	return ": " + Clip(a.Feedback, 2000)
}

// callVerdict is what the agent of a decided call is told.
func (a Approval) callVerdict() string {
	if a.Call == nil || a.EndedAt != nil {
		return "The request " + a.ID + " is void: it waits for no decision any more."
	}
	what := fmt.Sprintf("your call of %s (request %s%s: %s)", a.Call.Tool, a.ID, a.about(), a.Call.Brief())
	if a.Status == PlanRejected {
		return "A person has refused " + what + a.said() + "\nDo without it, or do it otherwise."
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

// Scopes are those that an approval of a, which has a call, may have.
func (a Approval) Scopes() []Scope {
	switch {
	case a.Kind == OfRespawn:
		return []Scope{Once}
	case a.Call.Rule == "":
		return []Scope{Once, ForTask}
	}
	return []Scope{Once, ForTask, Always}
}

// Asking completes "coder-1 ..." with what a person is asked by a, which has a call.
func (a Approval) Asking() string {
	if a.Kind == OfRespawn {
		return "is lost, and a person decides whether it comes back"
	}
	return "asks whether it may call " + Escaped(a.Call.Tool) + a.about()
}

// Brief is what is asked, in its first words, on a line.
func (a Approval) Brief() string {
	if a.Call != nil {
		return a.Call.Brief()
	}
	return Summarize(a.Plan)
}
