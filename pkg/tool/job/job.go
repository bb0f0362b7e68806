// Package job manages the jobs of a member: subagents, and commands in the background. It lists them, keeps their
// output, notifies the agent when one has ended, and ends all of them with their owner.
//
// It runs nothing: tool/workspace runs commands, package subagent subagents. The supervisors of package sandbox end the
// jobs of a process that dies; its successor finds in the journal which those were.
package job

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// The limits of one member.
const (
	MaxSubagents = 4 // that work at the same time
	MaxCommands  = 8 // that run in the background at the same time
)

// mostPast bounds how many ended jobs can still be read.
const mostPast = 16

// unread is the initial unread output of a job. It is small, since the member's process holds that of many jobs.
var unread = command.Capture{Head: 1 << 20}

// Options are the settings of a member's jobs. The zero value is the default.
type Options struct {
	// Keep stores the whole of an output that is too long to be shown and returns its reference.
	// Default: the middle is lost.
	Keep func(ctx context.Context, text string) (ref string, err error)
	// Task is what the member holds; "" = no task. Default: none.
	Task func() team.TaskID
}

// Jobs are the jobs of one member. Safe for concurrent use.
type Jobs struct {
	o     Options
	ctx   context.Context
	end   context.CancelCauseFunc
	slots chan struct{} // one for each subagent that works
	ended chan Ended
	work  sync.WaitGroup

	mu   sync.Mutex
	live []*Job // the oldest first; until the agent knows that they have ended
	past []*Job // that have ended, as it knows, the newest last
}

// Job is a running job. Its methods are for the function that runs it. Safe for concurrent use.
type Job struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed once it has ended
	known  chan struct{} // closed once the agent knows that
	knows  func()        // closes known, once

	mu           sync.Mutex
	is           team.Job
	moved        time.Time
	whole, fresh command.Capture // what it has printed, until the agent knows its end, and what of that was not read yet
	read         bool            // some of it was
}

// Ended is the notice that a job in the background has ended.
type Ended struct {
	Job      team.Job
	Text     string // for the model: what has ended and how, with the head of the output
	Recorded func() // to be called once that is recorded
}

// New returns the jobs of a member, none yet. The caller closes them.
func New(o Options) *Jobs {
	ctx, end := context.WithCancelCause(context.Background())
	return &Jobs{o: o, ctx: ctx, end: end, slots: make(chan struct{}, MaxSubagents), ended: make(chan Ended)}
}

// Close ends all jobs and waits until they have.
func (s *Jobs) Close() {
	s.mu.Lock()
	s.end(errors.New("its owner's process ends"))
	s.mu.Unlock()
	s.work.Wait()
}

// Ended returns the channel of the notices of ended background jobs, one each. A job whose end a call has shown gets
// none.
func (s *Jobs) Ended() <-chan Ended { return s.ended }

// List returns the jobs that run, and those whose end the agent does not know.
func (s *Jobs) List() (all []team.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.live {
		all = append(all, j.Is())
	}
	return all
}

// Waits reports whether a background job runs that its owner may wait for, or that waits for a person.
func (s *Jobs) Waits() bool {
	return slices.ContainsFunc(s.List(), func(j team.Job) bool { return j.Background && (j.Holds() || j.Asked != "") })
}

