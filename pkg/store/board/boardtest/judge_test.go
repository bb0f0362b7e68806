package boardtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// history is a bucket's feed, written by hand.
type history struct {
	judge boardtest.Judge
	last  uint64
	tasks map[team.TaskID]team.Task
	seq   board.Sequence
}

func (h *history) put(key string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	h.last++
	h.judge.See(broker.Entry{Key: key, Value: data, Revision: h.last})
}

// announce writes the sequence with n more tasks.
func (h *history) announce(n int, deps ...team.TaskID) {
	h.seq.V, h.seq.Next, h.seq.Intent = team.Protocol, max(h.seq.Next, 1), nil
	for range n {
		t := team.Task{V: team.Protocol, ID: team.MakeTaskID(h.seq.Next), Title: "t", Status: team.Pending, Dependencies: deps}
		t.Op = fmt.Sprint("create ", h.last, t.ID)
		h.seq.Intent = append(h.seq.Intent, t)
		h.seq.Next++
	}
	h.put(subject.KeySequence, h.seq)
}

// create writes the keys of the tasks that were announced.
func (h *history) create() {
	for _, t := range h.seq.Intent {
		h.write(t)
	}
}

func (h *history) write(t team.Task) {
	h.put(subject.KeyTask(t.ID), t)
	t.Revision = h.last
	h.tasks[t.ID] = t
}

// set writes the task again, changed.
func (h *history) set(n int, change func(*team.Task)) {
	t := h.tasks[team.MakeTaskID(n)]
	t.Op = fmt.Sprint("op ", h.last)
	change(&t)
	h.write(t)
}

func (h *history) claim(n int, agent team.AgentID) {
	h.set(n, func(t *team.Task) {
		t.Status, t.Assignee, t.Incarnation, t.Epoch, t.ReservedFor = team.InProgress, agent, 1, t.Epoch+1, ""
	})
}

func (h *history) free(n int, raise uint64) {
	h.set(n, func(t *team.Task) { t.Status, t.Epoch = team.Pending, t.Epoch+raise })
}

func (h *history) end(n int, s team.TaskStatus) {
	h.set(n, func(t *team.Task) { t.Status, t.ResultSummary = s, "done" })
}

