package runtime

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent/skills"
	"agentteam/pkg/agent/subagent"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/workspace"
)

// schema is what this test reads of a tool's arguments.
type (
	schema struct {
		Properties map[string]property
		Required   []string
	}
	property struct {
		Items struct{ Properties map[string]any }
	}
)

// docs/dialects.md shows each tool that models of Claude know by another name than ours, with all arguments that they see. An
// argument that must be given has no question mark.
func TestDialectsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (?:`(\\w+)`)? ?\\| `(\\w+)` \\| (.*?) ?\\|$").FindAllStringSubmatch(string(page), -1) {
		rows[row[2]] = row[1:]
	}
	models, begins := []string{"big", "small"}, workspace.Options{Begin: func(team.Job, func(context.Context, io.Writer) string) (team.Job, error) { return team.Job{}, nil }}
	takes, native := map[string]schema{}, map[string]bool{}
	for _, who := range []team.AgentID{team.Leader, "coder-1"} {
		set, err := tool.NewSet(nil, slices.Concat(workspace.Follow(nil, nil, begins).Tools(), []tool.Tool{subagent.Tool(subagent.Options{Aliases: models}), skills.Tool(nil)}, new(job.Jobs).Tools(),
			teamtool.New(teamtool.Options{Self: team.Member{AgentID: who}, Gate: new(approval.Gate), Aliases: models}))...)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range set.Speaking(team.Native).Specs() {
			native[s.Name] = true
		}
		for _, s := range set.Speaking(team.Claude).Specs() {
			one := schema{Properties: map[string]property{}}
			if err := json.Unmarshal(s.Schema, &one); err != nil {
				t.Fatal(err)
			}
			maps.Copy(one.Properties, takes[s.Name].Properties)
			takes[s.Name] = one
		}
	}
	for name, s := range takes {
		row, ours := rows[name], team.NativeTool(name)
		delete(rows, name)
		if ours == name && native[ours] {
			continue // of one name in both
		}
		if row == nil || row[0] != "" && row[0] != ours || row[0] == "" && ours != name {
			t.Errorf("%s, which is our %s, has the row %q", name, ours, row)
			continue
		}
		outer, inner, _ := strings.Cut(row[2], "[{")
		var got []string
		for _, m := range regexp.MustCompile("( or )?`(\\w+)(\\??)`").FindAllStringSubmatch(outer, -1) {
			if m[1] != "" { // another name of the same
				continue
			}
			got = append(got, m[2])
			if slices.Contains(s.Required, m[2]) && m[3] != "" {
				t.Errorf("%s: %s must be given", name, m[2])
			}
		}
		slices.Sort(got)
		if want := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, want) {
			t.Errorf("%s takes %q, its row has %q", name, want, got)
		}
		got = regexp.MustCompile(`\w+`).FindAllString(inner, -1)
		slices.Sort(got)
		if want := slices.Sorted(maps.Keys(s.Properties["tasks"].Items.Properties)); !slices.Equal(got, want) {
			t.Errorf("the tasks of %s take %q, its row has %q", name, want, got)
		}
	}
	if len(rows) > 0 {
		t.Errorf("the page has tools that are not there: %v", rows)
	}
}
