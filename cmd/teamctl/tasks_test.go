package main

import (
	"bytes"
	"strings"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A record that cannot be read is named in one line, and hides no other.
func TestUnreadableTask(t *testing.T) {
	url := brokertest.Server(t)
	teamctl := func(args ...string) (stdout, stderr string, err error) {
		var out, errs bytes.Buffer
		err = newApp(&out, &errs).run(t.Context(), append(args, "--server", url))
		return out.String(), errs.String(), err
	}
	for _, title := range []string{"one", "two", "three"} {
		if _, _, err := teamctl("tasks", "add", "--title", title, "--key", title); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := teamctl("tasks", "update", "3", "--add-dependency", "2"); err != nil {
		t.Fatal(err)
	}
	bt, err := brokertest.Connect(t, url).Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	key := subject.KeyTask("T-002")
	e, err := bt.Bucket.Get(t.Context(), key)
	if err == nil {
		_, err = bt.Bucket.Put(t.Context(), key, []byte("{\"v\":9,\n\"id\":\"\x1b\"}"), e.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"tasks -o name", "T-001\nT-003\n"},
		{"tasks --limit 10 -o name", "T-001\nT-003\n"},
		{"tasks graph", "ID       STATUS   DEPENDENCIES     TITLE\nT-001    pending  -                one\nT-002    unknown  -\n  T-003  blocked  T-002 (unknown)  three\n"},
	} {
		stdout, stderr, err := teamctl(strings.Fields(tt.args)...)
		if err != nil || stdout != tt.want {
			t.Errorf("%s printed\n%s%v, want\n%s", tt.args, stdout, err, tt.want)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "not shown: task.T-002 at revision ") || strings.Contains(stderr, "\x1b") {
			t.Errorf("%s said %q", tt.args, stderr)
		}
	}
	if stdout, _, err := teamctl("tasks", "get", "3"); err != nil || !strings.Contains(stdout, "waiting for   T-002 (unknown)\n") {
		t.Errorf("get printed\n%s%v", stdout, err)
	}
	if _, _, err := teamctl("tasks", "get", "2"); team.CodeOf(err) != team.InvalidState {
		t.Errorf("get of the record: %v", err)
	}
}
