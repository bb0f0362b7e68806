package hands

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/command"
	"agentteam/pkg/needs"
	"agentteam/pkg/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// clusterDir is where a cluster keeps its data and its tokens.
const clusterDir = ".agentteam"

// runner returns what runs the commands of w in dir, an absolute path, and what ends it.
func (s *Source) runner(ctx context.Context, w workspace.Work, dir string) (run command.Runner, release func(), err error) {
	release = func() {}
	if w.Member.AgentID == "" {
		return refusal{team.Errorf(team.InvalidState, "%s was opened for nobody, so that no command is run there", dir)}, release, nil
	}
	h := w.Team.HandsOf(w.Member.Role)
	found, err := s.Sandbox(ctx, w.Team, w.Member.Role)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "no command can be run", "team", w.Team.ID, "agent", w.Member.AgentID, "err", err)
		return refusal{err}, release, nil
	}
	if found.Level() == team.Unconfined {
		granted, err := needs.Credentials(needs.This(), needs.Member{}, h.Credentials)
		if err != nil {
			return nil, nil, err
		}
		run, err = found.Runner(sandbox.Box{Env: granted.Env})
		return run, release, err
	}
	b, err := s.box(w, h, dir)
	if err != nil {
		return nil, nil, err
	}
	if len(h.Network) > 0 {
		if found.Level() != team.Bubblewrap {
			return nil, nil, team.Errorf(team.Unavailable, "%s wants the network %s, and commands have none in the sandbox %q", w.Member.AgentID, h.Network, found.Level()).
				WithHint("install bubblewrap, or set `network: none`")
		}
		if b.Proxy, release, err = s.reach(h.Network); err != nil {
			return nil, nil, err
		}
	}
	unreach, free := release, s.occupy(b.Home)
	release = func() { unreach(); free() }
	run, err = found.Runner(b)
	if err != nil {
		release()
		return nil, nil, err
	}
	return run, release, nil
}

// box is what commands of w see and may use, without a network.
func (s *Source) box(w workspace.Work, h team.Hands, dir string) (sandbox.Box, error) {
	home, err := s.home(w)
	if err != nil {
		return sandbox.Box{}, err
	}
	if err := s.apart(dir, h); err != nil {
		return sandbox.Box{}, err
	}
	b := sandbox.Box{Dir: dir, Home: home}
	if w.Tree == nil {
		b.Hidden = s.hidden(dir)
	} else {
		b.Dir, b.Shown = w.Tree.Root, w.Tree.Shown
	}
	if b.ReadOnly, err = present("paths.read", h.Paths.Read); err != nil {
		return b, err
	}
	if b.Write, err = present("paths.write", h.Paths.Write); err != nil {
		return b, err
	}
	m := needs.Member{Home: home, Writable: append([]string{b.Dir}, b.Write...), Network: len(h.Network) > 0}
	granted := needs.Tools(needs.This(), m)
	credentials, err := needs.Credentials(needs.This(), m, h.Credentials)
	if err != nil {
		return b, err
	}
	granted = granted.And(credentials)
	for _, line := range granted.Omitted {
		s.o.Logger.Debug("not given to commands", "agent", w.Member.AgentID, "what", line)
	}
	if err := granted.Furnish(); err != nil {
		return b, team.Errorf(team.InvalidState, "the home of %s: %w", w.Member.AgentID, err).WithHint("make %s writable for the user of this process", home)
	}
	b.ReadOnly = append(b.ReadOnly, granted.ReadOnly...)
	if w.Tree == nil {
		b.ReadOnly = append(b.ReadOnly, s.kept(dir)...)
	} else {
		b.ReadOnly = append(b.ReadOnly, w.Tree.ReadOnly...) // the rest is its member's
	}
	b.Env = append(granted.Env, "GIT_DISCOVERY_ACROSS_FILESYSTEM=1") // a workspace below a repository's root is a mount
	return b, nil
}

