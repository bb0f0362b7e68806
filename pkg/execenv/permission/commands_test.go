package permission_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// workspace is where all calls of these tests are.
const workspace = "/ws"

// bash is a call of the tool bash.
func bash(t testing.TB, command string) tool.Request {
	return call(t, "bash", tool.Traits{Writes: true}, map[string]any{"command": command})
}

func call(t testing.TB, name string, traits tool.Traits, args map[string]any) tool.Request {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Request{Called: name, Tool: name, Arguments: text, Traits: traits}
}

func rules(t testing.TB, p team.Permissions) *permission.Rules {
	t.Helper()
	r, _, err := permission.Parse(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// example is a case of testdata/commands.txt.
type example struct {
	group          string
	rules          team.Permissions
	plain, sandbox string // decisions
	command, why   string
	line           int
}

var marks = strings.NewReplacer("␊", "\n", "␍", "\r", "␀", "\x00", "␉", "\t", "␠", "\u00a0")

func examples(t testing.TB) (all []example) {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	var now example
	for i, line := range strings.Split(string(text), "\n") {
		now.line = i + 1
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || word == "#":
		case word == "rules":
			now = example{group: rest}
		case word == "":
			list, rule, _ := strings.Cut(strings.TrimSpace(line), " ")
			p := map[string]*[]string{"deny": &now.rules.Deny, "ask": &now.rules.Ask, "allow": &now.rules.Allow}[list]
			*p = append(*p, rule)
		default:
			e := now
			e.plain = word
			e.sandbox, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
			var ok bool
			if e.command, e.why, ok = strings.Cut(rest, " ## "); !ok {
				t.Fatalf("line %d has no reason", e.line)
			}
			e.command = marks.Replace(strings.TrimSpace(e.command))
			all = append(all, e)
		}
	}
	return all
}

func TestCommands(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	all := examples(t)
	if len(all) < 150 {
		t.Errorf("%d commands, want at least 150", len(all))
	}
	for _, e := range all {
		r := rules(t, e.rules)
		for level, want := range map[team.Sandbox]string{team.Unconfined: e.plain, team.Bubblewrap: e.sandbox, team.Confined: e.sandbox} {
			v := permission.Judge(r, "", level, bash(t, e.command), workspace)
			if v.Decision.String() != want {
				t.Errorf("line %d (%s), sandbox %s: %q is %s, want %s: %s (rule %q, %s)", e.line, e.group, level, e.command, v.Decision, want, e.why, v.Rule, v.Why)
			}
			if v.Decision != permission.Allow && v.Rule == "" && v.Why == "" {
				t.Errorf("line %d: %q is %s and does not say why", e.line, e.command, v.Decision)
			}
		}
	}
}
