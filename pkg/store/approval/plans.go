package approval

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Tasks reads the stored copies of a task, oldest first; *board.Board is one.
type Tasks interface {
	History(ctx context.Context, id team.TaskID) ([]team.Task, error)
}

// Members reads members; *roster.Roster is one.
type Members interface {
	Get(ctx context.Context, a team.AgentID) (team.Member, error)
}

// Mailer sends mail; *mailbox.Mailbox is one.
type Mailer interface {
	Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error)
}

// Options are the dependencies of Plans besides the bucket. All are required.
type Options struct {
	Tasks   Tasks
	Members Members
	Post    Mailer
}

// Plans stores the submitted plans of one team, and the requests for a person's permission. Safe for concurrent use,
// also from many processes.
type Plans struct {
	bucket *broker.Bucket
	o      Options
}

// New returns the plans in the bucket b of a team.
func New(b *broker.Bucket, o Options) *Plans { return &Plans{b, o} }

// Get returns one plan or request. Errors: NotFound; [team.ErrUnreadable]; Unavailable.
func (p *Plans) Get(ctx context.Context, id string) (team.Approval, error) {
	unknown := team.Errorf(team.NotFound, "there is no plan or request %q", team.Clean(id, 40)).WithHint("`teamctl approvals` lists what waits for a decision").
		WithModelHint("the id stands in the mail of type plan_approval_request")
	if !isID(id) {
		return team.Approval{}, unknown
	}
	e, err := p.bucket.Get(ctx, subject.KeyPlan(id))
	if errors.Is(err, team.NotFound) {
		return team.Approval{}, unknown
	}
	if err != nil {
		return team.Approval{}, err
	}
	return Decode(e)
}

// isID reports whether id may be part of a key.
func isID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == ""
}

// Decode reads the record of a plan.
func Decode(e broker.Entry) (team.Approval, error) {
	var a team.Approval
	var err error
	if a.Kept, err = e.Decode(&a, &a.V); err != nil {
		return a, err
	}
	a.Revision = e.Revision
	return a, nil
}

// List returns all readable plans and requests, in the order of their submission.
func (p *Plans) List(ctx context.Context) ([]team.Approval, error) {
	entries, err := p.bucket.Load(ctx, subject.AllPlans)
	if err != nil {
		return nil, err
	}
	var all []team.Approval
	for _, e := range entries {
		if a, err := Decode(e); err == nil { // a damaged record harms only itself
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b team.Approval) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Waiting returns the plans and requests that wait for a decision, oldest first, without those whose agent could no
// longer use a decision.
func (p *Plans) Waiting(ctx context.Context) ([]team.Approval, error) {
	all, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	waiting := []team.Approval{}
	for _, a := range all {
		if a.Status != team.PlanPending {
			continue
		}
		void, err := p.Void(ctx, a)
		if err != nil {
			return nil, err
		}
		if void == "" {
			waiting = append(waiting, a)
		}
	}
	return waiting, nil
}

// Void returns why a decision on a would come too late, or ""; see [team.Approval.Void].
// Errors: Unavailable.
func (p *Plans) Void(ctx context.Context, a team.Approval) (string, error) {
	m, err := p.o.Members.Get(ctx, a.AgentID)
	if err != nil && !errors.Is(err, team.NotFound) {
		return "", err
	}
	var copies []team.Task
	if a.Task != "" {
		if copies, err = p.o.Tasks.History(ctx, a.Task); err != nil && !gone(err) {
			return "", err
		}
	}
	return a.Void(m, copies), nil
}

// Decide records a decision on a plan and sends it to the plan's agent, which also watches the record: a decision whose
// mail is lost with its sender still arrives. Of several concurrent decisions the first wins. It returns the stored
// plan.
//
// Errors: NotFound; those of [team.Approval.Decide]; Unavailable, and then the decision may or may not be recorded.
func (p *Plans) Decide(ctx context.Context, id string, d team.Decision) (team.Approval, error) {
	a, err := p.change(ctx, id, func(a *team.Approval) (bool, error) {
		void, err := p.Void(ctx, *a)
		if err == nil {
			d.Seated, err = p.bySeat(ctx, d.By)
		}
		if err != nil {
			return false, err
		}
		next, err := a.Decide(d, void, time.Now().UTC())
		if err == nil {
			*a = next
		}
		return err == nil, err
	})
	if err != nil {
		return a, err
	}
	if a.Kind == team.OfRespawn { // its member is lost, and has not asked for it
		return a, nil
	}
	_, _, _ = p.o.Post.Send(ctx, team.Message{Type: team.MsgPlanResponse, From: d.By, To: a.AgentID,
		Content: a.Verdict(), RequestID: a.ID, Approve: &d.Approve})
	return a, nil
}

// bySeat reports whether who is a person with a seat. Errors: Unavailable.
func (p *Plans) bySeat(ctx context.Context, who team.AgentID) (bool, error) {
	if who == "" || who == team.UserAgent || who == team.Leader {
		return false, nil
	}
	m, err := p.o.Members.Get(ctx, who)
	if gone(err) {
		return false, nil
	}
	return m.Backend == team.Person, err
}

// change changes one plan by compare-and-set.
func (p *Plans) change(ctx context.Context, id string, f func(*team.Approval) (bool, error)) (team.Approval, error) {
	return broker.Update(ctx, func(ctx context.Context) (team.Approval, error) { return p.Get(ctx, id) }, f, p.put)
}

// put stores a if its record is still at a.Revision (0: absent). Errors: Conflict.
func (p *Plans) put(ctx context.Context, a team.Approval) (_ team.Approval, err error) {
	a.V, a.Op = team.Protocol, ulid.Make().String()
	a.Revision, err = broker.Save(ctx, p.bucket, subject.KeyPlan(a.ID), a, a.Kept, a.Revision)
	return a, err
}

// Decided blocks until a plan is decided on, or has ended without a decision, and returns it. Errors: Unavailable;
// ctx's.
func (p *Plans) Decided(ctx context.Context, id string) (team.Approval, error) {
	var decided team.Approval
	found := errors.New("decided")
	err := p.bucket.Watch(ctx, func(e broker.Entry) error {
		a, err := Decode(e)
		if err == nil && (a.Status != team.PlanPending || a.EndedAt != nil) {
			decided = a
			return found
		}
		return nil
	}, nil, subject.KeyPlan(id))
	switch {
	case errors.Is(err, found):
		return decided, nil
	case err == nil:
		err = ctx.Err()
	}
	return decided, err
}
