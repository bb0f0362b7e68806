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

const findUnseen = 10 * time.Second

// dependencies are folders and files that builds need and that git usually ignores.
var dependencies = append(slices.Clone(installed), ".env")

// installed are folders of packages.
var installed = []string{"node_modules", "bower_components", ".venv", "venv", "vendor", "Pods", "deps"}

// caches are folders and files that git ignores, and a tool or an editor makes again; cacheEnds are endings of such names.
var (
	caches = []string{
		team.ClusterDir, "__pycache__", ".DS_Store", "Thumbs.db", ".idea", ".vscode", ".vs", "target", "obj", ".cache", ".next", ".nuxt", ".turbo", ".parcel-cache",
		".gradle", ".tox", ".nox", ".eggs", ".coverage", ".nyc_output", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints", ".direnv", "cmake-build-debug",
	}
	cacheEnds = []string{".pyc", ".pyo", ".o", ".obj", ".class", ".test", ".swp", ".swo", "~", ".egg-info", ".tsbuildinfo"}
)

// made are other such folders and files, which may also be the result of a task.
var (
	made     = []string{"agentteam-demo", "dist", "build", "out", "bin", "tmp", "temp", "log", "logs", "coverage", "htmlcov", "tags"}
	madeEnds = []string{".log", ".a", ".so", ".exe", ".dll", ".out", ".prof", ".tmp", ".bak", ".orig"}
)

// among reports whether one of the names is in a path, or it has one of the endings.
func among(name string, names, ends []string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return slices.Contains(names, part) }) ||
		slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(strings.TrimSuffix(name, "/"), end) })
}

// cached reports whether an ignored file is made again, or is of a package that was installed.
func cached(name string) bool {
	return among(name, caches, cacheEnds) || among(name, installed, nil)
}

// Unseen returns the files that members in trees of the checkout do not see: ignored files, except those that builds and editors
// make again, and the files of submodules.
func (c Checkout) Unseen(ctx context.Context) (u Unseen, err error) {
	dir := filepath.Join(c.Root, filepath.FromSlash(c.Prefix))
	g := inside(dir, append(c.ignoring(), "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory", "-z", "--", ".")...)
	g.within = findUnseen
	out, err := g.run(ctx)
	if err != nil {
		return u, err
	}
	for _, name := range fields(out) {
		name = strings.TrimSuffix(name, "/")
		if name == "." || among(name, caches, cacheEnds) || among(name, made, madeEnds) || team.CheckLink(name) != nil {
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
