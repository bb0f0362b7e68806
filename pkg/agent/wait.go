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

// Wait is what an agent waits for that has nothing else to do: how the wait ends, and how it shows.
// Mail that answers it, and any other input, ends it too.
type Wait struct {
	Until time.Time // the wait ends then, and the agent is given Late; zero: there is no limit
	Late  string
	// Done blocks until what the agent waits for has happened and returns the text that the agent is
	// given, or until ctx ends; nil: only input ends the wait.
	Done func(ctx context.Context) (text string, err error)
	With With // the agent waits with this task only: else it takes the next

	State  team.MemberState // of the heartbeat
	Awaits team.AgentID     // of the heartbeat: who has to do something
	Asked  string           // of the heartbeat: the id of the message, or of the plan or the call
	About  string           // of the heartbeat
	Notice string           // what the leader reads when the agent begins to wait, such as "waits for an answer from ann"
}

// With is the task with which an agent waits.
type With int

// An agent that is to wait with a task does not wait once it holds none, or another.
const (
	AnyTask  With = iota // whichever it holds; a leader needs none
	SameTask             // the one that it held when it began to wait, or none
	NoTask               // it needs none
)

// Answer is the wait for a member's answer to a message; holds reports whether the agent holds a task.
func Answer(w team.Await, holds bool) Wait {
	return Wait{Until: w.Until, Late: fmt.Sprintf("No answer came from %s within 10 minutes.", w.From) + without(holds),
		State: team.WaitingAnswer, Awaits: w.From, Asked: w.MessageID, About: w.About, Notice: waitsForAnswer(w)}
}

// Person is the wait for a person's answer, which takes as long as it takes. left blocks until
// the person has left the team, and then returns nil. answered blocks until the question is answered, to whichever
// member, and returns the answer as the agent is given it: one to a question of an earlier holder of the task may be sent
// to that one at the moment at which the task changes hands.
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

// first returns what the first of several functions returns. It waits for the others, whose context it ends.
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

// afterMail returns what happened returns, some time later: mail about it comes first, unless its sender was killed in
// between.
func afterMail(ctx context.Context, w team.Await, happened func(context.Context, team.Await) (string, error)) (string, error) {
	text, err := happened(ctx, w)
	if err == nil && !shutdown.Sleep(ctx, mailWithin) {
		err = ctx.Err()
	}
	return text, err
}

// mailWithin is how long the mail about a decision may take after the decision.
const mailWithin = 5 * time.Second

// Decision is the wait for the decision on a plan or a call. decided blocks until it is made and returns what
// the agent is given of it, unless the mail about it comes first.
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

// background is the wait for what runs in the background, of whose end the agent learns. It has no
// limit; the team does not wait for a command that prints nothing for long.
func background(jobs []team.Job) Wait {
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	about := strings.Join(ids, ", ")
	return Wait{State: team.WaitingAnswer, About: about, Notice: "waits for its work in the background: " + about}
}

// waiting returns what the agent waits for; ok is false if that is nothing. A teammate that has
// no task does not wait for another member: it takes the next task, and reads the answer when it
// comes.
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

// happens runs the wait in the background. The channel has its text once what is waited for
// has happened; stop ends that and must be called.
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