// good is what a board may do: three tasks, of which the third waits for the first.
func good() *history {
	h := &history{tasks: map[team.TaskID]team.Task{}}
	h.put("member.coder-1", struct{}{})
	h.announce(2)
	h.create()
	h.announce(1, "T-001")
	h.create()
	h.claim(1, "a")
	h.claim(2, "b")
	h.free(2, 0) // released
	h.claim(2, "b")
	h.free(2, 1) // reaped
	h.set(2, func(t *team.Task) { t.Title = "edited" })
	h.claim(2, "b")
	h.set(2, func(t *team.Task) { t.Attempts++ })                                           // a failed check
	h.set(2, func(t *team.Task) { t.Incarnation, t.Epoch = 2, t.Epoch+1 })                  // adopted
	h.set(2, func(t *team.Task) { t.Assignee, t.Incarnation, t.Epoch = "c", 1, t.Epoch+1 }) // assigned
	h.end(1, team.Completed)
	h.set(1, func(t *team.Task) { t.Metadata = json.RawMessage(`{}`) })
	return h
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		bad  func(h *history)
		want string // part of the one violation; "" = all is well
	}{
		"nothing bad":       {func(h *history) {}, ""},
		"to the end":        {func(h *history) { h.claim(3, "a"); h.end(3, team.Completed); h.end(2, team.Failed) }, ""},
		"given up at last":  {func(h *history) { h.set(2, func(t *team.Task) { t.Status, t.Epoch = team.Failed, t.Epoch+1 }) }, ""},
		"cancelled":         {func(h *history) { h.end(2, team.Cancelled); h.end(3, team.Cancelled) }, ""},
		"dependency added":  {func(h *history) { h.set(3, func(t *team.Task) { t.Dependencies = []team.TaskID{"T-001", "T-002"} }) }, ""},
		"reserved, and had": {func(h *history) { h.set(3, func(t *team.Task) { t.ReservedFor = "d" }); h.claim(3, "d") }, ""},
		"another incarnation": {func(h *history) {
			h.claim(3, "a")
			h.announce(1)
			h.create()
			h.set(4, func(t *team.Task) { t.Status, t.Assignee, t.Incarnation, t.Epoch = team.InProgress, "a", 2, 1 })
		}, ""},
		"closed, opened": {func(h *history) {
			h.seq.Closed = true
			h.put("seq.task", h.seq)
			h.seq.Closed = false
			h.put("seq.task", h.seq)
			h.announce(1)
			h.create()
		}, ""},
		"forward in a call": {func(h *history) {
			h.announce(2, "T-005")
			h.seq.Intent[1].Dependencies = nil
			h.put("seq.task", h.seq)
			h.create()
		}, ""},
		"completed twice":       {func(h *history) { h.set(1, func(t *team.Task) { t.ResultSummary = "again" }) }, "it was completed twice"},
		"completed by another":  {func(h *history) { h.set(2, func(t *team.Task) { t.Status, t.Assignee = team.Completed, "b" }) }, "not completed by its holder"},
		"by a late incarnation": {func(h *history) { h.set(2, func(t *team.Task) { t.Status, t.Incarnation = team.Completed, 7 }) }, "not completed by its holder"},
		"under another epoch":   {func(h *history) { h.set(2, func(t *team.Task) { t.Status, t.Epoch = team.Completed, t.Epoch+1 }) }, "not completed by its holder"},
		"completed by nobody":   {func(h *history) { h.end(3, team.Completed) }, "no such transition"},
		"failed while pending":  {func(h *history) { h.end(3, team.Failed) }, "no such transition"},
		"the epoch falls":       {func(h *history) { h.set(2, func(t *team.Task) { t.Epoch-- }) }, "the epoch fell"},
		"attempts fall":         {func(h *history) { h.set(2, func(t *team.Task) { t.Attempts-- }) }, "attempts were forgotten"},
		"claimed without an epoch": {func(h *history) {
			h.claim(3, "a")
			h.free(3, 0)
			h.set(3, func(t *team.Task) { t.Status = team.InProgress })
		}, "raises the epoch"},
		"reserved for another":  {func(h *history) { h.set(3, func(t *team.Task) { t.ReservedFor = "d" }); h.claim(3, "a") }, "it is reserved for d"},
		"reserved while held":   {func(h *history) { h.set(2, func(t *team.Task) { t.ReservedFor = "d" }) }, "reserved and not pending"},
		"claimed over a holder": {func(h *history) { h.set(2, func(t *team.Task) { t.Assignee = "d" }) }, "raises the epoch"},
		"epoch of a held task":  {func(h *history) { h.set(2, func(t *team.Task) { t.Epoch++ }) }, "holder is the same"},
		"freed and renamed":     {func(h *history) { h.set(2, func(t *team.Task) { t.Status, t.Assignee = team.Pending, "d" }) }, "freed and more"},
		"cancelled and renamed": {func(h *history) { h.set(2, func(t *team.Task) { t.Status, t.Assignee = team.Cancelled, "d" }) }, "more than the status"},
		"an edit too far":       {func(h *history) { h.set(3, func(t *team.Task) { t.Assignee = "d" }) }, "more than an edit"},
		"claimed after its end": {func(h *history) { h.claim(1, "d") }, "it was over"},
		"blocked":               {func(h *history) { h.announce(1, "T-003"); h.create(); h.claim(4, "d") }, `starts while its dependency T-003 is "pending"`},
		"two at once":           {func(h *history) { h.claim(3, "c") }, "c/1 is given T-003 while it holds T-002"},
		"edited while held":     {func(h *history) { h.set(2, func(t *team.Task) { t.Dependencies = []team.TaskID{"T-001"} }) }, "not pending"},
		"unknown dependency":    {func(h *history) { h.set(3, func(t *team.Task) { t.Dependencies = []team.TaskID{"T-009"} }) }, "T-009, which does not exist"},
		"itself":                {func(h *history) { h.set(3, func(t *team.Task) { t.Dependencies = []team.TaskID{"T-003"} }) }, "depends on itself"},
		"a cycle": {func(h *history) {
			h.announce(1, "T-003")
			h.create()
			h.set(3, func(t *team.Task) { t.Dependencies = []team.TaskID{"T-004"} })
		}, "by way of T-004"},
		"begins as held":         {func(h *history) { h.announce(1); h.seq.Intent[0].Status = team.InProgress; h.create() }, "T-004 begins as in_progress"},
		"not announced":          {func(h *history) { h.write(team.Task{V: team.Protocol, ID: "T-007", Status: team.Pending}) }, "T-007 was not announced"},
		"half a plan is claimed": {func(h *history) { h.announce(2); h.write(h.seq.Intent[0]); h.claim(4, "d"); h.write(h.seq.Intent[1]) }, "T-004 starts before T-005"},
		"a gap":                  {func(h *history) { h.announce(2); h.write(h.seq.Intent[1]) }, "there is no T-004"},
		"an intent is forgotten": {func(h *history) { h.announce(1); lost := h.seq.Intent[0]; h.announce(1); h.create(); h.write(lost) }, "before T-004 of the last call exists"},
		"an id skipped":          {func(h *history) { h.seq.Next++; h.announce(1); h.create() }, "T-005, want T-004"},
		"an id given twice":      {func(h *history) { h.seq.Next--; h.announce(1) }, "the next id is given to T-003"},
		"the next id moves":      {func(h *history) { h.seq.Next = 9; h.put("seq.task", h.seq) }, "without a new task"},
		"added after the end":    {func(h *history) { h.seq.Closed = true; h.put("seq.task", h.seq); h.announce(1); h.create() }, "after the goal was ended"},
		"removed": {func(h *history) {
			h.last++
			h.judge.See(broker.Entry{Key: "task.T-001", Revision: h.last, Deleted: true})
		}, "removes task.T-001"},
		"unreadable": {func(h *history) { h.put("task.T-001", "nonsense") }, "cannot be read"},
		"a hole":     {func(h *history) { h.last += 3 }, "from revision 18 to 22"},
		"lost":       {func(h *history) { h.judge.Acknowledged(boardtest.Ack{Task: "T-001", Op: "no", Revision: h.last}) }, "acknowledged at revision 18"},
		"not yet seen": {func(h *history) {
			h.judge.Acknowledged(boardtest.Ack{Task: "T-003", Op: fmt.Sprint("op ", h.last), Revision: h.last + 1})
			h.claim(3, "d")
		}, ""},
		"lost at the end": {func(h *history) { h.judge.Acknowledged(boardtest.Ack{Task: "T-001", Op: "no", Revision: 99}) }, "acknowledged at revision 99"},
		"lost to another": {func(h *history) { h.judge.Acknowledged(boardtest.Ack{Task: "T-001", Op: "no", Revision: h.last + 1}) }, "acknowledged at revision 19"},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			tt.bad(h)
			h.put("member.coder-1", struct{}{})
			for _, task := range h.tasks {
				h.judge.Acknowledged(boardtest.AckOf(task))
			}
			got := h.judge.Verdict()
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("refused what is right: %q", got)
			case tt.want != "" && !strings.Contains(strings.Join(got, "\n"), tt.want):
				t.Errorf("%q, want one with %q", got, tt.want)
			}
		})
	}
}
