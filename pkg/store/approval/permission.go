package approval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Judgement is the decision of the rules on a call, and its reason.
type Judgement struct {
	Answer permission.Decision // None: it may run, too
	Rule   string              // that matches, as it is written; "" = none
	Given  *team.Grant         // the answer of a person that has added that rule; nil: it is of the settings
	Why    string              // what could not be proven, or what holds without a rule
	Doubt  bool                // it is not known whether Rule, one of deny, matches
	Dir    string              // where a call that is asked would run: a folder, or the tree of its task in words
	Always string              // the rule that would allow such calls; "" = none would
	Asking team.PermissionAsk  // what becomes of a call that is to be asked
	Level  team.Sandbox        // of the sandbox of commands, as it is judged by; "" = not known
}

// Judge judges a call by the present rules. Errors: Unavailable.
type Judge func(ctx context.Context, r tool.Request) (Judgement, error)

// Permissions lets a member make the calls that the rules or a person allow. It belongs to one incarnation. Safe for
// concurrent use.
type Permissions struct {
	plans *Plans
	self  team.Member
	hand  ClaimSlot
	judge Judge

	mu    sync.Mutex // one call is asked for at a time
	asked bool       // there may be requests that have not ended
}

// Permissions returns the gate of a member by these rules.
func (p *Plans) Permissions(self team.Member, hand ClaimSlot, judge Judge) *Permissions {
	return &Permissions{plans: p, self: self, hand: hand, judge: judge, asked: self.Incarnation > 1}
}

// Pass returns nil if the member may make the call. For a call that a person has to allow, it stores a request, sends
// mail, and refuses the call; the refusal has the agent wait for the decision, see [tool.With]. After a person has
// allowed the call, the same call passes, and the record is marked as used before that. It is a [tool.Gate]. Errors:
// PermissionDenied with a hint on the next step; InvalidArgument for a call too long for a request; Unavailable.
func (g *Permissions) Pass(ctx context.Context, r tool.Request) error {
	return g.PassBy(ctx, r, g.judge)
}

// PassBy is Pass by the rules of judge, for a call that is made in the member's name.
func (g *Permissions) PassBy(ctx context.Context, r tool.Request, judge Judge) error {
	j, err := judge(ctx, r)
	tool.Note(ctx, func(a *team.Account) {
		a.Rule, a.Sandbox = j.Rule, j.Level
		if j.Given != nil {
			a.Grants = append(a.Grants, *j.Given)
		}
	})
	switch {
	case err != nil:
		return refused(r.Called, err)
	case j.Answer == permission.Deny:
		return refused(r.Called, denied(j))
	case j.Answer == permission.Ask && j.Asking == team.AskDeny:
		return refused(r.Called, team.Errorf(team.PermissionDenied, "a person would have to allow it, and there is no one to ask (permission_ask: deny): %s", why(j)).
			WithHint("do without it, or do it otherwise; a person can add a rule to the team's permissions"))
	case j.Answer == permission.Ask:
		return refused(r.Called, g.ask(ctx, r, j))
	}
	return nil
}

func denied(j Judgement) error {
	text := "it is not allowed here" + because(j)
	if j.Rule != "" {
		text = fmt.Sprintf("the rule %q denies it%s", j.Rule, because(j))
	}
	return team.Errorf(team.PermissionDenied, "%s", text).WithHint("do without it; only a person can change that, in the permissions of the organisation, of the team or of your role")
}

func because(j Judgement) string {
	if j.Why == "" {
		return ""
	}
	return ": " + j.Why
}

// ask returns nil if a person has allowed the call, and asks a person if there is no request yet.
func (g *Permissions) ask(ctx context.Context, r tool.Request, j Judgement) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = true
	t, _ := g.hand.Task()
	call := team.AskedCall{Tool: r.Called, Arguments: string(r.Arguments), Dir: j.Dir, Why: why(j), Rule: j.Always}
	a, err := g.find(ctx, t, call)
	if err != nil {
		return err
	}
	a, err = g.use(ctx, a, t)
	if err == nil {
		granted(ctx, a)
	}
	if err == nil || a.Status != team.PlanPending || a.EndedAt != nil || team.CodeOf(err) != team.PermissionDenied {
		return err
	}
	return tool.With(err, tool.Effects{Await: &team.Await{Plan: a.ID, Permission: true, From: a.Asks(), About: a.Call.Brief()}})
}

// granted records the approval that let a call pass.
func granted(ctx context.Context, by team.Approval) {
	tool.Note(ctx, func(a *team.Account) { a.Grants = append(a.Grants, team.Grant{Approval: by.ID, By: by.DecidedBy}) })
}

