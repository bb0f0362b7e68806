package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// Wait describes an event that an agent without other work waits for: how the wait ends, and how it
// is shown. Mail that answers it, and any other input, ends it too.
type Wait struct {
	Until time.Time // the wait ends then, and the model is shown Late; zero: no limit
	Late  string
	// Done blocks until the event has happened and returns the text that the model is shown, or
	// until ctx ends; nil: only input ends the wait.
	Done func(ctx context.Context) (text string, err error)
	With With // the task with which the agent waits; without it, it takes the next

	State  team.MemberState // of the heartbeat
	Awaits team.AgentID     // of the heartbeat: who must act
	Asked  string           // of the heartbeat: the id of the message, or of the plan or the call
	About  string           // of the heartbeat
	Notice string           // the notice to the leader when the wait begins, such as "waits for an answer from ann"
}

// With selects the task that an agent must hold to wait.
type With int

// An agent whose wait needs a task does not wait once it holds none, or another.
const (
	AnyTask  With = iota // any task; a leader needs none
	SameTask             // the task that it held when it began to wait, or none
	NoTask               // it needs none
)

// Answer returns the wait for a member's answer to a message; holds reports whether the agent holds
// a task.
func Answer(w team.Await, holds bool) Wait {
	return Wait{Until: w.Until, Late: fmt.Sprintf("No answer came from %s within 10 minutes.", w.From) + without(holds),
		State: team.WaitingAnswer, Awaits: w.From, Asked: w.MessageID, About: w.About, Notice: waitsForAnswer(w)}
}

// Person returns the wait for a person's answer, which has no limit. left blocks until the person
// has left the team, and then returns nil. answered blocks until the question is answered, to any
// member, and returns the answer as the model is shown it: an answer may go to an earlier holder of
// the task while the task changes hands.
func Person(w team.Await, holds bool, left func(ctx context.Context, person team.AgentID) error, answered func(context.Context, team.Await) (string, error)) Wait {
	wait := Wait{State: team.WaitingUser, Awaits: w.From, Asked: w.MessageID, About: w.About, Notice: waitsForAnswer(w)}
	if w.Task == "" {
		wait.With = NoTask
	}
	var ends []func(context.Context) (string, error)
	if w.From != team.UserAgent { // the user never leaves
		ends = append(ends, func(ctx context.Context) (string, error) {
			return fmt.Sprintf("%s has left the team and does not answer.", w.From) + without(holds), left(ctx, w.From)
		})
	}
	if w.Asker != "" {
		ends = append(ends, func(ctx context.Context) (string, error) { return afterMail(ctx, w, answered) })
	}
	if ends != nil {
		wait.Done = func(ctx context.Context) (string, error) { return first(ctx, ends) }
	}
	return wait
}

// first returns the first result of several functions. It cancels the others and waits for them.
func first(ctx context.Context, of []func(context.Context) (string, error)) (text string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var once sync.Once
	var all sync.WaitGroup
	for _, f := range of {
		all.Go(func() {
			t, e := f(ctx)
			once.Do(func() { text, err = t, e })
			cancel()
		})
	}
	all.Wait()
	cancel()
	return text, err
}

// afterMail returns the result of happened after a delay: mail about it arrives first, unless its
// sender was killed in between.
func afterMail(ctx context.Context, w team.Await, happened func(context.Context, team.Await) (string, error)) (string, error) {
	text, err := happened(ctx, w)
	if err == nil && !shutdown.Sleep(ctx, mailWithin) {
		err = ctx.Err()
	}
	return text, err
}

// mailWithin is how long after a decision its mail may arrive.
const mailWithin = 5 * time.Second

// Decision returns the wait for the decision on a plan or a call. decided blocks until it is made
// and returns the text that the model is shown, unless the mail about it arrives first.
func Decision(w team.Await, decided func(ctx context.Context, plan string) (verdict string, err error)) Wait {
	notice := fmt.Sprintf("waits for %s to decide on its plan %s", w.From, w.Plan)
	if w.Permission {
		notice = fmt.Sprintf("waits for a person to allow %q (request %s)", w.About, w.Plan)
	}
	return Wait{With: SameTask, State: team.WaitingApproval, Awaits: w.From, Asked: w.Plan, About: w.About, Notice: notice,
		Done: func(ctx context.Context) (string, error) {
			return afterMail(ctx, w, func(ctx context.Context, w team.Await) (string, error) { return decided(ctx, w.Plan) })
		}}
}

func waitsForAnswer(w team.Await) string {
	text := "waits for an answer from " + string(w.From)
	if w.About != "" {
		text += fmt.Sprintf(" to %q", w.About)
	}
	return text
}

func without(holds bool) string {
	return " Go on without it, or ask somebody else." + atTask(holds, "Else release your task.")
}

// background returns the wait for background jobs, whose end the agent is notified of. It has no
// limit; the team does not wait for a command that prints nothing for long.
func background(jobs []team.Job) Wait {
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	about := strings.Join(ids, ", ")
	return Wait{State: team.WaitingAnswer, About: about, Notice: "waits for its work in the background: " + about}
}

// waiting returns the agent's wait; ok is false if it has none. A teammate without a task does not
// wait for another member: it takes the next task, and reads the answer when it arrives.
func (a *Agent) waiting() (w Wait, ok bool) {
	await := a.conv.Await
	if await == nil {
		if _, holds := a.hold(); holds && a.o.Jobs.Waits() {
			return background(a.conv.Jobs), true
		}
		return w, false
	}
	t, holds := a.o.Slot.Task()
	switch w = a.o.Team.Wait(*await, holds); w.With {
	case SameTask:
		ok = await.Task == t.ID
	case AnyTask:
		ok = holds || a.leads()
	default:
		ok = true
	}
	return w, ok
}

func (a *Agent) waits() bool {
	_, ok := a.waiting()
	return ok
}

// happens runs the wait in the background. The channel receives the text once the event has
// happened; stop ends that and must be called.
func (w Wait) happens(ctx context.Context) (text <-chan string, stop func()) {
	if w.Done == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	happened, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if text, err := w.Done(ctx); err == nil {
			happened <- text
		}
	}()
	return happened, func() { cancel(); <-ended }
}
