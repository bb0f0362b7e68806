package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
)

const (
	maxShown  = 30_000 // bytes of output that a call shows
	maxNotice = 2_000  // that a notice has

	defaultWait = 30  // seconds
	maxWait     = 600 // seconds
	progressing = 5 * time.Second
)

type outputArgs struct {
	TaskID  string `json:"task_id" jsonschema:"id of the subagent or command"`
	Block   *bool  `json:"block,omitempty" jsonschema:"wait until it ends (default true)"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds to wait (default 30, at most 600)"`
}

type stopArgs struct {
	TaskID string `json:"task_id"`
}

// Tools returns task_output and task_stop.
func (s *Jobs) Tools() []tool.Tool {
	return dialect.Translate([]tool.Tool{
		tool.New("task_output", "Get what a subagent or command in the background has printed since you last read it, and whether it still runs. You are told when one ends; do not poll.",
			s.output, tool.Traits{ReadOnly: true, Bulky: true}, tool.Alias("AgentOutputTool")),
		tool.New("task_stop", "End a subagent or command in the background.", s.stop, tool.Traits{Ungated: true, Yields: true}),
	}, forms)
}

// forms are the tools as Claude Code has them, under present and former names.
var forms = map[string][]dialect.Form{
	"task_output": {
		{Name: "TaskOutput", Dialect: team.Claude, Own: milliseconds, Calls: inSeconds},
		{Name: "BashOutput", Dialect: team.Claude, Names: map[string][]string{"task_id": {"bash_id", "shell_id"}}, Calls: atOnce, Hidden: []string{"filter"},
			Own: []dialect.Argument{{Name: "filter", Type: "string"}}},
	},
	"task_stop": {
		{Name: "TaskStop", Dialect: team.Claude, Names: map[string][]string{"task_id": {"task_id", "shell_id"}}},
		{Name: "KillShell", Dialect: team.Claude, Names: map[string][]string{"task_id": {"shell_id", "bash_id"}}},
	},
}

var milliseconds = []dialect.Argument{{Name: "timeout", Type: "integer", Description: "milliseconds to wait (default 30000, at most 600000)"}}

// inSeconds returns the call of task_output for a call with milliseconds.
func inSeconds(_ context.Context, given map[string]any) ([]map[string]any, error) {
	if ms, ok := given["timeout"].(float64); ok {
		if ms < 0 || ms > maxWait*1000 {
			return nil, team.Errorf(team.InvalidArgument, "timeout: %v, want milliseconds from 1 to %d", ms, maxWait*1000)
		}
		given["timeout"] = (int(ms) + 999) / 1000
	}
	return []map[string]any{given}, nil
}

// atOnce returns the call of task_output for a call that does not wait. It ignores a filter and shows all.
func atOnce(_ context.Context, given map[string]any) ([]map[string]any, error) {
	delete(given, "filter")
	given["block"] = false
	return []map[string]any{given}, nil
}

// output is the tool task_output. Errors: NotFound; InvalidArgument.
func (s *Jobs) output(ctx context.Context, in outputArgs) (tool.Output, error) {
	j, err := s.find(in.TaskID)
	switch {
	case err != nil:
		return tool.Output{}, err
	case in.Timeout < 0 || in.Timeout > maxWait:
		return tool.Output{}, team.Errorf(team.InvalidArgument, "timeout: %d, want seconds from 1 to %d", in.Timeout, maxWait)
	}
	if in.Block == nil || *in.Block {
		j.await(ctx, time.Duration(cmp.Or(in.Timeout, defaultWait))*time.Second)
	}
	return s.shown(ctx, j), nil
}

// stop is the tool task_stop. Errors: NotFound; InvalidState if it has ended.
func (s *Jobs) stop(ctx context.Context, in stopArgs) (tool.Output, error) {
	j, err := s.find(in.TaskID)
	if err != nil {
		return tool.Output{}, err
	}
	if is := j.Is(); is.Ended != "" {
		return tool.Output{}, team.Errorf(team.InvalidState, "%s has ended: %s", is.ID, is.Ended).WithHint("task_output shows what it printed")
	}
	j.cancel(errStopped)
	j.await(ctx, endsWithin)
	return s.shown(ctx, j), nil
}

var errStopped = fmt.Errorf("stopped by its owner")

// endsWithin is how long task_stop waits for the end.
const endsWithin = 10 * time.Second

// find returns the background job with that id. Error: NotFound.
func (s *Jobs) find(id string) (*Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, j := range slices.Backward(slices.Concat(s.past, s.live)) {
		switch {
		case !j.is.Background:
		case j.is.ID == strings.TrimSpace(id):
			return j, nil
		default:
			ids = append(ids, j.is.ID)
		}
	}
	err := team.Errorf(team.NotFound, "you have nothing in the background with the id %q", team.Clean(id, 40))
	if ids == nil {
		return nil, err.WithHint("nothing was started in the background by this process")
	}
	return nil, err.WithHint("there are %s", strings.Join(ids, ", "))
}

// await waits until the job has ended, at most for d and until ctx ends.
func (j *Job) await(ctx context.Context, d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	tick := time.NewTicker(progressing)
	defer tick.Stop()
	for seen := time.Now(); ; {
		select {
		case <-j.over:
			return
		case <-ctx.Done():
			return
		case <-late.C:
			return
		case <-tick.C: // who waits for work that goes on does not hang
			j.mu.Lock()
			moved := j.moved
			j.mu.Unlock()
			if moved.After(seen) {
				tool.Progress(ctx)
				seen = moved
			}
		}
	}
}

// shown returns the state of the job, and its output that was not shown yet.
func (s *Jobs) shown(ctx context.Context, j *Job) tool.Output {
	j.mu.Lock()
	text := j.fresh.String()
	all := text
	if len(text) > maxShown && j.is.Ended != "" && !j.read { // else the lines of the excerpt have other numbers there
		all = cmp.Or(j.whole.String(), text) // which has more of the middle
	}
	j.fresh, j.read = unread, true
	j.mu.Unlock()
	text = blob.Shown(ctx, text, all, maxShown, s.o.Keep)
	is := j.Is()
	out := tool.Output{Value: is, Brief: state(is) + "\n" + text}
	if is.Ended != "" {
		j.knows()
		out.Effects.Jobs = []team.Job{is}
	}
	return out
}

// state returns the state of a job, in a line.
func state(is team.Job) string {
	switch {
	case is.Ended != "":
		return fmt.Sprintf("[%s has ended: %s]", is.ID, is.Ended)
	case is.Kind == team.JobSubagent:
		return fmt.Sprintf("[%s works for %s: %s]", is.ID, span(time.Since(is.Since)), explain.Counted(int(is.Turns), "turn"))
	}
	return fmt.Sprintf("[%s runs for %s, no output for %s]", is.ID, span(time.Since(is.Since)), span(time.Duration(is.Still)*time.Second))
}

func span(d time.Duration) string { return d.Truncate(time.Second).String() }

// notice returns the notice to the agent of an ended job.
func (s *Jobs) notice(j *Job) string {
	j.mu.Lock()
	text := j.whole.String()
	j.mu.Unlock()
	text = blob.Shown(s.ctx, text, text, maxNotice, s.o.Keep)
	is := j.Is()
	return fmt.Sprintf("%s (%s)\n%s", state(is), is.About, text)
}
