package agent

import (
	"cmp"
	"context"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
)

// wants selects the input that an agent takes.
type wants struct {
	wait   bool             // wait until input arrives; else take only available input
	until  <-chan time.Time // ends the wait; nil: no time limit
	work   bool             // also take a task that is offered or found
	retry  bool             // a change of the model's settings ends the wait, and so does a message of a person
	loss   bool             // a lost task ends the wait, and the next turn records it
	budget <-chan struct{}  // closed by a change of the budgets, which ends the wait
	ended  <-chan string    // receives a text once the awaited event has happened
}

// next takes the next input and adds it to the conversation. came is false if none was available,
// or if the wait ended without any.
func (a *Agent) next(ctx context.Context, w wants) (came bool, err error) {
	take := a.there(w)
	if take == nil && w.wait {
		take, err = a.nextInput(ctx, w)
	}
	if take == nil || err != nil {
		return false, err
	}
	return true, take(ctx)
}

// there returns the function that takes the next available input; nil if none is available.
func (a *Agent) there(w wants) func(context.Context) error {
	if !w.loss && a.hasLost() {
		return a.noteLost
	}
	select {
	case t := <-a.o.Input.Given: // before the mail: an assignment is what the mail may be about
		return func(ctx context.Context) error { return a.given(ctx, t) }
	default:
	}
	select {
	case d := <-a.o.Input.Mail: // it has waited, so more may have come behind it since it was handed out
		return func(ctx context.Context) error { return a.receive(ctx, d, true) }
	case e := <-a.o.Jobs.Ended():
		return func(ctx context.Context) error { return a.jobEnded(ctx, e) }
	case <-a.o.Input.Compacts:
		return a.engine.CompactOnRequest
	default:
		return nil
	}
}

// nextInput waits for input and returns the function that takes it; nil if the wait ended.
func (a *Agent) nextInput(ctx context.Context, w wants) (func(context.Context) error, error) {
	var offers <-chan team.Task
	var found <-chan team.TaskID
	if w.work {
		var stop func()
		found, stop = a.poll(ctx)
		defer stop()
		offers = a.o.Input.Offers
	}
	var changed <-chan struct{}
	if w.retry {
		changed = a.changed
	}
	lost := a.losses
	if w.loss && a.hasLost() { // that loss has ended an earlier wait already
		lost = nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.until:
		return nil, nil
	case <-changed:
		return nil, nil
	case <-w.budget:
		return nil, nil
	case text := <-w.ended:
		return func(ctx context.Context) error { return a.stopWaiting(ctx, text) }, nil
	case d := <-a.o.Input.Mail:
		return func(ctx context.Context) error { return a.receive(ctx, d, d.Pending > 0) }, nil
	case t := <-a.o.Input.Given:
		return func(ctx context.Context) error { return a.given(ctx, t) }, nil
	case e := <-a.o.Jobs.Ended():
		return func(ctx context.Context) error { return a.jobEnded(ctx, e) }, nil
	case <-a.o.Input.Compacts:
		return a.engine.CompactOnRequest, nil
	case <-lost:
		if w.loss {
			if a.hasLost() {
				a.wake() // the signal is also for the next turn
				return nil, nil
			}
			return nothing, nil
		}
		return a.noteLost, nil
	case t := <-offers:
		return func(ctx context.Context) error {
			return a.claim(ctx, func() (team.Task, error) { return a.o.Slot.Take(ctx, t) })
		}, nil
	case id := <-found:
		return func(ctx context.Context) error {
			return a.claim(ctx, func() (team.Task, error) { return a.o.Slot.Claim(ctx, id) })
		}, nil
	}
}

func nothing(context.Context) error { return nil }

// await waits for the next input of an agent that has nothing to do.
func (a *Agent) await(ctx context.Context) error {
	w := wants{wait: true}
	if a.dismissed(a.free) {
		if came, err := a.next(ctx, wants{}); came || err != nil {
			return err
		}
		return a.leave(ctx)
	}
	wait, waits := a.waiting()
	if !waits {
		w.work = a.o.Model != nil // else it could do nothing with a task
		w.until = a.idleEnds()
	} else {
		ended, stop := wait.happens(ctx)
		defer stop()
		w.ended = ended
		if !wait.Until.IsZero() {
			w.until = time.After(time.Until(wait.Until))
		}
	}
	if came, err := a.next(ctx, w); came || err != nil {
		return err
	}
	if !waits {
		return a.leaveIdle(ctx)
	}
	return a.stopWaiting(ctx, wait.Late)
}

// stopWaiting records that the agent no longer waits, and why.
func (a *Agent) stopWaiting(ctx context.Context, why string) error {
	return a.engine.Record(ctx, journal.Record{Kind: journal.Note, NoAnswer: true, Text: why})
}

// Bounds of the wait for the next message, which follows once the one before is acknowledged.
const (
	nextWithin   = 250 * time.Millisecond // the pending message may be the agent's own broadcast, which is not delivered
	urgentWithin = 2 * time.Second        // urgent mail is known to exist
)

