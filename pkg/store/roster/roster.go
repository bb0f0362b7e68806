// Package roster lists the members of a team: the member records in the team's bucket, and the heartbeats by which a
// member shows that it lives.
//
// It does not start or stop processes (package spawn), judge a silence (package watchdog) or carry mail (package
// mailbox).
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

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Roster is the list of a team's members. Safe for concurrent use.
type Roster struct{ team *broker.Storage }

// New returns the roster of a team.
func New(t *broker.Storage) *Roster { return &Roster{t} }

// List returns all members in order of joining, stopped ones included. A member whose record cannot be read has the
// state [team.Unreadable].
func (r *Roster) List(ctx context.Context) ([]team.Member, error) {
	entries, err := r.team.Bucket.Load(ctx, subject.AllMembers)
	if err != nil {
		return nil, err
	}
	all := make([]team.Member, 0, len(entries))
	for _, e := range entries {
		m, err := Decode(e)
		if err != nil {
			m = team.UnreadableMember(m.AgentID, err, e.Time)
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
			WithHint("`teamctl agents` lists the members").WithModelHint("list_teammates shows the members")
	}
	if err != nil {
		return team.Member{}, err
	}
	return Decode(e)
}

// Heir is Get for the next incarnation of a: for an unreadable record it returns the newest readable copy, at the
// revision of the unreadable one, which [Roster.Put] then replaces; without a readable copy, a member with only its name.
// Errors: NotFound if there is no record.
func (r *Roster) Heir(ctx context.Context, a team.AgentID) (team.Member, error) {
	m, err := r.Get(ctx, a)
	if !errors.Is(err, team.ErrUnreadable) {
		return m, err
	}
	damaged, err := r.team.Bucket.Get(ctx, subject.KeyMember(a))
	if err != nil {
		return m, err
	}
	m, err = r.lastReadable(ctx, a)
	if errors.Is(err, team.NotFound) {
		m, err = team.Member{AgentID: a, JoinedAt: damaged.Time}, nil
	}
	m.Revision = damaged.Revision
	return m, err
}

// lastReadable returns the newest readable copy of a member's record. Errors: NotFound.
func (r *Roster) lastReadable(ctx context.Context, a team.AgentID) (team.Member, error) {
	e, _, err := r.team.Bucket.Readable(ctx, subject.KeyMember(a), func(e broker.Entry) error { _, err := Decode(e); return err })
	if err != nil {
		return team.Member{}, err
	}
	return Decode(e)
}

// Decode reads a member's record. For an unreadable record it returns the name and an error.
func Decode(e broker.Entry) (team.Member, error) {
	_, name := subject.ParseKey(e.Key)
	var m team.Member
	var err error
	m.Kept, err = e.Decode(&m, &m.V)
	if err == nil && (m.AgentID != team.AgentID(name) || m.State == "") {
		err = team.Errorf(team.InvalidState, "record %s %w: it is no member of that name", e.Key, team.ErrUnreadable).WithHint(team.RepairHint)
	}
	if err != nil {
		return team.Member{AgentID: team.AgentID(name)}, err
	}
	m.Revision = e.Revision
	return m, nil
}

// Put stores m if its record is still at m.Revision (0: absent) and returns it with its new revision. Errors: Conflict.
func (r *Roster) Put(ctx context.Context, m team.Member) (_ team.Member, err error) {
	m.V, m.Op, m.UpdatedAt = team.Protocol, ulid.Make().String(), time.Now().UTC()
	m.Revision, err = broker.Save(ctx, r.team.Bucket, subject.KeyMember(m.AgentID), m, m.Kept, m.Revision)
	if errors.Is(err, team.Conflict) {
		return m, team.Errorf(team.Conflict, "the record of %s was changed by somebody else", m.AgentID)
	}
	return m, err
}

// Remove deletes the record of a seat that was made in vain, if it is still at m.Revision. The record of a member with a
// process is never deleted; see [Roster.Create]. Errors: Conflict.
func (r *Roster) Remove(ctx context.Context, m team.Member) error {
	return r.team.Bucket.Delete(ctx, subject.KeyMember(m.AgentID), m.Revision)
}

// Create writes the record of a member that a process is yet to take. A member without a name gets the role's next
// number, never one that was used before. The name of a stopped member brings it back as its next incarnation.
//
// A failed creation ends with [Roster.TakeBack], never with a deletion of the record: a process may have taken it unseen.
// The next member of that name then has a higher incarnation, which shuts such a process out.
//
// Errors: InvalidArgument; Conflict for the name of a member that is not stopped, or that another program plays;
// InvalidState if the limit on members with a process is reached.
func (r *Roster) Create(ctx context.Context, m team.Member, l Limit) (team.Member, error) {
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
			m.AgentID = NextName(all, m.Role)
		}
		next, err := r.next(ctx, all, m)
		if err != nil {
			return m, err
		}
		if err := l.Check(all, m.Role); err != nil {
			return m, err
		}
		next, err = r.Put(ctx, next)
		if counted && errors.Is(err, team.Conflict) {
			continue // another spawn took the number
		}
		if err != nil {
			return m, err
		}
		// Two spawns may both have seen one free place. Both are written now, so at least the later one sees the other
		// and gives way.
		if all, err = r.List(ctx); err == nil {
			err = l.Check(slices.DeleteFunc(all, func(o team.Member) bool { return o.AgentID == next.AgentID }), m.Role)
		}
		if err != nil {
			return m, errors.Join(err, r.TakeBack(ctx, next.AgentID, next.Incarnation, err.Error()))
		}
		return next, nil
	}
}

