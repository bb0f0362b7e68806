package wire_test

import (
	"encoding/json"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/wire"
)

// A record of a newer program goes through this one and comes out whole.
func TestFieldsOfNewerProgramsAreKept(t *testing.T) {
	stored := `{"v":1,"id":"T-001","title":"题 🚀","status":"pending","epoch":0,"shape":{"a":[1,2]},"x<y":"&"}`
	var task team.Task
	var err error
	if task.Kept, err = wire.Decode([]byte(stored), &task); err != nil {
		t.Fatal(err)
	}
	task.Title = "changed"
	data, err := wire.Encode(task, task.Kept)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if got["title"] != "changed" || got["x<y"] != "&" || got["shape"].(map[string]any)["a"].([]any)[1] != 2.0 {
		t.Errorf("encoded as %s", data)
	}
	if task.Kept, err = wire.Decode([]byte(`{"v":1,"id":"T-001"}`), &task); err != nil || task.Kept != nil {
		t.Errorf("kept %v of a record without unknown fields, %v", task.Kept, err)
	}
}
