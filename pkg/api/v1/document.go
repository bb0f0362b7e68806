package v1

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

// This file adds to the OpenAPI what the Go types of requests and answers lack: the words of enumerated fields, and the
// names of lists. All of it comes from the values that the code uses.

// tags are the groups of operations, in the order in which a reader needs them.
var tags = []*huma.Tag{
	{Name: tagCluster, Description: "What runs."},
	{Name: tagTeams, Description: "Teams, their limits and policies, what they cost, and what their agents have done with tools."},
	{Name: tagGoal, Description: "What a team works on, and what came of it."},
	{Name: tagMembers, Description: "The leader, its teammates and people's seats."},
	{Name: tagTasks, Description: "The team's board, and what completed tasks have left behind."},
	{Name: tagMail, Description: "Messages between people and members, and questions to people."},
	{Name: tagApprovals, Description: "Plans of members in plan mode, which the leader or a person must approve, and calls that a person must allow."},
	{Name: tagRoles, Description: "What kinds of members there are."},
	{Name: tagEvents, Description: "What happens in a team."},
}

// worded is the schema of a type with a fixed set of values.
type worded[T ~string] string

// Schema implements [huma.SchemaProvider].
func (worded[T]) Schema(huma.Registry) *huma.Schema {
	of := reflect.TypeFor[T]()
	words := team.Words(of)
	switch of {
	case reflect.TypeFor[team.MailStatus]():
		words = team.Strings(team.MailStatuses()...)
	case reflect.TypeFor[usage.By]():
		words = usage.Bys()
	case reflect.TypeFor[audit.Outcome]():
		words = team.Strings(audit.Outcomes()...)
	case reflect.TypeFor[timeline.Kind]():
		words = team.Strings(timeline.Kinds()...)
	case reflect.TypeFor[timeline.After]():
		words = team.Strings(timeline.Afters()...)
	}
	return &huma.Schema{Type: huma.TypeString, Enum: anyOf(words)}
}

func anyOf(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// wordedAs makes the schemas list the words of a type.
func wordedAs[T ~string](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[worded[T]]())
}

func nameWords(r huma.Registry) {
	wordedAs[team.TaskStatus](r)
	wordedAs[team.EventType](r)
	wordedAs[team.Status](r)
	wordedAs[team.ApprovalStatus](r)
	wordedAs[team.ApprovalKind](r)
	wordedAs[team.Scope](r)
	wordedAs[team.MemberState](r)
	wordedAs[team.MessageType](r)
	wordedAs[team.Code](r)
	wordedAs[team.Backend](r)
	wordedAs[team.Create](r)
	wordedAs[team.Respawn](r)
	wordedAs[team.Isolation](r)
	wordedAs[team.Approver](r)
	wordedAs[team.Dialect](r)
	wordedAs[team.JobKind](r)
	wordedAs[team.WaitFor](r)
	wordedAs[team.MailStatus](r)
	wordedAs[usage.By](r)
	wordedAs[audit.Outcome](r)
	wordedAs[timeline.Kind](r)
	wordedAs[timeline.After](r)
	r.RegisterTypeAlias(reflect.TypeFor[audit.Entry](), reflect.TypeFor[auditEntry]())
	r.RegisterTypeAlias(reflect.TypeFor[gitrepo.Entry](), reflect.TypeFor[branchCommit]())
}

// shownStatuses returns the statuses of tasks as people see them.
func shownStatuses() []string {
	return slices.Insert(slices.Insert(team.Strings(team.TaskStatuses()...), 2, "merging"), 1, team.ShownBlocked)
}

// finish adds to the schemas the words of fields that are plain strings or numbers in Go, and to each list the name of
// its array. It is called once all operations are registered.
func (s *service) finish() {
	doc := s.api.OpenAPI()
	doc.Tags = tags
	all := doc.Components.Schemas.Map()
	of := func(schema, field string) *huma.Schema { // an own one: schemas of types may be shared
		own := *all[schema].Properties[field]
		all[schema].Properties[field] = &own
		return &own
	}
	for _, name := range []string{"Task", "TaskView", "AssignedTask"} {
		p := of(name, "priority")
		p.Description, p.Enum = priorityNames(), numbers()
	}
	of("Node", "status").Enum = anyOf(shownStatuses())
	of("Process", "kind").Enum = []any{"leader", "teammate"}
	from := of("Step", "from")
	from.Enum, from.Description = append([]any{""}, from.Enum...), `"" of the first step.`
	params := func(path, name string, words []string) {
		for _, p := range doc.Paths[path].Get.Parameters {
			if p.Name == name { // only told here: what is sent is judged by the handler, which says more
				items := *p.Schema.Items
				items.Enum = anyOf(words)
				own := *p.Schema
				own.Items, p.Schema = &items, &own
			}
		}
	}
	params("/v1/teams/{team}/tasks", "status", shownStatuses())
	params("/v1/teams/{team}/events", "type", team.Words(reflect.TypeFor[team.EventType]()))
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op != nil {
				op.Description = strings.TrimSpace(op.Description + lists(doc, op))
			}
		}
	}
}

// lists describes the arrays in an answer of an operation, if it has some.
func lists(doc *huma.OpenAPI, op *huma.Operation) string {
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		content := op.Responses[status].Content["application/json"]
		if status >= "3" || content == nil {
			continue
		}
		schema := content.Schema
		if schema.Ref != "" {
			schema = doc.Components.Schemas.SchemaFromRef(schema.Ref)
		}
		var arrays []string
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if p := schema.Properties[name]; p.Type == huma.TypeArray && slices.Contains(schema.Required, name) {
				arrays = append(arrays, "`"+name+"`")
			}
		}
		if len(arrays) > 0 {
			return " The answer has the array " + strings.Join(arrays, ", ") + "."
		}
		return ""
	}
	return ""
}

// numbers returns the priorities as answers have them.
func numbers() (all []any) {
	for n := range team.Priorities() {
		all = append(all, n)
	}
	return all
}

// priorityNames describes the numbers.
func priorityNames() string {
	var names []string
	for n, name := range team.Priorities() {
		names = append(names, fmt.Sprintf("%d %s", n, name))
	}
	return strings.Join(names, ", ") + "."
}
