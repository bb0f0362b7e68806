package team

import (
	"fmt"
	"slices"
	"time"
)

// Declined records that a member has put a task back that it could not do, or whose work conflicted with its
// own.
type Declined struct {
	By  AgentID `json:"by"`
	Why Decline `json:"why,omitempty"`
}

// Decline is the fault of a task for which a member has put it back.
type Decline string

// The reasons.
const (
	DeclineOther    Decline = ""          // it may be the member's own fault
	DeclineRefused  Decline = "refused"   // its model refuses the task, and answers without it
	DeclineTooLarge Decline = "too_large" // the task is larger than the window of its model
)

// Cooldowns before a member is offered a task again that it has put back.
const (
	BackoffShared = 5 * time.Minute  // while another member could take it
	BackoffAlone  = 30 * time.Second // while none could, unless the task came back from the line
)

// Backoff returns the cooldown before a member that has put t back is offered it again; others: another could take it. If
// none could, a task that failed to merge has no cooldown: its holder starts again from the new head.
func (t Task) Backoff(others bool) time.Duration {
	switch {
	case others:
		return BackoffShared
	case t.cameBack():
		return 0
	}
	return BackoffAlone
}

// cameBack reports whether t was put back last since its work did not merge into the integration branch.
func (t Task) cameBack() bool {
	n := len(t.Returned)
	return n > 0 && t.Returned[n-1].Epoch == t.Epoch && !t.Returned[n-1].Unfinished
}

// maxDeclined bounds how many members that have put a task back its record names.
const maxDeclined = 16

// freeMerges is how often the work of a task may fail to merge before that counts as an attempt: the changes
// of others are not its holder's fault.
const freeMerges = 2

// GiveBack states how a member puts a task back that it cannot do. The task is reserved for no member.
type GiveBack struct {
	Freed
	Why    Decline   // the task's fault, if it is one
	Merge  bool      // its work did not go into the team's line; that is an attempt from the third time on
	Others []AgentID // with Merge: whose work it conflicts with; they are offered other tasks first, too
	Stays  bool      // with Merge: its holder continues with it, under another epoch
	Alone  bool      // with Why: there is no other member that could take it and has not found that fault
}

// GiveBack returns t as put back by its holder and records that: the holder is offered other tasks first. A
// task fails if the models of two members refuse it, or it has a fault and no other member could try it.
// Errors: those of [Task.Release].
func (t Task) GiveBack(h Holder, epoch uint64, g GiveBack, now time.Time) (Task, error) {
	if g.Merge {
		t.Unmerged++
		g.Attempt = t.Unmerged > freeMerges
	}
	g.Keep = false
	next, err := t.Release(Actor{Holder: h}, epoch, g.Freed, now)
	if err != nil {
		return t, err
	}
	if g.Stays && next.Status == Pending { // the work of the former epoch is not merged any more
		next.Status, next.ClaimedAt, next.Epoch = InProgress, t.ClaimedAt, t.Epoch+1
		return next, nil
	}
	for _, a := range g.Others {
		if !t.HasDeclined(a) {
			t.Declined = append(slices.Clone(t.Declined), Declined{By: a})
		}
	}
	next.Declined = t.declinedBy(Declined{h.Agent, g.Why})
	first := t.refusedBy(h.Agent)
	switch {
	case next.Status != Pending || g.Why == DeclineOther:
	case g.Why == DeclineRefused && first != "":
		next.Status, next.Reason = Failed, fmt.Sprintf("refused by the models of two members; that of %s before, now: %s", first, next.Reason)
	case g.Alone:
		next.Status, next.Reason = Failed, "nobody else could take it: "+next.Reason
	}
	return next, nil
}

// refusedBy returns a member other than a whose model refuses t; "" if there is none.
func (t Task) refusedBy(a AgentID) AgentID {
	for _, d := range t.Declined {
		if d.Why == DeclineRefused && d.By != a {
			return d.By
		}
	}
	return ""
}

// declinedBy returns t.Declined with d at its end. A known fault is not overwritten by none.
func (t Task) declinedBy(d Declined) []Declined {
	all := slices.Clone(t.Declined)
	if i := slices.IndexFunc(all, func(o Declined) bool { return o.By == d.By }); i >= 0 {
		if d.Why == DeclineOther {
			d.Why = all[i].Why
		}
		all = slices.Delete(all, i, i+1)
	}
	all = append(all, d)
	return all[max(0, len(all)-maxDeclined):]
}

// HasDeclined reports whether a member has put t back.
func (t Task) HasDeclined(a AgentID) bool {
	return slices.ContainsFunc(t.Declined, func(d Declined) bool { return d.By == a })
}

// Faulty reports whether a member has put t back because of a fault of the task.
func (t Task) Faulty(a AgentID) bool {
	return slices.ContainsFunc(t.Declined, func(d Declined) bool { return d.By == a && d.Why != DeclineOther })
}

// Suits reports whether t is for m, of role r: t is for that role, or for any role and m can change files. A
// member that takes no unassigned tasks suits only tasks reserved for it.
func (t Task) Suits(m Member, r Role) bool {
	return t.Fits(m.AgentID, m.Role) && (t.ReservedFor != "" || r.Claims() && (t.Role != "" || !r.ReadsOnly()))
}

// Able reports whether a member takes tasks automatically, now or later: its process runs, its model answers,
// and it waits for no person. b is its last heartbeat (the zero Heartbeat: none yet). The leader takes none.
func Able(m Member, b Heartbeat) bool {
	switch {
	case m.AgentID == Leader || m.Backend == Person:
		return false
	case m.State == Created:
		return true // it is about to come
	case m.State != Joined:
		return false
	}
	return b.Incarnation != m.Incarnation || !b.Parked() && !b.WaitsForPerson()
}
