package main

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func TestWaiting(t *testing.T) {
	task := func(id team.TaskID, s team.TaskStatus, deps ...team.TaskID) team.TaskView {
		return team.Task{ID: id, Status: s, Dependencies: deps, Reason: "why"}.View(nil, nil)
	}
	chain := []team.TaskView{
		task("T-001", team.InProgress), task("T-002", team.Pending, "T-001"), task("T-003", team.Pending, "T-001", "T-002"),
		task("T-004", team.Completed), task("T-005", team.Failed), task("T-006", team.Completed, "T-005"), task("T-007", team.Pending, "T-006"),
	}
	// now are changes that are told one after another.
	now := func(tasks ...team.TaskView) (all []client.Snapshot) {
		for _, v := range tasks {
			all = append(all, client.Snapshot{Tasks: []team.TaskView{v}})
		}
		return all
	}
	gone := func(id team.TaskID) []client.Snapshot { return []client.Snapshot{{Gone: []team.TaskID{id}}} }
	for name, tt := range map[string]struct {
		of      team.TaskID
		status  team.TaskStatus
		changed []client.Snapshot // after the chain
		want    string            // "" = it waits on
	}{
		"completed":                       {"T-004", team.Completed, nil, errReached.Error()},
		"completed is begun":              {"T-004", team.InProgress, nil, errReached.Error()},
		"under way":                       {"T-001", team.Completed, nil, ""},
		"begun":                           {"T-001", team.InProgress, nil, errReached.Error()},
		"failed":                          {"T-005", team.Completed, nil, "T-005 is failed and will not be completed (why)"},
		"blocked by what is under way":    {"T-003", team.Completed, nil, ""},
		"behind what was completed still": {"T-007", team.Completed, nil, ""},
		"a dependency is cancelled": {"T-002", team.Completed, now(task("T-001", team.Cancelled)),
			"T-002 waits for T-001, which was cancelled (why): T-002 will not be completed"},
		"the first of a chain fails": {"T-003", team.InProgress, now(task("T-002", team.Pending), task("T-002", team.Pending, "T-005")),
			"T-003 waits for T-002, that for T-005, which has failed (why): T-003 will not be in_progress"},
		"that may be given up itself":      {"T-002", team.Cancelled, now(task("T-001", team.Cancelled)), ""},
		"pending all the same":             {"T-002", team.Pending, now(task("T-001", team.Cancelled)), errReached.Error()},
		"a dependency is completed":        {"T-002", team.Completed, now(task("T-001", team.Completed)), ""},
		"and so is it":                     {"T-002", team.Completed, now(task("T-002", team.Completed)), errReached.Error()},
		"deleted":                          {"T-001", team.Completed, gone("T-001"), "T-001 was deleted"},
		"a dependency is deleted":          {"T-003", team.Completed, gone("T-002"), "T-003 waits for T-002, which was deleted: T-003 will not be completed"},
		"deleted and made again":           {"T-001", team.Completed, append(gone("T-009"), client.Snapshot{Tasks: []team.TaskView{task("T-009", team.Pending)}}), ""},
		"one that cannot be read now":      {"T-099", team.Completed, nil, ""},
		"it was mended before it mattered": {"T-003", team.Completed, now(task("T-003", team.Pending, "T-002")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting([]team.TaskID{tt.of}, tt.status)
			err := w.take(client.Snapshot{Tasks: chain})
			for _, b := range tt.changed {
				err = w.take(b)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("take = %q\nwant   %q", got, tt.want)
			}
			if strings.Contains(got, " waits for ") && (!errors.Is(err, team.InvalidState) || !strings.Contains(team.HintOf(err), "--remove-dependency")) {
				t.Errorf("%v is %s, with the hint %q", err, team.CodeOf(err), team.HintOf(err))
			}
		})
	}
}
