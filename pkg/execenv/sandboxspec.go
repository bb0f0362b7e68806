package execenv

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/proxy"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// runner returns the runner of w's commands in dir, and a function that ends it. hold, which may be nil, makes the box protect files
// under rules.
func (s *Source) runner(ctx context.Context, w workspace.Work, dir string, hold func(*sandbox.Box, team.Permissions) error) (run command.Runner, release func(), err error) {
	release = func() {}
	if w.Member.AgentID == "" {
		return refusal{team.Errorf(team.InvalidState, "%s was opened for nobody, so that no command is run there", dir)}, release, nil
	}
	h := w.Team.PolicyOf(w.Member.Role)
	found, err := s.Sandbox(ctx, w.Team, w.Member.Role)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "no command can be run", "team", w.Team.ID, "agent", w.Member.AgentID, "err", err)
		return refusal{err}, release, nil
	}
	if found.Level() == team.Unconfined {
		granted, err := toolchain.Credentials(toolchain.This(), h.Credentials)
		if err != nil {
			return nil, nil, err
		}
		run, err = found.Runner(sandbox.Box{Env: granted.Env, Limits: s.o.Limits})
		return run, release, err
	}
	cache, err := s.builds(w.Team)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.box(w, h, dir, cache, found.Level())
	if err != nil {
		return nil, nil, err
	}
	if hold != nil && found.Level() == team.Bubblewrap {
		if err := hold(&b, h.Permissions); err != nil {
			return nil, nil, err
		}
	}
	if len(h.Network) > 0 {
		if err := reachable(string(w.Member.AgentID), h.Network, found.Level()); err != nil {
			return nil, nil, err
		}
		p, err := proxy.New(proxy.Options{Network: h.Network, Never: s.o.Never, Logger: s.o.Logger, Registry: s.o.Metrics})
		if err != nil {
			return nil, nil, err
		}
		b.Proxy = p.Serve
	}
	free, leave := acquire(b.Home, clear(b.Home)), acquire(cache, trim(cache))
	release = func() { free(); leave() }
	run, err = found.Runner(b)
	if err != nil {
		release()
		return nil, nil, err
	}
	return run, release, nil
}

// box returns the box of w's commands, without a network. cache is the repository's.
func (s *Source) box(w workspace.Work, h team.Policy, dir, cache string, level team.Sandbox) (sandbox.Box, error) {
	home, err := s.home(w)
	if err != nil {
		return sandbox.Box{}, err
	}
	paths, err := s.paths(dir, h.Paths)
	if err != nil {
		return sandbox.Box{}, err
	}
	b := sandbox.Box{Dir: dir, Home: home, Limits: s.o.Limits}
	if w.Tree == nil {
		b.Hidden = s.hidden(dir)
	} else {
		b.Dir, b.Shown = w.Tree.Root, w.Tree.Shown
	}
	b.ReadOnly = slices.DeleteFunc(paths.Read, func(path string) bool { return path == b.Dir }) // members read and write it as it is
	m := toolchain.Member{Home: home, Cache: cache, Writable: append([]string{b.Dir}, paths.Write...), Network: len(h.Network) > 0}
	b.Write = append(paths.Write, cache)
	granted, err := toolchain.Of(toolchain.This(), m, h.Credentials)
	if err != nil {
		return b, err
	}
	s.o.Logger.Debug("not given to commands", "agent", w.Member.AgentID, "paths", granted.Omitted)
	if err := granted.Populate(); err != nil {
		return b, unmade("the home of "+string(w.Member.AgentID), home, err)
	}
	b.ReadOnly = append(b.ReadOnly, granted.ReadOnly...)
	if w.Tree == nil {
		kept, err := s.keep(dir, level)
		if err != nil {
			return b, err
		}
		b.ReadOnly = append(b.ReadOnly, kept...)
	} else {
		b.ReadOnly = append(b.ReadOnly, w.Tree.ReadOnly...) // the rest is its member's
	}
	b.Env = append(granted.Env, "GIT_DISCOVERY_ACROSS_FILESYSTEM=1") // a workspace below a repository's root is a mount
	return b, nil
}

// reachable refuses a network at a level where commands have none. Error: Unavailable.
func reachable(who string, n team.Network, level team.Sandbox) error {
	if level != team.Confined {
		return nil
	}
	return team.Errorf(team.Unavailable, "%s wants the network %s, and commands have none in the weaker sandbox %q", who, n, level).
		WithHint("install bubblewrap, or set `network: none`")
}

// Check reports whether this machine can give members the rights of h in a workspace dir, an absolute path. It creates nothing.
// Errors: InvalidArgument for a missing path; Unavailable for a network where commands have none; InvalidState without a folder for
// homes.
func (s *Source) Check(ctx context.Context, h team.Policy, dir string) error {
	if err := CheckFolder(dir); err != nil {
		return err
	}
	if len(h.Network) > 0 {
		// If no sandbox works, each command is refused, and the error is reported then.
		if found, err := s.Sandbox(ctx, team.Team{Policy: h}, ""); err == nil {
			if err := reachable("the team", h.Network, found.Level()); err != nil {
				return err
			}
		}
	}
	if h.Sandbox != team.Unconfined {
		if _, err := s.cached("homes"); err != nil {
			return err
		}
		if _, err := s.paths(dir, h.Paths); err != nil {
			return err
		}
	}
	_, err := toolchain.Credentials(toolchain.This(), h.Credentials)
	return err
}

