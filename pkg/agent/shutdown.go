package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// request is a request to shut down that is not refused.
type request struct {
	ID       string       `json:"id"` // its request_id
	From     team.AgentID `json:"from"`
	Seq      uint64       `json:"seq"`                // of its mail
	Drain    bool         `json:"drain,omitempty"`    // the agent leaves once it has no task
	Free     bool         `json:"free,omitempty"`     // when it arrived, the model had no input
	Approved bool         `json:"approved,omitempty"` // by the model
	Reason   string       `json:"reason,omitempty"`   // why
	Brief    string       `json:"brief,omitempty"`    // the first words of its mail
}

// refused is a request that the model has refused.
type refused struct {
	ID     string       `json:"id"`
	From   team.AgentID `json:"from"`
	Reason string       `json:"reason"`
	Unsent bool         `json:"unsent,omitempty"` // the member that asked may not have been notified
}

// maxRefused is how many refused requests are remembered.
const maxRefused = 20

// Asks returns nil if the agent got a request to shut down with this id that it may still answer.
// Errors: NotFound; Conflict if it has answered, or if the request needs no answer.
func (c *Conversation) Asks(requestID string) error {
	if slices.ContainsFunc(c.Refused, func(r refused) bool { return r.ID == requestID }) {
		return team.Errorf(team.Conflict, "you have answered request %q", requestID)
	}
	i := slices.IndexFunc(c.Requests, func(r request) bool { return r.ID == requestID })
	switch {
	case i < 0:
		return team.Errorf(team.NotFound, "you were sent no request %q", requestID).WithHint("the request's mail names its request_id")
	case c.Requests[i].Drain:
		return team.Errorf(team.Conflict, "request %q wants no answer", requestID).WithHint("you leave once you have no task")
	}
	return nil
}

// request takes in a request to shut down; free reports that the model had no input then.
func (c *Conversation) request(m team.Message, seq uint64, brief string, free bool) {
	c.Requests = append(slices.Clip(c.Requests), request{ID: m.RequestID, From: m.From, Seq: seq, Drain: m.Drain, Free: free, Brief: brief})
}

