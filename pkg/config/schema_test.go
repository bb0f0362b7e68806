package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"agentteam/pkg/config"
)

var update = flag.Bool("update", false, "write the schema of team.yaml anew")

const schemaFile = "../../docs/team.schema.json"

func TestSchemaIsPublished(t *testing.T) {
	want := config.Schema()
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not the schema of the settings (%v); `go test ./pkg/config -run Schema -update` writes it", schemaFile, err)
	}
}

// What the schema refuses Load refuses; what Load takes the schema takes.
func TestSchemaAgreesWithLoad(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{
		"{}": true,
		"team: shop\nleader: {delegate: true, model: big}\nroles: {coder: 2, reviewer: {ready: 1, plan_mode: true}}\npolicies: {respawn: ask}\ncheck: go test ./...\nlimits: {max_teammates: 6}": true,
		"dialect: claude\nteammate_mode: tmux\nisolation: worktree\nnetwork: none\nlease: 30s\nreplicas: 3":                                                                                      true,
		"network: [example.org]\npermissions: {allow: ['Bash(go test *)']}\nmodels: {big: {model: m}}":                                                                                           true,
		"roles:": true,
		"roles: {coder: {max_turns: 9, max_instances: 2, auto_claim: false, idle_timeout: 15m, background: true, color: pink}}": true,
		"roles: {coder: {color: beige}}":    false,
		"roles: {coder: {tools: [bash]}}":   false,
		"rolse: {coder: 1}":                 false,
		"policies: {respawn: never}":        false,
		"policies: {recheck: all}":          false,
		"policies: {respwan: ask}":          false,
		"roles: {coder: {ready: -1}}":       false,
		"roles: [coder]":                    false,
		"dialect: klingon":                  false,
		"leader: {delegate: perhaps}":       false,
		"models: {big: {base_url: 'x'}}":    false,
		"limits: {max_teammates: 5000}":     false,
		"isolation: elsewhere":              false,
		"teammate_mode: windows":            false,
		"network: {host: a}":                false,
		"permissions: {permit: ['Bash']}":   false,
		"models: {big: {model: 1, top: 2}}": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		_, loadErr := config.Load(config.Sources{Dir: dir})
		if err := resolved.Validate(v); (err == nil) != fits || (loadErr == nil) != fits {
			t.Errorf("%q: the schema says %v, Load %v; fits: %v", text, err, loadErr, fits)
		}
	}
}
