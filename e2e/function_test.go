package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
)

// functionScript has three coders read one function before any of them changes it. Each then writes the whole
// file as it has read it, with a change of its own line: in one folder the last would undo the others'.
var functionScript = ledScript(3,
	`{key: one, title: Set v1, check: 'grep -qx "v1 := 1" calc.go'}`,
	`{key: two, title: Set v2, check: 'grep -qx "v2 := 2" calc.go'}`,
	`{key: three, title: Set v3, check: 'grep -qx "v3 := 3" calc.go'}`,
) + `
      - name: again
        since: '(?s)<task id="(?P<id>T-0*(?P<n>\d+))".*it conflicts with the line in calc.go'
        steps:
          - calls: [{tool: read_file, args: {path: calc.go}}]
          - calls: [{tool: write_file, args: {path: calc.go, content: CONTENT}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "v{{.Match.n}} is set"}}]
      - name: mine
        since: '(?s)<task id="(?P<id>T-0*(?P<n>\d+))"'
        newest: 'is still yours, and your files'
        steps:
          - calls: [MINE]
          - calls: [MINE]
      - name: work
        since: '(?s)<task id="(?P<id>T-0*(?P<n>\d+))"'
        steps:
          - calls: [{tool: read_file, args: {path: calc.go}}]
          - calls: [{tool: ask_user, args: {question: "Shall I?", choices: ["yes", "no"]}}]
          - await: 'in_reply_to="'
            calls: [{tool: write_file, args: {path: calc.go, content: CONTENT}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "v{{.Match.n}} is set"}}]
      - name: rest
        say: Nothing to do.
`

// Three members change one function of one file from what they had all read: each change is in the line, or
// its task is told.
func TestOneFunction(t *testing.T) {
	t.Parallel()
	var content strings.Builder
	content.WriteString(`"func Sum() int {\n`)
	for _, n := range []string{"1", "2", "3"} {
		content.WriteString(`v` + n + ` := {{if eq .Match.n '` + n + `'}}` + n + `{{else}}{{regex 'v` + n + ` := (\\d+)' (json (result RULE 0))}}{{end}}\n`)
	}
	content.WriteString(`return v1 + v2 + v3\n}\n"`)
	script := functionScript
	for _, rule := range []string{"again", "work"} {
		script = strings.Replace(script, "CONTENT", strings.NewReplacer("'", "`", "RULE", "`"+rule+"`").Replace(content.String()), 1)
	}
	script = strings.ReplaceAll(script, "MINE", `{tool: bash, args: {command: "sed -i '/^=======$/,/^>>>>>>> /d; /^<<<<<<< /d; s/^v{{.Match.n}} := 0/v{{.Match.n}} := {{.Match.n}}/' calc.go"}}, `+
		`{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "v{{.Match.n}} is set"}}`)
	cache := t.TempDir()
	c := folder(t, rehearse(t, script), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+cache)
	repository(t, c.dir, `printf 'func Sum() int {\nv1 := 0\nv2 := 0\nv3 := 0\nreturn v1 + v2 + v3\n}\n' > calc.go; echo .agentteam > .gitignore`)
	c.upWith(3)
	tm := newTeamWith(t, c.connect(), team.DefaultTeam, 5*time.Second)
	c.limit = 3 * limit
	done := c.begin("Set them")
	c.answers(asked(t, tm, 3)) // once all have read the function
	r := done.end(t)
	got := git(t, lineOf(t, cache), "show", "agentteam/default:calc.go")
	for _, task := range r.Tasks {
		n := strings.TrimPrefix(string(task.ID), "T-00")
		in := strings.Contains(got, "v"+n+" := "+n+"\n")
		if in != (task.Status == team.Completed) || !in && task.Reason == "" {
			t.Errorf("%s is %s (%q), and its change in the line: %t\n%s", task.ID, task.Status, task.Reason, in, got)
		}
	}
	page, err := tm.Board().List(t.Context(), team.Query{})
	if err != nil || !slices.ContainsFunc(page.Tasks, func(v team.TaskView) bool { return v.Epoch > 1 }) {
		t.Errorf("no work was returned for a conflict: %+v, %v", page.Tasks, err)
	}
	if len(r.Tasks) != 3 || r.Status != "finished" {
		t.Errorf("the goal ended as %s: %+v", r.Status, r.Tasks)
	}
}
