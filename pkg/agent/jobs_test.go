package agent

import (
	"context"
	"strings"
	"testing"

	"agentteam/pkg/journal"
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

// told is the newest message that the model was given.
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
