package workspace_test

import (
	"slices"
	"testing"

	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// Old results of all these tools may be left out of a conversation, and so may what was
// written to files, by whichever name they were called.
func TestBulky(t *testing.T) {
	w, err := workspace.Open(t.TempDir(), command.Plain{}, workspace.Options{})
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
		"edit_file": {"old_string", "new_string", "edits", "patch"}, "Edit": {"old_string", "new_string", "edits", "patch"}, "MultiEdit": {"old_string", "new_string", "edits", "patch"},
		"apply_patch": {"old_string", "new_string", "edits", "input", "patch"},
	} {
		if got := set.Traits(name); !got.Bulky || !slices.Equal(got.Stored, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if set.Traits("send_message").Bulky {
		t.Error("a tool that is not there is bulky")
	}
}
