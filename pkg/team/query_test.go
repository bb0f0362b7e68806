package team_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/team"
)

func yes() *bool { b := true; return &b }
func no() *bool  { return new(bool) }

// listed is a board with a task of every kind.
func listed() []team.Task {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	return []team.Task{
		{ID: "T-001", Title: "Count the lines", Status: team.Completed, Assignee: "coder-1", UpdatedAt: at(5)},
		{ID: "T-002", Title: "Draw", Description: "the ÜBERSICHT", Status: team.Pending, Priority: 1, Dependencies: []team.TaskID{"T-001"}, UpdatedAt: at(1)},
		{ID: "T-003", Title: "Test", Status: team.Pending, Role: "tester", UpdatedAt: at(2)},
		{ID: "T-004", Title: "Wait", Status: team.Pending, Priority: 2, Dependencies: []team.TaskID{"T-005"}, UpdatedAt: at(3)},
		{ID: "T-005", Title: "Work", Status: team.InProgress, Assignee: "coder-1", Role: "coder", UpdatedAt: at(9)},
		{ID: "T-999", Title: "Give up", Status: team.Failed, UpdatedAt: at(4)},
		{ID: "T-1000", Title: "Too late", Status: team.Cancelled, UpdatedAt: at(4)},
	}
}

func ids(tasks []team.TaskView) string {
	var s []string
	for _, t := range tasks {
		s = append(s, string(t.ID))
	}
	return strings.Join(s, " ")
}

func TestQuery(t *testing.T) {
	for name, tt := range map[string]struct {
		q    team.Query
		want string
	}{
		"all":                      {team.Query{}, "T-001 T-002 T-003 T-004 T-005 T-999 T-1000"},
		"by id":                    {team.Query{IDs: []team.TaskID{"T-1000", "T-002", "T-007"}}, "T-002 T-1000"},
		"pending":                  {team.Query{Status: []team.TaskStatus{team.Pending}}, "T-002 T-003 T-004"},
		"over":                     {team.Query{Status: []team.TaskStatus{team.Failed, team.Cancelled}}, "T-999 T-1000"},
		"of an agent":              {team.Query{Assignee: "coder-1"}, "T-001 T-005"},
		"for a role":               {team.Query{Role: "tester"}, "T-003"},
		"claimable":                {team.Query{Claimable: yes()}, "T-002 T-003"},
		"claimable by a role":      {team.Query{Claimable: yes(), Role: "coder"}, "T-002"},
		"claimable by another":     {team.Query{Claimable: yes(), Role: "tester"}, "T-002 T-003"},
		"not claimable":            {team.Query{Claimable: no(), Status: []team.TaskStatus{team.Pending}}, "T-004"},
		"blocked":                  {team.Query{Blocked: yes()}, "T-004"},
		"not blocked":              {team.Query{Blocked: no(), Status: []team.TaskStatus{team.Pending}}, "T-002 T-003"},
		"text in the title":        {team.Query{Text: "LINES"}, "T-001"},
		"text in the description":  {team.Query{Text: "übersicht"}, "T-002"},
		"text that is nowhere":     {team.Query{Text: "lines of"}, ""},
		"a page":                   {team.Query{Limit: 2}, "T-001 T-002"},
		"several conditions":       {team.Query{Assignee: "coder-1", Status: []team.TaskStatus{team.InProgress}, Role: "coder", Text: "w"}, "T-005"},
		"several that do not meet": {team.Query{Assignee: "coder-1", Role: "tester"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.q.Validate(); err != nil {
				t.Fatal(err)
			}
			p := tt.q.Page(listed())
			if got := ids(p.Tasks); got != tt.want {
				t.Errorf("tasks are %s, want %s", got, tt.want)
			}
			if tt.q.Limit == 0 && (p.Total != len(p.Tasks) || p.Next != "") {
				t.Errorf("of %d tasks, the next page at %q", p.Total, p.Next)
			}
		})
	}
}

func TestQueryValidate(t *testing.T) {
	for name, q := range map[string]team.Query{
		"status":         {Status: []team.TaskStatus{"done"}},
		"deleted":        {Status: []team.TaskStatus{"deleted"}},
		"assignee":       {Assignee: "No Body"},
		"role":           {Role: "No Role"},
		"limit":          {Limit: team.MaxPage + 1},
		"negative limit": {Limit: -1},
		"ids":            {IDs: make([]team.TaskID, team.MaxPage+1)},
		"text":           {Text: "\x00"},
		"cursor":         {After: "id.T-001"},
		"cursor's task":  {After: "T-1"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := q.Validate(); !errors.Is(err, team.InvalidArgument) || team.HintOf(err) == "" {
				t.Errorf("Validate = %v, hint %q", err, team.HintOf(err))
			}
		})
	}
}

