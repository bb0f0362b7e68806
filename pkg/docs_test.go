package pkg

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// maxWords is how long a paragraph of the docs may be.
const maxWords = 80

// page is a file of the docs.
type page struct {
	name  string   // path from the root, with slashes
	lines []string // without those of code, which are empty here
}

// pages returns all Markdown of the repository that people read to find their way.
func pages(t *testing.T) (all []page) {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md"}
	err := filepath.WalkDir("../docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(name), "../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page{name, withoutCode(string(data))})
	}
	return all
}

// withoutCode returns the lines of a page, empty where code stands: between fences, or
// set in by four spaces after an empty line.
func withoutCode(text string) []string {
	lines := strings.Split(text, "\n")
	fenced, before := false, ""
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		indented := strings.HasPrefix(line, "    ") && before == ""
		if fence || fenced || indented {
			lines[i] = ""
		}
		fenced = fenced != fence
		before = strings.TrimSpace(lines[i])
	}
	return lines
}

// paragraph is a paragraph, or an item of a list, and the line it begins in.
type paragraph struct {
	line int
	text string
}

func (p page) paragraphs() (all []paragraph) {
	open := false
	for i, line := range p.lines {
		text := strings.TrimSpace(line)
		switch {
		case text == "", strings.HasPrefix(text, "|"), strings.HasPrefix(text, "#"):
			open = false
		case !open, item.MatchString(text):
			all, open = append(all, paragraph{i + 1, text}), true
		default:
			all[len(all)-1].text += " " + text
		}
	}
	return all
}

var item = regexp.MustCompile(`^([-*]|\d+\.) `)

func TestParagraphsAreShort(t *testing.T) {
	for _, p := range pages(t) {
		for _, para := range p.paragraphs() {
			if n := len(strings.Fields(para.text)); n > maxWords {
				t.Errorf("%s:%d: %d words, at most %d", p.name, para.line, n, maxWords)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
)

// anchors returns those of a page's headings, as GitHub makes them.
func anchors(p page) map[string]bool {
	all := map[string]bool{}
	for _, line := range p.lines {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		again := slug
		for n := 1; all[again]; n++ {
			again = fmt.Sprintf("%s-%d", slug, n)
		}
		all[again] = true
	}
	return all
}

func TestLinksResolve(t *testing.T) {
	all := pages(t)
	known := map[string]map[string]bool{}
	for _, p := range all {
		known[p.name] = anchors(p)
	}
	for _, p := range all {
		for i, line := range p.lines {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				file, anchor, _ := strings.Cut(m[1], "#")
				target := p.name
				if file != "" {
					target = path.Join(path.Dir(p.name), file)
				}
				if _, err := os.Stat(filepath.Join("..", target)); err != nil {
					t.Errorf("%s:%d: there is no %s", p.name, i+1, target)
				} else if anchor != "" && !known[target][anchor] {
					t.Errorf("%s:%d: %s has no heading #%s", p.name, i+1, target, anchor)
				}
			}
		}
	}
}

var (
	span = regexp.MustCompile("`([^`]+)`")
	// inTree is the path of a file or folder of the repository.
	inTree = regexp.MustCompile(`^(pkg|cmd|e2e|mutants|bench|deploy|docs)(/[\w.-]+)+$`)
	// named is a Go file and what is declared there: `file`: `Name`, `Type.Name`.
	named = regexp.MustCompile("`([\\w./-]+\\.go)`: (`[\\w.]+`(?:(?:, | and )`[\\w.]+`)*)")
	// glossary is a row of names and the file that declares them.
	glossary = regexp.MustCompile("^\\| (`[\\w.]+`(?:, `[\\w.]+`)*) \\| `([\\w./-]+\\.go)` \\|")
)

// What the pages say of the tree is there: files, and what they declare.
func TestDocsNameWhatIsThere(t *testing.T) {
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				if !inTree.MatchString(m[1]) {
					continue
				}
				if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
					t.Errorf("%s:%d: there is no %s", p.name, i+1, m[1])
				}
			}
			pairs := named.FindAllStringSubmatch(line, -1)
			if m := glossary.FindStringSubmatch(line); m != nil {
				pairs = append(pairs, []string{m[0], m[2], m[1]})
			}
			for _, m := range pairs {
				declared, err := declarations(filepath.Join("..", m[1]))
				if err != nil {
					t.Errorf("%s:%d: %v", p.name, i+1, err)
					continue
				}
				for _, name := range span.FindAllStringSubmatch(m[2], -1) {
					if !declared[name[1]] {
						t.Errorf("%s:%d: %s does not declare %s", p.name, i+1, m[1], name[1])
					}
				}
			}
		}
	}
}