// next returns the record to create for m.
func (r *Roster) next(ctx context.Context, all []team.Member, m team.Member) (team.Member, error) {
	m.State, m.Incarnation, m.JoinedAt, m.PromptFor = team.Created, 1, time.Now().UTC(), 0
	if m.Prompt != "" {
		m.PromptFor = 1
	}
	last, err := r.team.Messages.LastSeq(ctx)
	if err != nil {
		return m, err
	}
	// A new member reads all mail from now on, also mail that comes before its process is up. A returning member also
	// reads the mail of its absence, but does not obey shutdown requests in it.
	m.InboxFrom, m.ObeysFrom = last+1, last+1
	teammates := 0
	for _, o := range all {
		if o.AgentID != team.Leader {
			teammates++
		}
		if o.AgentID != m.AgentID {
			continue
		}
		if o.State == team.Unreadable {
			return m, team.Errorf(team.InvalidState, "%s", o.LastError).WithHint("choose another name; " + team.RepairHint)
		}
		if o.State != team.Stopped {
			return m, team.Errorf(team.Conflict, "team %s already has a member %s (%s)", r.team.ID, o.AgentID, o.State).
				WithHint("choose another name, or stop it first")
		}
		if err := MayPlay(o); err != nil {
			return m, err
		}
		m.Incarnation, m.Revision, m.Color, m.JoinedAt, m.InboxFrom = o.Incarnation+1, o.Revision, cmp.Or(m.Color, o.Color), o.JoinedAt, o.InboxFrom
		if m.Prompt != "" {
			m.PromptFor = m.Incarnation
		}
		return m, nil
	}
	m.Color = cmp.Or(m.Color, team.Colour(teammates))
	return m, nil
}

// MayPlay returns Conflict for a member whose record names another program that plays it: this program could not
// continue its conversation.
func MayPlay(m team.Member) error {
	if m.Program == "" {
		return nil
	}
	return team.Errorf(team.Conflict, "%s is played by the program %q only", m.AgentID, team.Clean(m.Program, 80)).
		WithHint("choose another name, or start that program")
}

// Limit bounds the number of members with a process.
type Limit struct {
	Team     int // in the team
	Role     int // of the new member's role; 0 = no limit
	Policies team.Policies
}

// LimitOf returns the limit for a new member of a role in t, which may have max teammates in total.
func LimitOf(t team.Team, role string, max int) Limit {
	r, _ := t.Role(role) // an unknown role sets no limit
	return Limit{max, r.MaxInstances, t.Policies}
}

