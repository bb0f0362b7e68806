package team

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Dialect is a set of names for the tools and their arguments. Behind each is the same
// tool. The zero value means [Native].
type Dialect string

// The dialects.
const (
	Native Dialect = "native"
	Claude Dialect = "claude" // the names of Claude Code's agent teams
)

// Values are those that people may write.
func (Dialect) Values() []string { return Strings(Native, Claude) }

// Validate refuses what is no dialect. Error: InvalidArgument.
func (d Dialect) Validate() error {
	if d == "" || d == Native || d == Claude {
		return nil
	}
	return Errorf(InvalidArgument, "there is no dialect %q", Clip(string(d), 80)).WithHint("choose %s or %s", Native, Claude)
}

// claudeTools are our tools as Claude has them. Those that are not here keep their names.
var claudeTools = map[string]string{
	"bash":           "Bash",
	"read_file":      "Read",
	"write_file":     "Write",
	"edit_file":      "Edit",
	"glob":           "Glob",
	"grep":           "Grep",
	"list_tasks":     "TaskList",
	"get_task":       "TaskGet",
	"create_task":    "TaskCreate",
	"create_tasks":   "TeamFanout",
	"update_task":    "TaskUpdate",
	"send_message":   "SendMessage",
	"list_teammates": "TeamStatus",
	"spawn_teammate": "Task",
	"skill":          "Skill",
	"submit_plan":    "ExitPlanMode",
	"subagent":       "Agent",
	"task_output":    "TaskOutput",
	"task_stop":      "TaskStop",
}

// claudeWays are the tools that Claude has not, with the way in which it says them. Its
// models are not told of the tool, which is there all the same.
var claudeWays = map[string]string{
	"claim_task":      "TaskUpdate with you as owner",
	"release_task":    `TaskUpdate with status "pending"`,
	"broadcast":       `SendMessage to "*"`,
	"remove_teammate": `SendMessage with type "shutdown_request"`,
	"approve_plan":    `SendMessage with type "plan_approval_response"`,
	"finish_team":     "TeamDelete",
}

// nativeWays are tools that are there and that native models are not told of, for there is
// another way to do the same.
var nativeWays = []string{"create_task", "claim_task", "release_task", "broadcast"}

// claudeOnly are tools that only Claude's models are told of.
var claudeOnly = []string{"TeamCreate", "TeamDelete", "TeamCollect"}

// Tool returns the name under which a model knows one of our tools; "" if it is not.
func (d Dialect) Tool(native string) string {
	if d == Claude {
		if _, otherWay := claudeWays[native]; otherWay {
			return ""
		}
		return cmp.Or(claudeTools[native], native)
	}
	if slices.Contains(nativeWays, native) || slices.Contains(claudeOnly, native) {
		return ""
	}
	return native
}

// NativeTool returns our name of a tool that was called by a name of any dialect. A name that
// it does not know stays.
func NativeTool(name string) string {
	for native, claude := range claudeTools {
		if claude == name {
			return native
		}
	}
	return name
}

// ToolOf returns our name of the tool of a call, of which it sees the arguments, the text of a JSON
// object: a Task starts a teammate, or a subagent, see [StartsSubagent].
func ToolOf(called, arguments string) string {
	native := NativeTool(called)
	var given map[string]any
	if called == claudeTools["spawn_teammate"] && json.Unmarshal([]byte(arguments), &given) == nil && StartsSubagent(given) {
		return "subagent"
	}
	return native
}

// StartsSubagent reports whether a call of Task with these arguments is one of Claude Code's tool of
// that name, which has no team to name.
func StartsSubagent(given map[string]any) bool {
	mode, _ := given["mode"].(string)
	return (given["team_name"] == nil || given["team_name"] == "") && given["tasks"] == nil && IsTaskMode(mode)
}

// IsTaskMode reports whether Task has a mode of this name in Claude Code; "" is its default. The modes set what an
// agent may do without asking, which its role settles here, but for "plan".
func IsTaskMode(name string) bool {
	return slices.Contains([]string{"", "default", "acceptEdits", "bypassPermissions", "delegate", "dontAsk", "plan"}, name)
}

// toolWord finds our names of tools in a text: those of two words, which are no English.
var toolWord = regexp.MustCompile(`\b(` + strings.Join(slices.Concat(
	twoWords(maps.Keys(claudeTools)), twoWords(maps.Keys(claudeWays))), "|") + `)\b`)

func twoWords(names func(func(string) bool)) []string {
	return slices.DeleteFunc(slices.Sorted(names), func(n string) bool { return !strings.Contains(n, "_") })
}

// Say returns one of our texts, which names tools as we do, with the dialect's names.
func (d Dialect) Say(text string) string {
	if d != Claude {
		return text
	}
	return toolWord.ReplaceAllStringFunc(text, func(native string) string {
		return cmp.Or(claudeTools[native], claudeWays[native])
	})
}

// Dialect is the one that members of a role speak in t: the role's own, or the team's.
func (t Team) Dialect(r Role) Dialect { return cmp.Or(r.Dialect, t.Policies.Dialect, Native) }

// ActiveForm is the key of a task's metadata under which Claude's models say what the one
// who works on it is doing.
const ActiveForm = "activeForm"

// maxDoing is how many characters of it are shown.
const maxDoing = 40

// Doing is what the task's holder has said that it does, on one short line; "" if nothing.
func (t Task) Doing() string {
	var metadata map[string]any
	if json.Unmarshal(t.Metadata, &metadata) != nil {
		return ""
	}
	doing, _ := metadata[ActiveForm].(string)
	return OneLine(Clean(doing, maxDoing))
}