// declarations returns the names that a Go file declares: Func, Type, Type.Method,
// Type.Field.
func declarations(file string) (map[string]bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = typeName(d.Recv.List[0].Type) + "." + name
			}
			all[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				declare(all, spec)
			}
		}
	}
	return all, nil
}

func declare(all map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			all[name.Name] = true
		}
	case *ast.TypeSpec:
		all[s.Name.Name] = true
		var members *ast.FieldList
		switch body := s.Type.(type) {
		case *ast.StructType:
			members = body.Fields
		case *ast.InterfaceType:
			members = body.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				all[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var (
	cited    = regexp.MustCompile(`//.*\b[Rr]ule (\d+)\b`)
	section  = regexp.MustCompile(`^## (\d+)\. `)
	testName = regexp.MustCompile("_test\\.go`: `Test\\w+`")
)

// Every rule that the code cites is in rules.md, and every rule there that is built, if
// only in part, names a place that keeps it and a test.
func TestRules(t *testing.T) {
	data, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for text := range strings.SplitSeq(string(data), "\n## ") {
		number, rest, _ := strings.Cut(text, ". ")
		rules[number] = rest
		_, body, _ := strings.Cut(rest, "\n\n")
		if !section.MatchString("## "+text) || strings.HasPrefix(body, "Not built.") {
			continue
		}
		if !strings.Contains(body, "| kept in | how |") || !testName.MatchString(body) {
			t.Errorf("rule %s names no place that keeps it, or no test", number)
		}
	}
	for _, root := range []string{".", "../cmd", "../e2e"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") {
				return err
			}
			code, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, m := range cited.FindAllStringSubmatch(string(code), -1) {
				if rules[m[1]] == "" {
					t.Errorf("%s cites rule %s, which docs/rules.md does not have", name, m[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var example = regexp.MustCompile("(?ms)^```go ([\\w./]+)\n(.*?)^```$")

// The Go examples of CONTRIBUTING.md compile as the files that they say they are.
func TestExamplesCompile(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := map[string]string{} // the file that is not there, and the one that stands for it
	packages := map[string]bool{}
	for i, m := range example.FindAllStringSubmatch(string(text), -1) {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		formatted, err := format.Source([]byte(m[2]))
		if err != nil || string(formatted) != m[2] {
			t.Errorf("%s is not as gofmt has it: %v", m[1], err)
		}
		if err := os.WriteFile(file, []byte(m[2]), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, m[1])] = file
		packages["./"+path.Dir(m[1])] = true
	}
	if len(overlay) == 0 {
		t.Fatal("there are no examples")
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for name := range packages {
		// Vet wants the folder to be there; a test binary of a new package does not.
		args := []string{"vet", "-overlay", list, name}
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			args = []string{"test", "-c", "-vet=off", "-o", dir, "-overlay", list, name}
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s %s: %v\n%s", args[0], name, err, out)
		}
	}
}

var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `)

// CONTRIBUTING.md tells what each make target is for.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		if m[1] != "help" && !strings.Contains(string(text), "`make "+m[1]+"`") {
			t.Errorf("CONTRIBUTING.md does not tell of make %s", m[1])
		}
	}
}

// toolNames returns the names of all tools, and the files that make them.
func toolNames(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"tool/workspace/*.go", "agent/teamtool/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(`tool\.New\("([a-z_]+)"`).FindAllStringSubmatch(string(src), -1) {
				found[m[1]] = file
			}
		}
	}
	if len(found) < 15 {
		t.Errorf("%d tools were found", len(found))
	}
	return found
}

// The protocol names every tool.
func TestToolsAreNamed(t *testing.T) {
	named := part(t, "docs/protocol.md", "Tools")
	for name, file := range toolNames(t) {
		if !strings.Contains(named, "`"+name+"`") {
			t.Errorf("docs/protocol.md, Tools, does not name the tool %s of %s", name, file)
		}
	}
}
