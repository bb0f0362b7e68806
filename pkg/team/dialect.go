package team

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Dialect is a set of names for the tools and their arguments; the tools are the same. The zero value means
// [Native].
type Dialect string

// The dialects.
const (
	Native Dialect = "native"
	Claude Dialect = "claude" // the names of Claude Code's agent teams
)

// patching is Native for a model that is trained on patches; no person writes it.
const patching = "patching"

// Patching returns the dialect for a model that is trained on patches: Native then shows apply_patch in place of
// edit_file.
func (d Dialect) Patching() Dialect {
	if d == Native {
		return patching
	}
	return d
}

// Values returns the dialects that people may write.
func (Dialect) Values() []string { return Strings(Native, Claude) }

// Validate returns InvalidArgument for an unknown dialect.
func (d Dialect) Validate() error {
	if d == "" || d == Native || d == Claude {
		return nil
	}
	return Errorf(InvalidArgument, "there is no dialect %q", Clip(string(d), 80)).WithHint("choose %s or %s", Native, Claude)
}

// claudeTools are Claude's names of our tools. A tool without an entry keeps its name.
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

// claudeWays are the tools that Claude does not have, with Claude's way to do the same. A model is not shown
// these tools, but may call them.
var claudeWays = map[string]string{
	"claim_task":      "TaskUpdate with you as owner",
	"release_task":    `TaskUpdate with status "pending"`,
	"broadcast":       `SendMessage to "*"`,
	"remove_teammate": `SendMessage with type "shutdown_request"`,
	"approve_plan":    `SendMessage with type "plan_approval_response"`,
	"finish_team":     "TeamDelete",
}

// nativeWays are tools that native models are not shown, since another tool does the same; they may be
// called.
var nativeWays = []string{"create_task", "claim_task", "release_task", "broadcast"}

// claudeOnly are tools that only Claude's models are shown.
var claudeOnly = []string{"TeamCreate", "TeamDelete", "TeamCollect"}

// Tool returns the name of one of our tools in this dialect; "" if models are not shown it.
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
	if d == patching && native == "edit_file" {
		return "apply_patch"
	}
	return native
}

// NativeTool returns our name of a tool that was called by a name of any dialect. It returns an unknown name
// unchanged.
func NativeTool(name string) string {
	for native, claude := range claudeTools {
		if claude == name {
			return native
		}
	}
	return name
}

// ToolOf returns our name of the tool of a call, by its name and its arguments, the text of a JSON object: a
// Task starts a teammate, or a subagent, see [StartsSubagent].
func ToolOf(called, arguments string) string {
	native := NativeTool(called)
	var given map[string]any
	if called == claudeTools["spawn_teammate"] && json.Unmarshal([]byte(arguments), &given) == nil && StartsSubagent(given) {
		return "subagent"
	}
	return native
}

// StartsSubagent reports whether a call of Task with these arguments means Claude Code's subagent tool, which
// has no team.
func StartsSubagent(given map[string]any) bool {
	mode, _ := given["mode"].(string)
	return (given["team_name"] == nil || given["team_name"] == "") && given["tasks"] == nil && IsTaskMode(mode)
}

// IsTaskMode reports whether Claude Code's Task has a mode of this name; "" is its default. The modes set
// what an agent may do without asking; here its role settles that, except for "plan".
func IsTaskMode(name string) bool {
	return slices.Contains([]string{"", "default", "acceptEdits", "bypassPermissions", "delegate", "dontAsk", "plan"}, name)
}

// toolWord matches our two-word names of tools in a text: such names are not English words.
var toolWord = regexp.MustCompile(`\b(` + strings.Join(slices.Concat(
	twoWords(maps.Keys(claudeTools)), twoWords(maps.Keys(claudeWays))), "|") + `)\b`)

func twoWords(names func(func(string) bool)) []string {
	return slices.DeleteFunc(slices.Sorted(names), func(n string) bool { return !strings.Contains(n, "_") })
}

// Say returns text, which uses our names of tools, with the dialect's names.
func (d Dialect) Say(text string) string {
	if d == patching {
		return strings.ReplaceAll(text, "edit_file", d.Tool("edit_file"))
	}
	if d != Claude {
		return text
	}
	return toolWord.ReplaceAllStringFunc(text, func(native string) string {
		return cmp.Or(claudeTools[native], claudeWays[native])
	})
}

// Dialect returns the dialect of members of a role in t: the role's own, else the team's.
func (t Team) Dialect(r Role) Dialect { return cmp.Or(r.Dialect, t.Policies.Dialect, Native) }

// ActiveForm is the key of a task's metadata under which Claude's models state what the holder is doing.
const ActiveForm = "activeForm"

// maxDoing bounds the shown part of it, in characters.
const maxDoing = 40

// Doing returns what the task's holder states that it is doing, on one short line; "" if nothing.
func (t Task) Doing() string {
	var metadata map[string]any
	if json.Unmarshal(t.Metadata, &metadata) != nil {
		return ""
	}
	doing, _ := metadata[ActiveForm].(string)
	return OneLine(Clean(doing, maxDoing))
}
