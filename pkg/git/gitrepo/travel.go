package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentteam/pkg/team"
)

// Bundle writes the commits that are in to and not in from to w, for [Repo.Receive] on another host. from is "" for the whole
// history.
func (r *Repo) Bundle(ctx context.Context, w io.Writer, from, to Hash) error {
	h := header{tip: to}
	revs := string(to) + "\n"
	if err := check(to); err != nil {
		return err
	}
	if from != "" {
		if err := check(from); err != nil {
			return err
		}
		h.bases = []Hash{from}
		revs += "^" + string(from) + "\n"
	} else {
		h.shallow = r.shallow()
	}
	if ok, err := r.Has(ctx, to); err != nil {
		return err
	} else if !ok {
		return team.Errorf(team.NotFound, "commit %s is not in the line's repository", to.Short())
	}
	if _, err := io.WriteString(w, h.text()); err != nil {
		return err
	}
	g := r.git("pack-objects", "--stdout", "--revs", "--thin", "--delta-base-offset", "--quiet")
	g.stdin, g.out, g.most, g.within = strings.NewReader(revs), w, received.Bundle, slow
	_, err := g.run(ctx)
	return r.gone(err)
}

// Receive takes a bundle of [Repo.Bundle] from another host into the repository, and returns its tip. No ref of the branch
// moves. It checks the objects in quarantine, but not the rules for tasks: [Repo.Import] has checked those before the merge,
// and they do not apply to the user's commits in the bundle.
//
// Errors: InvalidArgument for a damaged bundle; NotFound if its base is not here.
func (r *Repo) Receive(ctx context.Context, bundle io.Reader) (Hash, error) {
	q, err := r.quarantine(ctx, bundle, received)
	if err != nil {
		return "", err
	}
	defer q.end()
	for _, base := range q.bases {
		if ok, err := r.Has(ctx, base); err != nil {
			return "", err
		} else if !ok {
			return "", team.Errorf(team.NotFound, "the bundle builds on %s, which is not here", base.Short()).
				WithHint("fetch the line from its beginning")
		}
	}
	if len(q.bases) == 0 {
		err = q.history(ctx)
	} else {
		err = q.index(ctx, strict)
	}
	if err != nil {
		return "", err
	}
	if err := q.release(); err != nil {
		return "", err
	}
	if len(q.bases) == 0 {
		_, err = r.git("update-ref", fetched(q.tip), string(q.tip)).run(ctx)
	}
	r.tidy(ctx)
	return q.tip, r.gone(err)
}

// history indexes the pack of a whole history and checks that no object is missing.
func (q *quarantined) history(ctx context.Context) error {
	if err := q.index(ctx); err != nil {
		return err
	}
	ends := filepath.Join(q.dir, "shallow")
	if err := writeShallow(ends, q.shallow); err != nil {
		return err
	}
	g := q.git("rev-list", "--objects", "--quiet", string(q.tip))
	g.env, g.within = append(g.env, "GIT_SHALLOW_FILE="+ends), slow
	if _, err := g.run(ctx); itsFault(err) {
		return damaged(err)
	} else if err != nil {
		return err
	}
	if len(q.shallow) == 0 {
		return nil
	}
	// Before the objects: a commit whose parents are missing counts as damaged.
	all := slices.Concat(q.repo.shallow(), q.shallow)
	slices.Sort(all)
	if err := writeShallow(ends, slices.Compact(all)); err != nil {
		return err
	}
	return os.Rename(ends, filepath.Join(q.repo.bare, "shallow"))
}

func writeShallow(file string, all []Hash) error {
	var b strings.Builder
	for _, h := range all {
		b.WriteString(string(h) + "\n")
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}

// shallow returns the commits whose parents are missing, since the user's clone is shallow.
func (r *Repo) shallow() []Hash {
	text, err := os.ReadFile(filepath.Join(r.bare, "shallow"))
	if err != nil {
		return nil
	}
	var all []Hash
	for l := range strings.Lines(string(text)) {
		if h, err := ParseHash(strings.TrimSpace(l)); err == nil {
			all = append(all, h)
		}
	}
	return all
}

// mostPacks bounds the packs that git may have to search for an object. Each import is one.
const mostPacks = 40

// tidy combines small packs. It drops no object, so a task whose commit no ref has yet loses nothing. A failure costs only time.
func (r *Repo) tidy(ctx context.Context) {
	packs, err := filepath.Glob(filepath.Join(r.objects(), "pack", "*.pack"))
	if err != nil || len(packs) <= mostPacks {
		return
	}
	lock, err := lockFile(filepath.Join(r.dir, "tidy.lock"), syscall.LOCK_EX)
	if err != nil { // another process is at it
		return
	}
	defer lock.Close()
	g := r.git("repack", "-d", "--geometric=2", "--quiet", "--no-write-bitmap-index")
	g.within = slow
	_, _ = g.run(ctx)
}

var errLocked = errors.New("another process has the lock")

// lockFile locks a file, and creates it if needed, until it is closed or this process is gone. A lock on a file that was removed
// since it was opened has no effect: then it opens the file again. Error: errLocked.
func lockFile(name string, how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		mine, statErr := f.Stat()
		if there, stat := os.Stat(name); err == nil && statErr == nil && stat == nil && os.SameFile(mine, there) {
			return f, nil
		}
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		} else if err != nil {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
	}
}