// Read page by page, a list has every task once and in order, also if what was on
// an earlier page has changed.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tasks []team.Task
		for n := range rapid.IntRange(0, 30).Draw(t, "tasks") {
			tasks = append(tasks, team.Task{ID: team.MakeTaskID(n + 1), Status: team.Pending, Priority: rapid.IntRange(0, 2).Draw(t, "priority"),
				UpdatedAt: time.Unix(int64(rapid.IntRange(0, 5).Draw(t, "updated")), 0).UTC()})
		}
		q := team.Query{}
		all := q.Page(tasks).Tasks
		q.Limit = rapid.IntRange(1, 7).Draw(t, "limit")
		shuffled := rapid.Permutation(tasks).Draw(t, "shuffled")
		var got []team.TaskView
		for {
			if err := q.Validate(); err != nil {
				t.Fatal(err)
			}
			p := q.Page(shuffled)
			if p.Total != len(tasks) || len(p.Tasks) > q.Limit {
				t.Fatalf("a page of %d tasks of %d", len(p.Tasks), p.Total)
			}
			p, err := q.Fit(p, rapid.IntRange(0, 3000).Draw(t, "bytes"))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Tasks...)
			if q.After = p.Next; q.After == "" {
				break
			}
			// Whatever is on earlier pages may go.
			gone := rapid.SampledFrom(got).Draw(t, "gone").ID
			if at := slices.IndexFunc(shuffled, func(t team.Task) bool { return t.ID == gone }); at >= 0 && len(tasks) > 1 {
				tasks = slices.DeleteFunc(tasks, func(t team.Task) bool { return t.ID == gone })
				shuffled = slices.Delete(shuffled, at, at+1)
			}
		}
		if ids(got) != ids(all) {
			t.Fatalf("page by page %s, at once %s", ids(got), ids(all))
		}
	})
}

// A page travels as JSON; the tasks are the printed ones.
func TestPageJSON(t *testing.T) {
	p := team.Query{Blocked: yes()}.Page(listed())
	p.Seq = 7
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got team.Page
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tasks) != 1 || !got.Tasks[0].IsBlocked || len(got.Tasks[0].WaitingFor) != 1 || got.Seq != 7 {
		t.Errorf("read back it is %+v", got)
	}
}

// Whatever place somebody names, it is refused or begins a page.
func FuzzQuery(f *testing.F) {
	for _, after := range []string{"", "T-001", "T-", "T-999999999999999999999", "id.T-001"} {
		f.Add(after)
	}
	f.Fuzz(func(t *testing.T, after string) {
		q := team.Query{After: after, Limit: 2}
		if q.Validate() != nil {
			return
		}
		row := func(task team.Task) team.Row { return team.Row{Task: &task, Number: task.ID.Number()} }
		if page, counts, _ := team.Select(q, slices.Values([]team.Task{pending()}), row); counts.Total() != 1 || len(page) > 1 {
			t.Errorf("of one task %v, %d on the page", counts, len(page))
		}
	})
}

// What is reserved is found by for whom, and is not among what others could claim.
func TestQueryReserved(t *testing.T) {
	board := []team.Task{
		{ID: "T-001", Title: "mine", Status: team.Pending, Role: "tester", ReservedFor: "coder-1"},
		{ID: "T-002", Title: "another's", Status: team.Pending, ReservedFor: "coder-2"},
		{ID: "T-003", Title: "anybody's", Status: team.Pending},
		{ID: "T-004", Title: "mine later", Status: team.Pending, ReservedFor: "coder-1", Dependencies: []team.TaskID{"T-003"}},
		{ID: "T-005", Title: "of another role", Status: team.Pending, Role: "tester"},
	}
	for _, tt := range []struct {
		q    team.Query
		want string
	}{
		{team.Query{ReservedFor: "coder-1"}, "T-001 T-004"},
		{team.Query{ReservedFor: "coder-1", Status: []team.TaskStatus{team.Pending}, Blocked: no()}, "T-001"},
		{team.Query{ReservedFor: "coder-1", Role: "coder", Claimable: yes()}, "T-001 T-003"},
		{team.Query{ReservedFor: "coder-3", Role: "coder", Claimable: yes()}, "T-003"},
	} {
		if got := ids(tt.q.Page(board).Tasks); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.q, got, tt.want)
		}
	}
	if err := (team.Query{ReservedFor: "Coder 1"}).Validate(); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a name that cannot be: %v", err)
	}
}
