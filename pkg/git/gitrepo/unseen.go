package gitrepo

import (
	"cmp"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// Unseen lists the files of a user's folder that its trees lack, as paths with slashes from that folder.
type Unseen struct {
	Ignored    []string // files and folders, dependencies first
	Submodules []string // that the user has files of
}

const lookUnseen = 10 * time.Second

// dependencies are folders and files that builds need and that git usually ignores.
var dependencies = []string{"node_modules", "bower_components", ".venv", "venv", "vendor", "Pods", "deps", ".env"}

// made are folders and files that git ignores and a build or an editor makes again.
var made = []string{
	team.ClusterDir, "agentteam-demo", "__pycache__", ".DS_Store", "Thumbs.db", ".idea", ".vscode", ".vs", "dist", "build", "out", "target", "bin", "obj",
	"tmp", "temp", "log", "logs", ".cache", ".next", ".nuxt", ".turbo", ".parcel-cache", ".gradle", ".tox", ".nox", ".eggs", "coverage", "htmlcov", ".coverage",
	".nyc_output", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints", "tags", ".direnv", "cmake-build-debug",
}

// madeEnds are endings of names of such files.
var madeEnds = []string{".log", ".pyc", ".pyo", ".o", ".a", ".so", ".obj", ".class", ".exe", ".dll", ".test", ".out", ".prof", ".tmp", ".swp", ".swo", ".bak", ".orig", "~", ".egg-info", ".tsbuildinfo"}

// Unseen returns the files that members in trees of the checkout do not see: ignored files, except those that builds and editors
// make again, and the files of submodules.
func (c Checkout) Unseen(ctx context.Context) (u Unseen, err error) {
	dir := filepath.Join(c.Root, filepath.FromSlash(c.Prefix))
	g := inside(dir, append(c.ignoring(), "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory", "-z", "--", ".")...)
	g.within = lookUnseen
	out, err := g.run(ctx)
	if err != nil {
		return u, err
	}
	for _, name := range fields(out) {
		name = strings.TrimSuffix(name, "/")
		base := path.Base(name)
		if name == "." || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return slices.Contains(made, part) }) ||
			slices.ContainsFunc(madeEnds, func(end string) bool { return strings.HasSuffix(base, end) }) || team.CheckLink(name) != nil {
			continue
		}
		u.Ignored = append(u.Ignored, name)
	}
	rank := func(name string) int {
		if i := slices.Index(dependencies, path.Base(name)); i >= 0 {
			return i
		}
		return len(dependencies)
	}
	slices.SortStableFunc(u.Ignored, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	u.Submodules, err = c.submodules(ctx)
	return u, err
}

// submodules returns the submodules below the user's folder that have files there.
func (c Checkout) submodules(ctx context.Context) (names []string, err error) {
	if !regular(filepath.Join(c.Root, ".gitmodules")) {
		return nil, nil
	}
	out, err := inside(c.Root, "config", "--file", ".gitmodules", "-z", "--get-regexp", `^submodule\..*\.path$`).run(ctx)
	if err != nil && exitCode(err) != 1 { // 1: it names none
		return nil, err
	}
	for _, entry := range fields(out) {
		_, name, _ := strings.Cut(entry, "\n")
		if files, err := os.ReadDir(filepath.Join(c.Root, name)); err != nil || len(files) == 0 || !filepath.IsLocal(name) {
			continue
		}
		below, ok := name, true
		if c.Prefix != "" {
			below, ok = strings.CutPrefix(name, c.Prefix+"/")
		}
		if ok {
			names = append(names, below)
		}
	}
	return names, nil
}
