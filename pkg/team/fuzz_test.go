package team_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// An id that is accepted, however it was written, is the one that it is stored
// under, and no two ids are of the same number.
func FuzzParseTaskID(f *testing.F) {
	for _, s := range []string{"T-001", "t-1", "#1", "1", "T-1000", " T-7 ", "T1", "#T-1", "0", "-1", "T--1", "T-0000000001", "9999999999", "T-", "任务 1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := team.ParseTaskID(s)
		if err != nil {
			if team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) == "" || id != "" {
				t.Errorf("ParseTaskID(%q) = %q, %v", s, id, err)
			}
			return
		}
		n := id.Number()
		if n < 1 || team.MakeTaskID(n) != id {
			t.Fatalf("ParseTaskID(%q) = %q, which is number %d, %s", s, id, n, team.MakeTaskID(n))
		}
		if again, err := team.ParseTaskID(string(id)); again != id || err != nil {
			t.Errorf("ParseTaskID(%q) = %q, %v", id, again, err)
		}
	})
}

// Whatever the text, a number is that of one id only.
func FuzzTaskNumber(f *testing.F) {
	for _, s := range []string{"T-001", "T-1", "T-0001", "T-1000", "T-01000", "T-+01", "T-000", "t-001", "T-999999999", "T-9999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n := team.TaskID(s).Number(); n < 0 || n > 0 && string(team.MakeTaskID(n)) != s {
			t.Errorf("%q is number %d, which is %s", s, n, team.MakeTaskID(n))
		}
	})
}

// A name that is accepted can stand in a subject: it is one token.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"coder-1", "leader", "a", "-a", "A", "a.b", "a b", "*", ">", "pool", "größe", strings.Repeat("a", 63), strings.Repeat("a", 64), ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, agentErr := team.ParseAgentID(s)
		_, teamErr := team.ParseTeamID(s)
		ok := s != "" && len(s) <= 63 && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		for _, err := range []error{agentErr, teamErr} {
			if err == nil && !ok {
				t.Errorf("%q is accepted", s)
			}
			if err != nil && team.CodeOf(err) != team.InvalidArgument {
				t.Errorf("%q: %v", s, err)
			}
		}
	})
}
