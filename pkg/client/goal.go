package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Goal is one goal under way, as its starter follows it.
type Goal struct {
	team    *core
	number  int
	started bool
	begun   time.Time            // by the server's clock, if it was resumed
	record  team.Team            // as it was when the goal was set or found
	ended   map[team.TaskID]bool // tasks of the board that had ended before
	after   feed.Cursor          // where in the feed it begins
	log     uint64               // first journal record that may belong to it
}

// Started reports whether the text became the team's goal; false means that the team was at work,
// and the text was mailed to its leader.
func (g *Goal) Started() bool { return g.started }

// Has reports whether the task belongs to this goal: it was open when the goal was set, or was
// created later.
func (g *Goal) Has(id team.TaskID) bool { return !g.ended[id] }

// Earlier returns the tasks of the board that do not belong to the goal, by id.
func (g *Goal) Earlier() []team.TaskID {
	return slices.Sorted(maps.Keys(g.ended))
}

// Start sets the team a goal. A team that is at work keeps its own, and the text goes to its leader
// as mail.
func (t Goals) Start(ctx context.Context, text, workspace string) (*Goal, error) {
	return t.startGoal(ctx, "", NewGoal{Text: text, Workspace: workspace})
}

// startGoal is [Goals.Start] with the id of the mail in which the leader reads the text; "" = a new one.
func (t *core) startGoal(ctx context.Context, id string, n NewGoal) (g *Goal, err error) {
	mail := team.Message{ID: id, Type: team.MsgUser, From: team.UserAgent, To: team.Leader, Content: n.Text}
	if err := mail.Validate(); err != nil { // before anything is changed
		return nil, err
	}
	g = &Goal{team: t, begun: time.Now(), ended: map[team.TaskID]bool{}}
	if g.after, err = feed.End(ctx, t.team); err != nil {
		return nil, err
	}
	last, err := t.team.Logs.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	g.log = last + 1
	tasks, err := t.board.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		if !task.Status.Open() {
			g.ended[task.ID] = true
		}
	}
	// The mail first: a team that became active without it would not know its goal; and an end of
	// the present goal that does not know of it is refused once the record is written. The process
	// that leads opens the board.
	if _, _, err = t.mailbox.Send(ctx, mail); err != nil {
		return nil, err
	}
	g.record, g.started, err = t.client.registry.StartGoal(ctx, t.team, n.stored())
	g.number = g.record.GoalNumber
	return g, err
}

// Resume returns the goal that the team is at work on, or that has ended since that time, as if its
// starter had continued to follow it; [Goal.Follow] begins with the events since then. Errors:
// InvalidState if there is none; Conflict if the team was saved.
func (t Goals) Resume(ctx context.Context, since time.Time) (*Goal, error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, err
	}
	if !record.AtWork() && (record.FinishedAt == nil || record.FinishedAt.Before(since)) {
		if err := registry.MayWork(record); err != nil {
			return nil, err
		}
		how := "it has none"
		if record.Status != team.Active {
			how = "the last one is over: " + string(record.Status)
		}
		return nil, team.Errorf(team.InvalidState, "team %s has no goal under way; %s", t.id(), how).WithHint("set one: teamctl run --team %s GOAL", t.id())
	}
	g := &Goal{team: t.core, number: record.GoalNumber, started: true, record: record, ended: map[team.TaskID]bool{}}
	if g.after, err = feed.Since(ctx, t.team, since); err != nil {
		return nil, err
	}
	// The first write after the goal was prepared is the record that set it.
	set, err := t.team.Bucket.Next(ctx, record.GoalSeq+1)
	if err != nil {
		return nil, err
	}
	g.begun = set.Time
	if g.log, err = t.team.Logs.FirstSince(ctx, set.Time); err != nil {
		return nil, err
	}
	return g, g.endedBefore(ctx)
}

// Move makes dir the folder in which the team works. Members that work already stay in the old one,
// unless it is gone.
func (t Goals) Move(ctx context.Context, dir string) (team.Team, error) {
	return t.client.registry.Move(ctx, t.team, dir)
}

// Present returns the team's present or last goal. Errors: InvalidState for a team that never had
// one.
func (t Goals) Present(ctx context.Context) (*Goal, error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, err
	}
	if record.Goal == "" {
		return nil, team.Errorf(team.InvalidState, "team %s has no goal", t.id()).
			WithHint("teamctl run GOAL sets one; teamctl events --follow shows what happens without one")
	}
	g := &Goal{team: t.core, number: record.GoalNumber, record: record, ended: map[team.TaskID]bool{}}
	if record.GoalAt != nil { // else the program that set it did not store the time: all events may belong to it
		g.begun = *record.GoalAt
		if g.after, err = feed.Since(ctx, t.team, g.begun); err != nil {
			return nil, err
		}
		if g.log, _, err = g.after.Seqs(t.id()); err != nil {
			return nil, err
		}
	}
	g.log++
	return g, g.endedBefore(ctx)
}

