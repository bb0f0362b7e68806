package workspace

import (
	"io"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignored applies the .gitignore files of a tree that is walked in the order of names: those of the folders above the
// present entry.
type ignored struct {
	w        *Workspace
	patterns []ignorePattern
	levels   []level
}

// level is a folder with a .gitignore, and how many patterns there were above it.
type level struct {
	dir    string
	before int
}

// maxIgnore bounds the part of a .gitignore that is read, in bytes.
const maxIgnore = 256 << 10

// ignoredFrom returns the patterns that hold below start. If start itself is ignored, the caller asks for it by name,
// and patterns of the folders above do not count.
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

// enter adds the .gitignore of a folder, if it is readable.
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
		if p := parseIgnore(strings.TrimRight(line, "\r\n"), dir); p.glob != "" {
			g.patterns = append(g.patterns, p)
		}
	}
}

// leave drops the folders that do not contain name.
func (g *ignored) leave(name string) {
	for n := len(g.levels); n > 0; n = len(g.levels) {
		l := g.levels[n-1]
		if l.dir == "." || strings.HasPrefix(name, l.dir+"/") {
			return
		}
		g.levels, g.patterns = g.levels[:n-1], g.patterns[:l.before]
	}
}

// match reports whether name is ignored: the last matching pattern decides.
func (g *ignored) match(name string, dir bool) bool {
	g.leave(name)
	for i := len(g.patterns) - 1; i >= 0; i-- {
		if p := g.patterns[i]; p.fits(name, dir) {
			return !p.keeps
		}
	}
	return false
}

// ignorePattern is a line of a .gitignore, see gitignore(5).
type ignorePattern struct {
	dir    string // of the .gitignore
	glob   string // "": the line has none
	keeps  bool   // what fits is not ignored
	folder bool   // only folders fit
	named  bool   // the name fits, in whatever folder; else the path below dir
}

func parseIgnore(line, dir string) ignorePattern {
	p := ignorePattern{dir: dir}
	if strings.HasPrefix(line, "#") {
		return p
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	line, p.keeps = strings.CutPrefix(line, "!")
	line, p.folder = strings.CutSuffix(line, "/")
	p.named = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if strings.HasSuffix(line, "/**") { // all in it, and not the folder itself
		line += "/*"
	}
	p.glob = plainBraces.Replace(line)
	return p
}

// plainBraces escapes braces: git has no {a,b}.
var plainBraces = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, "{", `\{`, "}", `\}`)

func (p ignorePattern) fits(name string, dir bool) bool {
	if p.folder && !dir {
		return false
	}
	if p.dir != "." {
		name = strings.TrimPrefix(name, p.dir+"/")
	}
	if p.named {
		name = path.Base(name)
	}
	fits, err := doublestar.Match(p.glob, name)
	return fits && err == nil // what is no pattern fits nothing
}
