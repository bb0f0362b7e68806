package execenv

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// hold makes a box protect the existing files that deny rules name. Level Confined protects none: the folders around them would
// become read-only. An unreadable file is replaced by one of the same size and time, which git takes for unchanged.
func (s *Source) hold(b *sandbox.Box, p team.Permissions) ([]string, error) {
	rules, _, err := permission.Parse(s.o.Organisation.And(p))
	if err != nil {
		return nil, err // calls are refused for it, too
	}
	unread, unchanged, whole := rules.Held(b.Dir)
	if !whole {
		s.o.Logger.Warn("a sandbox keeps not all files that rules of deny are about: there are too many", "dir", b.Dir)
	}
	b.ReadOnly = append(b.ReadOnly, unchanged...)
	shown := map[string]string{}
	for place, from := range b.Shown {
		shown[place] = from
	}
	for _, path := range unread {
		h := fnv.New128a()
		_, _ = h.Write([]byte(path)) // never fails
		from := filepath.Join(b.Home+".held", fmt.Sprintf("%x", h.Sum(nil)))
		if err := standIn(path, from); err != nil {
			return nil, team.Errorf(team.InvalidState, "hide %s, which a rule denies to read: %w", path, err)
		}
		b.ReadOnly = append(b.ReadOnly, path) // nor may a folder around it be moved
		shown[path] = from
	}
	if b.Shown = shown; len(unread) > 0 {
		b.Env = append(b.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.checkStat", "GIT_CONFIG_VALUE_0=minimal")
	}
	return unread, nil
}

// standIn creates an empty file, or a folder of such, that looks like path to git. It keeps an earlier one that fits: commands may be
// running with it.
func standIn(path, from string) error {
	return filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := from + strings.TrimPrefix(at, path)
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(to, 0o700)
		case !info.Mode().IsRegular():
			return nil
		}
		if have, err := os.Lstat(to); err == nil && have.Size() == info.Size() && have.ModTime().Equal(info.ModTime()) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		fresh := to + ".new"
		f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		err = errors.Join(f.Truncate(info.Size()), f.Chmod(info.Mode()&0o111), f.Close(), os.Chtimes(fresh, info.ModTime(), info.ModTime()))
		return errors.Join(err, os.Rename(fresh, to))
	})
}

// unlook makes git in a tree skip the stand-in files, by a command without the rules. If it fails, `git status` shows a line more.
func (s *Source) unlook(ctx context.Context, run command.Runner, root string, paths []string) {
	if len(paths) == 0 {
		return
	}
	script := `git ls-files -z -- "$@" | git update-index -z --skip-worktree --stdin`
	if _, err := run.Run(ctx, command.Command{Args: append([]string{"bash", "-c", script, "git"}, paths...), Dir: root, Limit: again}); err != nil {
		s.o.Logger.DebugContext(ctx, "git looks at files that are hidden", "tree", root, "err", err)
	}
}
