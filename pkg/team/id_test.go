package team_test

import (
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestParseTaskID(t *testing.T) {
	for s, want := range map[string]team.TaskID{
		"T-001": "T-001", "t-1": "T-001", "T1": "T-001", "#1": "T-001", "1": "T-001", " 1 ": "T-001", "#T-12": "T-012",
		"T-0999": "T-999", "1000": "T-1000", "T-123456789": "T-123456789",
		"": "", "T": "", "T-": "", "#": "", "0": "", "T-000": "", "-1": "", "+1": "", "T--1": "", "1.5": "", "1e3": "", "1_0": "",
		"T-1 T-2": "", "task": "", "任务": "", "T-1234567890": "", "T-001.>": "", "T-*": "",
	} {
		got, err := team.ParseTaskID(s)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParseTaskID(%q) = %q, %v, want %q", s, got, err, want)
		}
		if want == "" && team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("ParseTaskID(%q): %v, want invalid_argument", s, err)
		}
	}
}

func TestTaskIDNumber(t *testing.T) {
	for id, want := range map[team.TaskID]int{
		"T-001": 1, "T-999": 999, "T-1000": 1000, "T-123456789": 123456789,
		"": 0, "T-": 0, "T-1": 0, "T-0001": 0, "T-000": 0, "t-001": 0, "001": 0, "T-00x": 0, "T--01": 0, "T-1234567890": 0,
	} {
		if got := id.Number(); got != want {
			t.Errorf("Number of %q is %d, want %d", id, got, want)
		}
	}
	for _, n := range []int{1, 9, 10, 99, 100, 999, 1000, 99999} {
		id := team.MakeTaskID(n)
		if back, err := team.ParseTaskID(string(id)); id.Number() != n || back != id || err != nil {
			t.Errorf("task %d: id %s, number %d, parsed %s, %v", n, id, id.Number(), back, err)
		}
	}
	if team.TaskID("T-999").Number() >= team.TaskID("T-1000").Number() {
		t.Error("T-999 must come before T-1000")
	}
}

func TestNames(t *testing.T) {
	good := []string{"a", "7", "my-team", "a-", strings.Repeat("a", 63), "leader"}
	bad := []string{"", "-a", "A", "a_b", "a.b", "a b", "a*", ">", "a\n", "团队", "ä", strings.Repeat("a", 64), strings.Repeat("a", 100_000),
		"teams", "pool", "all", "board", "user", "watchdog"}
	for _, parse := range []func(string) error{
		func(s string) error { _, err := team.ParseTeamID(s); return err },
		func(s string) error { _, err := team.ParseAgentID(s); return err },
	} {
		for _, s := range good {
			if err := parse(s); err != nil {
				t.Errorf("%q: %v", s, err)
			}
		}
		for _, s := range bad {
			err := parse(s)
			if team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) == "" {
				t.Errorf("%.80q: %v (hint %q), want invalid_argument with a hint", s, err, team.HintOf(err))
			} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
				t.Errorf("the error of a bad name is not one short line: %.400q", err)
			}
		}
	}
	if s := team.AgentID("coder-1").At("default"); s != "coder-1@default" {
		t.Errorf("At = %q", s)
	}
}

func TestParseAddress(t *testing.T) {
	for s, want := range map[string]struct {
		name team.AgentID
		id   team.TeamID
	}{
		"coder-1": {"coder-1", ""}, "coder-1@red": {"coder-1", "red"}, "leader@default": {"leader", "default"},
		"": {}, "@": {}, "@red": {}, "coder-1@": {}, "coder-1@red@blue": {}, "coder-1@Red": {}, "user@red": {}, "a b@red": {},
	} {
		name, id, err := team.ParseAddress(s)
		if want.name == "" {
			if team.CodeOf(err) != team.InvalidArgument {
				t.Errorf("ParseAddress(%q) = %q, %q, %v, want invalid_argument", s, name, id, err)
			}
		} else if name != want.name || id != want.id || err != nil {
			t.Errorf("ParseAddress(%q) = %q, %q, %v, want %+v", s, name, id, err, want)
		}
	}
}

func TestParseTaskStatus(t *testing.T) {
	for s, want := range map[string]team.TaskStatus{"pending": team.Pending, "in_progress": team.InProgress, "completed": team.Completed,
		"failed": team.Failed, "cancelled": team.Cancelled, "deleted": team.Cancelled, "blocked": "", "": "", "PENDING": ""} {
		if got, err := team.ParseTaskStatus(s); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseTaskStatus(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
	if !slices.Equal([]bool{team.Pending.Open(), team.InProgress.Open(), team.Completed.Open(), team.Failed.Open(), team.Cancelled.Open()},
		[]bool{true, true, false, false, false}) {
		t.Error("only pending and in_progress are open")
	}
}