// drain takes in all available input before a turn of the model.
func (a *Agent) drain(ctx context.Context) error {
	var late <-chan time.Time
	for {
		w, urgent := wants{}, a.urgent()
		switch {
		case urgent > 0:
			if late == nil {
				late = time.After(urgentWithin)
			}
			w = wants{wait: true, until: late}
		case a.follows:
			w = wants{wait: true, until: time.After(nextWithin)}
		}
		a.follows = false
		came, err := a.next(ctx, w)
		if err != nil {
			return err
		}
		if !came {
			a.missed.Store(max(urgent, a.missed.Load()))
			a.engine.NewTurn()
			return nil
		}
	}
}

// pause waits for d in the middle of a run. It takes in input, which may be a request to shut down.
// The loss of a task ends the wait; with w.retry, a message of a person too.
func (a *Agent) pause(ctx context.Context, w wants, d time.Duration) error {
	if a.dismissed(a.stuck) {
		return a.leave(ctx)
	}
	w.wait, w.until, w.loss = true, time.After(d), true
	for {
		words := a.directed
		came, err := a.next(ctx, w)
		if err != nil || !came || w.retry && a.directed != words {
			return err
		}
	}
}

// claim tries to get a task; losing the race for it is the normal case and not an error.
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

// given begins a task that the slot has taken. An assignment may be old: the task may be lost
// again, or the model was notified of it with the loss of the task before.
func (a *Agent) given(ctx context.Context, t team.Task) error {
	if err := a.noteLost(ctx); err != nil { // first, since it may be the same task
		return err
	}
	held, ok := a.o.Slot.Task()
	switch {
	case !ok || held.ID != t.ID || held.Epoch != t.Epoch || a.conv.notified(t):
		return nil
	case a.state.suspended > 0: // it came just as the model's endpoint began to refuse
		return a.release(ctx, a.conv.Parked.Cause)
	}
	return a.begin(ctx, t)
}

// begin records a task that the slot has taken, with its inputs and its earlier tries. If it is not
// the last task again, a new context begins with the same record.
func (a *Agent) begin(ctx context.Context, t team.Task) error {
	inputs, err := a.o.Slot.Inputs(ctx, t)
	if err != nil {
		return err
	}
	last, unmerged, err := a.o.Slot.LastTry(ctx, t)
	if err != nil {
		return err
	}
	brings, err := a.o.Team.Inherited(ctx, t)
	if err != nil {
		return err
	}
	r := journal.Record{Kind: journal.Task, Task: &t, Inputs: inputs, LastTry: last, Unmerged: unmerged}
	if brings.Text() != "" {
		r.Inherited = &brings
	}
	if !a.leads() && a.conv.Task.ID != t.ID && a.conv.Turns > 0 && !a.conv.Amid() {
		r.Context = engine.JSON(a.conv.fresh(t.ID, a.engine.Lasting()))
	}
	if err := a.engine.Record(ctx, r); err != nil {
		return err
	}
	return a.noteTop(ctx)
}

// receive records a message, which adds it to the conversation, and only then acknowledges it; many
// waiting messages become one record. follows reports that another message may follow. A message
// that is recorded already is skipped: it was delivered again, or its sender retried for so long
// that the server forgot its id and stored it twice.
func (a *Agent) receive(ctx context.Context, d mailbox.Delivery, follows bool) error {
	switch {
	case a.conv.mark().Covers(d.Seq, d.At) || a.conv.knows(d.ID):
		a.conv.took(d.Seq, d.At)
		a.noteTaken()
		d.Ack()
		return nil
	case d.Seq <= a.conv.Inbox: // the mail was restored from an older copy; what is stored since is for this incarnation
		a.obeys = min(a.obeys, d.Seq)
	}
	if a.crowded(d) {
		return a.takeBacklog(ctx, d)
	}
	a.follows = follows
	return a.takeSingly(ctx, d)
}

// worded returns a message of the runtime with the dialect's tool names, and any other as it is.
func (a *Agent) worded(m team.Message) team.Message {
	if m.From == team.Watchdog {
		m.Content = a.o.Dialect.Say(m.Content)
	}
	return m
}

// takeSingly records one message. A request to shut down is carried out.
func (a *Agent) takeSingly(ctx context.Context, d mailbox.Delivery) error {
	m := a.worded(d.Message)
	var ref string
	free := a.free(d.Drain)
	if _, first := a.conv.ear().hears(m); first {
		a.notifyHeld(ctx, m)
	}
	m.Content, ref = a.engine.Excerpt(ctx, m.Content)
	ref = cmp.Or(m.Stored, ref) // its sender has stored the whole
	if err := a.engine.Record(ctx, journal.Record{Kind: journal.Mail, Message: &m, InboxSeq: d.Seq, InboxAt: d.At, Stored: ref}); err != nil {
		return err
	}
	d.Ack()
	if m.From == team.UserAgent {
		a.directed++
	}
	if d.Type != team.MsgShutdownRequest {
		return nil
	}
	a.conv.forgetRequests(a.obeys)
	if len(a.conv.Requests) > 0 && (free || a.stuck(d.Drain)) {
		return a.leave(ctx)
	}
	a.drains()
	return nil
}
