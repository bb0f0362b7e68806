package mergequeue

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Work is what one hold of a task has submitted.
type Work struct {
	Task  team.TaskID
	Epoch uint64
}

// pin is the name under which a repository has the work, and the branch of the next holder's tree.
func (w Work) pin() string { return team.Try{Epoch: w.Epoch}.Branch(w.Task) }

// workOf reads the name of a pin or of a file: something, the task and the epoch, with slashes between.
func workOf(name string) (w Work, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return w, false
	}
	id, err := team.ParseTaskID(parts[1])
	if err != nil {
		return w, false
	}
	w.Task = id
	w.Epoch, err = strconv.ParseUint(parts[2], 10, 64)
	return w, err == nil
}

// Keep stores the unfinished work of a hold, as [gitrepo.Tree.Save] has made it on base, for the tree of the next holder on
// whatever host. It can be repeated. Errors: those of [gitrepo.Repo.ImportUnfinished]; Unavailable.
func (s *Site) Keep(ctx context.Context, w Work, bundle []byte, base gitrepo.Hash) (gitrepo.Unfinished, error) {
	u, err := s.Repo.ImportUnfinished(ctx, bundle, base) // which no host would take in, the next holder would not get
	if err == nil {
		_, err = s.Records.files.Put(ctx, subject.MergeBundle(w.Task, w.Epoch), bytes.NewReader(bundle))
	}
	return u, err
}

// Returned brings work of a task that was returned, or not finished, into this host's repository, wherever it was
// done, for who looks at it. The repository has to be at the line's head. It can be repeated.
//
// Errors: NotFound if the work is not stored any more; InvalidArgument if that is not what the
// task's record names; those of [gitrepo.Repo]; Unavailable.
func (s *Site) Returned(ctx context.Context, id team.TaskID, y team.Try) (gitrepo.Unfinished, error) {
	want := gitrepo.Unfinished{Files: gitrepo.Hash(y.Commit), Whole: gitrepo.Hash(cmp.Or(y.Ignored, y.Commit))}
	if _, err := gitrepo.ParseHash(y.Commit); err != nil {
		return gitrepo.Unfinished{}, err
	}
	if there, err := s.Repo.Has(ctx, want.Whole); err != nil || there {
		return want, err
	}
	bundle, err := s.Records.read(ctx, subject.MergeBundle(id, y.Epoch))
	if err != nil {
		return gitrepo.Unfinished{}, err
	}
	var got gitrepo.Unfinished
	if y.Unfinished {
		got, err = s.Repo.ImportUnfinished(ctx, bundle, gitrepo.Hash(y.Base))
	} else {
		got.Files, err = s.Repo.Import(ctx, bundle, gitrepo.Hash(y.Base))
		got.Whole = got.Files
	}
	if err != nil {
		return gitrepo.Unfinished{}, err
	}
	if got != want {
		return gitrepo.Unfinished{}, team.Errorf(team.InvalidArgument, "what is stored of the returned work of %s is commit %s, not %s", id, got.Whole.Short(), want.Whole.Short())
	}
	return want, nil
}

// Pinned is Returned, and pins the work for the next holder on this host, which sweeps what is not pinned.
func (s *Site) Pinned(ctx context.Context, id team.TaskID, y team.Try) (gitrepo.Unfinished, error) {
	work, err := s.Returned(ctx, id, y)
	if err != nil {
		return gitrepo.Unfinished{}, err
	}
	return work, s.Repo.Pin(ctx, Work{id, y.Epoch}.pin(), work.Whole)
}

// Works lists the work that this host's repository has pinned, and with stored also that of which
// the object store has files. Errors: Unavailable; those of [gitrepo.Repo].
func (s *Site) Works(ctx context.Context, stored bool) ([]Work, error) {
	pins, err := s.Repo.Pins(ctx)
	if err != nil {
		return nil, err
	}
	all := map[Work]bool{}
	for name := range pins {
		if w, ok := workOf(name); ok && name == w.pin() {
			all[w] = true
		}
	}
	var files []string
	if stored {
		if files, err = s.Records.files.List(ctx, ""); err != nil {
			return nil, err
		}
	}
	for _, name := range files {
		if w, ok := workOf(name); ok && strings.HasPrefix(name, subject.MergeBundle(w.Task, w.Epoch)) {
			all[w] = true
		}
	}
	return slices.Collect(maps.Keys(all)), nil
}

// Forget removes the pin and the files of work that is not needed any more. It can be repeated. Errors: those of
// [gitrepo.Repo]; Unavailable.
func (s *Site) Forget(ctx context.Context, w Work) error {
	for _, name := range []string{subject.MergeOutcome(w.Task, w.Epoch), subject.MergeBundle(w.Task, w.Epoch)} {
		if err := s.Records.files.Delete(ctx, name); err != nil {
			return err
		}
	}
	return s.Repo.Unpin(ctx, w.pin())
}
