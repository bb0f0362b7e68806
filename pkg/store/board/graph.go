package board

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// graphGuard is the value of the key graph, which orders all edits of dependencies: two edits that are harmless alone may
// close a cycle together, and they touch different tasks, so the tasks' own revisions do not detect each other. An edit
// first stores its intent here, then writes the task, then clears the intent; a process that finds an intent completes it
// before judging its own edit.
type graphGuard struct {
	V      int         `json:"v"`
	Op     string      `json:"op"`
	Intent *editIntent `json:"intent,omitempty"`

	revision uint64
}

// editIntent is an edit that is about to be written, or has been.
type editIntent struct {
	Task     team.TaskID     `json:"task"`
	Record   json.RawMessage `json:"record"`   // the task's new record, to the byte
	Revision uint64          `json:"revision"` // of the task that it replaces
}

func (b *Board) graph(ctx context.Context) (graphGuard, error) {
	var g graphGuard
	e, err := b.bucket.Get(ctx, subject.KeyGraph)
	if errors.Is(err, team.NotFound) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	if _, err := e.Decode(&g, &g.V); err != nil {
		return g, err
	}
	g.revision = e.Revision
	return g, nil
}

func (b *Board) putGraph(ctx context.Context, g graphGuard) (_ graphGuard, err error) {
	g.V, g.Op = team.Protocol, ulid.Make().String()
	g.revision, err = broker.Save(ctx, b.bucket, subject.KeyGraph, g, nil, g.revision)
	return g, err
}

// finishEdit makes the write that the guard announces and clears the intent. A write that another process has made already
// counts as made, even if the task was claimed after it. If the task was claimed before the write, the claim stands and
// the edit is lost.
func (b *Board) finishEdit(ctx context.Context, g graphGuard) (written team.Task, err error) {
	key := subject.KeyTask(g.Intent.Task)
	written, err = Decode(broker.Entry{Key: key, Value: g.Intent.Record})
	if err != nil {
		return written, err
	}
	var lost error
	written.Revision, lost = b.bucket.PutAgain(ctx, key, g.Intent.Record, g.Intent.Revision)
	if lost != nil && !tooLate(lost) {
		return written, lost
	}
	g.Intent = nil
	if _, err := b.putGraph(ctx, g); err != nil && !tooLate(err) {
		return written, err
	}
	return written, lost
}

// tooLate reports whether a failed write can no longer be made: others were first, or it
// was made long ago.
func tooLate(err error) bool {
	return errors.Is(err, team.Conflict) || errors.Is(err, broker.ErrOvertaken)
}

// editGraph makes an edit that changes dependencies. If apply refuses, it returns the task that it read.
func (b *Board) editGraph(ctx context.Context, id team.TaskID, e team.Edit, apply func(team.Task) (team.Task, error)) (team.Task, error) {
	for lost := 1; ; lost++ {
		begun := time.Now()
		g, err := b.graph(ctx)
		if err != nil {
			return team.Task{}, err
		}
		if g.Intent != nil {
			if _, err := b.finishEdit(ctx, g); err != nil && !tooLate(err) {
				return team.Task{}, err
			}
			continue
		}
		tasks, err := b.All(ctx)
		if err != nil {
			return team.Task{}, err
		}
		i := slices.IndexFunc(tasks, func(t team.Task) bool { return t.ID == id })
		if i < 0 {
			return team.Task{}, notFound(id)
		}
		if err := tasks[i].At(b.at); err != nil {
			return team.Task{}, err
		}
		next, err := apply(tasks[i])
		if err == nil {
			err = checkGraph(tasks, next, e.AddDependencies)
		}
		if err != nil {
			return tasks[i], err
		}
		next.Op = ulid.Make().String()
		record, err := codec.Encode(next, next.Kept)
		if err != nil {
			return team.Task{}, err
		}
		g.Intent = &editIntent{id, record, tasks[i].Revision}
		g, err = b.putGraph(ctx, g)
		if err == nil {
			next, err = b.finishEdit(ctx, g)
		}
		if !errors.Is(err, team.Conflict) {
			return next, err
		}
		if err := broker.Pause(ctx, time.Since(begun), lost); err != nil {
			return team.Task{}, err
		}
	}
}

// checkGraph refuses unknown dependencies and those that close a cycle.
func checkGraph(tasks []team.Task, next team.Task, added []team.TaskID) error {
	deps := make(map[team.TaskID][]team.TaskID, len(tasks))
	for _, t := range tasks {
		deps[t.ID] = t.Dependencies
	}
	for _, d := range added {
		if _, ok := deps[d]; !ok {
			return team.Errorf(team.NotFound, "dependency %s does not exist", d).WithHint("create it first, or list the tasks to see what exists")
		}
	}
	deps[next.ID] = next.Dependencies
	if path := team.Cycle(deps, next.ID); path != nil {
		s := ""
		for _, id := range path {
			s += string(id) + " -> "
		}
		return team.Errorf(team.InvalidArgument, "the dependency would close a cycle: %s%s", s, path[0]).
			WithHint("each waits for the next: remove one of these dependencies first")
	}
	return nil
}
