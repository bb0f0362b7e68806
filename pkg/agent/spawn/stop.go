package spawn

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Mailer sends mail and closes inboxes; *mailbox.Mailbox is one.
type Mailer interface {
	Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error)
	Close(ctx context.Context, a team.AgentID, incarnation uint64) error
}

// Request asks a member to leave.
type Request struct {
	From, To team.AgentID
	Reason   string // default: a sentence that From asks it
	Drain    bool   // it leaves once it has no task, and cannot refuse

	id   string // its request_id, once it is sent
	from uint64 // of the message stream: the answer comes at this sequence or later
}

// Answer is the result of a request so far; neither Left nor Refused: no answer yet.
type Answer struct {
	RequestID string
	Left      bool   // the member's membership is over
	Refused   bool   // it stays
	Reason    string // of a refusal
}

// pollEvery is how often the record of a member that is to stop is read.
const pollEvery = 100 * time.Millisecond

// Ask sends a request to shut down and returns it for [Spawner.Await]. Errors: NotFound; those of
// Mailer.Send.
func (s *Spawner) Ask(ctx context.Context, post Mailer, r Request) (Request, error) {
	last, err := s.o.Team.Messages.LastSeq(ctx)
	if err != nil {
		return r, err
	}
	r.id, r.from = ulid.Make().String(), last+1
	if r.Reason == "" {
		r.Reason = string(r.From) + " asks you to shut down"
	}
	_, _, err = post.Send(ctx, team.Message{Type: team.MsgShutdownRequest, From: r.From, To: r.To, RequestID: r.id, Drain: r.Drain, Content: r.Reason})
	return r, err
}

// Await waits until the member has left or refused, or ctx ends; then neither is set. A loss of the
// incarnation is no answer: its successor answers.
func (s *Spawner) Await(ctx context.Context, r Request) (Answer, error) {
	following, stop := context.WithCancel(ctx)
	refused, followed := make(chan Answer, 1), make(chan error, 1)
	go func() { followed <- s.follow(following, r, refused) }()
	defer func() { stop(); <-followed }()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		m, err := s.o.Roster.Get(ctx, r.To)
		switch {
		case errors.Is(err, team.NotFound), err == nil && m.State == team.Stopped:
			return Answer{RequestID: r.id, Left: true}, nil
		case ctx.Err() != nil:
			return Answer{RequestID: r.id}, nil
		case err != nil:
			return Answer{RequestID: r.id}, err
		}
		select {
		case a := <-refused:
			return a, nil
		case err := <-followed:
			followed <- nil
			return Answer{RequestID: r.id}, err
		case <-ctx.Done():
			return Answer{RequestID: r.id}, nil
		case <-tick.C:
		}
	}
}

// errRefused ends the reading of mail at the refusal.
var errRefused = errors.New("the member refuses")

// follow reads the member's mail to the requester until ctx ends, and passes on the refusal of r.
func (s *Spawner) follow(ctx context.Context, r Request, refused chan<- Answer) error {
	err := s.o.Team.Messages.Follow(ctx, broker.Mark{Seq: max(r.from, 1) - 1}, func(m broker.Msg) error {
		var answer team.Message
		if json.Unmarshal(m.Data, &answer) != nil || answer.Type != team.MsgShutdownResponse || answer.RequestID != r.id || answer.Approve == nil || *answer.Approve {
			return nil
		}
		refused <- Answer{RequestID: r.id, Refused: true, Reason: answer.Content}
		return errRefused
	}, nil, subject.Inbox(s.o.Team.ID, r.From, r.To))
	if errors.Is(err, errRefused) {
		<-ctx.Done()
		return nil
	}
	return err
}

// Stop asks a member to leave and waits up to wait for its answer. If none comes, it is stopped by
// force; immediately, if wait is 0 or no process could answer. forced reports that. Stopping a
// stopped member is not an error. Errors: Conflict if it refuses, and then it stays.
func (s *Spawner) Stop(ctx context.Context, post Mailer, r Request, wait time.Duration) (forced bool, err error) {
	m, err := s.o.Roster.Get(ctx, r.To)
	if err != nil || m.State == team.Stopped {
		return false, err
	}
	if m.HasProcess() && m.State != team.WaitingRepair && wait > 0 { // without its journal no agent answers
		if r, err = s.Ask(ctx, post, r); err != nil {
			return false, err
		}
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		a, err := s.Await(within, r)
		switch {
		case err != nil:
			return false, err
		case a.Refused:
			return false, refusal(r.To, a.Reason)
		case a.Left:
			return false, nil
		case ctx.Err() != nil:
			return false, team.Errorf(team.Unavailable, "%s has not left yet: %w", r.To, context.Cause(ctx))
		}
	}
	return true, s.Force(ctx, post, r.To)
}

// refusal returns the error of a stop that the member has refused.
func refusal(a team.AgentID, reason string) error {
	return team.Errorf(team.Conflict, "%s refuses to leave: %s", a, team.Summarize(reason)).
		WithHint("it stays and works on; ask again later, let it end its task first (--drain), or end it by --force")
}

// Force ends a member's membership: it closes its record, notifies its process to end, and closes
// its inbox, since the process may be dead.
//
// A process that cannot receive this now (frozen, cut off) ends as soon as it runs again and reads
// its record.
func (s *Spawner) Force(ctx context.Context, post Mailer, a team.AgentID) error {
	return s.end(ctx, post, a, func(incarnation uint64) error { return s.o.Roster.Leave(ctx, a, incarnation, "") })
}

// Undo is Force for a member whose spawn has failed as a whole.
func (s *Spawner) Undo(ctx context.Context, post Mailer, a team.AgentID) error {
	return s.end(ctx, post, a, func(incarnation uint64) error {
		return s.o.Roster.TakeBack(ctx, a, incarnation, "others of its spawn did not come up")
	})
}

// end is Force with a function that records that an incarnation has stopped.
func (s *Spawner) end(ctx context.Context, post Mailer, a team.AgentID, stopped func(incarnation uint64) error) error {
	for {
		m, err := s.o.Roster.Get(ctx, a)
		if err != nil || m.State == team.Stopped {
			return err
		}
		err = stopped(m.Incarnation)
		if errors.Is(err, team.ErrSuperseded) { // it was just brought back
			continue
		}
		if err != nil {
			return err
		}
		// No responder is the intended state; a process that listens and does not answer is frozen
		// or cut off and finds its record closed later.
		err = control.Stop(ctx, s.o.Team, a)
		if err != nil && !errors.Is(err, team.Unavailable) {
			return err
		}
		return post.Close(ctx, a, m.Incarnation)
	}
}