// Check returns InvalidState if no further member of the role may join all, the present members.
func (l Limit) Check(all []team.Member, role string) error {
	n, same := 0, 0
	for _, m := range all {
		if !m.Fills(l.Policies) {
			continue
		}
		if n++; m.Role == role {
			same++
		}
	}
	if n >= l.Team {
		return team.Errorf(team.InvalidState, "the team has %s, its limit is %d (max_teammates)", explain.Counted(n, "teammate"), l.Team).
			WithHint("remove one, or give the work to those who are there")
	}
	if l.Role > 0 && same >= l.Role {
		return team.Errorf(team.InvalidState, "%d of role %s are there, the limit of the role is %d (max_instances)", same, role, l.Role).
			WithHint("remove one, or give the work to those who are there")
	}
	return nil
}

// Recalled returns the stopped member of this role that comes back before a new one is made (see [team.Team.Recalls]):
// among members with numbered names the one with the lowest number, "" if there is none.
func (r *Roster) Recalled(ctx context.Context, t team.Team, role string) (name team.AgentID, err error) {
	all, err := r.List(ctx)
	if err != nil {
		return "", err
	}
	lowest := 0
	for _, m := range all {
		if n := number(m.AgentID, role); n > 0 && (lowest == 0 || n < lowest) && m.Role == role && t.Recalls(m) {
			name, lowest = m.AgentID, n
		}
	}
	return name, nil
}

// NextName returns the next numbered name for a member of the role.
func NextName(all []team.Member, role string) team.AgentID {
	n := 0
	for _, m := range all {
		n = max(n, number(m.AgentID, role))
	}
	return team.AgentID(prefix(role) + strconv.Itoa(n+1))
}

// number returns the number in a numbered name of this role, 0 for any other name.
func number(a team.AgentID, role string) int {
	digits, ok := strings.CutPrefix(string(a), prefix(role))
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

func prefix(role string) string { return role[:min(len(role), maxPrefix)] + "-" }

// maxPrefix leaves room for a number of six digits in a name of at most 63.
const maxPrefix = 56

// Leave marks the incarnation as stopped: its membership is over. Errors: team.ErrSuperseded if the record has another
// incarnation.
func (r *Roster) Leave(ctx context.Context, a team.AgentID, incarnation uint64, lastError string) error {
	return r.end(ctx, a, incarnation, team.Stopped, lastError)
}

// LeaveIdle is Leave for a member that leaves because it had no work for so long; reason states that.
func (r *Roster) LeaveIdle(ctx context.Context, a team.AgentID, incarnation uint64, reason string) error {
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		m.State, m.Idled, m.LastError = team.Stopped, true, reason
		return true, nil
	})
}

// TakeBack marks the incarnation as stopped, because of reason, since its spawn has failed; also if it has already
// stopped. Errors: team.ErrSuperseded.
func (r *Roster) TakeBack(ctx context.Context, a team.AgentID, incarnation uint64, reason string) error {
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		if m.State != team.Stopped {
			m.State, m.LastError = team.Stopped, reason
		}
		m.TakenBack = true
		return true, nil
	})
}

// Lose marks the incarnation as lost: its process goes away, or cannot continue because of lastError. The member waits
// for a spawn elsewhere. Errors: team.ErrSuperseded.
func (r *Roster) Lose(ctx context.Context, a team.AgentID, incarnation uint64, lastError string) error {
	return r.end(ctx, a, incarnation, team.Lost, lastError)
}

// LoseUntaken is Lose for an incarnation that no process has taken. An incarnation that has joined meanwhile, started by
// hand or late, stays: its heartbeats decide. Errors: team.ErrSuperseded.
func (r *Roster) LoseUntaken(ctx context.Context, a team.AgentID, incarnation uint64, lastError string) error {
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		if m.State != team.Created {
			return false, nil
		}
		m.State, m.LastError = team.Lost, lastError
		return true, nil
	})
}

