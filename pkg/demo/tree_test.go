package demo

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree is a generated source tree and the truth about it.
type tree struct {
	t   *testing.T
	rng *rand.Rand
	dir string

	files, lines map[string]int // by language
	binary       int
	unreadable   []string
	sizes        []place // each text file with its lines
	functions    []place
	todos        []place
	packages     map[string]bool // "path (Go)": does it have tests?
}

// place is something with a size in lines or a text, at a line of a file.
type place struct {
	path, name string
	line, size int
}

// Names and texts in several scripts, and with what Markdown, shells and awk read
// as their own.
var (
	words = []string{"main", "server", "it's", "空 格", "emoji-🚀", "pi|pe", "back`tick", "a=1", "-x", `say "hi"`, "naïve", "$HOME", "new\nline", "ta\tb", "日本語", "..more", "[x]"}
	texts = []string{"tidy up", "修复这个问题", "use a|b here", "call `f` first", "🚀 faster, please", "who < why & <b>", "don't *forget*", `\d+ is no \w`, strings.Repeat("长", 80)}
)

// newTree makes a tree of some size in dir.
func newTree(t *testing.T, rng *rand.Rand, dir string) *tree {
	w := &tree{t: t, rng: rng, dir: dir, files: map[string]int{}, lines: map[string]int{}, packages: map[string]bool{}}
	folders := []string{"."}
	for i := range 4 + rng.IntN(8) {
		parent := folders[rng.IntN(len(folders))]
		folders = append(folders, filepath.Join(parent, fmt.Sprintf("%s%d", pick(rng, words), i)))
	}
	for _, folder := range folders {
		for i := range rng.IntN(8) {
			s := pick(rng, sources[2:]) // Go and Python come in packages
			w.source(s, filepath.Join(folder, fmt.Sprintf("%s%d%s", pick(rng, words), i, s.ending)))
		}
		w.goPackage(folder)
		w.pythonPackage(folder)
	}
	w.others()
	return w
}

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// source writes a file of random pieces and notes what is in it.
func (w *tree) source(s source, path string) {
	text := &text{rng: w.rng, path: path}
	for range w.rng.IntN(12) {
		switch n := w.rng.IntN(10); {
		case n < 5:
			text.add(pick(w.rng, s.plain))
		case n < 7:
			text.todo(s)
		case len(s.functions) > 0:
			pick(w.rng, s.functions)(text)
		}
	}
	if s.broken != "" && w.rng.IntN(4) == 0 {
		text.add(s.broken)
	}
	w.text(s.language, text)
}

// text writes a text file, with or without a last line break.
func (w *tree) text(language string, from *text) {
	content := strings.Join(from.lines, "\n")
	if len(from.lines) > 0 && (w.rng.IntN(3) > 0 || from.lines[len(from.lines)-1] == "") {
		content += "\n"
	}
	w.write(from.path, content)
	w.files[language]++
	w.lines[language] += len(from.lines)
	w.sizes = append(w.sizes, place{path: from.path, size: len(from.lines)})
	w.functions = append(w.functions, from.functions...)
	w.todos = append(w.todos, from.todos...)
}

func (w *tree) write(path, content string) {
	w.t.Helper()
	full := filepath.Join(w.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// goPackage makes folder a Go package, perhaps with tests.
func (w *tree) goPackage(folder string) {
	if w.rng.IntN(2) == 0 {
		return
	}
	tested := w.rng.IntN(2) == 0
	w.source(sourceOf("Go"), filepath.Join(folder, "p.go"))
	if tested {
		w.source(sourceOf("Go"), filepath.Join(folder, "p_test.go"))
	}
	if !strings.Contains("/"+folder, "/.") || folder == "." { // the go tool ignores those, and so does the survey
		w.packages[folder+" (Go)"] = tested
	}
	if w.rng.IntN(3) == 0 { // and these
		w.source(sourceOf("Go"), filepath.Join(folder, "testdata", "deep", "x.go"))
		w.source(sourceOf("Go"), filepath.Join(folder, "_gen", "x.go"))
	}
}

// pythonPackage does the same for Python, where the tests may have a folder.
func (w *tree) pythonPackage(folder string) {
	pkg := filepath.Join(folder, "py")
	tests := []string{"", "test_a.py", "a_test.py", "tests/test_b.py", "test/test_c.py", "../tests/test_d.py"}[w.rng.IntN(6)]
	w.source(sourceOf("Python"), filepath.Join(pkg, "a.py"))
	if tests != "" {
		w.source(sourceOf("Python"), filepath.Join(pkg, tests))
	}
	w.packages[pkg+" (Python)"] = tests != ""
}

// others adds what must not be counted, or not as lines.
// hasPackage notes that there is a package of this name, and leaves what is known
// of its tests.
func (w *tree) hasPackage(name string) {
	if _, ok := w.packages[name]; !ok {
		w.packages[name] = false
	}
}

func (w *tree) others() {
	for i := range w.rng.IntN(4) {
		w.write(fmt.Sprintf("data%d.go", i), "package p // TODO: no\nfunc f() {\n}\n"+strings.Repeat("x\n", w.rng.IntN(99))+"\x00")
		w.binary++
		w.hasPackage(". (Go)") // a Go file by its name
	}
	for _, left := range []string{".git", "vendor/a", "a/node_modules", "third_party", "agentteam-demo", "b/.agentteam/nats"} {
		w.write(left+"/x.go", "package x\n// TODO: not ours\nfunc f() {\n}\n")
	}
	for link, to := range map[string]string{"link.go": "p.go", "loop": ".", "gone.go": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(w.dir, link)); err != nil {
			w.t.Fatal(err)
		}
	}
	// Whoever opens a pipe that nobody writes to waits forever.
	if err := syscall.Mkfifo(filepath.Join(w.dir, "pipe.go"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.text("Other text", &text{path: "empty"})
	w.text("Makefile", &text{path: "Makefile", lines: []string{"all:", "\ttrue"}})
	w.text("Dockerfile", &text{path: "Dockerfile.dev", lines: []string{"FROM scratch"}})
	w.text("Other text", &text{path: "latin1.txt", lines: []string{"caf\xe9 # TODO: caf\xe9"}, todos: []place{{"latin1.txt", "TODO: caf?", 1, 0}}})

	w.write("secret.go", "package secret\n")
	if err := os.Chmod(filepath.Join(w.dir, "secret.go"), 0); err != nil {
		w.t.Fatal(err)
	}
	if f, err := os.Open(filepath.Join(w.dir, "secret.go")); err != nil {
		w.unreadable = append(w.unreadable, "secret.go")
	} else { // root reads everything
		f.Close()
		w.files["Go"]++
		w.lines["Go"]++
		w.sizes = append(w.sizes, place{path: "secret.go", size: 1})
	}
	w.hasPackage(". (Go)")
}
