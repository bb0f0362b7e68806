package render

import (
	"strings"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// plan returns the lines for a change of a plan, or of a call that a person has to allow. The request for a person's
// decision on a plan is shown with the mail; that for a call is shown here, not with its mail.
func (s *Story) plan(e feed.Entry, a team.Approval) []string {
	b := e.Event.Event
	fact := func(style ink, mark, text string) []string {
		return append(s.Flush(), s.fact(e.Time, e.AgentID, style, mark, text)...)
	}
	what := "the plan " + a.ID
	if a.Call != nil {
		what = "the call " + a.Brief() + " (" + a.ID + ")"
	}
	if a.Task != "" {
		what += " for " + string(a.Task)
	}
	switch {
	case b.Type == team.ApprovalRequested && a.Call != nil:
		return fact(yellow, "?", s.asked(a))
	case b.Type == team.ApprovalRequested && a.Asks() != team.UserAgent:
		return fact(cyan, "?", "asks for approval of "+what+": "+team.Summarize(a.Plan))
	case b.Type == team.ApprovalApproved:
		verb := "approves "
		if a.Call != nil {
			verb = map[team.Scope]string{team.Once: "allows once ", team.ForTask: "allows for its task ", team.Always: "allows always "}[a.Scope]
		}
		return fact(green, "✓", because(verb+what+" of "+s.name(a.AgentID), a.Feedback))
	case b.Type == team.ApprovalRejected:
		verb := "rejects "
		if a.Call != nil {
			verb = "refuses "
		}
		return fact(yellow, "✗", because(verb+what+" of "+s.name(a.AgentID), a.Feedback))
	}
	_, verb, _ := strings.Cut(string(b.Type), "_")
	return s.ifFull(e, what+": "+strings.ToLower(verb))
}

// maxAsked bounds the shown characters of a call.
const maxAsked = 4000

// asked returns the request for a person that may allow a call.
func (s *Story) asked(a team.Approval) string {
	text := a.Asking() + ":\n" + a.Call.Quoted(maxAsked) + "\nin: " + team.Escaped(a.Call.Dir) + "\nwhy: " + a.Call.Why
	if s.o.Decide == nil {
		return text
	}
	if how := s.o.Decide(a); how != "" {
		text += "\n" + how
	}
	return text
}
