// Package boardtest checks every write of a team's bucket, in order, against the promises of package board.
//
// A test's own bookkeeping sees only the answers to its callers. The feed has every stored write, of any writer, whether
// or not a caller got its answer.
package boardtest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Judge sees every write of a bucket, from the first on, and returns those that break a rule. It keeps a few words of
// each task and one of each write, so it can judge millions. The zero value is ready; not safe for concurrent use.
type Judge struct {
	tasks      map[team.TaskID]team.Task // the compared fields of the last copy
	holds      map[holder]team.TaskID
	intent     board.Sequence
	writes     []uint64       // by revision, a hash of task and op; 0 = no task
	awaited    map[uint64]Ack // by revision, acknowledged and not seen yet
	violations []string
	more       int // violations that are not listed
}

type holder struct {
	agent       team.AgentID
	incarnation uint64
}

// Ack is a write that was acknowledged as stored.
type Ack struct {
	Task     team.TaskID `json:"task"`
	Op       string      `json:"op"`
	Revision uint64      `json:"revision"`
}

// AckOf returns the write that made t, as the board returned it.
func AckOf(t team.Task) Ack { return Ack{t.ID, t.Op, t.Revision} }

// maxViolations bounds the report: the first ones show the cause.
const maxViolations = 50

func (j *Judge) violation(format string, args ...any) {
	if len(j.violations) < maxViolations {
		j.violations = append(j.violations, fmt.Sprintf(format, args...))
	} else {
		j.more++
	}
}

// See judges the next write.
func (j *Judge) See(e broker.Entry) {
	if want := uint64(len(j.writes)) + 1; e.Revision != want {
		// A gap is not a fault of the board, but the writes in it cannot be judged.
		j.violation("the feed goes from revision %d to %d", want-1, e.Revision)
		if e.Revision < want {
			return
		}
		j.writes = append(j.writes, make([]uint64, e.Revision-want)...)
	}
	j.writes = append(j.writes, 0)
	if a, ok := j.awaited[e.Revision]; ok {
		delete(j.awaited, e.Revision)
		defer j.Acknowledged(a)
	}
	switch kind, _ := subject.ParseKey(e.Key); {
	case kind != subject.Task && e.Key != subject.KeySequence:
	case e.Deleted:
		j.violation("revision %d removes %s", e.Revision, e.Key)
	case kind == subject.Task:
		t, err := board.Decode(e)
		if err != nil {
			j.violation("revision %d: %v", e.Revision, err)
			return
		}
		j.writes[e.Revision-1] = AckOf(t).hash()
		j.task(t)
	default:
		j.sequence(e)
	}
}

