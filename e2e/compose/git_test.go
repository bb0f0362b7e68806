//go:build compose

package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// coders has the leader spawn two coders, whose tasks change a file each.
const coders = `
agents:
  - match: {role: leader}
    rules:
      - name: finish
        since: '\[All Idle\]'
        steps:
          - calls: [{tool: finish_team, args: {summary: "done"}}]
          - say: done
      - name: lead
        since: '<mail from="user"[^>]*>\s*change both'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: create_task, args: {title: "edit one", description: "one", check: "grep -qx T-001 one.txt"}}
              - {tool: create_task, args: {title: "edit two", description: "two", check: "grep -qx T-002 two.txt"}}
          - say: I wait.
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<id>T-00[12])"'
        steps:
          - calls: [{tool: bash, args: {command: "[ {{.Match.id}} = T-001 ] && f=one.txt || f=two.txt; echo {{.Match.id}} >> $f; cat $f"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "did it"}}]
      - name: rest
        say: Nothing to do.
`

// A workspace that is a git repository: each task in a tree of the volume, merged by containers that
// share it, shown and landed by the container of teamctl.
func TestGitWorkspace(t *testing.T) {
	t.Parallel()
	p := newProject(t, "git")
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte(coders), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "OPENAI_BASE_URL=http://scripted:8099/v1", "OPENAI_API_KEY=any", "OPENAI_MODEL=any")
	p.run(t, "up", "-d", "leader", "teammate")
	model := docker(t, "run", "-d", "--network", p.name+"_default", "--network-alias", "scripted", "-v", script+":/script.yaml:ro",
		doctor, "rehearse", "--listen", "0.0.0.0:8099", "/script.yaml")
	t.Cleanup(func() { docker(t, "rm", "-f", model) })
	p.healthy(t, "leader", "teammate")
	p.run(t, "exec", "-T", "teammate", "bash", "-ec", `cd /workspace; git init -q; touch one.txt two.txt; git add -A
		git -c user.name=ann -c user.email=ann@example.org commit -qm first`)

	out := p.run(t, "run", "--rm", "-T", "teamctl", "run", "--timeout", "80s", "change both")
	if !strings.Contains(out, "2 files changed") {
		t.Errorf("teamctl run: %s", out)
	}
	if out := p.run(t, "run", "--rm", "-T", "teamctl", "diff"); !strings.Contains(out, "+T-001") || !strings.Contains(out, "+T-002") {
		t.Errorf("teamctl diff: %s", out)
	}
	if got := p.run(t, "exec", "-T", "teammate", "bash", "-ec", "cd /workspace; git status --porcelain; cat one.txt two.txt"); got != "" {
		t.Errorf("the workspace was changed: %s", got)
	}
	p.run(t, "run", "--rm", "-T", "teamctl", "land")
	if got := p.run(t, "exec", "-T", "leader", "bash", "-ec", "cd /workspace; git status --porcelain; cat one.txt two.txt; ls -A /cache/agentteam/lines/*/trees"); got != "T-001\nT-002" {
		t.Errorf("landed, the workspace has %s", got)
	}
}
