package runtime

import (
	"context"
	"sync/atomic"
	"testing"

	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/team"
)

// ender is a crew that only ends goals, unless mail has come that the leader has not read.
type ender struct {
	teamtool.TeamAdmin
	mail *int
}

func (e ender) Finish(context.Context, string, []team.TaskID) error {
	if *e.mail > 0 {
		return team.Errorf(team.Conflict, "%d messages came", *e.mail)
	}
	return nil
}

// A leader that has changed files without a task reads that before its goal ends: the notice is mail.
func TestFinishLooksAtWhatWasChanged(t *testing.T) {
	var finishing atomic.Bool
	mail := 0
	f := finisher{ender{mail: &mail}, &finishing, func(context.Context) { mail++ }}
	if err := f.Finish(t.Context(), "done", nil); team.CodeOf(err) != team.Conflict || finishing.Load() {
		t.Errorf("with changes: %v, finishing %v", err, finishing.Load())
	}
	f.quarantined, mail = func(context.Context) {}, 0 // it has read it
	if err := f.Finish(t.Context(), "done", nil); err != nil || !finishing.Load() {
		t.Errorf("without: %v, finishing %v", err, finishing.Load())
	}
}