// Park records that the incarnation cannot work until a person has fixed its model (WaitingModel) or its journal
// (WaitingRepair), and the cause. An empty cause records that it can work again. Errors: team.ErrSuperseded if the record
// has another incarnation, or the member no process.
func (r *Roster) Park(ctx context.Context, a team.AgentID, incarnation uint64, state team.MemberState, cause string) error {
	if cause == "" {
		state = team.Joined
	}
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		if !m.HasProcess() {
			return false, team.ErrSuperseded
		}
		changed := m.State != state || m.LastError != cause
		m.State, m.LastError = state, cause
		return changed, nil
	})
}

// Note records text, a problem of the incarnation, as its last error. Errors: team.ErrSuperseded if the record has
// another incarnation.
func (r *Roster) Note(ctx context.Context, a team.AgentID, incarnation uint64, text string) error {
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		changed := m.LastError != text
		m.LastError = text
		return changed, nil
	})
}

func (r *Roster) end(ctx context.Context, a team.AgentID, incarnation uint64, state team.MemberState, lastError string) error {
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		if m.State == team.Stopped || m.State == state {
			return false, nil
		}
		m.State, m.LastError = state, lastError
		return true, nil
	})
}

// update changes the record of an incarnation. Errors: team.ErrSuperseded if the record has another incarnation; those
// of change.
func (r *Roster) update(ctx context.Context, a team.AgentID, incarnation uint64, change func(*team.Member) (bool, error)) error {
	_, err := broker.Update(ctx, func(ctx context.Context) (team.Member, error) {
		m, err := r.Get(ctx, a)
		if errors.Is(err, team.NotFound) || err == nil && m.Incarnation != incarnation {
			return m, team.ErrSuperseded
		}
		return m, err
	}, change, r.Put)
	return err
}

// SetInboxBack lowers the sequences in a member's record to at most last+1; last is the newest sequence of the message
// stream. Errors: NotFound; Unavailable.
func (r *Roster) SetInboxBack(ctx context.Context, a team.AgentID, last uint64) error {
	_, err := broker.Update(ctx, func(ctx context.Context) (team.Member, error) { return r.Get(ctx, a) },
		func(m *team.Member) (bool, error) {
			changed := max(m.InboxFrom, m.ObeysFrom) > last+1
			m.InboxFrom, m.ObeysFrom = min(m.InboxFrom, last+1), min(m.ObeysFrom, last+1)
			return changed, nil
		}, r.Put)
	return err
}

// Check returns team.ErrSuperseded if the incarnation's membership is over.
func (r *Roster) Check(ctx context.Context, a team.AgentID, incarnation uint64) error {
	m, err := r.Get(ctx, a)
	if errors.Is(err, team.NotFound) || err == nil && (m.Incarnation != incarnation || m.State == team.Stopped) {
		return team.ErrSuperseded
	}
	return err
}

// Steady is the time after which a member that came back counts as recovered: its losses are forgotten.
const Steady = 2 * time.Minute

// Lives is [Roster.Check] for the incarnation's own process, which has lived for the time lived. An incarnation marked as
// lost, but neither replaced nor stopped, is joined again: it was frozen, or cut off, and lives.
//
// If the record is unreadable, the copy before it holds: no process can succeed a member by an unreadable record.
func (r *Roster) Lives(ctx context.Context, a team.AgentID, incarnation uint64, lived time.Duration) error {
	err := r.lives(ctx, a, incarnation, lived)
	if !errors.Is(err, team.ErrUnreadable) {
		return err
	}
	m, lerr := r.lastReadable(ctx, a)
	switch {
	case errors.Is(lerr, team.NotFound):
		return err
	case lerr == nil && (m.Incarnation != incarnation || m.State == team.Stopped):
		return team.ErrSuperseded
	}
	return lerr
}

func (r *Roster) lives(ctx context.Context, a team.AgentID, incarnation uint64, lived time.Duration) error {
	return r.update(ctx, a, incarnation, func(m *team.Member) (bool, error) {
		if m.State == team.Stopped {
			return false, team.ErrSuperseded
		}
		lost, steady := m.State == team.Lost, m.Losses > 0 && lived >= Steady
		if lost {
			m.State, m.LastError = team.Joined, ""
		}
		if steady {
			m.Losses = 0
		}
		return lost || steady, nil
	})
}
