// Package seat implements how a person takes tasks. A seat is a person's place in a team: a member
// without a process, which holds at most one task.
//
// A seat has no process that orders its claims, as a [board.ClaimSlot] does. So it writes the claim
// into its own record first, by compare-and-set, and then writes the task. Any later call finishes
// a claim that was left open before it starts another, so two terminals that act for one person
// never get two tasks.
//
// It does not ask agents: package client asks a member with a process.
package seat

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// ErrAgent reports that the member of this name is an agent, not a person.
var ErrAgent = errors.New("the member is an agent")

// ErrNoMember reports that no member of this name exists now, and that no seat may be made.
var ErrNoMember = errors.New("nobody of that name is there")

// errChanged: another caller has written the seat's record, or the task, since they were read. The
// call begins again.
var errChanged = errors.New("the seat has changed since it was read")

// Seats are the seats of one team. Safe for concurrent use, also from many processes.
type Seats struct {
	board  *board.Board
	roster *roster.Roster
}

// New returns the seats of the team that b and r belong to.
func New(b *board.Board, r *roster.Roster) *Seats { return &Seats{b, r} }

// Holder returns the seat m as the holder of a task. It has no role: a person may take a task of
// any.
func Holder(m team.Member) team.Holder {
	return team.Holder{Agent: m.AgentID, Incarnation: m.Incarnation}
}

// made is the seat that a call has made: the record before, and the last one that the call has
// written. Both are zero if it has made none.
type made struct{ before, now team.Member }

// Take has the seat of this name take a task; of want, only Task, By and Take are used. If mayMake
// is set, a missing seat is made, and taken back if the claim is lost. isNew reports that there was
// no member of that name at all. If the seat holds the task already, Take returns it.
//
// Errors: ErrAgent, unless the agent is stopped; ErrNoMember for a missing seat without mayMake; Busy
// if the seat holds another task; those of [board.Board.ClaimAt], or of [board.Board.AssignAt] if
// want.By is set.
func (s *Seats) Take(ctx context.Context, name team.AgentID, want team.SeatClaim, mayMake bool) (task team.Task, isNew bool, err error) {
	var own made
	for {
		m, err := s.roster.Get(ctx, name)
		switch {
		case errors.Is(err, team.NotFound):
			m = team.Member{}
		case err != nil:
			return team.Task{}, false, err
		case m.Backend != team.Person && m.State != team.Stopped:
			return team.Task{}, false, ErrAgent
		}
		if !mayMake && (m.Revision == 0 || m.State == team.Stopped) {
			return team.Task{}, false, ErrNoMember
		}
		task, err := s.try(ctx, name, m, want, &own)
		switch {
		case errors.Is(err, errChanged):
			continue
		case err == nil:
			return task, own.now.Revision != 0 && own.before.Revision == 0, nil
		}
		s.takeBack(ctx, own, err)
		return team.Task{}, false, err
	}
}

// Sit makes the seat of this name without a claim, for a task that is reserved for it; isNew
// reports that there was no member of that name at all. An existing seat stays as it is. Errors:
// ErrAgent, unless the agent is stopped; Unavailable.
func (s *Seats) Sit(ctx context.Context, name team.AgentID) (isNew bool, err error) {
	for {
		m, err := s.roster.Get(ctx, name)
		switch {
		case errors.Is(err, team.NotFound):
			m = team.Member{}
		case err != nil:
			return false, err
		case m.State == team.Stopped:
		case m.Backend != team.Person:
			return false, ErrAgent
		default:
			return false, nil
		}
		if _, err = s.roster.Put(ctx, sit(m, name)); !errors.Is(err, team.Conflict) {
			return err == nil && m.Revision == 0, err
		}
	}
}

// try is one attempt to take a task by the seat m, which is made if m is not a seat.
func (s *Seats) try(ctx context.Context, name team.AgentID, m team.Member, want team.SeatClaim, own *made) (team.Task, error) {
	if m.Revision != own.now.Revision {
		*own = made{} // another terminal has used it since, and may continue
	}
	seat, isSeat := m, m.Backend == team.Person && m.State != team.Stopped
	if isSeat {
		if held, err := s.settle(ctx, m, want); err != nil || held.ID == want.Task {
			return held, err
		} else if held.ID != "" {
			return team.Task{}, s.busy(ctx, name, held, want.Task)
		}
	} else {
		seat = sit(m, name)
	}
	task, err := s.board.Get(ctx, want.Task)
	if err != nil {
		return team.Task{}, err
	}
	h := Holder(seat)
	if task.HeldBy(h) { // another terminal took it after the seat was read
		return task, nil
	}
	if err := s.mayTake(ctx, task, want, h); err != nil {
		return team.Task{}, err
	}
	if name == team.Leader {
		return team.Task{}, team.Errorf(team.Unavailable, "the leader does not answer").WithHint("a person cannot sit in the leader's place")
	}
	want.Revision, want.Op = task.Revision, ulid.Make().String()
	seat.Claim = &want
	if seat, err = s.roster.Put(ctx, seat); err == nil {
		if !isSeat {
			own.before = m
		}
		if !isSeat || own.now.Revision != 0 {
			own.now = seat
		}
		task, err = s.takeAt(ctx, task, want, h)
	}
	if errors.Is(err, team.Conflict) {
		// Another member took the task, or another terminal of the seat claims too, or has finished
		// this very claim.
		return team.Task{}, errChanged
	}
	return task, err
}

