package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// A list of entries is a whole document in each format, with none, one and several.
func TestPastPrinter(t *testing.T) {
	for _, tt := range []struct {
		format format
		n      int
		want   string
	}{
		{asJSON, 0, "[]\n"}, {asYAML, 0, "[]\n"}, {asJSONL, 0, ""}, {asName, 0, ""},
		{asName, 2, "c\nc\n"},
	} {
		got := printed(t, tt.format, tt.n)
		if got != tt.want {
			t.Errorf("%s of %d prints %q, want %q", tt.format, tt.n, got, tt.want)
		}
	}
	for n := 1; n <= 3; n++ {
		var all []client.Entry
		if err := json.Unmarshal([]byte(printed(t, asJSON, n)), &all); err != nil || len(all) != n {
			t.Errorf("json of %d is read as %d, %v", n, len(all), err)
		}
		if got := printed(t, asYAML, n); strings.Count(got, "- cursor: c\n") != n || strings.Contains(got, "---") {
			t.Errorf("yaml of %d is %s", n, got)
		}
		if got := printed(t, asJSONL, n); strings.Count(got, "\n") != n || !strings.HasPrefix(got, `{"cursor":"c","time":`) {
			t.Errorf("jsonl of %d is %s", n, got)
		}
	}
}

func printed(t *testing.T, f format, n int) string {
	t.Helper()
	var out bytes.Buffer
	a := &app{out: &out, output: f}
	p := a.pastPrinter()
	for range n {
		if err := p.entry(entryOf(t, team.EventBody{Type: team.RunStarted}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