func hash(words ...string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// sequence judges the key that hands out the ids.
func (j *Judge) sequence(e broker.Entry) {
	next, err := board.DecodeSequence(e)
	if err != nil {
		j.violation("revision %d: %v", e.Revision, err)
		return
	}
	before := j.intent
	j.intent = next
	if slices.EqualFunc(next.Intent, before.Intent, func(a, b team.Task) bool { return a.ID == b.ID && a.Op == b.Op }) {
		if next.Next != max(before.Next, 1) {
			j.violation("revision %d: the next id goes from %d to %d without a new task", e.Revision, before.Next, next.Next)
		}
		return // closed, or opened again
	}
	for _, t := range before.Intent {
		if _, ok := j.tasks[t.ID]; !ok {
			j.violation("revision %d: tasks are announced before %s of the last call exists", e.Revision, t.ID)
		}
	}
	if before.Closed {
		j.violation("revision %d: tasks are added after the goal was ended", e.Revision)
	}
	for i, t := range next.Intent {
		if want := team.MakeTaskID(max(before.Next, 1) + i); t.ID != want {
			j.violation("revision %d: the next id is given to %s, want %s", e.Revision, t.ID, want)
		}
	}
	if want := max(before.Next, 1) + len(next.Intent); next.Next != want {
		j.violation("revision %d: the next id is %d, want %d", e.Revision, next.Next, want)
	}
}

// task judges a write of one task.
func (j *Judge) task(t team.Task) {
	if j.tasks == nil {
		j.tasks, j.holds = map[team.TaskID]team.Task{}, map[holder]team.TaskID{}
	}
	now := brief(t)
	before, ok := j.tasks[t.ID]
	if !ok {
		j.created(t)
	} else if wrong := explain.Unlawful(before, now); wrong != "" {
		j.violation("revision %d: %s goes from %s to %s: %s", t.Revision, t.ID, told(before), told(now), wrong)
	}
	if !slices.Equal(before.Dependencies, now.Dependencies) {
		j.dependencies(t)
	}
	if before.Status == team.InProgress && j.holds[holderOf(before)] == t.ID {
		delete(j.holds, holderOf(before))
	}
	if now.Status == team.InProgress {
		if before.Status != team.InProgress {
			j.started(t)
		}
		if other, ok := j.holds[holderOf(now)]; ok {
			j.violation("revision %d: %v is given %s while it holds %s", t.Revision, holderOf(now), t.ID, other)
		}
		j.holds[holderOf(now)] = t.ID
	}
	j.tasks[t.ID] = now
}

func (j *Judge) created(t team.Task) {
	if t.Status != team.Pending || t.Epoch != 0 || t.Attempts != 0 || t.Assignee != "" {
		j.violation("revision %d: %s begins as %s, held by %q, epoch %d", t.Revision, t.ID, t.Status, t.Assignee, t.Epoch)
	}
	if !slices.ContainsFunc(j.intent.Intent, func(i team.Task) bool { return i.ID == t.ID && i.Op == t.Op }) {
		j.violation("revision %d: %s was not announced", t.Revision, t.ID)
	}
}

// started judges a task that no agent worked on until now.
func (j *Judge) started(t team.Task) {
	if slices.ContainsFunc(j.intent.Intent, func(i team.Task) bool { return i.ID == t.ID }) {
		for _, i := range j.intent.Intent {
			if _, ok := j.tasks[i.ID]; !ok {
				j.violation("revision %d: %s starts before %s, which was created by the same call, exists", t.Revision, t.ID, i.ID)
			}
		}
	}
	for _, d := range t.Dependencies {
		if status := j.tasks[d].Status; status != team.Completed {
			j.violation("revision %d: %s starts while its dependency %s is %q", t.Revision, t.ID, d, status)
		}
	}
}

// dependencies judges the dependencies of a new or edited task.
func (j *Judge) dependencies(t team.Task) {
	of := func(id team.TaskID) ([]team.TaskID, bool) {
		if id == t.ID {
			return t.Dependencies, true
		}
		if s, ok := j.tasks[id]; ok {
			return s.Dependencies, true
		}
		i := slices.IndexFunc(j.intent.Intent, func(i team.Task) bool { return i.ID == id })
		if i < 0 {
			return nil, false
		}
		return j.intent.Intent[i].Dependencies, true
	}
	seen := map[team.TaskID]bool{}
	var walk func(at team.TaskID)
	walk = func(at team.TaskID) {
		deps, ok := of(at)
		if !ok {
			j.violation("revision %d: %s depends on %s, which does not exist", t.Revision, t.ID, at)
		}
		for _, d := range deps {
			if d == t.ID {
				j.violation("revision %d: %s depends on itself, by way of %s", t.Revision, t.ID, at)
			}
			if !seen[d] {
				seen[d] = true
				walk(d)
			}
		}
	}
	seen[t.ID] = true
	walk(t.ID)
}

// brief returns the fields of a task's copy that rules compare.
func brief(t team.Task) team.Task {
	return team.Task{Status: t.Status, Assignee: t.Assignee, Incarnation: t.Incarnation, Epoch: t.Epoch, Attempts: t.Attempts, ReservedFor: t.ReservedFor, Gate: t.Gate,
		Dependencies: t.Dependencies, ResultSummary: strconv.FormatUint(hash(t.ResultSummary), 36), Revision: t.Revision}
}

func holderOf(t team.Task) holder { return holder{t.Assignee, t.Incarnation} }

func told(t team.Task) string {
	return fmt.Sprintf("%s (%v, epoch %d, revision %d)", t.Status, holderOf(t), t.Epoch, t.Revision)
}

func (h holder) String() string {
	if h.agent == "" {
		return "nobody"
	}
	return fmt.Sprintf("%s/%d", h.agent, h.incarnation)
}

// Acknowledged adds an acknowledged write, before or after See has seen it.
func (j *Judge) Acknowledged(a Ack) {
	if a.Revision > uint64(len(j.writes)) {
		if j.awaited == nil {
			j.awaited = map[uint64]Ack{}
		}
		j.awaited[a.Revision] = a
	} else if a.Revision == 0 || j.writes[a.Revision-1] != a.hash() {
		j.violation("%v", a)
	}
}

func (a Ack) hash() uint64 { return hash(string(a.Task), a.Op) }

func (a Ack) String() string {
	return fmt.Sprintf("the write %s of %s was acknowledged at revision %d and is not there", a.Op, a.Task, a.Revision)
}

// Last returns the revision of the newest write that was seen.
func (j *Judge) Last() uint64 { return uint64(len(j.writes)) }

// Count returns the number of tasks with each status now.
func (j *Judge) Count() map[team.TaskStatus]int {
	n := map[team.TaskStatus]int{}
	for _, t := range j.tasks {
		n[t.Status]++
	}
	return n
}

// Verdict returns all violations: none, if the board kept its promises.
func (j *Judge) Verdict() []string {
	all := slices.Clone(j.violations)
	if j.more > 0 {
		all = append(all, fmt.Sprintf("... and %d more", j.more))
	}
	for _, a := range j.awaited {
		all = append(all, a.String())
	}
	for n := range max(j.intent.Next, 1) - 1 {
		if id := team.MakeTaskID(n + 1); j.tasks[id].Status == "" {
			all = append(all, fmt.Sprintf("there is no %s, and the next id is %d", id, j.intent.Next))
		}
	}
	return all
}
