package runtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// toLeaders are the files whose texts only a leader's model reads.
var toLeaders = []string{"agent/blocks.go", "agent/run.go", "agent/prompts/leader.md", "cluster/leader/end.go", "agent/teamtool/lead.go", "agent/teamtool/claude_lead.go", "agent/teamtool/plan.go",
	"cluster/watchdog/notice.go", "cluster/watchdog/quiet.go"}

// inClaude are the files whose texts only models of that dialect read.
var inClaude = []string{"agent/blocks.go", "agent/shutdown.go", "agent/subagent/subagent.go", "team/dialect.go", "agent/teamtool/claude.go", "agent/teamtool/claude_lead.go"}

// A text for models names no tool that the model does not have: none that is answered and not shown, none of another
// dialect, and none of the leader's in a text that its teammates read. The texts are written as a native model reads them.
func TestTextsNameToolsThatAreThere(t *testing.T) {
	word := regexp.MustCompile(`\b[a-zA-Z]+(?:_[a-z]+|[a-z][A-Z][a-z]+)+\b`)
	leads := map[string]bool{}
	for _, s := range known().Speaking(team.Native).Specs() {
		leads[s.Name] = known().Traits(s.Name).LeaderOnly
	}
	texts := 0
	look := func(path, where, text string) {
		for _, name := range word.FindAllString(text, -1) {
			if texts++; !known().Has(name) {
				continue
			}
			lead, shown := leads[name]
			switch {
			case !shown && !slices.Contains(inClaude, path):
				t.Errorf("%s names %s, which native models do not see: %s", where, name, text)
			case lead && !slices.Contains(toLeaders, path):
				t.Errorf("%s names %s, which only the leader has: %s", where, name, text)
			}
			if said := team.Claude.Say(name); shown && said == name && team.Claude.Tool(name) != name {
				t.Errorf("%s names %s, which is not said in the other dialect: %s", where, name, text)
			}
		}
	}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err == nil && (strings.Contains(path, "/prompts/") || strings.Contains(path, "/builtin/")) && !e.IsDir() {
			text, err := os.ReadFile(path)
			look(strings.TrimPrefix(path, "../../"), path, string(text))
			return err
		}
		if err != nil || e.IsDir() || strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, _ := strconv.Unquote(l.Value); strings.Contains(text, " ") && !strings.Contains(text, "json:\"") {
					look(strings.TrimPrefix(path, "../../"), files.Position(l.Pos()).String(), text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || texts < 100 {
		t.Fatalf("%d words: %v", texts, err)
	}
}
