package agent

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The first line is the protocol's; scripts and people read it.
func TestSystem(t *testing.T) {
	record := team.Team{ID: "blue", Roles: map[string]team.Role{
		"leader":   {Name: "leader", Description: "leads", Instructions: "You plan first."},
		"tester":   {Name: "tester", Description: "runs the tests"},
		"explorer": {Name: "explorer", Description: "reads 代码 and answers questions"},
	}}
	for name, tt := range map[string]struct {
		member team.Member
		role   team.Role
	}{
		"leader":   {team.Member{AgentID: team.Leader, Role: "leader"}, record.Roles["leader"]},
		"teammate": {team.Member{AgentID: "tester-1", Role: "tester", Prompt: "\nTest the parser 🧪.\n"}, team.Role{Instructions: "You run tests.\n\nYou do not mend what fails.\n"}},
		"bare":     {team.Member{AgentID: "tester-2", Role: "tester", Prompt: " \n"}, team.Role{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := System(record, tt.member, tt.role, "/srv/work space")
			first, _, _ := strings.Cut(got, "\n")
			if want := "You are " + string(tt.member.AgentID) + ", role " + tt.member.Role + ", in team blue."; first != want {
				t.Errorf("first line %q, want %q", first, want)
			}
			golden := filepath.Join("testdata", "system-"+name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is another (go test -update accepts it):\n%s", golden, got)
			}
		})
	}
}
