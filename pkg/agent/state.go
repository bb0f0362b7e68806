package agent

import (
	"fmt"
	"strings"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// state is what the loop knows besides its conversation. Its methods are pure: they judge
// what comes next, and the loop does it.
type state struct {
	begun  holding // the newest hold for which a turn was begun
	nudged holding // the hold that the agent was reminded of
	nudges int     // how often
	spared bool    // the last run kept a task that its model had not seen (giveUp); the next must not
	rests  bool    // the last call leaves nothing to do until there is input
	ended  bool    // a tool ended the agent's work

	still    int      // turns in a row without progress
	reported bool     // the leader knows of them
	news     newsMark // when there was progress last

	turns   int  // of this run
	noted   bool // in this run: that the limit of turns is near
	warned  bool // in this run: that the agent goes in circles
	cuts    int  // answers in a row that were cut at their limit, or empty
	written int  // answers with a call as text, since the last one without
	raised  bool // in this run: the limit of answers is what the window leaves
	parks   int  // tries since the endpoint began to refuse

	spells     int  // spells of refusals of the conversation, with no more than a turn between each two
	recovering bool // the model has not answered since the last of them

	rounds int         // of tries since the last answer in which prompts were thrown away
	thrown int         // how many
	lost   model.Usage // what they have cost

	fruitless   bool // this run came to nothing: its last answers were of no use
	uselessRuns int  // such runs in a row
	usable      bool // the run before was none
}

// newRun returns s as it is at the start of a run.
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
		s.spells = 0
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
		s.fruitless = s.fruitless && s.parks == 0
		s.cuts, s.parks = 0, 0
	}
	return s
}

// step is what the loop does next.
type step int

const (
	goOn        step = iota // ask the model again
	goIdle                  // the run is over
	nudge                   // remind the agent of its task
	giveBack                // put its task back, as an attempt, and end the run
	giveUseless             // the same, because its answers are of no use
	remark                  // tell the agent that its turns run out
	warn                    // tell it that it goes in circles
	rest                    // an outage: ask again in a while
	park                    // a refusal: put the task back, ask again now and then
	shorten                 // ask again with less of the conversation
	blame                   // probe whether what the agent is at is refused, or whatever it asks
	declineTask             // what it is at is refused: put the task back, or end it as failed
	endGoal                 // the goal is refused
	report                  // notify the leader of turns without progress
)

// newsMark changes with what comes to an agent.
type newsMark struct {
	inbox uint64
	held  holding
}

// heard returns s after a look at what has come to the agent.
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

// looksAt reports whether it is time to look whether commands have changed files, where most turns may be without
// progress: before the leader is notified and now and then, since git has to be asked.
func (s state) looksAt(most int) bool { return s.still > 0 && s.still%max(most/16, 1) == 0 }

// maxWritten is how many answers in a row may hold a call as text before the agent parks.
const maxWritten = 2

// maxCuts is how many answers in a row may be cut at their limit, or empty.
const maxCuts = 3

// beforeTurn judges whether the run may go on, of which max turns are allowed (0: any
// number), and most in a row without progress.
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

// maxNudges is how often an agent is reminded of its task. Small models narrate what they will do, twice as a rule.
const maxNudges = 2

// reminded returns s after a reminder of the task.
func (s state) reminded(h holding) state {
	if h != s.nudged {
		s.nudged, s.nudges = h, 0
	}
	s.nudges++
	return s
}

// afterText judges an answer without calls. The agent may go idle with it, unless it holds
// a task and waits for no answer (rule 11). With work in the background it waits for that after
// the second such answer. A task that came while the model answered is told to the model first.
func (s state) afterText(held holding, holds, waits, background bool) step {
	switch {
	case !holds, waits, held != s.begun, held == s.nudged && background:
		return goIdle
	case held == s.nudged && s.nudges >= maxNudges:
		return giveBack
	}
	return nudge
}

// situation is how it was when a call was refused.
type situation struct {
	leader bool
	first  bool        // no turn of the goal has been answered
	holds  bool        // a task
	large  bool        // which is most of what the model was told
	next   engine.Rung // of the ladder; [engine.Whole]: it has been gone down
}

// mostSpells is how often in a row the conversation is shortened for a turn, and then refused
// for the next. More would be paid for without an end.
const mostSpells = 4

// refused returns s after a refusal of a conversation at a rung.
func (s state) refused(r *model.Refusal, at engine.Rung) state {
	if r.Advice == model.GiveUp {
		if at == engine.Whole {
			s.spells++
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

// afterRefusal judges a call that gave no turn. A request that the endpoint does not take
// is tried again with less of the conversation, down the ladder. If the last rung is refused
// too, or one turn after another, either what the agent is at is at fault, which a probe finds
// out, or the agent parks. A leader's goal is never dropped: each time that it asks again, it
// goes down the ladder.
func (s state) afterRefusal(r *model.Refusal, p situation) step {
	parks := r.Advice == model.Park || s.wasteful(r)
	switch {
	case parks && p.leader && p.first:
		return endGoal
	case parks:
		return park
	case r.Advice == model.TryAgain:
		return rest
	case p.next != engine.Whole && (s.spells <= mostSpells || p.leader && s.parks > 0):
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

// wasteful reports whether so many prompts were thrown away that to ask on costs more than
// it may bring: a person has to look at the endpoint.
func (s state) wasteful(r *model.Refusal) bool {
	return r.Advice == model.TryAgain && r.Thrown > 0 && s.thrown >= mostThrown
}

// wasted is what the prompts thrown away have cost, for people.
func (s state) wasted() string {
	text := fmt.Sprintf("%d prompts were thrown away in a row, some %d tokens", s.thrown, s.lost.WastedPrompt+s.lost.WastedCompletion)
	if s.lost.Cost > 0 {
		text += strings.TrimSuffix(fmt.Sprintf(", %.2f %s", s.lost.Cost, s.lost.Currency), " ")
	}
	return text
}

// The time between rounds of tries: while the model is away, and after the first round whose
// answers broke off. An endpoint that breaks some answers off may give the next one.
const (
	modelRest  = 20 * time.Second
	brokenRest = 2 * time.Second
)

// outageRest is how long the agent rests after a round of tries. A round that has cost
// something makes the next wait four times as long.
func (s state) outageRest(r *model.Refusal) time.Duration {
	if r.Thrown == 0 {
		return modelRest
	}
	return min(brokenRest<<min(2*(s.rounds-1), 10), maxPark)
}

// maxUseless is how many runs in a row may come to nothing before the agent parks.
const maxUseless = 3

// useless returns s after answers that end the run and came to nothing.
func (s state) useless() state {
	s.fruitless, s.usable = true, false
	s.uselessRuns++
	return s
}

// sick reports whether the agent is to park because of its useless runs.
func (s state) sick() bool { return s.uselessRuns >= maxUseless }

// over returns s at the end of a run.
func (s state) over() state {
	if s.spared = false; s.turns > 0 && !s.fruitless {
		s.usable, s.uselessRuns = true, 0
	}
	return s
}

// The rests of an agent whose model endpoint refuses it, from the first to the
// longest.
const (
	firstPark = 30 * time.Second
	maxPark   = 5 * time.Minute
)

// parkRest is how long the agent rests before it asks again.
func (s state) parkRest() time.Duration { return min(firstPark<<min(s.parks, 10), maxPark) }

// holding is one holding of a task.
type holding struct {
	task  team.TaskID
	epoch uint64
}
