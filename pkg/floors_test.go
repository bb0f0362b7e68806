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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "agentteam"

// floors places every package of pkg/. A sub-package stands on the floor of the
// longest name here that it begins with.
var floors = [][]string{
	0:  {"team", "shutdown"},
	1:  {"account", "subject", "wire", "telemetry", "strictyaml", "stored", "tokens", "child", "broker/embedded", "folder", "command"},
	2:  {"broker", "plan", "place", "tool", "needs", "sandbox", "proxy", "line", "trust"},
	3:  {"board", "mailbox", "registry", "roster", "control", "journal", "event", "election", "model", "tool/workspace", "tool/job", "live", "permission"},
	4:  {"approval"},
	5:  {"engine", "role", "skills", "spawn", "seat", "repair", "completion", "config", "feed", "usage", "audit", "hands", "merge"},
	6:  {"agent", "watchdog", "worktree", "client", "story", "discovery", "tool/teamtool", "api/problem", "subagent"},
	7:  {"api/stream", "api/access", "membership", "process", "screen"},
	8:  {"api"},
	9:  {"leader", "teammate", "local", "doctor", "archive"},
	10: {"demo", "chaos", "teamtest"},
}

// abstract is the floor that must not know what carries its words: it declares the
// interfaces it needs, so that its rules are tested without a broker.
const abstract = 6

// listed is what this test needs of one package of go list -json.
type listed struct {
	ImportPath string
	Imports    []string // without those of tests, which may look anywhere
	Deps       []string // what the package imports, and those import, and so on
}

// place returns the entry of floors that the package belongs to, and its floor.
func place(importPath string) (entry string, floor int, ok bool) {
	name := strings.TrimPrefix(importPath, module+"/pkg/")
	for f, entries := range floors {
		for _, e := range entries {
			if (name == e || strings.HasPrefix(name, e+"/")) && len(e) > len(entry) {
				entry, floor, ok = e, f, true
			}
		}
	}
	return entry, floor, ok
}

// violations judges pkgs and returns one line for each import, and each package
// without a floor, that breaks a rule.
func violations(pkgs []listed) (lines []string) {
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			if rule := broken(p.ImportPath, imp); rule != "" {
				lines = append(lines, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imp, rule))
			}
		}
		if _, _, ok := place(p.ImportPath); !ok && inPkg(p.ImportPath) {
			lines = append(lines, p.ImportPath+" has no floor: place it in pkg/floors_test.go")
		}
	}
	return lines
}

// stowaways names the programs among pkgs that carry a NATS server without ever
// starting one: it would cost each of many teammate processes a megabyte.
func stowaways(pkgs []listed) (lines []string) {
	for _, p := range pkgs {
		program := p.ImportPath == module+"/cmd/leader" || p.ImportPath == module+"/cmd/teammate"
		if program && slices.Contains(p.Deps, module+"/pkg/broker/embedded") {
			lines = append(lines, p.ImportPath+" links the embedded NATS server")
		}
	}
	return lines
}

// broken returns the rule that the import breaks, or "".
func broken(importer, imp string) string {
	if strings.HasPrefix(imp, module+"/cmd/") {
		return "nobody imports a command"
	}
	from, floor, ok := place(importer)
	if !inPkg(importer) || !ok {
		return "" // a command imports what it likes
	}
	host, _, _ := strings.Cut(imp, "/")
	switch {
	case from == "team" && !nested(importer, imp) && (host == module || strings.Contains(host, ".")):
		return "team imports the standard library only"
	case floor == abstract && strings.HasPrefix(imp, "github.com/nats-io/"):
		return fmt.Sprintf("floor %d knows no NATS, it declares the interfaces it needs", abstract)
	case !inPkg(imp):
		return ""
	}
	_, below, ok := place(imp)
	if ok && (below < floor || below == floor && nested(importer, imp)) {
		return ""
	}
	return fmt.Sprintf("a package of floor %d imports lower floors only, its own sub-packages and parent aside", floor)
}

func inPkg(importPath string) bool { return strings.HasPrefix(importPath, module+"/pkg/") }

// nested reports whether one of the two packages is a sub-package of the other.
func nested(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

func TestFloors(t *testing.T) {
	// The go command caches a passing test by the files that the test itself looks
	// at, not by those that go list reads for it. Without this walk a new import
	// elsewhere would go unseen.
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(string, fs.DirEntry, error) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	pkgs := list(t)
	if len(pkgs) == 0 {
		t.Fatal("go list names no package")
	}
	for _, line := range slices.Concat(violations(pkgs), stowaways(pkgs)) {
		t.Error(line)
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
	for _, tt := range []struct {
		importer, imp string
		rule          string // a word of it; "" if the import is right
	}{
		{pkg + "board", pkg + "broker", ""},
		{pkg + "board", pkg + "board/index", ""},
		{pkg + "board/index", pkg + "board", ""},
		{pkg + "tool/teamtool", pkg + "tool", ""},
		{pkg + "leader", pkg + "team", ""},
		{pkg + "api/v1", pkg + "api/stream", ""},
		{pkg + "api/access", pkg + "api/problem", ""},
		{pkg + "broker", "github.com/nats-io/nats.go", ""},
		{pkg + "team", "encoding/json", ""},
		{module + "/cmd/leader", pkg + "leader", ""},

		{pkg + "board", pkg + "mailbox", "lower floors"},
		{pkg + "board", pkg + "agent", "lower floors"},
		{pkg + "board/index", pkg + "board/cache", "lower floors"},
		{pkg + "api/v1", pkg + "api/teamwire", "lower floors"},
		{pkg + "tool", pkg + "tool/teamtool", "lower floors"},
		{pkg + "broker/brokertest", pkg + "board", "lower floors"},
		{pkg + "boardroom", pkg + "team", "no floor"},
		{pkg + "leader", pkg + "boardroom", "lower floors"},
		{pkg + "watchdog", "github.com/nats-io/nats.go/jetstream", "no NATS"},
		{pkg + "tool/teamtool", "github.com/nats-io/nats.go", "no NATS"},
		{pkg + "team", "go.yaml.in/yaml/v4", "standard library"},
		{pkg + "team", pkg + "subject", "standard library"},
		{pkg + "local", module + "/cmd/leader", "command"},
		{module + "/cmd/teamctl", module + "/cmd/leader", "command"},
	} {
		got := violations([]listed{{ImportPath: tt.importer, Imports: []string{tt.imp}}})
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
