package client

import (
	"context"
	"io"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/team"
)

// Deliverable is the result file of a task.
type Deliverable struct {
	Task   team.TaskID     `json:"task"`
	Title  string          `json:"title"`
	Status team.TaskStatus `json:"status"`
	Path   string          `json:"path"`             // in the team's workspace
	Digest string          `json:"digest,omitempty"` // of the stored file, "sha256:" and hex; "" = it is not stored yet
}

func deliverableOf(t team.Task) Deliverable {
	return Deliverable{t.ID, t.Title, t.Status, t.DeliverablePath, t.Digest}
}

// artifactOf returns an artifact of t as a deliverable.
func artifactOf(t team.Task, a team.Artifact) Deliverable {
	return Deliverable{t.ID, t.Title, t.Status, a.Path, a.Digest}
}

// Deliverables returns the deliverables of the completed tasks, each followed by its task's artifacts, in order of the tasks.
func (t Board) Deliverables(ctx context.Context) ([]Deliverable, error) {
	tasks, err := t.board.All(ctx)
	all := []Deliverable{}
	for _, task := range tasks {
		if task.Digest != "" {
			all = append(all, deliverableOf(task))
		}
		for _, a := range task.Artifacts {
			all = append(all, artifactOf(task, a))
		}
	}
	return all, err
}

// OpenArtifact opens the artifact of that path, which was stored with the result of a task, for reading until ctx ends; the
// caller closes it. Read returns Unavailable if the stored file is incomplete. Errors: NotFound; Unavailable.
func (t Board) OpenArtifact(ctx context.Context, id team.TaskID, path string) (Deliverable, io.ReadCloser, error) {
	task, err := t.board.Get(ctx, id)
	if err != nil {
		return Deliverable{}, nil, err
	}
	for _, a := range task.Artifacts {
		if a.Path == path {
			f, err := t.team.Files.Open(ctx, completion.ArtifactName(task, path))
			return artifactOf(task, a), f, err
		}
	}
	return Deliverable{}, nil, team.Errorf(team.NotFound, "%s has no artifact %s", id, team.Clip(path, 200))
}

// OpenDeliverable opens the deliverable of a task for reading until ctx ends; the caller closes it.
// For a completed task it is the file that was stored then, whatever the workspace contains now;
// else it is the file in [Team.Files], and no file outside that is read. Read returns Unavailable
// if the stored file is incomplete.
//
// Errors: NotFound for an unknown task or a missing file; InvalidState if the workspace cannot be
// used from here; those of [workspace.Workspace.Regular]; Unavailable.
func (t Board) OpenDeliverable(ctx context.Context, id team.TaskID) (Deliverable, io.ReadCloser, error) {
	task, err := t.board.Get(ctx, id)
	if err != nil {
		return Deliverable{}, nil, err
	}
	d := deliverableOf(task)
	if task.Digest != "" {
		f, err := t.team.Files.Open(ctx, completion.Name(task))
		return d, f, err
	}
	record, err := t.record(ctx)
	if err != nil {
		return d, nil, err
	}
	ws, release, err := t.files(ctx, record)
	if err != nil {
		return d, nil, team.Errorf(team.InvalidState, "the workspace of team %s cannot be used from here: %w", t.id(), err).
			WithHint("ask a leader process on the machine of the workspace")
	}
	defer release() // the open file stays
	f, _, err := ws.Regular(task.DeliverablePath)
	if err != nil { // a nil *os.File would be no nil io.ReadCloser
		return d, nil, err
	}
	return d, f, nil
}
