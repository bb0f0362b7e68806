// Package pkg holds no code; its tests hold the house rules of its packages, which
// docs/architecture.md explains, and those of the docs.
package pkg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "agentteam"

// layers are the folders of pkg/, lowest first, and packages are all of pkg/: as the table under
// "Packages" of docs/architecture.md has them.
func layers(t *testing.T) (folders, packages []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (?:`([a-z0-9/]+)` )?\\| `([a-z0-9/]+)` \\|").FindAllStringSubmatch(table, -1) {
		if row[1] != "" {
			folders = append(folders, row[1])
		}
		if len(folders) == 0 || row[2] != folders[len(folders)-1] && !strings.HasPrefix(row[2], folders[len(folders)-1]+"/") {
			t.Fatalf("docs/architecture.md has %s outside its folder", row[2])
		}
		packages = append(packages, row[2])
	}
	return folders, packages
}

// knowNATS are the folders and packages that may import what speaks to NATS; all others are tested
// over the interfaces that they declare, or over the stores.
var knowNATS = []string{"store", "agent/control", "cluster"}

// listed is what this test needs of one package of go list -json.
type listed struct {
	ImportPath string
	Imports    []string // without those of tests, which may look anywhere
	Deps       []string // what the package imports, and those import, and so on
}

// inPkg returns the name of a package below pkg/.
func inPkg(importPath string) (name string, ok bool) {
	return strings.CutPrefix(importPath, module+"/pkg/")
}

// violations judges pkgs and returns one line for each import, and each folder without a layer, that
// breaks a rule.
func violations(folders []string, pkgs []listed) (lines []string) {
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			if rule := broken(folders, p.ImportPath, imp); rule != "" {
				lines = append(lines, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imp, rule))
			}
		}
		if name, ok := inPkg(p.ImportPath); ok && layer(folders, name) < 0 {
			lines = append(lines, p.ImportPath+" has no layer: place its folder in the table of docs/architecture.md")
		}
	}
	return lines
}

// layer returns the place of a package's folder in folders, or -1.
func layer(folders []string, name string) int {
	folder, _, _ := strings.Cut(name, "/")
	return slices.Index(folders, folder)
}

// broken returns the rule that the import breaks, or "".
func broken(folders []string, importer, imp string) string {
	if strings.HasPrefix(imp, module+"/cmd/") {
		return "nobody imports a command"
	}
	from, ok := inPkg(importer)
	if !ok {
		return "" // a command imports what it likes
	}
	to, ours := inPkg(imp)
	host, _, _ := strings.Cut(imp, "/")
	switch {
	case from == "team" && (ours || strings.Contains(host, ".")):
		return "team imports the standard library only"
	case strings.HasPrefix(imp, "github.com/nats-io/") && !slices.ContainsFunc(knowNATS, func(k string) bool { return from == k || strings.HasPrefix(from, k+"/") }):
		return "NATS is for " + strings.Join(knowNATS, ", ")
	case ours && layer(folders, to) > layer(folders, from):
		return "a package imports its own folder and lower ones only"
	}
	return ""
}

// stowaways names the programs among pkgs that carry a NATS server without ever
// starting one: it would cost each of many teammate processes a megabyte.
func stowaways(pkgs []listed) (lines []string) {
	for _, p := range pkgs {
		program := p.ImportPath == module+"/cmd/leader" || p.ImportPath == module+"/cmd/teammate"
		if program && slices.Contains(p.Deps, module+"/pkg/store/broker/embedded") {
			lines = append(lines, p.ImportPath+" links the embedded NATS server")
		}
	}
	return lines
}

func TestLayers(t *testing.T) {
	// The go command caches a passing test by the files that the test itself looks
	// at, not by those that go list reads for it. Without this walk a new import
	// elsewhere would go unseen.
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(string, fs.DirEntry, error) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	folders, packages := layers(t)
	pkgs := list(t)
	if len(pkgs) == 0 || len(folders) == 0 {
		t.Fatalf("go list names %d packages, docs/architecture.md %d folders", len(pkgs), len(folders))
	}
	for _, line := range slices.Concat(violations(folders, pkgs), stowaways(pkgs)) {
		t.Error(line)
	}
	var names []string
	for _, p := range pkgs {
		// Packages for tests alone are named beside what they test.
		if name, ok := inPkg(p.ImportPath); ok && (name == "teamtest" || !strings.HasSuffix(name, "test")) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(packages, name) {
			t.Errorf("docs/architecture.md does not have the package %s", name)
		}
	}
	for _, name := range packages {
		if !slices.Contains(names, name) {
			t.Errorf("docs/architecture.md has the package %s, which does not exist", name)
		}
	}
}

// list returns every package of the module.
func list(t *testing.T) (pkgs []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestViolations(t *testing.T) {
	const pkg = module + "/pkg/"
	folders := []string{"team", "store", "agent", "client", "cluster"}
	for _, tt := range []struct {
		importer, imp string
		rule          string // a word of it; "" if the import is right
	}{
		{pkg + "store/board", pkg + "team", ""},
		{pkg + "store/board", pkg + "store/broker", ""},
		{pkg + "agent/runtime", pkg + "agent", ""},
		{pkg + "agent", pkg + "store/board/index", ""},
		{pkg + "store/broker", "github.com/nats-io/nats.go", ""},
		{pkg + "agent/control", "github.com/nats-io/nats.go", ""},
		{pkg + "team", "encoding/json", ""},
		{pkg + "team/strictyaml", "go.yaml.in/yaml/v4", ""},
		{module + "/cmd/leader", pkg + "cluster/leader", ""},

		{pkg + "store/board", pkg + "agent", "lower"},
		{pkg + "agent/runtime", pkg + "client", "lower"},
		{pkg + "boardroom", pkg + "team", "no layer"},
		{pkg + "cluster/watchdog", pkg + "team/codec", ""},
		{pkg + "agent/teamtool", "github.com/nats-io/nats.go/jetstream", "NATS is for"},
		{pkg + "agent/controls", "github.com/nats-io/nats.go", "NATS is for"},
		{pkg + "team", "go.yaml.in/yaml/v4", "standard library"},
		{pkg + "team", pkg + "team/codec", "standard library"},
		{pkg + "client", module + "/cmd/leader", "command"},
		{module + "/cmd/teamctl", module + "/cmd/leader", "command"},
	} {
		got := violations(folders, []listed{{ImportPath: tt.importer, Imports: []string{tt.imp}}})
		switch {
		case tt.rule == "" && len(got) > 0:
			t.Errorf("refused what is right: %v", got)
		case tt.rule != "" && !slices.ContainsFunc(got, func(line string) bool {
			return strings.Contains(line, tt.importer) && strings.Contains(line, tt.rule)
		}):
			t.Errorf("%s imports %s: got %q, want one about %q", tt.importer, tt.imp, got, tt.rule)
		}
	}
}
