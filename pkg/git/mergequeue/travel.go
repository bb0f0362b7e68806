package mergequeue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Site is a team's integration branch on this host: its repository, which follows the head's record. Safe for concurrent use,
// by several processes too.
type Site struct {
	Records *Records
	Repo    *gitrepo.Repo
	Dir     string // for temporary files; default: the system's
}

// At opens a team's site on this machine: the repository and the trees of members are in a folder below dir; "" means
// agentteam/lines in the user's cache folder. It fetches nothing yet. Errors: InvalidState if the user has no cache folder;
// those of [gitrepo.Open].
func At(ctx context.Context, dir string, s *broker.Storage, t team.Team) (*Site, error) {
	dir, err := folder(dir, t)
	if err != nil {
		return nil, err
	}
	repo, err := gitrepo.Open(ctx, dir, t.ID, gitrepo.Limits{})
	if err != nil {
		if team.CodeOf(err) == "" { // of the file system
			err = team.Errorf(team.InvalidState, "the trees of members cannot be kept in %s: %w", dir, err).WithHint("set XDG_CACHE_HOME to a folder that can be written")
		}
		return nil, err
	}
	return &Site{Records: New(s), Repo: repo, Dir: repo.Temporary()}, nil
}

// folder returns the folder of a team's site on this machine, see [At].
func folder(dir string, t team.Team) (string, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", team.Errorf(team.InvalidState, "there is no folder for the trees of members: %w", err).WithHint("set HOME or XDG_CACHE_HOME")
		}
		dir = filepath.Join(cache, "agentteam", "lines")
	}
	return filepath.Join(dir, t.Unique()), nil
}

// Forget removes the site of a deleted team from this machine, with all trees.
func Forget(t team.Team) error {
	dir, err := folder("", t)
	if err != nil {
		return nil // then there is none
	}
	return gitrepo.Remove(dir)
}

// Bring moves this host's repository to the head of the integration branch, which it returns. Errors: NotFound if the team has
// no branch; those of [gitrepo.Repo]; Unavailable.
func (s *Site) Bring(ctx context.Context) (gitrepo.Hash, error) {
	h, err := s.Records.Head(ctx)
	if err != nil {
		return "", err
	}
	return h.Commit, s.follow(ctx, h.Commit)
}

// Advance moves the integration branch from one commit to a later one that is not a task's: the beginning of a goal, or the
// undoing of a task. from is "" for the first. It can be repeated.
//
// Errors: Conflict if the head is not from; those of [gitrepo.Repo]; Unavailable, and then the outcome is unknown.
func (s *Site) Advance(ctx context.Context, from, to gitrepo.Hash) error {
	if from != "" {
		if ok, err := s.Repo.Contains(ctx, to, from); err != nil {
			return err
		} else if !ok {
			return team.Errorf(team.Conflict, "the line is not moved to %s, which lacks its head %s", to.Short(), from.Short())
		}
	}
	stored := false
	_, err := broker.Update(ctx, func(ctx context.Context) (Head, error) {
		h, err := s.Records.Head(ctx)
		if errors.Is(err, team.NotFound) {
			err = nil
		}
		return h, err
	}, func(h *Head) (bool, error) {
		if h.Commit == to {
			return false, nil
		}
		if h.Commit != from {
			return false, team.Errorf(team.Conflict, "the line's head is %q, not %q", h.Commit, from).WithHint("build on its present head")
		}
		if !stored {
			if err := s.publish(ctx, from, to); err != nil {
				return false, err
			}
			stored = true
		}
		if from == "" {
			h.Begun = to
		}
		h.Commit, h.At = to, time.Now().UTC()
		return true, nil
	}, s.Records.putHead)
	if err != nil {
		return err
	}
	return s.follow(ctx, to)
}

// publish stores the commits that are in to and not in from for other hosts, before the head is moved: so other hosts can
// fetch each head that the record names.
func (s *Site) publish(ctx context.Context, from, to gitrepo.Hash) error {
	f, err := os.CreateTemp(s.Dir, "line-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := s.Repo.Bundle(ctx, f, from, to); err != nil {
		return err
	}
	_, err = s.Records.files.Put(ctx, subject.BranchBundle(string(to)), f)
	return err
}

// follow moves the branch of this host's repository to a head, after fetching missing commits. A branch that contains the head
// already, since another process here was faster, stays.
func (s *Site) follow(ctx context.Context, head gitrepo.Hash) error {
	repo := s.Repo
	is, err := repo.Head(ctx)
	switch {
	case err == nil && is == head:
		return nil
	case err != nil && !errors.Is(err, team.NotFound):
		return err
	}
	if err := repo.Ensure(ctx); err != nil { // the repository may have been removed under way
		return err
	}
	if err := s.fetch(ctx, head); err != nil {
		return fmt.Errorf("bring the line to %s: %w", head.Short(), err)
	}
	err = repo.Move(ctx, is, head)
	if !errors.Is(err, team.Conflict) {
		return err
	}
	now, headErr := repo.Head(ctx)
	if headErr != nil {
		return headErr
	}
	if ok, _ := repo.Contains(ctx, now, head); ok {
		return nil
	}
	return team.Errorf(team.Conflict, "the branch %s of the team's repository on this host was moved by hand: it is at %s, and the line is at %s", repo.Branch(), now.Short(), head.Short()).
		WithHint("put it back: git update-ref refs/heads/%s %s", repo.Branch(), head)
}

// fetch imports the bundles from the commits here up to a head of the integration branch.
func (s *Site) fetch(ctx context.Context, head gitrepo.Hash) error {
	var missing []gitrepo.Hash // the newest first
	for at := head; at != ""; {
		if ok, err := s.Repo.Has(ctx, at); err != nil {
			return err
		} else if ok {
			break
		}
		missing = append(missing, at)
		err := s.open(ctx, at, func(r io.Reader) (err error) {
			at, err = gitrepo.BaseOf(r)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, at := range slices.Backward(missing) {
		err := s.open(ctx, at, func(r io.Reader) error {
			_, err := s.Repo.Receive(ctx, r)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// open calls f with the bundle that brings a head of the integration branch to other hosts.
func (s *Site) open(ctx context.Context, head gitrepo.Hash, f func(io.Reader) error) error {
	r, err := s.Records.files.Open(ctx, subject.BranchBundle(string(head)))
	if errors.Is(err, team.NotFound) { // the record was put there by hand, or the file was removed
		return team.Errorf(team.NotFound, "the team has no commit %s: %w", head.Short(), err).WithHint(team.RepairHint)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	return f(r)
}
