package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// NewTask is a task as its creator describes it; the board adds the other fields.
type NewTask struct {
	Title          string
	Description    string
	Priority       int
	Dependencies   []TaskID
	After          []int // tasks of the same call, by position from 0, that must be completed first
	Role           string
	ReservedFor    AgentID  // the member that is to do it; "" = any
	Check          string   // a shell command that must succeed before the task is completed
	Supersedes     []TaskID // tasks whose checks no longer count once this one is merged
	DeliverableReq bool
	Metadata       json.RawMessage
}

// Validate checks everything that can be checked without the board.
func (n NewTask) Validate() error {
	if err := checkTitle(strings.TrimSpace(n.Title)); err != nil {
		return err
	}
	if err := checkText("the description", n.Description, MaxTextBytes); err != nil {
		return err
	}
	if err := checkText("the check", n.Check, MaxTextBytes); err != nil {
		return err
	}
	if n.Priority < 0 || n.Priority > 2 {
		return Errorf(InvalidArgument, "priority %d is out of range", n.Priority).WithHint("0 is normal, 1 high, 2 critical")
	}
	if all := len(n.Dependencies) + len(n.After); all > MaxDependencies {
		return Errorf(InvalidArgument, "%d dependencies are too many, the limit is %d", all, MaxDependencies).
			WithHint("let a task in between wait for some of them")
	}
	if len(n.Supersedes) > MaxDependencies {
		return Errorf(InvalidArgument, "a task supersedes the checks of at most %d tasks, not of %d", MaxDependencies, len(n.Supersedes))
	}
	if err := checkMetadata(n.Metadata); err != nil {
		return err
	}
	if n.ReservedFor != "" {
		if _, err := ParseAgentID(string(n.ReservedFor)); err != nil {
			return err
		}
	}
	if n.Role != "" {
		return checkName("role", n.Role)
	}
	return nil
}

// Task returns n as the pending task with this id. It trims the title: a shell or a model easily adds spaces
// and line ends, which people do not see.
func (n NewTask) Task(id TaskID, by AgentID, now time.Time) Task {
	n.Title = strings.TrimSpace(n.Title)
	deps := slices.Clone(n.Dependencies)
	slices.SortFunc(deps, func(a, b TaskID) int { return cmp.Compare(a.Number(), b.Number()) })
	return Task{
		V: Protocol, ID: id, Title: n.Title, Description: n.Description, Status: Pending,
		Priority: n.Priority, Dependencies: slices.Compact(deps), Role: n.Role, ReservedFor: n.ReservedFor, Check: n.Check, Supersedes: n.Supersedes,
		DeliverableReq: n.DeliverableReq, DeliverablePath: deliverablePath(id, n.Title),
		Metadata: n.Metadata, CreatedBy: by, CreatedAt: now, UpdatedAt: now, UpdatedBy: by,
	}
}

// ValidatePlan checks the tasks of one call without the board. Errors: InvalidArgument for an invalid task,
// or a task that comes after itself, also through others.
func ValidatePlan(tasks []NewTask) error {
	if len(tasks) == 0 {
		return Errorf(InvalidArgument, "there are no tasks to create").WithHint("name at least one")
	}
	after := make(map[int][]int, len(tasks))
	for i, n := range tasks {
		if err := n.Validate(); err != nil {
			return inCall(tasks, i, err)
		}
		for _, at := range n.After {
			if at < 0 || at >= len(tasks) {
				return inCall(tasks, i, Errorf(InvalidArgument, "it comes after task %d, and the call has %d", at+1, len(tasks)).
					WithHint("count the tasks of the call from 0"))
			}
		}
		after[i] = n.After
	}
	if path := CycleOf(after); path != nil {
		return inCall(tasks, path[0], Errorf(InvalidArgument, "it would wait for itself (a cycle of %d)", len(path)).WithHint(breakCycle))
	}
	return nil
}

// CycleOf returns a cycle among the tasks 0 to len(after)-1, as [Cycle] does; nil if there is none. It visits
// each task once.
func CycleOf(after map[int][]int) []int {
	var path []int                   // the way to where it looks
	done := make([]bool, len(after)) // no way from there leads into a cycle
	var walk func(at int) []int
	walk = func(at int) []int {
		if done[at] {
			return nil
		}
		if begin := slices.Index(path, at); begin >= 0 {
			return path[begin:]
		}
		path = append(path, at)
		for _, next := range after[at] {
			if cycle := walk(next); cycle != nil {
				return cycle
			}
		}
		path, done[at] = path[:len(path)-1], true
		return nil
	}
	for i := range len(after) {
		if cycle := walk(i); cycle != nil {
			return cycle
		}
	}
	return nil
}

// breakCycle is the hint of an error about tasks that wait for each other.
const breakCycle = "leave out one of the dependencies on the way round"

// Number returns the valid tasks of one call in stored form, with consecutive ids from first.
func Number(tasks []NewTask, first int, by AgentID, now time.Time) []Task {
	plan := make([]Task, len(tasks))
	for i, n := range tasks {
		n.Dependencies = slices.Clone(n.Dependencies)
		for _, at := range n.After {
			n.Dependencies = append(n.Dependencies, MakeTaskID(first+at))
		}
		plan[i] = n.Task(MakeTaskID(first+i), by, now)
	}
	return plan
}

// AsAdded reports whether t is n as it was added to the board, not written since.
func (t Task) AsAdded(n NewTask) bool {
	return t.Untouched() && t.Title == n.Title && (t.ReservedFor == "" || t.ReservedFor == n.ReservedFor)
}

// inCall adds to an error the task of the call that it is about.
func inCall(tasks []NewTask, i int, err error) error {
	if len(tasks) == 1 {
		return err
	}
	return fmt.Errorf("task %d (%s): %w", i+1, Clip(tasks[i].Title, 40), err)
}

// Cycle returns a path from x back to x along deps, the dependencies of each node; nil if there is none.
func Cycle[T comparable](deps map[T][]T, x T) []T {
	seen := map[T]bool{}
	var walk func(at T, path []T) []T
	walk = func(at T, path []T) []T {
		path = append(path, at)
		for _, d := range deps[at] {
			if d == x {
				return path
			}
			if !seen[d] {
				seen[d] = true
				if p := walk(d, path); p != nil {
					return p
				}
			}
		}
		return nil
	}
	return walk(x, nil)
}

// notSlug matches characters that are neither letters nor digits. Marks behind a letter belong to it.
var notSlug = regexp.MustCompile(`(?:^\p{M}+|[^\p{L}\p{M}\p{Nd}]\p{M}*)+`)

// A slug fits into a file name on any system, behind the id and in a longer path.
const (
	maxSlug      = 60 // characters
	maxSlugBytes = 180
)

func deliverablePath(id TaskID, title string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(strings.ToValidUTF8(title, "-")), "-"), "-")
	n := 0
	for at, r := range slug {
		if n++; n > maxSlug || at+utf8.RuneLen(r) > maxSlugBytes {
			slug = strings.TrimRight(slug[:at], "-")
			break
		}
	}
	return fmt.Sprintf("deliverables/%s-%s.md", id, cmp.Or(slug, "task"))
}