// endedBefore records the tasks that had ended before a goal that was found.
func (g *Goal) endedBefore(ctx context.Context) error {
	tasks, err := g.team.board.All(ctx)
	for _, task := range tasks {
		if !task.Status.Open() && task.Revision <= g.record.GoalSeq {
			g.ended[task.ID] = true
		}
	}
	return err
}

// Record returns the team's record at the time when the goal was set, or found.
func (g *Goal) Record() team.Team { return g.record }

// After returns the position in the feed where the goal begins.
func (g *Goal) After() Cursor { return g.after }

// Begun returns when the goal was set; zero if unknown.
func (g *Goal) Begun() time.Time { return g.begun }

// Wait blocks until the goal has ended and returns the team's record at that time, or ctx's error.
func (g *Goal) Wait(ctx context.Context) (team.Team, error) {
	var last team.Team
	err := g.team.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		record, err := registry.Decode(e)
		if errors.Is(err, team.ErrUnreadable) {
			return nil // an unreadable record does not end the goal
		}
		if err != nil {
			return err
		}
		last = record
		if record.Status != team.Active || record.GoalNumber != g.number {
			return errEnded
		}
		return nil
	}, nil, subject.KeyTeam)
	switch {
	case errors.Is(err, errEnded):
		return last, nil
	case err != nil:
		return last, err
	}
	return last, ctx.Err()
}

var errEnded = errors.New("the goal has ended")

// Follow calls f for every event of the team after a position of the feed, such as [Goal.After],
// until ctx ends; then it returns nil.
func (g *Goal) Follow(ctx context.Context, after Cursor, f func(Entry) error) error {
	return feed.Read(ctx, g.team.team, FeedOptions{After: after, Follow: true}, f)
}

// Events that belong to an ended goal: all that arrive without a pause of linger, up to later after
// its end. An agent reports the end of its run after that of the goal.
const (
	linger = 300 * time.Millisecond
	later  = 5 * time.Second
)

// Reading reads the events after the one that it has read last: up to the present end or, with on,
// until its ctx ends, and then returns nil. It asks for each event whether it belongs to the goal,
// by the event's time; the zero time means now.
type Reading func(ctx context.Context, on bool, belongs func(at time.Time) bool) error

// FollowToEnd reads until the goal has ended and all its events have arrived, and returns the
// team's record at the end. A slow reader gets all events stored by then, too. Errors: read's;
// ctx's, if that ends before the goal.
func (g *Goal) FollowToEnd(ctx context.Context, read Reading) (team.Team, error) {
	eg, watching := errgroup.WithContext(ctx)
	following, stop := context.WithCancel(watching)
	defer stop()
	var mu sync.Mutex
	var last *time.Timer // stops the following; nil while the goal is under way
	var rest *time.Timer // stops the reading for a slow reader
	var record team.Team
	belongs := func(at time.Time) bool {
		mu.Lock()
		defer mu.Unlock()
		if last == nil {
			return true
		}
		if f := record.FinishedAt; f != nil && at.After(f.Add(later)) {
			stop()
			return false
		}
		last.Reset(linger)
		if rest != nil {
			rest.Reset(later)
		}
		return true
	}
	eg.Go(func() error {
		if err := read(following, true, belongs); err != nil || watching.Err() != nil {
			return err
		}
		// Events that a slow reader has not had yet. The goal has ended, even if they cannot be
		// read.
		reading, done := context.WithCancel(watching)
		defer done()
		mu.Lock()
		rest = time.AfterFunc(later, done)
		mu.Unlock()
		err := read(reading, false, belongs)
		if errors.Is(err, team.Unavailable) || reading.Err() != nil && watching.Err() == nil {
			return nil
		}
		return err
	})
	eg.Go(func() error {
		ended, err := g.Wait(watching)
		mu.Lock()
		defer mu.Unlock()
		record, last = ended, time.AfterFunc(linger, stop)
		return err
	})
	err := eg.Wait() // before record is read
	return record, err
}

// Elapsed returns how long the goal took by the team's newest record, or has taken until now.
func (g *Goal) Elapsed(record team.Team) time.Duration {
	switch {
	case g.begun.IsZero():
		return 0
	case record.Status != team.Active && record.FinishedAt != nil && record.GoalNumber == g.number:
		return record.FinishedAt.Sub(g.begun)
	}
	return time.Since(g.begun)
}