// stillAsked lists the pending requests to shut down, except those whose mail is among the messages
// kept. Their words are left out where an endpoint may have refused the conversation because of
// them.
func (c *Conversation) stillAsked(kept []*model.Message, words bool) string {
	var b strings.Builder
	for _, r := range c.Requests {
		if r.Approved || slices.ContainsFunc(kept, func(m *model.Message) bool { return hasMailOf(m, r.ID) }) {
			continue
		}
		fmt.Fprintf(&b, "%s asked you to shut down (%s)", r.From, requestAttribute(r.ID))
		if words && r.Brief != "" {
			b.WriteString(": " + neutral(r.Brief))
		}
		b.WriteString("\n" + howToLeave(r.From, r.ID, r.Drain, c.dialect) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// verdict takes in the model's answer to a request.
func (c *Conversation) verdict(v team.Verdict) {
	i := slices.IndexFunc(c.Requests, func(r request) bool { return r.ID == v.RequestID })
	if i < 0 {
		return
	}
	r := c.Requests[i]
	c.Requests = slices.Delete(slices.Clone(c.Requests), i, i+1)
	if v.Approve {
		r.Approved, r.Reason = true, v.Reason
		c.Requests = append(c.Requests, r)
		return
	}
	c.Refused = append(slices.Clip(c.Refused), refused{r.ID, r.From, v.Reason, true})
	c.Refused = c.Refused[max(0, len(c.Refused)-maxRefused):]
}

// forgetRequests removes the requests whose mail is older than from: they were for an earlier
// membership of the same name.
func (c *Conversation) forgetRequests(from uint64) {
	c.Requests = slices.DeleteFunc(slices.Clone(c.Requests), func(r request) bool { return r.Seq < from })
}

// refusalsSent records that the members whose requests were refused were notified.
func (c *Conversation) refusalsSent() {
	c.Refused = slices.Clone(c.Refused)
	for i := range c.Refused {
		c.Refused[i].Unsent = false
	}
}

// hasMailOf reports whether m contains the mail of a request. Its author's text cannot begin a line
// like one of our blocks.
func hasMailOf(m *model.Message, requestID string) bool {
	for line := range strings.Lines(m.Content) {
		if m.Role == "user" && strings.HasPrefix(line, "<mail ") && strings.Contains(line, requestAttribute(requestID)) {
			return true
		}
	}
	return false
}

// howToLeave returns the runtime's instructions for a request to shut down.
func howToLeave(from team.AgentID, requestID string, drain bool, d team.Dialect) string {
	if drain {
		return "You leave the team once you have no task: finish the one that you hold, and take no other."
	}
	answer := fmt.Sprintf(`send_message {"to":%q,"type":"shutdown_response","request_id":%q,"approve":true or false,"content":"the reason"}`, from, requestID)
	if d == team.Claude {
		answer = fmt.Sprintf(`SendMessage {"to":%q,"type":"shutdown_response","request_id":%q,"approve":true or false,"message":"the reason"}`, from, requestID)
	}
	return "Decide and answer: " + answer + ". If you approve, your task goes back to the board and you leave at once. Refuse if what you are at should be ended first. If you answer nothing, you leave once you have nothing to do."
}

// free reports whether the agent has nothing to do. For a drain, waiting for an answer counts as
// nothing.
func (a *Agent) free(drain bool) bool {
	return !a.conv.Unseen && !a.holds() && (drain || !a.waits() && !a.o.Jobs.Waits())
}

// stuck reports whether the agent leaves because it cannot ask its model now. With a drain it keeps
// its task.
func (a *Agent) stuck(drain bool) bool {
	return (a.shown == team.WaitingModel || a.shown == team.WaitingBudget) && (!drain || !a.holds())
}

// dismissed reports whether one of the requests to leave applies now.
func (a *Agent) dismissed(now func(drain bool) bool) bool {
	return slices.ContainsFunc(a.conv.Requests, func(r request) bool { return now(r.Drain) })
}

// drained reports whether the agent was asked to leave once it has no task.
func (a *Agent) drained() bool { return a.dismissed(func(drain bool) bool { return drain }) }

// drains makes the slot take no further task if the agent leaves after this one.
func (a *Agent) drains() {
	if a.drained() {
		a.o.Slot.Retire()
		a.heartbeatAgain()
	}
}

// wasFree reports whether an earlier incarnation was about to leave unasked: it had nothing to do
// when the request arrived, and has nothing since.
func (a *Agent) wasFree() bool {
	return !a.holds() && !a.waits() && slices.ContainsFunc(a.conv.Requests, func(r request) bool { return r.Free })
}

// answers carries out the model's answers to requests to shut down. It returns [ErrShutdown] if it
// approved one.
func (a *Agent) answers(ctx context.Context) error {
	if slices.ContainsFunc(a.conv.Requests, func(r request) bool { return r.Approved }) {
		return a.leave(ctx)
	}
	for _, r := range a.conv.Refused {
		if !r.Unsent {
			continue
		}
		if err := a.o.Journal.Flush(); err != nil { // a successor must not decide once more
			return err
		}
		if err := a.respond(ctx, r.ID, r.From, false, r.Reason); err != nil {
			return err
		}
	}
	a.conv.refusalsSent()
	return nil
}

// leave ends the membership: the task goes back to the board, and all members that asked are
// notified.
func (a *Agent) leave(ctx context.Context) error {
	if err := a.o.Journal.Flush(); err != nil {
		return err
	}
	a.o.Slot.Retire()
	if t, ok := a.o.Slot.Task(); ok {
		if _, err := a.o.Slot.Release(ctx, t.ID, team.Freed{Reason: "its holder " + string(a.o.Member.AgentID) + " was asked to shut down"}); err != nil {
			a.log.WarnContext(ctx, "task not released at shutdown", "task", t.ID, "err", err)
		}
	}
	if err := a.engine.Record(ctx, journal.Record{Kind: journal.End}); err != nil {
		return err
	}
	for _, r := range a.conv.Requests {
		if err := a.respond(ctx, r.ID, r.From, true, cmp.Or(r.Reason, string(a.o.Member.AgentID)+" shuts down")); err != nil {
			a.log.WarnContext(ctx, "whoever asked to shut down was not told", "to", r.From, "err", err)
		}
	}
	return ErrShutdown
}

// respond answers the member that asked the agent to shut down. A successor that repeats it sends
// the same message, of which the reader takes one. The member may have left.
func (a *Agent) respond(ctx context.Context, id string, to team.AgentID, approve bool, why string) error {
	_, _, err := a.o.Post.Send(ctx, team.Message{ID: "answer-" + id, Type: team.MsgShutdownResponse, From: a.o.Member.AgentID, To: to,
		RequestID: id, Approve: &approve, Content: why})
	if errors.Is(err, team.NotFound) {
		a.log.WarnContext(ctx, "whoever asked to shut down is gone", "to", to)
		return nil
	}
	return err
}
