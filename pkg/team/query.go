package team

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Query selects tasks and a page of their list, which is ordered by number. The zero Query is the first page
// of all tasks. All conditions must hold; an unset one holds for every task.
type Query struct {
	IDs         []TaskID     `json:"ids,omitempty"`          // one of these
	Status      []TaskStatus `json:"status,omitempty"`       // in one of these
	Assignee    AgentID      `json:"assignee,omitempty"`     // who holds it, or held it last
	Role        string       `json:"role,omitempty"`         // for this role; with Claimable set, tasks for any role too
	ReservedFor AgentID      `json:"reserved_for,omitempty"` // for this member; with Claimable set, those reserved for nobody too
	Claimable   *bool        `json:"claimable,omitempty"`    // pending, and all dependencies are completed; or not so
	Blocked     *bool        `json:"blocked,omitempty"`      // pending, and a dependency is not completed; or not so
	Merging     bool         `json:"-"`                      // in progress, and its work waits to be in the line; no record shows that, so package client judges it
	Text        string       `json:"text,omitempty"`         // in title or description; upper and lower case are the same
	After       string       `json:"after,omitempty"`        // Next of the page before
	Limit       int          `json:"limit,omitempty"`        // tasks on a page; default DefaultPage, at most MaxPage
}

// The length of a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page is the answer to a Query.
type Page struct {
	Tasks       []TaskView    `json:"tasks"`
	Total       int           `json:"total"`                 // tasks that match, on all pages
	ByStatus    Counts        `json:"by_status,omitempty"`   // how many of these are in each status
	Next        string        `json:"next,omitempty"`        // After of the next page; "" = this is the last
	Seq         uint64        `json:"seq"`                   // of the bucket, up to which it was read
	Quarantined []Quarantined `json:"quarantined,omitempty"` // records that are missing since they cannot be read
}

// Counts are numbers of tasks by status, without zeros.
type Counts map[TaskStatus]int

// Quarantined is a record that cannot be read: damaged, or of another protocol version. It does not affect
// other records, and a valid write repairs it.
type Quarantined struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	Error    string `json:"error"`
}

// Validate checks everything that can be checked without the board. Errors:
// InvalidArgument.
func (q Query) Validate() error {
	for _, s := range q.Status {
		if !slices.Contains(taskStatuses[:], s) {
			_, err := ParseTaskStatus(string(s))
			return cmp.Or(err, error(Errorf(InvalidArgument, "%q is not a task status", s).WithHint("it is called %s", Cancelled)))
		}
	}
	for _, a := range []AgentID{q.Assignee, q.ReservedFor} {
		if a == "" {
			continue
		}
		if _, err := ParseAgentID(string(a)); err != nil {
			return err
		}
	}
	if q.Role != "" {
		if err := checkName("role", q.Role); err != nil {
			return err
		}
	}
	if err := checkText("the text to look for", q.Text, MaxTextBytes); err != nil {
		return err
	}
	switch {
	case q.Limit < 0:
		return Errorf(InvalidArgument, "a page of %d tasks cannot be", q.Limit).WithHint("use 1 to %d", MaxPage)
	case q.Limit > MaxPage:
		return Errorf(InvalidArgument, "a page has at most %d tasks", MaxPage).WithHint("read the list page by page")
	case len(q.IDs) > MaxPage:
		return Errorf(InvalidArgument, "%d ids are too many, the limit is %d", len(q.IDs), MaxPage).WithHint("ask for some of them at a time")
	case q.After != "" && TaskID(q.After).Number() == 0:
		return Errorf(InvalidArgument, "%q is not a place in the list", Clip(q.After, 80)).WithHint("give what the page before named as next")
	}
	return nil
}

// usual are the statuses of a list for which the caller names none.
var usual = []TaskStatus{Pending, InProgress, Completed, Failed}

// InStatuses returns q for tasks in these statuses as people see them, [ShownBlocked] and merging among them.
// Without any it selects all but cancelled tasks; with cancelled, those too. Errors: InvalidArgument.
func (q Query) InStatuses(shown []string, cancelled bool) (Query, error) {
	for _, s := range shown {
		if s == ShownBlocked || s == shownMerging {
			continue
		}
		status, err := ParseTaskStatus(s)
		if err != nil {
			return q, Errorf(InvalidArgument, "%w", err).
				WithHint("%s", meantStatus(s, append(Strings(taskStatuses[:]...), ShownBlocked, shownMerging), "a list is of pending, blocked, in_progress, merging, completed, failed or cancelled tasks"))
		}
		q.Status = append(q.Status, status)
	}
	// A blocked task is pending and a merging one in progress: with that status they are no less than all of it.
	blocked := slices.Contains(shown, ShownBlocked) && !slices.Contains(q.Status, Pending)
	merging := slices.Contains(shown, shownMerging) && !slices.Contains(q.Status, InProgress)
	switch {
	case blocked && (merging || len(q.Status) > 0):
		return q, Errorf(InvalidArgument, "blocked goes with no other status than pending").WithHint("list them one after the other")
	case merging && len(q.Status) > 0:
		return q, Errorf(InvalidArgument, "merging goes with no other status than in_progress").WithHint("list them one after the other")
	case blocked:
		yes := true
		q.Blocked = &yes
	case merging:
		q.Status, q.Merging = []TaskStatus{InProgress}, true
	}
	if len(q.Status) == 0 && !cancelled {
		q.Status = slices.Clone(usual)
	}
	return q, nil
}

