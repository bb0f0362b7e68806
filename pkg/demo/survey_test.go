package demo

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/model/rehearsal/stricttest"
)

// endpoint is what a team is played at.
type endpoint struct {
	strict string // the kind as which it is strict, which the team is told; "": any
	model  string // default: rehearsal
}

// newCast is a team that has not begun, at a rehearsal endpoint of its own.
func newCast(t *testing.T, rng *rand.Rand, e endpoint) *cast {
	t.Helper()
	src, err := os.ReadFile("script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	script, err := rehearsal.Parse("script.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	handler := rehearsal.NewHandler(script, nil)
	if e.strict != "" {
		handler = stricttest.NewHandler(e.strict, script, nil)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	client, err := model.New(model.Options{BaseURL: srv.URL + "/v1", Model: cmp.Or(e.model, "rehearsal"), Profile: e.strict})
	if err != nil {
		t.Fatal(err)
	}
	return &cast{t: t, rng: rng, model: client, workspace: t.TempDir()}
}

// survey has the team survey dir and returns SURVEY.md without its last section,
// which says what counts as what.
func survey(t *testing.T, c *cast, dir string) string {
	t.Helper()
	c.play("Survey the source tree at " + dir + "\nWrite SURVEY.md.")
	got, err := os.ReadFile(filepath.Join(c.workspace, "SURVEY.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, _, ok := strings.Cut(string(got), "\n## How it was surveyed\n")
	if !ok {
		t.Errorf("SURVEY.md does not say how it was surveyed")
	}
	return text
}

// The whole team plays the script on a tree that nobody has seen before, and what
// SURVEY.md says is what was put there: also if calls are interrupted and tasks
// change hands, and whoever gets which.
func TestSurvey(t *testing.T) {
	for seed := range 8 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(seed), 0))
			dir := filepath.Join(t.TempDir(), `it's a "树" 🌳`)
			truth := newTree(t, rng, dir)
			c := newCast(t, rng, endpoint{})
			c.cuts, c.losses, c.silences = seed%3, seed%4, 2-seed%3
			same(t, survey(t, c, dir), truth.report())
			if !strings.Contains(c.summary, fmt.Sprintf("Open %ss: %d.", marks[0], len(truth.todos))) {
				t.Errorf("the leader's summary: %s", c.summary)
			}
			if c.left != 1 {
				t.Errorf("%d teammates left before the end, want 1", c.left)
			}
			for _, task := range c.tasks {
				if task.attempts > 0 && seed%3 == 0 {
					t.Errorf("%s was given back though no call was cut off", task.Title)
				}
			}
			if c.answered < 2 || c.broadcasts < 1 {
				t.Errorf("%d questions answered, %d broadcasts, want at least 2 and 1", c.answered, c.broadcasts)
			}
		})
	}
}

// The same under endpoints that are strict in ways of their own: what is sent fits
// each, and the script goes on although ids, roles and contents are others there.
func TestSurveyUnderStrictEndpoints(t *testing.T) {
	for _, e := range []endpoint{
		{"mistral", ""}, {"anthropic-compat", ""}, {"groq", ""}, {"openai", ""}, {"deepseek", ""}, {"gemini", ""}, {"llamacpp", ""},
		{"openai", "gpt-5.6"}, // over Responses
	} {
		t.Run(e.strict+" "+e.model, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, 0))
			dir := filepath.Join(t.TempDir(), "tree")
			truth := newTree(t, rng, dir)
			c := newCast(t, rng, e)
			c.cuts, c.losses, c.silences = 1, 2, 1
			same(t, survey(t, c, dir), truth.report())
		})
	}
}

// A tree without files, and then a second goal to the same team, whose first
// teammates are gone.
func TestSurveyAgain(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	c := newCast(t, rng, endpoint{})
	empty := t.TempDir()
	same(t, survey(t, c, empty), (&tree{dir: empty}).report())

	dir := filepath.Join(t.TempDir(), "second")
	truth := newTree(t, rng, dir)
	same(t, survey(t, c, dir), truth.report())
	if len(c.tasks) != 8 {
		t.Errorf("%d tasks, want 4 for each goal", len(c.tasks))
	}
}

// A teammate that lost a task in the middle of it, and has another now, does not go
// on with the old one.
func TestLostTask(t *testing.T) {
	c := newCast(t, rand.New(rand.NewPCG(1, 3)), endpoint{})
	p := c.join("coder")
	for _, title := range []string{"Count files and lines", "Find TO" + "DOs and packages without tests"} {
		c.run(p, "create_tasks", args{Tasks: []newTask{{Title: title, Description: "Source tree: /src\nSurvey it."}}})
		c.post(p, c.describe(c.tasks[len(c.tasks)-1]))
		c.turn(p) // prepares
		c.turn(p) // writes the scripts
	}
	said := encode(p.conv[len(p.conv)-2])
	if !strings.Contains(said, "find.sh") {
		t.Errorf("with the second task, it says %s", said)
	}
}