func why(j Judgement) string {
	switch {
	case j.Rule != "" && j.Why != "":
		return fmt.Sprintf("the rule %s: %s", j.Rule, j.Why)
	case j.Rule != "":
		return "the rule " + j.Rule
	case j.Why != "":
		return j.Why
	}
	return "no rule allows it"
}

// find returns a request for the call that is of use in the hold t, and stores a new one if there is none.
func (g *Permissions) find(ctx context.Context, t team.Task, call team.AskedCall) (team.Approval, error) {
	for tried := 0; ; {
		all, err := g.plans.List(ctx)
		if err != nil {
			return team.Approval{}, err
		}
		call.Number = 1
		for _, a := range all {
			other, open := a.Asked(call)
			if other && a.Inherited(t) {
				return a, nil
			}
			if !other || a.AgentID != g.self.AgentID {
				continue
			}
			here, err := g.plans.here(ctx, a, t)
			switch {
			case err != nil:
				return a, err
			case here && open:
				return a, nil
			case a.Task == t.ID: // also of another hold: no two requests are alike
				call.Number = max(call.Number, a.Call.Number+1)
			}
		}
		if call.Number <= tried { // the record in its place is unreadable, or not such a request
			call.Number = tried + 1
		}
		a, err := team.NewPermission(g.self.Holder(), t, call, time.Now().UTC())
		if err != nil {
			return a, err
		}
		switch stored, err := g.plans.put(ctx, a); {
		case errors.Is(err, team.Conflict): // another incarnation asks for the same
			tried = call.Number
		case err != nil:
			return a, fmt.Errorf("ask for permission: %w", err)
		default:
			g.notify(ctx, stored, t)
			return stored, nil
		}
	}
}

// maxListed is the most characters of a call in the mail about it.
const maxListed = 8000

// notify sends mail to the decider. Lost mail does no harm: the list of waiting requests shows this one too.
func (g *Permissions) notify(ctx context.Context, a team.Approval, t team.Task) {
	_, _, _ = g.plans.o.Post.Send(ctx, team.Message{Type: team.MsgPlanRequest, From: g.self.AgentID, To: a.Asks(), RequestID: a.ID,
		Summary: team.Summarize("may it run" + about(t) + ": " + a.Call.Brief()),
		Content: fmt.Sprintf("%s asks whether it may make this call of %s%s, and does not before.\n\n%s\n\nin: %s\nwhy it is asked: %s\n\nDecide with: teamctl approvals approve %s [--scope once|task|always], or reject %s. The whole call: teamctl approvals show %s",
			a.AgentID, team.Escaped(a.Call.Tool), about(t), a.Call.Quoted(maxListed), team.Escaped(a.Call.Dir), a.Call.Why, a.ID, a.ID, a.ID)})
}

// use returns nil if a lets the member make its call, and marks a as used first.
func (g *Permissions) use(ctx context.Context, a team.Approval, t team.Task) (team.Approval, error) {
	h := g.self.Holder()
	return g.plans.change(ctx, a.ID, func(a *team.Approval) (bool, error) {
		seated, err := g.plans.bySeat(ctx, a.DecidedBy)
		if err == nil {
			err = a.Permits(h, t, seated)
		}
		if err != nil {
			return false, err
		}
		if _, open := a.Asked(*a.Call); !open { // another incarnation was faster, or the agent has moved on
			return false, team.Errorf(team.PermissionDenied, "what a person has allowed is used up (request %s)", a.ID).WithHint("call it again, and a person is asked once more")
		}
		if a.Status == team.PlanUsed && a.Incarnation == h.Incarnation || a.AgentID != h.Agent {
			return false, nil
		}
		*a = a.Use(h)
		return true, nil
	})
}

// Requeue ends the member's requests that are for no task, when the member goes idle. Errors: Unavailable; the next Rest
// ends them then.
func (g *Permissions) Requeue(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked {
		return nil
	}
	all, err := g.plans.List(ctx)
	for _, a := range all {
		if a.Kind != team.OfPermission || a.Call == nil || a.AgentID != g.self.AgentID || a.Task != "" {
			continue
		}
		if _, open := a.Asked(*a.Call); !open {
			continue
		}
		if _, endErr := g.plans.ended(ctx, a.ID, g.self.Incarnation); endErr != nil && !gone(endErr) {
			err = errors.Join(err, endErr)
		}
	}
	g.asked = err != nil
	return err
}
