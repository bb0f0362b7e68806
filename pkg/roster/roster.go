// Package roster knows who belongs to a team: the member records in the team's
// bucket, and the heartbeats by which a member shows that it lives.
//
// It does not start or stop processes (package spawn), judge a silence (package
// watchdog) or carry mail (package mailbox).
package roster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/wire"
)

// Roster is the list of a team's members. Safe for concurrent use.
type Roster struct{ team *broker.Team }

// New returns the roster of a team.
func New(t *broker.Team) *Roster { return &Roster{t} }

// ErrSuperseded ends a process whose membership is over: the record is gone, or
// a later incarnation bears the name.
var ErrSuperseded = errors.New("this incarnation was superseded")

// List returns all members in order of joining, stopped ones included.
func (r *Roster) List(ctx context.Context) ([]team.Member, error) {
	entries, err := r.team.Bucket.Load(ctx, subject.AllMembers)
	if err != nil {
		return nil, err
	}
	all := make([]team.Member, 0, len(entries))
	for _, e := range entries {
		m, err := Decode(e)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b team.Member) int {
		return cmp.Or(a.JoinedAt.Compare(b.JoinedAt), cmp.Compare(a.AgentID, b.AgentID))
	})
	return all, nil
}

// Get returns one member. Errors: NotFound.
func (r *Roster) Get(ctx context.Context, a team.AgentID) (team.Member, error) {
	e, err := r.team.Bucket.Get(ctx, subject.KeyMember(a))
	if errors.Is(err, team.NotFound) {
		return team.Member{}, team.Errorf(team.NotFound, "team %s has no member %q", r.team.ID, a).
			WithHint("`teamctl agents` lists the members")
	}
	if err != nil {
		return team.Member{}, err
	}
	return Decode(e)
}

// Decode reads a member's record.
func Decode(e broker.Entry) (team.Member, error) {
	var m team.Member
	var err error
	if m.Kept, err = e.Decode(&m, &m.V); err != nil {
		return m, err
	}
	m.Revision = e.Revision
	return m, nil
}

// Put stores m if its record is still at m.Revision (0: absent) and returns it
// with its new revision. Errors: Conflict.
func (r *Roster) Put(ctx context.Context, m team.Member) (team.Member, error) {
	m.V, m.Op, m.UpdatedAt = team.Protocol, ulid.Make().String(), time.Now().UTC()
	data, err := wire.Encode(m, m.Kept)
	if err != nil {
		return m, err
	}
	m.Revision, err = r.team.Bucket.Put(ctx, subject.KeyMember(m.AgentID), data, m.Revision)
	if errors.Is(err, team.Conflict) {
		return m, team.Errorf(team.Conflict, "the record of %s was changed by somebody else", m.AgentID)
	}
	return m, err
}

// Remove takes the record of a seat away that was made in vain, if it is still as m was
// read. That of a member with a process stays; see [Roster.Create]. Errors: Conflict.
func (r *Roster) Remove(ctx context.Context, m team.Member) error {
	return r.team.Bucket.Delete(ctx, subject.KeyMember(m.AgentID), m.Revision)
}

// Create writes the record of a member that a process is yet to take. Without a
// name it is given the role's next number, never one that was given before. A
// stopped member's name brings it back as its next incarnation.
//
// A creation that comes to nothing is ended with [Roster.Leave], never by removing
// the record: a process may have taken it unseen, and who is created next under
// that name must be of a higher incarnation, which shuts such a process out.
//
// Errors: InvalidArgument; Conflict for the name of a member that is there; InvalidState once max
// members with a process are there.
func (r *Roster) Create(ctx context.Context, m team.Member, max int) (team.Member, error) {
	if err := m.Validate(); err != nil {
		return m, err
	}
	counted := m.AgentID == ""
	for {
		all, err := r.List(ctx)
		if err != nil {
			return m, err
		}
		if counted {
			m.AgentID = nextName(all, m.Role)
		}
		next, err := r.next(ctx, all, m)
		if err != nil {
			return m, err
		}
		if err := checkLimit(all, max); err != nil {
			return m, err
		}
		next, err = r.Put(ctx, next)
		if counted && errors.Is(err, team.Conflict) {
			continue // somebody took the number
		}
		if err != nil {
			return m, err
		}
		// Two spawns may both have seen one free place. Both are written now, so
		// at least the later one sees the other and gives way.
		if all, err = r.List(ctx); err == nil {
			err = checkLimit(slices.DeleteFunc(all, func(o team.Member) bool { return o.AgentID == next.AgentID }), max)
		}
		if err != nil {
			return m, errors.Join(err, r.Leave(ctx, next.AgentID, next.Incarnation, err.Error()))
		}
		return next, nil
	}
}

