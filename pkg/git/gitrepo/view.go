package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

func (r *Repo) views() string { return filepath.Join(r.dir, "views") }

// viewWait is the time between two tries to lock a view.
const viewWait = 20 * time.Millisecond

// View returns a read-only folder with the files of a commit; prefix is a folder in it. All views of one commit share the folder,
// which is made once. It stays until the caller calls release: after that, the next view of another commit removes it. The
// errors are those of [Repo.Export].
func (r *Repo) View(ctx context.Context, at Hash, prefix string) (dir string, release func(), err error) {
	if err := check(at); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(r.views(), 0o700); err != nil {
		return "", nil, r.gone(err)
	}
	root := filepath.Join(r.views(), string(at))
	for {
		lock, err := r.viewed(ctx, at, syscall.LOCK_SH)
		if err != nil {
			return "", nil, err
		}
		if _, err = os.Stat(root); err == nil {
			if err = mkdirInside(root, prefix); err == nil { // of a commit that has no file there
				return filepath.Join(root, filepath.FromSlash(prefix)), func() { lock.Close() }, nil
			}
			lock.Close()
			return "", nil, fmt.Errorf("the folder %s of %s: %w", prefix, at.Short(), err)
		}
		lock.Close()
		if errors.Is(err, fs.ErrNotExist) {
			err = r.makeView(ctx, at, root)
		}
		if err != nil {
			return "", nil, err
		}
	}
}

// makeView makes the folder of a view, if no other process has, and removes the unused folders of other commits.
func (r *Repo) makeView(ctx context.Context, at Hash, root string) error {
	lock, err := r.viewed(ctx, at, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	aside, err := os.MkdirTemp(r.tmp(), "view-")
	if err != nil {
		return r.gone(err)
	}
	defer os.RemoveAll(aside)
	fresh := filepath.Join(aside, "files")
	if err := r.Export(ctx, at, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, root); err != nil {
		return err
	}
	_ = r.sweepViews(at) // the next one tries again
	return nil
}

// sweepViews removes the folders of unused views, except that of one commit.
func (r *Repo) sweepViews(but Hash) error {
	entries, err := os.ReadDir(r.views())
	if err != nil {
		return err
	}
	for _, e := range entries {
		of := strings.TrimSuffix(e.Name(), ".lock")
		if of == string(but) || of == e.Name() {
			continue
		}
		lock, err := lockFile(filepath.Join(r.views(), e.Name()), syscall.LOCK_EX)
		if errors.Is(err, errLocked) {
			continue
		}
		if err == nil {
			err = errors.Join(removeAll(filepath.Join(r.views(), of)), os.Remove(lock.Name()), lock.Close())
		}
		if err != nil {
			return fmt.Errorf("remove the view of %s: %w", of, err)
		}
	}
	return nil
}

// viewed waits for the lock of a view and takes it.
func (r *Repo) viewed(ctx context.Context, at Hash, how int) (*os.File, error) {
	for {
		lock, err := lockFile(filepath.Join(r.views(), string(at)+".lock"), how)
		if !errors.Is(err, errLocked) {
			return lock, r.gone(err)
		}
		if !shutdown.Sleep(ctx, viewWait) {
			return nil, team.Errorf(team.Unavailable, "the files of %s are being made: %w", at.Short(), ctx.Err())
		}
	}
}
