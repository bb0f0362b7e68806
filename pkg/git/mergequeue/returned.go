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

// Work names the work of one hold of a task.
type Work struct {
	Task  team.TaskID
	Epoch uint64
}

// pin returns the name of the work's pin in a repository, and of its branch in the next holder's tree.
func (w Work) pin() string { return team.Try{Epoch: w.Epoch}.Branch(w.Task) }

// workOf parses the name of a pin or of a file: a word, the task and the epoch, separated by slashes.
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

// Keep stores the unfinished work of a hold, a bundle of [gitrepo.Tree.Save] on base, for the tree of the next holder on any
// host. It can be repeated. Errors: those of [gitrepo.Repo.ImportUnfinished]; Unavailable.
func (s *Site) Keep(ctx context.Context, w Work, bundle []byte, base gitrepo.Hash) (gitrepo.Unfinished, error) {
	u, err := s.Repo.ImportUnfinished(ctx, bundle, base) // first: the next holder would not get work that no host accepts
	if err == nil {
		_, err = s.Records.files.Put(ctx, subject.MergeBundle(w.Task, w.Epoch), bytes.NewReader(bundle))
	}
	return u, err
}

// Returned brings returned or unfinished work of a task, from any host, into this host's repository, for a viewer. The
// repository has to be at the head of the integration branch. It can be repeated.
//
// Errors: NotFound if the work is no longer stored; InvalidArgument if the stored work is not the one that the task's record
// names; those of [gitrepo.Repo]; Unavailable.
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

// Pinned is Returned, and pins the work for the next holder on this host, whose sweeps remove unpinned work.
func (s *Site) Pinned(ctx context.Context, id team.TaskID, y team.Try) (gitrepo.Unfinished, error) {
	work, err := s.Returned(ctx, id, y)
	if err != nil {
		return gitrepo.Unfinished{}, err
	}
	return work, s.Repo.Pin(ctx, Work{id, y.Epoch}.pin(), work.Whole)
}

// Works returns the work that this host's repository has pinned, and with stored also the work of files in the object store.
// Errors: Unavailable; those of [gitrepo.Repo].
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

// Forget removes the pin and the files of work that is no longer needed. It can be repeated. Errors: those of
// [gitrepo.Repo]; Unavailable.
func (s *Site) Forget(ctx context.Context, w Work) error {
	for _, name := range []string{subject.MergeOutcome(w.Task, w.Epoch), subject.MergeBundle(w.Task, w.Epoch)} {
		if err := s.Records.files.Delete(ctx, name); err != nil {
			return err
		}
	}
	return s.Repo.Unpin(ctx, w.pin())
}
