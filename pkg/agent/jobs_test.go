package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
)

// background makes the tool bash begin a command in the background, which ends when the channel is
// closed.
func (r *rig) background() (jobs *job.Jobs, end chan struct{}) {
	jobs, end = job.New(job.Options{Task: func() team.TaskID { return r.id }}), make(chan struct{})
	r.opts.Jobs = jobs
	r.tools["bash"] = func(context.Context, tool.Call) tool.Result {
		j, err := jobs.Begin(team.Job{Kind: team.JobCommand, About: "make"}, func(ctx context.Context, _ *job.Job) string {
			select {
			case <-end:
				return "exit status 0"
			case <-ctx.Done():
				return "killed: " + context.Cause(ctx).Error()
			}
		})
		if err != nil {
			r.t.Error(err)
		}
		return tool.Result{Content: j.ID, Effects: tool.Effects{Jobs: []team.Job{j}}}
	}
	return jobs, end
}

// newest is the newest message that the model was given.
func (r *rig) newest() string {
	messages := r.asked[len(r.asked)-1].Messages
	return messages[len(messages)-1].Content
}

// An agent may wait, with its task, for what it runs in the background; its end wakes the agent.
func TestWaitsForBackground(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		jobs, end := r.background()
		defer jobs.Close()
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!bash", "I wait.", "I do wait.", "!complete")
		r.start()
		r.offer()
		r.wantStates(team.Idle, team.Running, team.WaitingAnswer)
		if r.task().Status != team.InProgress || !strings.Contains(r.newest(), "If it waits for b") {
			t.Errorf("the task is %s; it was last told %q", r.task().Status, r.newest())
		}
		close(end)
		r.settle()
		if !strings.Contains(r.newest(), "has ended: exit status 0] (make)") || r.task().Status != team.Completed || r.beat.State != team.Idle {
			t.Errorf("the task is %s, the agent %s; it was last told %q", r.task().Status, r.beat.State, r.newest())
		}
		if len(jobs.List()) != 0 || len(r.agent.conv.Jobs) != 0 {
			t.Errorf("listed: %+v, %+v", jobs.List(), r.agent.conv.Jobs)
		}
	})
}

// A successor is told what its predecessor had in the background, once.
func TestLostBackground(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		jobs, _ := r.background()
		r.says("!bash", "I wait.", "I do wait.")
		r.start()
		r.offer()
		r.stop()
		jobs.Close()
		r.opts.Jobs = nil
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!complete")
		r.opts.Member.Incarnation++
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 2})
		r.start()
		lost := 0
		for _, m := range r.asked[len(r.asked)-1].Messages {
			lost += strings.Count(m.Content, "What you had in the background has ended with it:\n- b")
		}
		if lost != 1 || len(r.agent.conv.Jobs)+len(r.agent.conv.LostJobs) != 0 {
			t.Errorf("told %d times; left %+v %+v", lost, r.agent.conv.Jobs, r.agent.conv.LostJobs)
		}
	})
}

// With its task an agent loses what it began for that.
func TestBackgroundOfALostTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		jobs, _ := r.background()
		defer jobs.Close()
		r.says("!bash", "I wait.", "I do wait.", "I see.", "I see.")
		r.start()
		r.offer()
		r.reap()
		r.revoke()
		r.settle()
		if text := r.newest(); len(jobs.List()) != 0 || !strings.Contains(text, "was taken from its owner") && !strings.Contains(text, "was taken from you") {
			t.Errorf("%+v; it was last told %q", jobs.List(), text)
		}
	})
}

// What an agent began for its task has ended before the task can be another's.
func TestBackgroundOfATaskGivenUp(t *testing.T) {
	for name, tt := range map[string]struct {
		answers  []string
		maxTurns int
	}{
		"it is given back by a call":       {[]string{"!bash", "!release", "I see.", "I see."}, 0},
		"it is failed by a call":           {[]string{"!bash", "!fail", "I see.", "I see."}, 0},
		"it is given back after all turns": {[]string{"!bash", "!look", "I see.", "I see."}, 2},
	} {
		loop(t, func(t *testing.T, r *rig) {
			r.opts.MaxTurns = tt.maxTurns
			var ended []team.TaskStatus // of the task, when a job had ended
			jobs := job.New(job.Options{Task: func() team.TaskID { return r.id }})
			defer jobs.Close()
			r.opts.Jobs = jobs
			r.tools["bash"] = func(context.Context, tool.Call) tool.Result {
				j, err := jobs.Begin(team.Job{Kind: team.JobCommand, About: "make"}, func(ctx context.Context, _ *job.Job) string {
					<-ctx.Done()
					time.Sleep(time.Second)
					ended = append(ended, r.task().Status)
					return context.Cause(ctx).Error()
				})
				if err != nil {
					t.Error(err)
				}
				return tool.Result{Content: j.ID, Effects: tool.Effects{Jobs: []team.Job{j}}}
			}
			moved := func(task team.Task, err error) tool.Result {
				if err != nil {
					t.Error(err)
				}
				return tool.Result{Content: string(task.Status), Effects: tool.Effects{Moved: &task}}
			}
			r.tools["release"] = func(ctx context.Context, _ tool.Call) tool.Result {
				return moved(r.hand.GiveBack(ctx, r.id, team.GiveBack{Freed: team.Freed{Reason: "too hard"}}))
			}
			r.tools["fail"] = func(ctx context.Context, _ tool.Call) tool.Result { return moved(r.hand.Fail(ctx, r.id, "too hard")) }
			r.says(tt.answers...)
			r.start()
			r.offer()
			r.pass(2 * time.Second)
			if len(ended) != 1 || ended[0] != team.InProgress || r.task().Status == team.InProgress {
				t.Errorf("%s: the task is %s, and was %v when its job had ended", name, r.task().Status, ended)
			}
			if text := r.newest(); !strings.Contains(text, "its owner gives T-001 up") {
				t.Errorf("%s: it was last told %q", name, text)
			}
		})
	}
}
