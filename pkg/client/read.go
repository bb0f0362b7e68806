package client

import (
	"context"
	"slices"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Snapshot is the content of the board, or a change of it.
type Snapshot struct {
	Tasks []team.TaskView    // in order of id
	Bad   []team.Quarantined // records that cannot be read; the rest of the board works without them
	Gone  []team.TaskID      // of a watch: tasks whose records somebody has deleted
}

// Snapshot reads the whole board.
func (t Board) Snapshot(ctx context.Context) (Snapshot, error) {
	l, err := t.board.Load(ctx)
	return Snapshot{Tasks: team.View(l.Tasks), Bad: l.Bad}, err
}

// Tasks returns all tasks that can be read, in order of id.
func (t Board) Tasks(ctx context.Context) ([]team.TaskView, error) {
	b, err := t.Snapshot(ctx)
	return b.Tasks, err
}

// ByID returns the tasks with these ids. Unknown and unreadable ones are left out.
func (t Board) ByID(ctx context.Context, ids ...team.TaskID) (map[team.TaskID]team.TaskView, error) {
	found := make(map[team.TaskID]team.TaskView, len(ids))
	for part := range slices.Chunk(ids, team.MaxPage) {
		for q, more := (team.Query{IDs: part, Limit: team.MaxPage}), true; more; {
			page, err := t.List(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, v := range page.Tasks {
				found[v.ID] = v
			}
			q.After, more = page.Next, page.Next != ""
		}
	}
	return found, nil
}

// Siblings reports whether the cluster has other teams, as far as the list can be read.
func (t *Team) Siblings(ctx context.Context) bool {
	all, err := t.client.registry.List(ctx)
	return err == nil && len(all) > 1
}

// Task returns one task. Errors: NotFound; InvalidState if it cannot be read.
func (t Board) Task(ctx context.Context, id team.TaskID) (team.TaskView, error) {
	found, err := t.ByID(ctx, id)
	if err != nil {
		return team.TaskView{}, err
	}
	if v, ok := found[id]; ok {
		return v, nil
	}
	task, err := t.board.Get(ctx, id) // returns why, or completes a creation that was interrupted
	if err != nil {
		return team.TaskView{}, err
	}
	return t.View(ctx, task)
}

// View returns a task from another call as it is printed: with the facts that follow from its
// neighbours.
func (t Board) View(ctx context.Context, task team.Task) (team.TaskView, error) {
	views, err := t.Views(ctx, []team.Task{task})
	if err != nil {
		return team.TaskView{}, err
	}
	return views[0], nil
}

// Views is View for several tasks.
func (t Board) Views(ctx context.Context, tasks []team.Task) ([]team.TaskView, error) {
	ids := make([]team.TaskID, len(tasks))
	for i, task := range tasks {
		ids[i] = task.ID
	}
	found, err := t.ByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	views := make([]team.TaskView, len(tasks))
	for i, task := range tasks {
		v, ok := found[task.ID]
		if !ok {
			return nil, team.Errorf(team.InvalidState, "%s was stored and is gone", task.ID).WithHint("somebody has deleted its record from the bucket")
		}
		views[i] = task.View(v.WaitingFor, v.Blocks)
	}
	return views, nil
}

// Explain fills in why no member works on the pending tasks, and since when those in progress wait
// to be merged; status returns the status of a dependency, nil has it read. The processes of the
// members are asked, if that matters.
func (t Board) Explain(ctx context.Context, tasks []team.TaskView, status func(team.TaskID) team.TaskStatus) error {
	if status == nil {
		var ids []team.TaskID
		for _, v := range tasks {
			ids = append(ids, v.WaitingFor...)
		}
		slices.Sort(ids)
		found, err := t.ByID(ctx, slices.Compact(ids)...)
		if err != nil {
			return err
		}
		status = func(id team.TaskID) team.TaskStatus { return found[id].Status }
	}
	free := func(v team.TaskView) bool { return v.Status == team.Pending && !v.IsBlocked }
	var s explain.Situation
	if slices.ContainsFunc(tasks, free) {
		record, _, err := registry.Shown(ctx, t.team)
		if err != nil {
			return err
		}
		members, err := t.roster.List(ctx)
		if err != nil {
			return err
		}
		members = slices.DeleteFunc(members, func(m team.Member) bool { return m.State == team.Stopped })
		if _, s.Led, err = t.client.leads(ctx, record.ID); err != nil {
			return err
		}
		s.Status, s.Roles, s.Down = record.Status, record.Roles, t.client.stored
		agents, _ := t.standing(ctx, record, members)
		for _, a := range agents {
			s.Members = append(s.Members, explain.Standing{Member: a.Member, State: a.State, Task: a.Task})
		}
	}
	for i := range tasks {
		tasks[i].Why = s.Why(tasks[i], status)
	}
	return t.Merging(ctx, tasks)
}

// Merging fills in since when the tasks in progress wait to be merged.
func (t Board) Merging(ctx context.Context, tasks []team.TaskView) error {
	if !slices.ContainsFunc(tasks, inProgress) {
		return nil
	}
	record, _, err := registry.Shown(ctx, t.team) // an unreadable record hides no task
	if err != nil {
		return err
	}
	markMerging(tasks, t.merging(ctx, record))
	return nil
}

func inProgress(v team.TaskView) bool { return v.Status == team.InProgress }

// markMerging fills in since when the tasks in merging wait.
func markMerging(tasks []team.TaskView, merging map[team.TaskID]mergequeue.Entry) {
	for i, v := range tasks {
		if e, ok := merging[v.ID]; ok && inProgress(v) && e.Epoch == v.Epoch && e.State == mergequeue.Waiting {
			tasks[i].Merging = &e.At
		}
	}
}

// History returns the steps of a task; whole is false if the bucket no longer holds its beginning.
// Errors: NotFound.
func (t Board) History(ctx context.Context, id team.TaskID) (steps []explain.Step, whole bool, err error) {
	copies, err := t.board.History(ctx, id)
	if err != nil {
		return nil, false, err
	}
	steps, whole = explain.History(copies)
	return steps, whole, nil
}
