package pkg

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

const (
	mostLines    = 600       // of a file
	mostOfFunc   = 60        // lines of a function
	mostOfTest   = 110       // lines of a function in a _test.go file, which is read as a story
	mostExported = 40        // names that one package exports
	mostSubject  = 72        // characters of the subject of a commit
	mostBytes    = 256 << 10 // of a file that git has
)

// longOnes are the functions that may be longer, and why.
var longOnes = map[string]string{
	"pkg/model/modeltest/catalogue.go: Faults":                "a table",
	"pkg/model/classify_test.go: TestJudge":                   "a table",
	"e2e/compose/bad_test.go: TestBadInput":                   "a table",
	"pkg/store/board/index/property_test.go: TestIndexIsTrue": "one state machine of rapid",
}

// manyExported are the packages that may export more names: two vocabularies.
var manyExported = map[string]int{"pkg/team": 345, "pkg/store/subject": 73}

// source is a Go file of the repository.
type source struct {
	name string // path from the root, with slashes
	dir  string // its folder
	test bool
	text []byte
	*ast.File
}

var fset = token.NewFileSet()

// sources returns all Go files of the repository, parsed once.
var sources = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(filepath.ToSlash(name), "../")
		all = append(all, source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), text, f})
		return nil
	})
	return all, err
})

func goFiles(t *testing.T) []source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func linesOf(n ast.Node) int { return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1 }

// A file and a function fit into a head. Longer ones are named, with a reason.
func TestFilesAndFunctionsAreShort(t *testing.T) {
	judge := func(what string, lines, most int) {
		if lines > most {
			t.Errorf("%s has %d lines, at most %d: cut it", what, lines, most)
		}
	}
	for _, f := range goFiles(t) {
		judge(f.name, bytes.Count(f.text, []byte("\n")), mostLines)
		most := mostOfFunc
		if f.test {
			most = mostOfTest
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if what := f.name + ": " + d.Name.Name; longOnes[what] == "" {
					judge(what, linesOf(d), most)
				}
			}
		}
	}
}

// Nobody has to review a built program: it is not committed.
func TestCommittedFilesAreSmall(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = ".."
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("..", name))
		if errors.Is(err, fs.ErrNotExist) { // it is being removed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > mostBytes {
			t.Errorf("%s has %d bytes, at most %d: is it made by a build?", name, info.Size(), mostBytes)
		}
	}
}

// subjectsSince is from when on subjects are checked: older ones cannot be changed. It is no commit: where
// history was laid anew there is none of that name, and the check would be none.
const subjectsSince = "2026-11-27T15:30:00Z"

// subjectForm is "place: change".
var subjectForm = regexp.MustCompile(`^[\w./, -]+: \S`)

// The subject of a commit names the place and the change, and fits into a line.
func TestCommitSubjects(t *testing.T) {
	cmd := exec.Command("git", "log", "--no-merges", "--format=%h %s", "--since="+subjectsSince)
	cmd.Dir = ".."
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	for line := range strings.Lines(string(list)) {
		commit, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch n := utf8.RuneCountInString(subject); {
		case n > mostSubject:
			t.Errorf("%s: the subject has %d characters, at most %d: %s", commit, n, mostSubject, subject)
		case !subjectForm.MatchString(subject):
			t.Errorf("%s: the subject does not begin with its place (place: change): %s", commit, subject)
		}
	}
}

// unusedFor are exported names that no other package uses, and why they are exported.
var unusedFor = map[string]string{
	"pkg/store/broker.Ping":                 "the default that broker.Options names",
	"pkg/execenv/projectcontext.MaxProject": "the limit that place.Place names",
	"pkg/execenv/projectcontext.MaxFolder":  "the limit of place.Folder",
}

// An exported name is used by another package or a test, or is part of the declaration of
// one that is. What only its own package uses is not exported.
func TestExportedNamesAreUsed(t *testing.T) {
	files := goFiles(t)
	names := map[string]string{} // of the package in a folder
	for _, f := range files {
		if !f.test {
			names[f.dir] = f.Name.Name
		}
	}
	used := map[string]bool{}
	for _, f := range files {
		markUses(f, names, used)
		if !f.test {
			markSignatures(f, used)
		}
	}
	left := maps.Clone(unusedFor)
	count := map[string]int{}
	for _, f := range files {
		if f.test || f.Name.Name == "main" {
			continue
		}
		for _, name := range exported(f) {
			count[f.dir]++
			full := f.dir + "." + name
			if !used[full] && left[full] == "" && f.dir != "pkg/team" { // the vocabulary is for programs outside, too
				t.Errorf("%s is used by no other package: do not export it", full)
			}
			delete(left, full)
		}
	}
	for name := range left {
		t.Errorf("unusedFor names %s, which is not exported", name)
	}
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		if most := max(mostExported, manyExported[dir]); count[dir] > most {
			t.Errorf("%s exports %d names, at most %d", dir, count[dir], most)
		}
	}
}

// markUses marks the names of other packages that a file selects.
func markUses(f source, names map[string]string, used map[string]bool) {
	dirs := map[string]string{} // by the name under which the file imports
	for _, spec := range f.Imports {
		dir, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
		if !ours {
			continue
		}
		name := names[dir]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		dirs[name] = dir
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && dirs[x.Name] != "" {
				used[dirs[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
}

// markSignatures marks the names that the declarations of exported names mention: types of
// parameters, results and exported fields, and all values of a type.
func markSignatures(f source, used map[string]bool) {
	mark := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if _, other := n.(*ast.SelectorExpr); other {
				return false
			}
			if id, ok := n.(*ast.Ident); ok && id.IsExported() {
				used[f.dir+"."+id.Name] = true
			}
			return true
		})
	}
	fields := func(list *ast.FieldList) {
		for _, field := range list.List {
			if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
				mark(field.Type)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				mark(d.Type)
			}
		case *ast.GenDecl:
			typed := false
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					switch body := spec.Type.(type) {
					case *ast.StructType:
						fields(body.Fields)
					case *ast.InterfaceType:
						fields(body.Methods)
					default:
						mark(spec.Type)
					}
				case *ast.ValueSpec:
					typed = typed || spec.Type != nil
					for _, name := range spec.Names {
						if typed && d.Tok == token.CONST {
							mark(name)
						}
					}
				}
			}
		}
	}
}

// exported returns the names that a file exports, without methods and fields.
func exported(f source) (all []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				all = append(all, id.Name)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					add(spec.Names...)
				}
			}
		}
	}
	return all
}
