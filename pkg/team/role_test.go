package team

import (
	"strings"
	"testing"
)

// A role that is narrowed to its deliverable writes that of the task in its hands, and no
// other; any other role writes what it likes.
func TestMayWrite(t *testing.T) {
	narrow := Role{Name: "explorer", Tools: []string{"read_file", "write_file" + OnlyDeliverable}}
	held := Task{ID: "T-002", DeliverablePath: "deliverables/T-002-look.md"}
	for name, tt := range map[string]struct {
		role Role
		file string
		held Task
		hint string // "" = it may
	}{
		"its deliverable":         {narrow, held.DeliverablePath, held, ""},
		"another task's":          {narrow, "deliverables/T-001-x.md", held, "the deliverable of T-002 is " + held.DeliverablePath},
		"source":                  {narrow, "main.go", held, "the deliverable of T-002 is"},
		"without a task":          {narrow, held.DeliverablePath, Task{}, "you hold no task"},
		"no name, without a task": {narrow, "", Task{}, "you hold no task"},
		"a role that writes all":  {Role{Name: "coder", Tools: []string{"write_file"}}, "main.go", Task{}, ""},
		"a role with all tools":   {Role{Name: "coder"}, "main.go", Task{}, ""},
	} {
		err := tt.role.MayWrite(tt.file, tt.held)
		if tt.hint == "" && err != nil || tt.hint != "" && (CodeOf(err) != PermissionDenied || !strings.Contains(HintOf(err), tt.hint)) {
			t.Errorf("%s: %v (%s), want the hint %q", name, err, HintOf(err), tt.hint)
		}
	}
}
