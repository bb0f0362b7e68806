package supervisor

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A supervisor starts with each command. Go initialises packages in the order of their paths, each as soon as those
// that it imports are: this one comes before most others, and ends the process, as long as it needs no more than
// these. Packages strings and fmt, which come later, cost 1 ms more, encoding/json and golang.org/x/sys/unix another.
func TestImportsLittle(t *testing.T) {
	few := []string{"bytes", "encoding/binary", "errors", "io", "iter", "math", "os", "os/signal", "runtime", "slices", "strconv", "sync", "syscall", "time", "unsafe"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err != nil || !slices.Contains(few, path) {
				t.Errorf("%s imports %s, %v", name, path, err)
			}
		}
	}
}