// Check reports whether this machine can give members what h names, in a workspace dir, an absolute
// path. Errors: InvalidArgument, with what is not there. It makes nothing.
func (s *Source) Check(h team.Hands, dir string) error {
	if h.Sandbox != team.Unconfined {
		if err := s.apart(dir, h); err != nil {
			return err
		}
		for setting, paths := range map[string][]string{"paths.read": h.Paths.Read, "paths.write": h.Paths.Write} {
			if _, err := present(setting, paths); err != nil {
				return err
			}
		}
	}
	_, err := needs.Credentials(needs.This(), needs.Member{}, h.Credentials)
	return err
}

// apart refuses a workspace, or a path to write, that holds what no command may change: then the
// sandbox would keep nothing apart.
func (s *Source) apart(dir string, h team.Hands) error {
	var own []string
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		own = append(own, home)
	}
	if config, err := os.UserConfigDir(); err == nil {
		own = append(own, config)
	}
	if homes, err := s.homes(); err == nil {
		own = append(own, homes)
	}
	for _, path := range append([]string{dir}, h.Paths.Write...) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		for _, o := range own {
			if real, err := filepath.EvalSymlinks(o); err == nil {
				o = real
			}
			if below(o, path) {
				return team.Errorf(team.InvalidArgument, "commands would write all of %s, and with it %s", path, o).WithHint("work in a folder of the project alone")
			}
		}
	}
	return nil
}

// hidden is what of a workspace is a cluster's: in the workspace, where this process was started,
// and where the data is.
func (s *Source) hidden(dir string) []string {
	paths := []string{filepath.Join(dir, clusterDir)}
	at := []string{s.o.Data}
	if here, err := os.Getwd(); err == nil {
		at = append(at, filepath.Join(here, clusterDir))
	}
	for _, path := range at {
		if _, err := os.Lstat(path); err == nil && path != dir && below(path, dir) && !slices.ContainsFunc(paths, func(p string) bool { return below(path, p) }) {
			paths = append(paths, path)
		}
	}
	return paths
}

// kept is what of a workspace, or around it, no command may change: what programs outside of
// a sandbox execute or obey.
func (s *Source) kept(dir string) (paths []string) {
	paths = gitDirs(dir)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	keep := func(path string) {
		for _, from := range []string{dir, real} {
			if below(path, from) && path != from {
				paths = append(paths, filepath.Join(dir, path[len(from):]))
				return
			}
		}
	}
	keep(s.o.Settings)
	self, err := os.Executable()
	if err != nil {
		return paths
	}
	if bin := filepath.Dir(self); bin != dir && bin != real {
		keep(bin)
		return paths
	}
	for _, program := range []string{filepath.Base(self), "leader", "teammate", "teamctl"} {
		keep(filepath.Join(filepath.Dir(self), program))
	}
	return paths
}

// gitDirs returns where git keeps the repository that dir lies in; none if there is no repository.
func gitDirs(dir string) []string {
	for at := dir; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		switch info, err := os.Lstat(git); {
		case err == nil && info.IsDir():
			return []string{git}
		case err == nil && info.Mode().IsRegular():
			return append([]string{git}, linkedFrom(git)...)
		case err == nil, at == filepath.Dir(at):
			return nil
		}
	}
}

// linkedFrom returns the repository of a linked worktree, whose .git is a file, if that has made
// the worktree: else whoever can write the file could name any folder.
func linkedFrom(file string) []string {
	read := func(name string) string {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
			return ""
		}
		data, _ := os.ReadFile(name) // "" is no path
		return strings.TrimSpace(string(data))
	}
	admin, ok := strings.CutPrefix(read(file), "gitdir: ")
	if ok && !filepath.IsAbs(admin) {
		admin = filepath.Join(filepath.Dir(file), admin)
	}
	repository := filepath.Dir(filepath.Dir(admin))
	if !ok || filepath.Base(filepath.Dir(admin)) != "worktrees" || filepath.Base(repository) != ".git" || read(filepath.Join(admin, "gitdir")) != file {
		return nil
	}
	return []string{repository}
}

// present returns paths with the user's home in place of "~". Error: InvalidArgument for one
// that is not there.
func present(setting string, paths []string) (all []string, err error) {
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, team.Errorf(team.InvalidArgument, "%s names %s: %w", setting, p, err)
			}
			p = filepath.Join(home, rest)
		}
		p = filepath.Clean(p)
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
