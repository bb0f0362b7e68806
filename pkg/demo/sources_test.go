package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// text is a file in the making, and what is worth noting in it.
type text struct {
	rng              *rand.Rand
	path             string
	lines            []string
	functions, todos []place
}

func (t *text) add(lines string) { t.lines = append(t.lines, strings.Split(lines, "\n")...) }

// function adds a function of the given lines, in which BODY stands for a line
// that is repeated at random.
func (t *text) function(name, lines string) {
	before, after, ok := strings.Cut(lines, "BODY")
	if ok {
		indent := before[strings.LastIndex(before, "\n")+1:]
		lines = before + "x" + strings.Repeat("\n\n"+indent+"x", t.rng.IntN(9)) + after
	}
	start := len(t.lines) + 1
	t.add(lines)
	t.functions = append(t.functions, place{t.path, name, start, len(t.lines) + 1 - start})
	if strings.HasSuffix(t.path, ".py") {
		t.add("x = 1") // an indented comment after it would belong to it
	}
}

// marks are the words that are looked for. Written in parts, they are not found in
// the sources of this test.
var marks = []string{"TO" + "DO", "FIX" + "ME"}

func (t *text) todo(s source) {
	word, what := pick(t.rng, marks), pick(t.rng, texts)
	form := pick(t.rng, []string{"%s: %s", "%s(ann): %s", "%s %s", "%s(ann) %s", "%s：%s"})
	said := fmt.Sprintf(form, word, what)
	shown := said
	if len(shown) > 200 {
		shown = strings.ToValidUTF8(shown[:200], "") + "..."
	}
	t.add(fmt.Sprintf(pick(t.rng, s.comments), said))
	t.todos = append(t.todos, place{t.path, shown, len(t.lines), 0})
}

// source is how a language looks.
type source struct {
	language, ending string
	comments         []string        // with %s for a text
	plain            []string        // lines with nothing to find
	functions        []func(t *text) // none: not measured
	broken           string          // what does not parse, for the end of a file
}

func sourceOf(language string) source {
	for _, s := range sources {
		if s.language == language {
			return s
		}
	}
	panic("no source " + language)
}

// f returns what adds a function of these lines.
func f(name, lines string) func(*text) {
	return func(t *text) { t.function(name, lines) }
}

var nothing = []string{"", "x = 1", "context." + "TO" + "DO()", "my" + "TO" + "DO: x", "a " + "TO" + "DO list", `x = "in a string // ` + "TO" + `DO: no"`, "x = '" + "TO" + "DO: no'", "to" + "do: lower case", "TO" + "DOs: many"}

var slashes = []string{"// %s", "\t// %s", "x = 1 // %s", "/* %s */", " * %s", "//%s"}

var sources = []source{
	{"Go", ".go", slashes, append([]string{"package p", "var raw = `\nfunc no() {\n}\n`", "/*\nfunc no() {\n}\n*/"}, nothing...), []func(*text){
		f("run", "func run() {\n\tBODY\n}"),
		f("Server.Run", "func (s *Server) Run(a int, b struct{}) error {\n\tif x {\n\t\tBODY\n\t}\n}"),
		f("Map.Get", "func (m Map[K, V]) Get(\n\tk K,\n) (V, bool) {\n\tBODY\n}"),
		f("raw", "func raw() string {\n\tBODY\n\treturn `\n}\nfunc no() {\n}`\n}"),
		f("one", "func one() int { return 1 } // that is all"),
		f("名字", "func 名字() {\n\tBODY\n}"),
		func(t *text) { t.add("func assembly(x int) int\n") },
	}, "func broken() {\n\tx"},
	{"Python", ".py", []string{"# %s", "    # %s", "x = 1  # %s", `"""%s"""`}, nothing, []func(*text){
		f("run", "def run(a):\n    BODY"),
		f("later", "async def later(\n    a,\n):\n    \"\"\"Text\n\nat the margin\n\"\"\"\n    if a:\n        BODY"),
		func(t *text) {
			t.function("inner", "class A:\n    def inner(self):\n        BODY")
			t.functions[len(t.functions)-1].line++
			t.functions[len(t.functions)-1].size--
		},
		f("one", "def one(): return 1"),
	}, "def (:\n"},
	{"JavaScript", ".js", slashes, append([]string{"setTimeout(function () {\n  x\n});", "describe('x', () => {\n});"}, nothing...), []func(*text){
		f("run", "export default async function run(a) {\n  BODY\n}"),
		f("arrow", "const arrow = (a) => {\n  BODY\n};"),
		f("opts", "function opts({\n  a,\n}) {\n  BODY\n}"),
	}, "function broken( {\n  x"},
	{"TypeScript", ".tsx", slashes, nothing, []func(*text){
		f("run", "export function run<T>(a: T): T {\n  BODY\n}"),
	}, ""},
	{"Rust", ".rs", slashes, nothing, []func(*text){
		f("run", "pub(crate) async fn run<'a>(x: &'a str) -> bool {\n    BODY\n}"),
		f("long", "fn long(\n    a: u8,\n) -> u8\nwhere\n    u8: Copy,\n{\n    BODY\n}"),
		func(t *text) { t.add("fn declared(&self);") },
	}, ""},
	{"C", ".c", slashes, append([]string{"int declared(int x);", "#define X \\"}, nothing...), []func(*text){
		f("main", "int main(int argc, char **argv)\n{\n\tBODY\n}"),
		f("find", "static struct node *find(int x) {\n\tif (x) {\n\t\tBODY\n\t}\n}"),
	}, ""},
	{"Java", ".java", slashes, append([]string{"class A {", "  abstract void no();"}, nothing...), []func(*text){
		f("run", "  public static List<String> run(int a) throws E {\n    BODY\n  }"),
	}, ""},
	{"Shell", ".sh", []string{"# %s", "\t# %s"}, nothing, []func(*text){
		f("run", "run() {\n\tBODY\n}"),
	}, ""},
	{"Markdown", ".md", []string{"- %s", "- [ ] %s", "<!-- %s -->", "%s", "> %s"}, nothing, nil, ""},
	{"SQL", ".sql", []string{"-- %s", "x = 1 -- %s"}, nothing, nil, ""},
	{"YAML", ".yml", []string{"# %s"}, nothing, nil, ""},
	{"Other text", ".conf", []string{"# %s", "; %s"}, nothing, nil, ""},
}