// next is the record that m would be created as.
func (r *Roster) next(ctx context.Context, all []team.Member, m team.Member) (team.Member, error) {
	m.State, m.Incarnation, m.JoinedAt = team.Created, 1, time.Now().UTC()
	last, err := r.team.Messages.LastSeq(ctx)
	if err != nil {
		return m, err
	}
	// A new member hears what is sent from now on, also before its process is up. One
	// that is brought back also hears what came when it was gone, but does not obey it.
	m.InboxFrom, m.ObeysFrom = last+1, last+1
	teammates := 0
	for _, o := range all {
		if o.AgentID != team.Leader {
			teammates++
		}
		if o.AgentID != m.AgentID {
			continue
		}
		if o.State != team.Stopped {
			return m, team.Errorf(team.Conflict, "team %s already has a member %s (%s)", r.team.ID, o.AgentID, o.State).
				WithHint("choose another name, or stop it first")
		}
		m.Incarnation, m.Revision, m.Color, m.JoinedAt, m.InboxFrom = o.Incarnation+1, o.Revision, o.Color, o.JoinedAt, o.InboxFrom
		return m, nil
	}
	m.Color = team.Colour(teammates)
	return m, nil
}

func checkLimit(all []team.Member, max int) error {
	n := 0
	for _, m := range all {
		if m.Counts() {
			n++
		}
	}
	if n >= max {
		return team.Errorf(team.InvalidState, "the team has %d teammates, its limit is %d (max_teammates)", n, max).
			WithHint("remove one, or give the work to those who are there")
	}
	return nil
}

func nextName(all []team.Member, role string) team.AgentID {
	prefix := role[:min(len(role), maxPrefix)] + "-"
	n := 0
	for _, m := range all {
		if digits, ok := strings.CutPrefix(string(m.AgentID), prefix); ok {
			if k, err := strconv.Atoi(digits); err == nil {
				n = max(n, k)
			}
		}
	}
	return team.AgentID(prefix + strconv.Itoa(n+1))
}

// maxPrefix leaves room for a number of six digits in a name of at most 63.
const maxPrefix = 56

// Leave marks the incarnation as stopped: its membership is over. Errors:
// ErrSuperseded if it is no longer the one in the record.
func (r *Roster) Leave(ctx context.Context, a team.AgentID, incarnation uint64, lastError string) error {
	return r.end(ctx, a, incarnation, team.Stopped, lastError)
}

// Lose marks the incarnation as lost: its process goes away or cannot go on, which
// lastError then tells, and the member waits to be brought back elsewhere. Errors:
// ErrSuperseded.
func (r *Roster) Lose(ctx context.Context, a team.AgentID, incarnation uint64, lastError string) error {
	return r.end(ctx, a, incarnation, team.Lost, lastError)
}

// Park writes that the incarnation cannot work, since its model's endpoint refuses it
// because of cause; with "", that it can again. Errors: ErrSuperseded if it is no longer
// the one in the record.
func (r *Roster) Park(ctx context.Context, a team.AgentID, incarnation uint64, cause string) error {
	state := team.WaitingModel
	if cause == "" {
		state = team.Joined
	}
	for {
		m, err := r.Get(ctx, a)
		switch {
		case errors.Is(err, team.NotFound), err == nil && (m.Incarnation != incarnation || !m.HasProcess()):
			return ErrSuperseded
		case err != nil:
			return err
		case m.State == state && m.LastError == cause:
			return nil
		}
		m.State, m.LastError = state, cause
		if _, err = r.Put(ctx, m); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

func (r *Roster) end(ctx context.Context, a team.AgentID, incarnation uint64, state team.MemberState, lastError string) error {
	for {
		m, err := r.Get(ctx, a)
		if errors.Is(err, team.NotFound) || err == nil && m.Incarnation != incarnation {
			return ErrSuperseded
		}
		if err != nil {
			return err
		}
		if m.State == team.Stopped || m.State == state {
			return nil
		}
		m.State, m.LastError = state, lastError
		if _, err = r.Put(ctx, m); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

// Check returns ErrSuperseded if the incarnation's membership is over.
func (r *Roster) Check(ctx context.Context, a team.AgentID, incarnation uint64) error {
	m, err := r.Get(ctx, a)
	if errors.Is(err, team.NotFound) || err == nil && (m.Incarnation != incarnation || m.State == team.Stopped) {
		return ErrSuperseded
	}
	return err
}