// IsUsual reports whether q leaves cancelled tasks out, as a list without statuses does.
func (q Query) IsUsual() bool { return slices.Equal(q.Status, usual) }

// Row is a task with the facts that a list needs, so that an index in memory computes them once.
type Row struct {
	*Task
	Number  int  // of its id
	Blocked bool // a dependency is not completed
	Merging bool // its work waits to be in the line, as far as that is known
}

// Row returns the task as a query sees it.
func (v *TaskView) Row() Row {
	return Row{Task: &v.Task, Number: v.ID.Number(), Blocked: v.IsBlocked, Merging: v.Merging != nil}
}

// Match reports whether the task meets all conditions.
func (q *Query) Match(r Row) bool {
	pending := r.Status == Pending
	own := q.ReservedFor != "" && q.ReservedFor == r.ReservedFor
	switch {
	case len(q.IDs) > 0 && !slices.Contains(q.IDs, r.ID),
		len(q.Status) > 0 && !slices.Contains(q.Status, r.Status),
		q.Assignee != "" && q.Assignee != r.Assignee,
		q.ReservedFor != "" && !own && (q.Claimable == nil || r.ReservedFor != ""),
		q.Role != "" && !own && q.Role != r.Role && (q.Claimable == nil || r.Role != ""),
		q.Claimable != nil && *q.Claimable != (pending && !r.Blocked),
		q.Blocked != nil && *q.Blocked != (pending && r.Blocked),
		q.Merging && !r.Merging:
		return false
	}
	return q.Text == "" || containsFold(r.Title, q.Text) || containsFold(r.Description, q.Text)
}

// containsFold reports whether s contains part in upper or lower case. It compares plain ASCII in place: a
// board has many texts.
func containsFold(s, part string) bool {
	if !ascii(s) || !ascii(part) {
		return strings.Contains(strings.ToLower(s), strings.ToLower(part))
	}
	for ; len(s) >= len(part); s = s[1:] {
		// A letter and its capital differ in one bit; whatever else does is told apart next.
		if (s[0]^part[0])&^0x20 == 0 && strings.EqualFold(s[:len(part)], part) {
			return true
		}
	}
	return false
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// compare orders tasks for the list; it is 0 for a task and itself only.
func (r Row) compare(s Row) int {
	return cmp.Or(cmp.Compare(r.Number, s.Number), cmp.Compare(r.ID, s.ID))
}

// Select returns q's page of all tasks, which may come in any order: the tasks of the page in the list's
// order, the number of matches on all pages by status, and the cursor of the next page. row returns the row
// of a task. The index and readers of the bucket use it.
func Select[T any](q Query, all iter.Seq[T], row func(T) Row) (page []T, counts Counts, next string) {
	limit := cmp.Or(q.Limit, DefaultPage)
	after := TaskID(q.After)
	compare := func(a, b T) int { return row(a).compare(row(b)) }
	var matching [len(taskStatuses)]int
	rest := 0     // that match and come after the cursor
	var worst Row // the last of a full page
	for x := range all {
		r := row(x)
		if !q.Match(r) {
			continue
		}
		matching[slices.Index(taskStatuses[:], r.Status)]++
		if after != "" && cmp.Or(cmp.Compare(r.Number, after.Number()), cmp.Compare(r.ID, after)) <= 0 {
			continue
		}
		rest++
		if len(page) == limit {
			if r.compare(worst) >= 0 {
				continue
			}
			page = page[:limit-1]
		}
		at, _ := slices.BinarySearchFunc(page, x, compare)
		page = slices.Insert(page, at, x)
		worst = row(page[len(page)-1])
	}
	if rest > len(page) {
		next = string(worst.ID)
	}
	counts = Counts{}
	for i, n := range matching {
		if n > 0 {
			counts[taskStatuses[i]] = n
		}
	}
	return page, counts, next
}

// Total is the sum.
func (c Counts) Total() (n int) {
	for _, m := range c {
		n += m
	}
	return n
}

// Page answers q from all tasks of the board.
func (q Query) Page(tasks []Task) Page {
	views := View(tasks)
	page, counts, next := Select(q, func(yield func(*TaskView) bool) {
		for i := range views {
			if !yield(&views[i]) {
				return
			}
		}
	}, (*TaskView).Row)
	p := Page{Tasks: make([]TaskView, len(page)), Total: counts.Total(), ByStatus: counts, Next: next}
	for i, v := range page {
		p.Tasks[i] = *v
	}
	return p
}

// Fit returns p, an answer to q, cut to about limit bytes of JSON, but to at least one task; the next page
// has the others.
func (q Query) Fit(p Page, limit int) (Page, error) {
	size := 0
	for i := range p.Tasks {
		data, err := json.Marshal(p.Tasks[i])
		if err != nil {
			return p, err
		}
		if size += len(data) + 1; size > limit && i > 0 {
			p.Tasks, p.Next = p.Tasks[:i], string(p.Tasks[i-1].ID)
			break
		}
	}
	return p, nil
}