// paths returns paths of a policy without "~". Errors: InvalidArgument for a missing one, and for a workspace, or a writable path, that
// contains the user's home or settings, or the homes and caches of members.
func (s *Source) paths(dir string, of team.Paths) (p team.Paths, err error) {
	if p.Read, err = present("paths.read", of.Read); err == nil {
		p.Write, err = present("paths.write", of.Write)
	}
	if err != nil {
		return p, err
	}
	folder := func(name string) func() (string, error) { return func() (string, error) { return s.cached(name) } }
	for _, place := range []func() (string, error){os.UserHomeDir, os.UserConfigDir, folder("homes"), folder("builds")} {
		own, err := place()
		if err != nil || own == "/" {
			continue
		}
		for _, path := range append([]string{dir}, p.Write...) {
			if path = realOf(path); below(realOf(own), path) {
				return p, team.Errorf(team.InvalidArgument, "commands would write all of %s, and with it %s", path, realOf(own)).WithHint("work in a folder of the project alone")
			}
		}
	}
	return p, nil
}

// hidden returns the cluster folders in a workspace: its own, that of this process, and the data's.
func (s *Source) hidden(dir string) []string {
	paths := []string{filepath.Join(dir, team.ClusterDir)}
	at := []string{s.o.Data}
	if here, err := os.Getwd(); err == nil {
		at = append(at, filepath.Join(here, team.ClusterDir))
	}
	for _, path := range at {
		if _, err := os.Lstat(path); err == nil && path != dir && below(path, dir) && !slices.ContainsFunc(paths, func(p string) bool { return below(path, p) }) {
			paths = append(paths, path)
		}
	}
	return paths
}

// kept returns the paths in and around a workspace that programs outside the sandbox execute or obey, existing or not.
func (s *Source) kept(dir string) (paths []string) {
	r, files, folders := runBy(dir)
	outside := slices.DeleteFunc(slices.Clone(r.dirs), func(git string) bool { return below(git, realOf(dir)) })
	paths = append(outside, in(dir, slices.Concat(r.dirs, r.places(), files, folders, ours(dir), unaskedThere(dir), []string{s.o.Settings})...)...)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// keep returns the paths of [Source.kept] that commands at a level cannot change. It creates empty files where git would look for
// missing hooks or settings: otherwise a command could create them. At Confined a kept path has a price ([sandbox.Box]), so outside
// of a repository settings alone are not kept. Error: InvalidState if git runs the files of dir itself.
func (s *Source) keep(dir string, level team.Sandbox) ([]string, error) {
	r, files, folders := runBy(dir)
	if place := r.holds(dir, folders); place != "" {
		return nil, team.Errorf(team.InvalidState, "the workspace %s lies in %s, from which git runs hooks: no command may write there", dir, place).
			WithHint("work in another folder, or have `core.hooksPath` name a folder below the workspace")
	}
	if root, err := os.OpenRoot(dir); err == nil {
		for _, path := range folders {
			fill(root, dir, path, false)
		}
		for _, path := range files {
			fill(root, dir, path, true)
		}
		root.Close()
	}
	kept := s.kept(dir)
	if level == team.Confined && r.top == "" {
		free := in(dir, append(unaskedThere(dir), s.o.Settings)...)
		kept = slices.DeleteFunc(kept, func(path string) bool { return slices.Contains(free, path) })
	}
	return kept, nil
}

// ours returns the programs of agentteam, or their folder.
func ours(dir string) (programs []string) {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	bin := filepath.Dir(self)
	if bin != dir && bin != realOf(dir) {
		return []string{bin}
	}
	for _, program := range []string{filepath.Base(self), "leader", "teammate", "teamctl"} {
		programs = append(programs, filepath.Join(bin, program))
	}
	return programs
}

// present returns paths with the user's home in place of "~". Error: InvalidArgument for a missing path.
func present(setting string, paths []string) (all []string, err error) {
	for _, p := range paths {
		p = filepath.Clean(resolve("", p))
		if _, err := os.Stat(p); err != nil {
			return nil, team.Errorf(team.InvalidArgument, "%s names %s, which cannot be given: %w", setting, p, err).
				WithHint("make it there, or take it out of %s", setting)
		}
		all = append(all, p)
	}
	return all, nil
}

// below reports whether path is dir or below it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

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

// CheckFolder refuses a workspace that is, contains, or is in a folder of secrets, at each level: file tools work outside of the
// sandbox. No trust and no setting allows it. The user's home always counts as such a folder: a member could create them. dir is
// absolute and may not exist. Error: InvalidArgument.
func CheckFolder(dir string) error {
	real := realOf(dir)
	refuse := func(how, what string) error {
		return team.Errorf(team.InvalidArgument, "the workspace %s %s %s: no team works there, trusted or not", dir, how, what).
			WithHint("work in a folder of the project alone: --workspace DIR, or change into it")
	}
	home, secrets, _ := toolchain.This().Secrets()
	if home != "" && below(realOf(home), real) {
		return refuse("holds the home of the user with all of its secrets,", home)
	}
	for _, s := range secrets {
		switch at := realOf(s); {
		case below(real, at):
			return refuse("lies in a folder of secrets,", s)
		case below(at, real):
			return refuse("holds secrets,", s)
		}
	}
	if at := toolchain.SecretsAt(real); at != "" {
		return refuse("lies in a folder of secrets,", at)
	}
	return nil
}
