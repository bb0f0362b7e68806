package explain

import (
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Standing is the state of a member: its record and its heartbeats.
type Standing struct {
	Member team.Member
	State  team.MemberState // derived from beats, where there are some
	Task   team.TaskID      // that it holds; "" = none
	Window int              // tokens that its model takes; 0: not known

	declined bool // it leaves the task that this is about to others
}

// Situation is the state, in addition to the board, that decides whether a pending task gets a holder.
type Situation struct {
	Status  team.Status // of the team
	Led     bool        // a process leads the team
	Down    bool        // the cluster is down: no process runs
	Members []Standing  // those that have left may be among them
	Roles   map[string]team.Role
}

// Why returns why no member works on v: its dependencies, or the members that could take it and do not. It is
// "" for a task that is not pending, and for one that an idle member is about to take. status returns the
// status of a dependency, "" for an unreadable one.
func (s Situation) Why(v team.TaskView, status func(team.TaskID) team.TaskStatus) string {
	switch {
	case v.Status != team.Pending:
		return ""
	case v.IsBlocked:
		return WaitsFor(v, status)
	case s.Status != team.Active && s.Status != "":
		return "the team is " + string(s.Status)
	case s.Down:
		return "the cluster is down"
	}
	if v.ReservedFor != "" {
		return s.whyReserved(v.ReservedFor)
	}
	var fit []Standing
	var waits team.AgentID // one that would fit, and takes nothing unassigned
	for _, m := range s.Members {
		if m.Member.AgentID == team.Leader || m.Member.Backend == team.Person || m.State == team.Stopped || v.Role != "" && v.Role != m.Member.Role {
			continue
		}
		if !s.Roles[m.Member.Role].Claims() {
			waits = m.Member.AgentID
			continue
		}
		if v.Role == "" && s.Roles[m.Member.Role].ReadsOnly() && s.Others(team.Task{}, "") { // it leaves the task to others
			continue
		}
		if m.declined = v.HasDeclined(m.Member.AgentID); m.State == team.Idle && m.Task == "" && !m.declined {
			return ""
		}
		fit = append(fit, m)
	}
	switch why := whyNot(fit, v.Role); {
	case len(fit) == 0 && waits != "":
		return fmt.Sprintf("%s takes only tasks that are assigned to it (auto_claim of its role)", waits)
	case len(fit) == 0 && !s.Led:
		return why + ", and no leader process that could spawn one"
	default:
		return why
	}
}

// Others reports whether a member other than a could take t now or later, and has not put it back.
func (s Situation) Others(t team.Task, a team.AgentID) bool {
	return slices.ContainsFunc(s.Members, func(m Standing) bool {
		return m.Member.AgentID != a && m.able() && t.Suits(m.Member, s.Roles[m.Member.Role]) && !t.HasDeclined(m.Member.AgentID)
	})
}

// Idle reports whether a member other than those in but could take t now.
func (s Situation) Idle(t team.Task, but ...team.AgentID) bool {
	return slices.ContainsFunc(s.Members, func(m Standing) bool {
		return m.State == team.Idle && m.Task == "" && m.able() && t.Suits(m.Member, s.Roles[m.Member.Role]) &&
			!t.HasDeclined(m.Member.AgentID) && !slices.Contains(but, m.Member.AgentID)
	})
}

// Untried reports whether a member other than a could take t now or later, and has found no fault in it. With
// window, the model of that member must take more tokens, or an unknown number.
func (s Situation) Untried(t team.Task, a team.AgentID, window int) bool {
	return slices.ContainsFunc(s.Members, func(m Standing) bool {
		return m.Member.AgentID != a && m.able() && t.Suits(m.Member, s.Roles[m.Member.Role]) && !t.Faulty(m.Member.AgentID) &&
			(window == 0 || m.Window == 0 || m.Window > window)
	})
}

// able applies [Able] to the member in its present state.
func (m Standing) able() bool {
	return m.State != team.Lost && m.State != team.Stopped && team.Able(m.Member, team.Heartbeat{Incarnation: m.Member.Incarnation, State: m.State})
}

// whyReserved returns why the member does not take a task that is reserved for it; "" if it is about to.
func (s Situation) whyReserved(a team.AgentID) string {
	for _, m := range s.Members {
		switch {
		case m.Member.AgentID != a:
		case a == team.Leader:
			return "reserved for the leader"
		case m.State == team.Idle && m.Task == "":
			return ""
		case m.Member.Backend == team.Person && m.State != team.Stopped:
			return "reserved for " + string(a) + ", a person"
		case strings.HasPrefix(m.why(), "waits"):
			return "reserved for " + string(a) + ", which " + m.why()
		default:
			return "reserved for " + string(a) + ", which is " + m.atWhat()
		}
	}
	return "reserved for " + string(a) + ", who is no member"
}

// WaitsFor names the dependencies that block v. It adds the status of a dependency that will not be
// completed, since v cannot proceed.
func WaitsFor(v team.TaskView, status func(team.TaskID) team.TaskStatus) string {
	parts := make([]string, len(v.WaitingFor))
	for i, id := range v.WaitingFor {
		parts[i] = Named(id, status)
	}
	return strings.Join(parts, ",")
}

// Named returns the id, with the status if the task will not be completed.
func Named(id team.TaskID, status func(team.TaskID) team.TaskStatus) string {
	switch s := status(id); s {
	case team.Failed, team.Cancelled:
		return string(id) + " (" + string(s) + ")"
	case "":
		return string(id) + " (" + team.ShownUnknown + ")"
	}
	return string(id)
}

// whyNot returns why none of the fitting members takes a task.
func whyNot(fit []Standing, role string) string {
	switch {
	case len(fit) == 0 && role != "":
		return "nobody has the role " + role
	case len(fit) == 0:
		return "there is no teammate"
	case len(fit) == 1:
		return string(fit[0].Member.AgentID) + ": " + fit[0].atWhat()
	}
	count, order := map[string]int{}, []string{}
	for _, m := range fit {
		if count[m.why()]++; count[m.why()] == 1 {
			order = append(order, m.why())
		}
	}
	kind := "teammates"
	if role != "" {
		kind = "of role " + role
	}
	who := fmt.Sprintf("%d %s", len(fit), kind)
	switch {
	case len(order) == 1 && len(fit) == 2:
		return fmt.Sprintf("both %s: %s", kind, order[0])
	case len(order) == 1:
		return fmt.Sprintf("all %s: %s", who, order[0])
	}
	slices.SortStableFunc(order, func(a, b string) int { return count[b] - count[a] })
	for i, why := range order {
		order[i] = fmt.Sprintf("%d %s", count[why], why)
	}
	return who + ": " + strings.Join(order, ", ")
}

// atWhat returns why, with the task that m is busy with.
func (m Standing) atWhat() string {
	why := m.why()
	if why == "busy" && m.Task != "" {
		why += " with " + string(m.Task)
	}
	return why
}

// why states in a few words why m takes no task.
func (m Standing) why() string {
	switch m.State {
	case team.Created:
		return "not started yet"
	case team.Idle:
		if m.declined {
			return "put it back, so that others take it"
		}
	case team.Lost:
		return "lost, to be brought back"
	case team.Stalled:
		return "stalled"
	case team.Unknown:
		return "does not answer now"
	case team.Stopped:
		return "stopped"
	case team.Joined:
		return "not heard yet"
	case team.WaitingAnswer:
		return "waits for an answer"
	case team.WaitingApproval:
		return "waits for the approval of its plan"
	case team.WaitingUser:
		return "waits for a person"
	case team.WaitingBudget:
		return "waits for a budget to be raised"
	case team.WaitingRepair:
		return "parked, its journal cannot be read"
	case team.Unreadable:
		return "its record cannot be read"
	case team.WaitingModel:
		if m.Member.Parked() {
			return "parked, no usable answer from its model"
		}
		return "waits for its model"
	}
	return "busy"
}
