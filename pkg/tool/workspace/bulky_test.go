package workspace_test

import (
	"slices"
	"testing"

	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// Old results of all these tools may be left out of a conversation, and so may what was
// written to files, by whichever name they were called.
func TestBulky(t *testing.T) {
	w, err := workspace.Open(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	set, err := tool.NewSet(nil, w.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"bash": nil, "Bash": nil, "read_file": nil, "Read": nil, "glob": nil, "Grep": nil,
		"write_file": {"content"}, "Write": {"content"},
		"edit_file": {"old_string", "new_string"}, "Edit": {"old_string", "new_string"},
	} {
		if stored, bulky := set.Bulky(name); !bulky || !slices.Equal(stored, want) {
			t.Errorf("%s: %v, %v", name, stored, bulky)
		}
	}
	if _, bulky := set.Bulky("send_message"); bulky {
		t.Error("a tool that is not there is bulky")
	}
}