// busy returns the error for another task to a seat that holds one; NotFound if there is no such
// task.
func (s *Seats) busy(ctx context.Context, name team.AgentID, held team.Task, other team.TaskID) error {
	if _, err := s.board.Get(ctx, other); errors.Is(err, team.NotFound) {
		return err
	}
	return team.Errorf(team.Busy, "%s already holds %s (%s)", name, held.ID, held.Title).
		WithHint("complete it or put it back first: teamctl tasks release %s", held.ID)
}

// sit returns m as a person's seat, a member without a process.
func sit(m team.Member, name team.AgentID) team.Member {
	m.AgentID, m.Backend, m.State, m.Role = name, team.Person, team.Joined, "person"
	m.Incarnation++
	if m.JoinedAt.IsZero() {
		m.JoinedAt = time.Now().UTC()
	}
	return m
}

// mayTake returns why a seat could not take the task as it was read, or nil.
func (s *Seats) mayTake(ctx context.Context, task team.Task, c team.SeatClaim, h team.Holder) error {
	if order, ok := c.Assignment(task); ok {
		return s.board.Assignable(ctx, task, order, h)
	}
	return s.board.Claimable(ctx, task, h)
}

// takeAt makes the write to the task that a seat's claim announces.
func (s *Seats) takeAt(ctx context.Context, task team.Task, c team.SeatClaim, h team.Holder) (team.Task, error) {
	if order, ok := c.Assignment(task); ok {
		return s.board.AssignAt(ctx, task, order, h)
	}
	return s.board.ClaimAt(ctx, task, h)
}

// settle returns the task that the seat holds, the zero Task if none, after finishing a claim that
// was left open, maybe long ago. An open assignment that would take the task from another holder is
// carried out only if want asks for it again. Otherwise settle rewrites the task unchanged; its
// revision moves, and the old assignment can no longer succeed.
func (s *Seats) settle(ctx context.Context, seat team.Member, want team.SeatClaim) (team.Task, error) {
	if seat.Claim == nil {
		return team.Task{}, nil
	}
	task, err := s.board.Get(ctx, seat.Claim.Task)
	switch {
	case errors.Is(err, team.NotFound): // deleted, so it holds nothing
		return team.Task{}, nil
	case errors.Is(err, team.ErrUnreadable): // it may hold the task, once the record is repaired
		return team.Task{}, team.Errorf(team.InvalidState, "whether %s still holds %s is not known: %w", seat.AgentID, seat.Claim.Task, err).
			WithHint("stop the seat, then it begins anew: teamctl stop %s", seat.AgentID)
	case err != nil:
		return team.Task{}, err
	}
	h := Holder(seat)
	if task.Revision == seat.Claim.Revision && (task.Status == team.Pending || seat.Claim.Take && task.Status == team.InProgress) {
		if task.Status == team.Pending || want.Take && want.Task == task.ID {
			task, err = s.takeAt(ctx, task, *seat.Claim, h)
		} else {
			task, err = s.board.Rewrite(ctx, task)
		}
		if errors.Is(err, team.Conflict) {
			return s.settle(ctx, seat, want)
		}
		if err != nil {
			return team.Task{}, err
		}
	}
	if task.HeldBy(h) {
		return task, nil
	}
	return team.Task{}, nil
}

// takeBack undoes the seat that a call made for a claim that ended with err, so that a lost claim
// changes nothing. The seat stays if another caller has used it since, if the claim may yet be
// applied, or if it cannot be taken back now: it does no harm.
func (s *Seats) takeBack(ctx context.Context, own made, err error) {
	if own.now.Revision == 0 || errors.Is(err, team.Unavailable) || team.CodeOf(err) == "" {
		return
	}
	task, gerr := s.board.Get(ctx, own.now.Claim.Task)
	switch {
	case errors.Is(gerr, team.NotFound):
	case gerr != nil, task.Assignee == own.now.AgentID && task.Incarnation == own.now.Incarnation:
		return // another terminal has finished the claim, or may have
	}
	if own.before.Revision == 0 {
		_ = s.roster.Remove(ctx, own.now)
		return
	}
	m := own.before
	m.Revision, m.Incarnation = own.now.Revision, own.now.Incarnation
	_, _ = s.roster.Put(ctx, m)
}

// Stop ends a seat after releasing its task, as by: it has no process that could do so, and no
// lease after which the watchdog would. A stopped seat stays so. Errors: NotFound; ErrAgent, also
// for an agent that is stopped.
func (s *Seats) Stop(ctx context.Context, name team.AgentID, by team.Actor) error {
	for {
		m, err := s.roster.Get(ctx, name)
		switch {
		case err != nil:
			return err
		case m.Backend != team.Person:
			return ErrAgent
		case m.State == team.Stopped:
			return nil
		}
		if err := s.stop(ctx, m, by); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

// stop stops the seat as it was read. Errors: Conflict if it was used since.
func (s *Seats) stop(ctx context.Context, seat team.Member, by team.Actor) error {
	held, err := s.settle(ctx, seat, team.SeatClaim{})
	if err == nil && held.ID != "" {
		_, err = s.board.Release(ctx, held.ID, by, held.Epoch, team.Freed{Reason: string(seat.AgentID) + " was stopped"})
	}
	switch {
	case errors.Is(err, team.ErrUnreadable):
		// If the record is repaired, the watchdog frees the task: its holder has left.
	case err != nil && !team.HoldLost(err): // else it was taken back meanwhile
		return err
	}
	seat.State, seat.LastError = team.Stopped, ""
	_, err = s.roster.Put(ctx, seat)
	return err
}
