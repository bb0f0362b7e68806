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

// A supervisor starts with each command. Go initialises packages in the order of their paths, as soon as those
// that they import are: this one comes before most others, and ends the process, as long as it needs no more than
// these. With net and os/exec a start takes 1 ms longer.
func TestImportsLittle(t *testing.T) {
	few := []string{"bytes", "encoding/binary", "encoding/json", "errors", "fmt", "io", "io/fs", "iter", "math", "os", "os/signal", "runtime", "slices", "strconv", "strings", "sync", "syscall",
		"time", "unsafe", "golang.org/x/sys/unix"}
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
