package runtime

import (
	"context"
	"sync/atomic"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/job"
)

// Before a task's files are committed, what was begun for it has ended: it would write half a file into
// the line, or the rest into a tree that is removed. What was begun for another task runs on.
func TestJobsEndBeforeCompletion(t *testing.T) {
	t.Parallel()
	held := team.TaskID("T-001")
	m := &member{jobs: job.New(job.Options{Task: func() team.TaskID { return held }})}
	defer m.jobs.Close()
	var mine, other atomic.Bool
	for ended, id := range map[*atomic.Bool]team.TaskID{&mine: "T-001", &other: "T-002"} {
		held = id
		if _, err := m.jobs.Begin(team.Job{Kind: team.JobCommand}, func(ctx context.Context, _ *job.Job) string {
			<-ctx.Done()
			ended.Store(true)
			return context.Cause(ctx).Error()
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.endJobs(t.Context(), "T-001"); err != nil || !mine.Load() || other.Load() {
		t.Errorf("%v; its job has ended: %v, the other: %v", err, mine.Load(), other.Load())
	}
}