// A tree that is not there: the surveys fail, and the leader does not pretend.
func TestSurveyOfNothing(t *testing.T) {
	t.Parallel()
	c := newCast(t, rand.New(rand.NewPCG(1, 2)), endpoint{})
	c.play("Survey the source tree at " + filepath.Join(t.TempDir(), "none"))
	if c.summary != "" {
		t.Errorf("the leader finishes with %q", c.summary)
	}
	for _, task := range c.tasks[:3] {
		if task.Status != "failed" {
			t.Errorf("%s is %s, want failed", task.Title, task.Status)
		}
	}
}

func same(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("SURVEY.md:%d is\n%s\nwant\n%s", i+1, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("SURVEY.md has %d lines, want %d", len(g), len(w))
	}
}

// report is the SURVEY.md that tells the truth, up to its last section.
func (w *tree) report() string {
	var b strings.Builder
	bySize := func(of []place) []place {
		slices.SortFunc(of, func(a, b place) int {
			if a.size != b.size {
				return b.size - a.size
			}
			return before(a, b)
		})
		return of
	}
	sizes, functions := bySize(w.sizes), bySize(w.functions)
	slices.SortFunc(w.todos, before)
	var bare []string
	for _, language := range []string{"Go", "Python"} {
		var dirs []string
		for name, tested := range w.packages {
			if dir, ok := strings.CutSuffix(name, " ("+language+")"); ok && !tested {
				dirs = append(dirs, line(dir))
			}
		}
		slices.Sort(dirs)
		for _, dir := range dirs {
			bare = append(bare, span(dir)+" ("+language+")")
		}
	}
	files, lines := w.binary, 0
	for language := range w.files {
		files += w.files[language]
		lines += w.lines[language]
	}

	fmt.Fprintf(&b, "# Survey of %s\n\nSource tree: %s\n\n", span(filepath.Base(w.dir)), span(w.dir))
	fmt.Fprintf(&b, "- Files: %d", files)
	if w.binary > 0 {
		fmt.Fprintf(&b, " (%d binary)", w.binary)
	}
	fmt.Fprintf(&b, "\n- Lines: %d\n", lines)
	if len(w.unreadable) > 0 {
		fmt.Fprintf(&b, "- Not readable: %d\n", len(w.unreadable))
	}
	b.WriteString("- Largest file: ")
	if len(sizes) > 0 {
		fmt.Fprintf(&b, "%s, %d lines", span(line(sizes[0].path)), sizes[0].size)
	} else {
		b.WriteString("none")
	}
	b.WriteString("\n- Largest function: ")
	if len(functions) > 0 {
		fmt.Fprintf(&b, "%s in %s, %d lines\n", span(functions[0].name), span(line(functions[0].path)), functions[0].size)
	} else {
		b.WriteString("none\n")
	}
	fmt.Fprintf(&b, "- Open %ss: %d\n- Packages without tests: %d of %d\n", marks[0], len(w.todos), len(bare), len(w.packages))

	b.WriteString("\n## Files and lines\n\n| Language | Files | Lines |\n| --- | ---: | ---: |\n")
	for _, l := range slices.SortedFunc(maps.Keys(w.files), func(a, b string) int {
		if w.lines[a] != w.lines[b] {
			return w.lines[b] - w.lines[a]
		}
		return strings.Compare(a, b)
	}) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", l, w.files[l], w.lines[l])
	}
	if w.binary > 0 {
		fmt.Fprintf(&b, "| Binary | %d | - |\n", w.binary)
	}
	fmt.Fprintf(&b, "| **All** | %d | %d |\n", files, lines)
	if len(w.unreadable) > 0 {
		b.WriteString("\nNot readable, so not counted:\n\n")
		list(&b, w.unreadable, span)
	}

	b.WriteString("\n## Largest files\n\n| Lines | File |\n| ---: | --- |\n")
	for _, p := range sizes[:min(10, len(sizes))] {
		fmt.Fprintf(&b, "| %d | %s |\n", p.size, cell(line(p.path)))
	}
	b.WriteString("\n## Largest functions\n\n| Lines | Function | Where |\n| ---: | --- | --- |\n")
	for _, p := range functions[:min(10, len(functions))] {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", p.size, cell(p.name), cell(fmt.Sprintf("%s:%d", line(p.path), p.line)))
	}
	fmt.Fprintf(&b, "\n## Open %ss\n\n", marks[0])
	list(&b, w.todos, func(p place) string { return span(fmt.Sprintf("%s:%d", line(p.path), p.line)) + " " + span(p.name) })
	b.WriteString("\n## Packages without tests\n\n")
	list(&b, bare, func(s string) string { return s })
	return b.String()
}

func before(a, b place) int {
	if c := strings.Compare(line(a.path), line(b.path)); c != 0 {
		return c
	}
	return a.line - b.line
}

func list[T any](b *strings.Builder, items []T, show func(T) string) {
	if len(items) == 0 {
		b.WriteString("None.\n")
	}
	for _, item := range items {
		b.WriteString("- " + show(item) + "\n")
	}
}

// line is a name as one line.
func line(s string) string { return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(s) }

// span is s as a Markdown code span.
func span(s string) string {
	if strings.Contains(s, "`") { // the words and texts have no two in a row
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

func cell(s string) string { return strings.ReplaceAll(span(s), "|", `\|`) }
