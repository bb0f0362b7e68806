// Package completion verifies that a task is done: its check passes, and its required deliverable
// exists. It stores the deliverable under the epoch of the claim, so that a file of a former holder
// never passes for the result.
//
// It does not write the task: the holder's board.ClaimSlot completes it, with the digest that
// Verify returns.
package completion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"agentteam/pkg/team"
)

// MaxBytes bounds a deliverable; larger data stays in the workspace, and the deliverable names its
// files.
const MaxBytes = 64 << 20

// Workspace is the folder in which the task was done; *workspace.Workspace is one.
type Workspace interface {
	// Check runs a shell command and returns its output and whether it succeeded.
	Check(ctx context.Context, command string) (output string, passed bool, err error)
	// Regular opens a regular file. Error: NotFound if it does not exist.
	Regular(name string) (*os.File, fs.FileInfo, error)
}

// Files stores deliverables; *broker.Files is one.
type Files interface {
	Put(ctx context.Context, name string, r io.ReadSeeker) (digest string, err error)
}

// CheckError reports that the task's check has failed.
type CheckError struct {
	Task    team.TaskID
	Command string
	Output  string // of the command
}

// shownCommand is how many characters of a check's command its error shows.
const shownCommand = 200

func (e *CheckError) Error() string {
	return fmt.Sprintf("the check of %s, `%s`, failed:\n%s", e.Task, team.Clean(e.Command, shownCommand), e.Output)
}

// Unwrap gives the error its code.
func (e *CheckError) Unwrap() error { return team.InvalidState }

// Counted returns e with a hint for the member that tried to complete the task, t being the task
// after the attempt was counted: how many attempts are left.
func (e *CheckError) Counted(t team.Task) error {
	err := team.Errorf(team.InvalidState, "%w", e)
	if t.Status == team.Failed {
		return err.WithHint("that was the last of %d attempts: %s has failed now and is no longer yours", team.MaxAttempts, t.ID)
	}
	return err.WithHint("fix it and complete the task again; this was attempt %d of %d", t.Attempts, team.MaxAttempts)
}

// Verify is Check and Deliver.
func Verify(ctx context.Context, t team.Task, ws Workspace, files Files) (digest string, err error) {
	if err := Check(ctx, t, ws); err != nil {
		return "", err
	}
	return Deliver(ctx, t, ws, files)
}

// Check runs the check of t, if it has one, and blocks for as long as that takes. Errors: *CheckError; Unavailable.
func Check(ctx context.Context, t team.Task, ws Workspace) error {
	if t.Check == "" {
		return nil
	}
	output, passed, err := ws.Check(ctx, t.Check)
	if err != nil {
		return fmt.Errorf("the check of %s: %w", t.ID, err)
	}
	if !passed {
		return &CheckError{t.ID, t.Check, output}
	}
	return nil
}

// Deliver stores the deliverable of t, which its caller holds, and returns its digest, "" if there is none. Errors:
// InvalidState if a required deliverable is missing or empty; InvalidArgument if it is too large; Unavailable.
func Deliver(ctx context.Context, t team.Task, ws Workspace, files Files) (digest string, err error) {
	f, info, err := ws.Regular(t.DeliverablePath)
	switch {
	case errors.Is(err, team.NotFound) && t.DeliverableReq:
		return "", team.Errorf(team.InvalidState, "%s needs its deliverable, and %s is not there", t.ID, t.DeliverablePath).WithHint("write it, then complete the task")
	case errors.Is(err, team.NotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("the deliverable of %s: %w", t.ID, err)
	}
	defer f.Close() // it was only read
	switch size := info.Size(); {
	case size == 0 && t.DeliverableReq:
		return "", team.Errorf(team.InvalidState, "%s needs its deliverable, and %s is empty", t.ID, t.DeliverablePath).WithHint("write it, then complete the task")
	case size == 0:
		return "", nil
	case size > MaxBytes:
		return "", team.Errorf(team.InvalidArgument, "the deliverable of %s is %d bytes long, the limit is %d", t.ID, size, MaxBytes).
			WithHint("leave the bulk in other files of the workspace, and name them in %s", t.DeliverablePath)
	}
	return files.Put(ctx, Name(t), f)
}

// MaxArtifacts bounds the artifacts of a task; together they have at most [MaxBytes].
const MaxArtifacts = 10

// Keep stores files of the workspace with the result of t, which its caller holds.
//
// Errors: InvalidArgument if there are too many or they are too large; those of [Workspace].Regular; Unavailable.
func Keep(ctx context.Context, t team.Task, ws Workspace, files Files, names []string) (all []team.Artifact, err error) {
	if len(names) > MaxArtifacts {
		return nil, team.Errorf(team.InvalidArgument, "there are %d artifacts, the limit is %d", len(names), MaxArtifacts).WithHint("put them into one archive")
	}
	bytes := int64(0)
	for _, name := range names {
		if name = path.Clean(name); path.IsAbs(name) {
			return nil, team.Errorf(team.InvalidArgument, "the artifact %s is not named from the workspace's folder", name).WithHint("leave out the folder before it")
		}
		if slices.ContainsFunc(all, func(a team.Artifact) bool { return a.Path == name }) {
			continue
		}
		f, info, err := ws.Regular(name)
		if err != nil {
			return nil, fmt.Errorf("the artifact %s: %w", name, err)
		}
		a := team.Artifact{Path: name, Bytes: info.Size()}
		if bytes += a.Bytes; bytes > MaxBytes {
			err = team.Errorf(team.InvalidArgument, "the artifacts of %s have more than %d bytes", t.ID, MaxBytes)
		} else {
			a.Digest, err = files.Put(ctx, ArtifactName(t, name), f)
		}
		f.Close() // it was only read
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// ArtifactName returns the name under which an artifact is stored: T-001/<epoch>/artifacts/<path>.
func ArtifactName(t team.Task, name string) string {
	return fmt.Sprintf("%s/%d/artifacts/%s", t.ID, t.Epoch, name)
}

// Name returns the name under which a deliverable is stored: T-001/<epoch>/<file>.
func Name(t team.Task) string {
	return fmt.Sprintf("%s/%d/%s", t.ID, t.Epoch, path.Base(t.DeliverablePath))
}
