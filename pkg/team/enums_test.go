package team

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// Every constant of a type that has words is one of them.
func TestWordsAreWhole(t *testing.T) {
	types := map[string]reflect.Type{}
	for of := range words {
		types[of.Name()] = of
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	look := func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, ok := v.Type.(*ast.Ident)
		if !ok || types[name.Name] == nil || len(v.Values) != 1 {
			return true
		}
		literal, ok := v.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		word, err := strconv.Unquote(literal.Value)
		if err != nil || !slices.Contains(Words(types[name.Name]), word) {
			t.Errorf("%s %q is no word of its type: %v", name.Name, word, err)
		}
		found++
		return true
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, look)
	}
	all := 0
	for of := range words {
		all += len(slices.DeleteFunc(Words(of), func(w string) bool { return w == "" }))
	}
	if found != all {
		t.Errorf("there are %d constants and %d words", found, all)
	}
	if Words(reflect.TypeFor[TaskID]()) != nil {
		t.Error("ids have words")
	}
}

func TestSome(t *testing.T) {
	for want, names := range map[string][]TaskID{
		"": nil, "T-001": {"T-001"}, "T-001, T-002": {"T-001", "T-002"}, "T-001, T-002 and 2 more": {"T-001", "T-002", "T-003", "T-004"},
	} {
		if got := Some(names, 2); got != want {
			t.Errorf("Some(%q, 2) = %q, want %q", names, got, want)
		}
	}
}
