package workspace

import (
	"io"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// ignored is what the .gitignore files say of a tree that is walked in the order of names:
// those of the folders that lead to where the walk is.
type ignored struct {
	w        *Workspace
	patterns []gitignore.Pattern
	levels   []level
}

// level is a folder with a .gitignore, and how many patterns there were above it.
type level struct {
	dir    string
	before int
}

// maxIgnore is how much of a .gitignore is read, in bytes.
const maxIgnore = 256 << 10

// ignoredFrom returns what holds below start. If start itself is ignored, somebody asks for
// it by name, and what the folders above say does not count.
func (w *Workspace) ignoredFrom(start string) *ignored {
	g := &ignored{w: w}
	if start == "." {
		return g
	}
	g.enter(".")
	parts := strings.Split(start, "/")
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		if g.match(name, true) {
			return &ignored{w: w}
		}
		if i < len(parts)-1 {
			g.enter(name)
		}
	}
	return g
}

// enter takes in the .gitignore of a folder, if it has one that can be read.
func (g *ignored) enter(dir string) {
	g.leave(dir)
	f, _, err := g.w.openRegular(path.Join(dir, ".gitignore"))
	if err != nil {
		return
	}
	defer f.Close() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return
	}
	g.levels = append(g.levels, level{dir, len(g.patterns)})
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			g.patterns = append(g.patterns, gitignore.ParsePattern(line, components(dir)))
		}
	}
}

// leave forgets the folders that do not lead to name.
func (g *ignored) leave(name string) {
	for n := len(g.levels); n > 0; n = len(g.levels) {
		l := g.levels[n-1]
		if l.dir == "." || strings.HasPrefix(name, l.dir+"/") {
			return
		}
		g.levels, g.patterns = g.levels[:n-1], g.patterns[:l.before]
	}
}

// match reports whether name is ignored.
func (g *ignored) match(name string, dir bool) bool {
	g.leave(name)
	return len(g.patterns) > 0 && gitignore.NewMatcher(g.patterns).Match(components(name), dir)
}

func components(name string) []string {
	if name == "." {
		return nil
	}
	return strings.Split(name, "/")
}
