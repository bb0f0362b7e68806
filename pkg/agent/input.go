package agent

import (
	"context"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/team"
)

// wants says what an agent takes in.
type wants struct {
	wait  bool             // until something comes; else only what is there
	until <-chan time.Time // ends the waiting; nil: nothing does
	work  bool             // a task that is offered or found, too
	retry bool             // a reason to ask the model's endpoint again ends the waiting, too
	loss  bool             // a task that was taken away ends the waiting, and is not noted
}

// next brings the next input and makes it part of the conversation. came is false if
// there was none: nothing was there, or the waiting ended.
func (a *Agent) next(ctx context.Context, w wants) (came bool, err error) {
	take := a.there(w)
	if take == nil && w.wait {
		take, err = a.comes(ctx, w)
	}
	if take == nil || err != nil {
		return false, err
	}
	return true, take(ctx)
}

// there returns what takes in the input that has come, nil if there is none.
func (a *Agent) there(w wants) func(context.Context) error {
	if !w.loss && a.lost.any() {
		return a.noteLost
	}
	select {
	case d := <-a.o.Mail:
		return func(ctx context.Context) error { return a.receive(ctx, d) }
	case t := <-a.o.Given:
		return func(ctx context.Context) error { return a.given(ctx, t) }
	case <-a.o.Compacts:
		return a.shortenOnRequest
	default:
		return nil
	}
}

// comes waits for input and returns what takes it in, nil if the waiting ended.
func (a *Agent) comes(ctx context.Context, w wants) (func(context.Context) error, error) {
	var offers <-chan team.Task
	var found <-chan team.TaskID
	if w.work {
		var stop func()
		found, stop = a.look(ctx)
		defer stop()
		offers = a.o.Offers
	}
	var changed <-chan struct{}
	if w.retry {
		changed = a.changed
	}
	lost := a.lost.signal
	if w.loss && a.lost.any() { // which has ended an earlier waiting
		lost = nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.until:
		return nil, nil
	case <-changed:
		return nil, nil
	case d := <-a.o.Mail:
		return func(ctx context.Context) error { return a.receive(ctx, d) }, nil
	case t := <-a.o.Given:
		return func(ctx context.Context) error { return a.given(ctx, t) }, nil
	case <-a.o.Compacts:
		return a.shortenOnRequest, nil
	case <-lost:
		if w.loss {
			if a.lost.any() {
				a.lost.wake() // for whoever begins the next turn
				return nil, nil
			}
			return nothing, nil
		}
		return a.noteLost, nil
	case t := <-offers:
		return func(ctx context.Context) error {
			return a.claim(ctx, func() (team.Task, error) { return a.o.Hand.Take(ctx, t) })
		}, nil
	case id := <-found:
		return func(ctx context.Context) error {
			return a.claim(ctx, func() (team.Task, error) { return a.o.Hand.Claim(ctx, id) })
		}, nil
	}
}

func nothing(context.Context) error { return nil }

// await waits for the next input of an agent that has nothing to do.
func (a *Agent) await(ctx context.Context) error {
	w := wants{wait: true}
	if a.waits() {
		w.until = time.After(time.Until(a.conv.Await.Until))
	} else {
		w.work = a.o.Model != nil // else it could do nothing with a task
	}
	if came, err := a.next(ctx, w); came || err != nil {
		return err
	}
	from := a.conv.Await.From
	a.conv.Await = nil
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: "No answer came from " + string(from) +
		" within 10 minutes. Go on without it, ask somebody else, or release your task."})
}

// drain takes in all input that has come, before a turn of the model.
func (a *Agent) drain(ctx context.Context) error {
	for {
		came, err := a.next(ctx, wants{})
		if err != nil {
			return err
		}
		if !came {
			a.lost.newTurn()
			return nil
		}
	}
}

// pause lets some time go by in the middle of a run, and takes in what comes: it may
// be a request to shut down. The loss of a task ends it.
func (a *Agent) pause(ctx context.Context, w wants, d time.Duration) error {
	w.wait, w.until, w.loss = true, time.After(d), true
	for {
		words := a.directed
		came, err := a.next(ctx, w)
		if err != nil || !came || w.retry && a.directed != words {
			return err
		}
	}
}

// claim tries to get a task; losing the race for it is the normal case and no
// error.
func (a *Agent) claim(ctx context.Context, get func() (team.Task, error)) error {
	if err := a.o.Heart.Certain(ctx); err != nil {
		return err
	}
	t, err := get()
	switch {
	case err == nil:
		return a.given(ctx, t)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	a.log.DebugContext(ctx, "no claim", "err", err)
	return nil
}

// given begins a task that was assigned, perhaps a while ago: it may have been taken
// away again since, or been told together with the loss of the one before.
func (a *Agent) given(ctx context.Context, t team.Task) error {
	if err := a.noteLost(ctx); err != nil { // first, since it may be the same task
		return err
	}
	held, ok := a.o.Hand.Task()
	switch {
	case !ok || held.ID != t.ID || held.Epoch != t.Epoch || a.conv.told(t):
		return nil
	case a.state.parks > 0: // it came just as the model's endpoint began to refuse
		return a.putBack(ctx, a.conv.Parked.Cause)
	}
	return a.begin(ctx, t)
}

// begin records a task that the hand has taken, with where its inputs are. Another
// task than the last begins a new context, in the same write.
func (a *Agent) begin(ctx context.Context, t team.Task) error {
	inputs, err := a.o.Hand.Inputs(ctx, t)
	if err != nil {
		return err
	}
	r := journal.Record{Kind: journal.Task, Task: &t, Inputs: inputs}
	if a.o.Member.AgentID != team.Leader && a.conv.Task.ID != t.ID && a.conv.Turns > 0 && !a.conv.amid() {
		r.Context = asJSON(a.conv.fresh(t.ID))
	}
	return a.record(ctx, r)
}

// receive records a message, which makes it part of the conversation, and only
// then acknowledges it. One that is recorded already came again, or was stored twice
// by a sender that had no answer for longer than the server remembers.
func (a *Agent) receive(ctx context.Context, d mailbox.Delivery) error {
	if d.Seq <= a.conv.Inbox || a.conv.knows(d.ID) {
		a.conv.Inbox = max(a.conv.Inbox, d.Seq)
		d.Ack()
		return nil
	}
	m := d.Message
	var ref string
	m.Content, ref = a.excerpt(ctx, m.Content)
	if err := a.record(ctx, journal.Record{Kind: journal.Mail, Message: &m, InboxSeq: d.Seq, Stored: ref}); err != nil {
		return err
	}
	d.Ack()
	if m.From == team.UserAgent {
		a.directed++
	}
	if d.Type == team.MsgShutdownRequest && d.Seq >= a.o.Member.ObeysFrom {
		return a.shutdown(ctx, d.Message)
	}
	return nil
}