// EndTask ends all jobs that were begun for a task which the member no longer holds; why is the cause. It does not
// block; wait blocks until they have ended, and returns an error if ctx ends before.
func (s *Jobs) EndTask(id team.TaskID, why error) (wait func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ending []*Job
	for _, j := range s.live {
		if is := j.Is(); is.Task == id && is.Ended == "" {
			j.cancel(why)
			ending = append(ending, j)
		}
	}
	return func(ctx context.Context) error {
		for _, j := range ending {
			select {
			case <-j.over:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
}

// Begin runs a job in the background until it has ended, or its owner ends it. run returns how it ended, in a few
// words, and ends soon after its context does. Errors: Busy at the limit; Unavailable once the jobs are closed.
func (s *Jobs) Begin(is team.Job, run func(ctx context.Context, j *Job) (ended string)) (team.Job, error) {
	if is.Background = true; is.Kind == team.JobSubagent {
		select {
		case s.slots <- struct{}{}:
		default:
			return is, team.Errorf(team.Busy, "%d subagents are at work, and there may be no more", MaxSubagents).WithHint("wait for one with task_output")
		}
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	j, err := s.add(is, cancel)
	if err != nil {
		s.free(is)
		cancel(nil)
		return is, err
	}
	go func() {
		defer s.work.Done()
		defer cancel(nil)
		ended := run(context.WithValue(ctx, jobKey{}, j), j)
		s.free(is)
		j.ends(ended)
		s.notify(j)
	}()
	return j.Is(), nil
}

// Run runs a job like Begin and waits for it; it is listed while it runs. A subagent waits until fewer than
// [MaxSubagents] work. Errors: Unavailable if ctx ends before it has begun.
func (s *Jobs) Run(ctx context.Context, is team.Job, run func(ctx context.Context, j *Job) (ended string)) (team.Job, error) {
	if is.Kind == team.JobSubagent {
		select {
		case s.slots <- struct{}{}:
			defer s.free(is)
		case <-ctx.Done():
			return is, team.Errorf(team.Unavailable, "it was not begun: %w", context.Cause(ctx))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	j, err := s.add(is, cancel)
	if err != nil {
		return is, err
	}
	defer s.work.Done()
	j.ends(run(context.WithValue(ctx, jobKey{}, j), j))
	s.forget(j)
	return j.Is(), nil
}

func (s *Jobs) free(is team.Job) {
	if is.Kind == team.JobSubagent {
		<-s.slots
	}
}

// add lists a job under a new id, and adds it to the work that Close awaits. Errors: Busy; Unavailable.
func (s *Jobs) add(is team.Job, cancel context.CancelCauseFunc) (*Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, team.Errorf(team.Unavailable, "it was not begun: %w", context.Cause(s.ctx))
	}
	commands := 0
	for _, j := range s.live {
		if now := j.Is(); now.Kind == team.JobCommand && now.Ended == "" {
			commands++
		}
	}
	if is.Kind == team.JobCommand && commands >= MaxCommands {
		return nil, team.Errorf(team.Busy, "%d commands run in the background, and there may be no more", MaxCommands).WithHint("end one with task_stop")
	}
	is.ID, is.Since = s.newID(is.Kind), time.Now().UTC()
	if s.o.Task != nil {
		is.Task = s.o.Task()
	}
	j := &Job{is: is, cancel: cancel, over: make(chan struct{}), known: make(chan struct{}), moved: time.Now(), fresh: unread}
	j.knows = sync.OnceFunc(func() { close(j.known) })
	s.live = append(s.live, j)
	s.work.Add(1)
	return j, nil
}

// newID returns an id that no job has which the agent may know.
func (s *Jobs) newID(k team.JobKind) string {
	letter := "b"
	if k == team.JobSubagent {
		letter = "a"
	}
	for {
		var random [3]byte
		_, _ = rand.Read(random[:]) // which never fails
		id := letter + hex.EncodeToString(random[:])
		if !slices.ContainsFunc(slices.Concat(s.live, s.past), func(j *Job) bool { return j.is.ID == id }) {
			return id
		}
	}
}

// notify notifies the agent that j has ended, unless a call has shown that or the jobs are closed.
func (s *Jobs) notify(j *Job) {
	defer s.forget(j)
	select {
	case <-j.known:
		return
	default:
	}
	told := make(chan struct{})
	select {
	case s.ended <- Ended{Job: j.Is(), Text: s.notice(j), Recorded: sync.OnceFunc(func() { close(told) })}:
		select { // it counts as the agent's until that is recorded
		case <-told:
		case <-s.ctx.Done():
		}
	case <-j.known:
	case <-s.ctx.Done():
	}
}

// forget removes a job from the list, whose end the agent knows.
func (s *Jobs) forget(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(o *Job) bool { return o == j })
	s.past = append(s.past, j)
	s.past = s.past[max(0, len(s.past)-mostPast):]
	j.mu.Lock()
	defer j.mu.Unlock()
	j.whole = command.Capture{}
}

// Is returns the present state of the job.
func (j *Job) Is() team.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	is := j.is
	if is.Ended == "" {
		is.Still = int(time.Since(j.moved) / time.Second)
	}
	return is
}

// Write records output of the job.
func (j *Job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moved = time.Now()
	_, _ = j.fresh.Write(p) // neither fails
	return j.whole.Write(p)
}

// Moved records progress of a subagent, and its usage.
func (j *Job) Moved(turns uint64, tokens int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moved, j.is.Turns, j.is.Tokens = time.Now(), turns, tokens
}

// Progress records progress.
func (j *Job) Progress() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moved = time.Now()
}

// jobKey is the key under which the context of a job's work holds the job.
type jobKey struct{}

// Asks records that the job of ctx waits for a person's decision on a request; "": it continues. Without a job in ctx
// it does nothing.
func Asks(ctx context.Context, request string) {
	if j, ok := ctx.Value(jobKey{}).(*Job); ok {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.is.Asked = request
	}
}

func (j *Job) ends(how string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.is.Ended, j.is.Asked = how, ""
	close(j.over)
}
