package agent

import (
	"fmt"
	"strings"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// state is the loop's state besides its conversation. Its methods are pure: they return the next
// step, and the loop performs it.
type state struct {
	begun  holding // the newest hold for which a turn was begun
	nudged holding // the hold whose task the agent was last reminded of
	nudges int     // reminders for that hold
	spared bool    // the last run kept a task that its model had not seen (giveUp); the next must not
	waits  bool    // the last call leaves no work until there is input
	ended  bool    // a tool ended the agent's work

	still    int      // turns in a row without progress
	reported bool     // they were reported to the leader
	news     newsMark // the input at the last progress

	turns     int  // of this run
	noted     bool // in this run the agent was notified that the limit of turns is near
	warned    bool // in this run the agent was notified that it repeats calls
	cuts      int  // answers in a row that were cut at their limit, or empty
	written   int  // answers with a call as text, since the last one without
	raised    bool // in this run the answers may fill the window
	suspended int  // tries since the endpoint began to refuse

	episodes   int  // spells of refusals of the conversation, with no more than a turn between each two
	recovering bool // the model has not answered since the last spell

	rounds int         // rounds of tries since the last answer that threw prompts away
	thrown int         // prompts thrown away in them
	lost   model.Usage // their cost

	fruitless   bool // this run's last answers were not usable
	uselessRuns int  // such runs in a row
	usable      bool // the run before was usable
}

// newRun returns s at the start of a run.
func (s state) newRun() state {
	s.nudged, s.nudges, s.ended, s.turns, s.noted, s.warned, s.cuts = holding{}, 0, false, 0, false, false, 0
	s.raised, s.fruitless = false, false
	return s
}

// answered returns s after a turn of the model.
func (s state) answered(r model.Reply) state {
	s.turns++
	s.still++
	if !s.recovering {
		s.episodes = 0
	}
	s.recovering = false
	switch {
	case r.Written != "":
		s.written++
	case len(r.Message.ToolCalls) > 0:
		s.written = 0
	}
	s.rounds, s.thrown, s.lost = 0, 0, model.Usage{}
	if s.cuts++; engine.Usable(r) {
		s.fruitless = s.fruitless && s.suspended == 0
		s.cuts, s.suspended = 0, 0
	}
	return s
}

// step is the next action of the loop.
type step int

const (
	goOn        step = iota // ask the model again
	goIdle                  // the run is over
	nudge                   // remind the agent of its task
	giveBack                // give its task back, as an attempt, and end the run
	giveUseless             // the same, because its answers are not usable
	remark                  // notify the agent that its turns run out
	warn                    // notify it that it repeats calls
	wait                    // an outage: ask again later
	park                    // a refusal: give the task back, ask again now and then
	shorten                 // ask again with less of the conversation
	blame                   // probe whether the endpoint refuses the agent's work or every request
	declineTask             // its work is refused: give the task back, or end it as failed
	endGoal                 // the goal is refused
	report                  // notify the leader of turns without progress
)

// newsMark changes with input to the agent.
type newsMark struct {
	inbox uint64
	held  holding
}

// heard returns s after a check for input.
func (s state) heard(m newsMark) state {
	if m != s.news {
		s = s.moves()
	}
	s.news = m
	return s
}

// moves returns s after progress: a changed file, mail, a question, or the end of a task.
func (s state) moves() state {
	s.still, s.reported = 0, false
	return s
}

// checksAt reports whether to check for files that commands have changed, if most turns may pass
// without progress: before the leader is notified and now and then, since each check runs git.
func (s state) checksAt(most int) bool { return s.still > 0 && s.still%max(most/16, 1) == 0 }

// maxWritten is how many answers in a row may hold a call as text before the agent parks.
const maxWritten = 2

// maxCuts is how many answers in a row may be cut at their limit, or empty.
const maxCuts = 3

// beforeTurn returns giveBack or giveUseless if the run must end, of which max turns are allowed
// (0: any number), and most in a row without progress; else a notice that is due, or goOn.
func (s state) beforeTurn(max, most int, circles bool) step {
	switch {
	case max > 0 && s.turns >= max, s.still >= most:
		return giveBack
	case !s.reported && s.still >= most/4 && s.still > 0:
		return report
	case circles && s.warned, s.cuts >= maxCuts:
		return giveUseless
	case circles:
		return warn
	case max > 0 && !s.noted && s.turns > 0 && s.turns >= max*4/5:
		return remark
	}
	return goOn
}

// maxNudges is how often an agent is reminded of its task. Small models usually announce their work
// twice before they do it.
const maxNudges = 2

// reminded returns s after a reminder of the task.
func (s state) reminded(h holding) state {
	if h != s.nudged {
		s.nudged, s.nudges = h, 0
	}
	s.nudges++
	return s
}

// afterText judges an answer without calls. The agent may go idle with it, unless it holds a task
// and waits for no answer (rule 11). With background jobs it waits for them after the second such
// answer. A task that arrived while the model answered is shown to the model first.
func (s state) afterText(held holding, holds, waits, background bool) step {
	switch {
	case !holds, waits, held != s.begun, held == s.nudged && background:
		return goIdle
	case held == s.nudged && s.nudges >= maxNudges:
		return giveBack
	}
	return nudge
}

// situation is the agent's state when a call was refused.
type situation struct {
	leader bool
	first  bool        // no turn of the goal was answered yet
	holds  bool        // a task
	large  bool        // the task is most of the request
	next   engine.Rung // of the ladder; [engine.Whole]: none is left
}

// mostEpisodes is how often in a row the conversation is shortened for a turn and then refused for
// the next. Without a bound this would cost tokens forever.
const mostEpisodes = 4

// refused returns s after a refusal of a conversation at a rung.
func (s state) refused(r *model.Refusal, at engine.Rung) state {
	if r.Advice == model.GiveUp {
		if at == engine.Whole {
			s.episodes++
		}
		s.recovering = true
	}
	if r.Thrown > 0 {
		s.rounds++
		s.thrown += r.Thrown
		s.lost = s.lost.Add(r.Used)
	}
	return s
}

// afterRefusal judges a call that gave no turn. A refused request is retried with less of the
// conversation, down the ladder. If the last rung is refused too, or one turn after another, either
// the agent's work is at fault, which a probe determines, or the agent parks. A leader's goal is
// never dropped: each time that it asks again, it goes down the ladder.
func (s state) afterRefusal(r *model.Refusal, p situation) step {
	parks := r.Advice == model.Park || s.wasteful(r)
	switch {
	case parks && p.leader && p.first:
		return endGoal
	case parks:
		return park
	case r.Advice == model.TryAgain:
		return wait
	case p.next != engine.Whole && (s.episodes <= mostEpisodes || p.leader && s.suspended > 0):
		return shorten
	case p.holds && r.Reason == model.ContextLength && p.large:
		return declineTask
	case r.Advice == model.GiveUp && (p.holds || !p.leader):
		return blame
	case p.leader && p.first:
		return endGoal
	}
	return park
}

// mostThrown is how many prompts in a row may be thrown away before the agent parks.
const mostThrown = 10

// wasteful reports whether so many prompts were thrown away that further requests cost more than
// they may bring: a person must check the endpoint.
func (s state) wasteful(r *model.Refusal) bool {
	return r.Advice == model.TryAgain && r.Thrown > 0 && s.thrown >= mostThrown
}

// wasted returns the cost of the prompts thrown away, for people.
func (s state) wasted() string {
	text := fmt.Sprintf("%d prompts were thrown away in a row, some %d tokens", s.thrown, s.lost.WastedPrompt+s.lost.WastedCompletion)
	if s.lost.Cost > 0 {
		text += strings.TrimSuffix(fmt.Sprintf(", %.2f %s", s.lost.Cost, s.lost.Currency), " ")
	}
	return text
}

// Backoff between rounds of tries: while the model is unavailable, and after the first round whose
// answers broke off. An endpoint that breaks some answers off may give the next one.
const (
	modelBackoff  = 20 * time.Second
	brokenBackoff = 2 * time.Second
)

// outageBackoff returns the backoff after a round of tries. A round that threw prompts away makes the
// next one four times as long.
func (s state) outageBackoff(r *model.Refusal) time.Duration {
	if r.Thrown == 0 {
		return modelBackoff
	}
	return min(brokenBackoff<<min(2*(s.rounds-1), 10), maxPark)
}

// maxUseless is how many runs in a row may have no usable answer before the agent parks.
const maxUseless = 3

// useless returns s after a run without a usable answer.
func (s state) useless() state {
	s.fruitless, s.usable = true, false
	s.uselessRuns++
	return s
}

// sick reports whether the agent must park because of its useless runs.
func (s state) sick() bool { return s.uselessRuns >= maxUseless }

// over returns s at the end of a run.
func (s state) over() state {
	if s.spared = false; s.turns > 0 && !s.fruitless {
		s.usable, s.uselessRuns = true, 0
	}
	return s
}

// Backoff of an agent whose model endpoint refuses it, from the first to the longest.
const (
	firstPark = 30 * time.Second
	maxPark   = 5 * time.Minute
)

// parkedBackoff returns the backoff before the agent asks again.
func (s state) parkedBackoff() time.Duration { return min(firstPark<<min(s.suspended, 10), maxPark) }

// holding is one hold of a task.
type holding struct {
	task  team.TaskID
	epoch uint64
}
