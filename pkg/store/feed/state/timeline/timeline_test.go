package timeline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state/statetest"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// run is a goal whose entries a test writes down.
type run struct {
	t *testing.T
	*timeline.Fold
	runs map[team.AgentID]string
}

func start(t *testing.T, s timeline.Start) *run {
	s.Goal, s.From = 1, noon
	return &run{t, timeline.New(s), map[team.AgentID]string{}}
}

func (r *run) sees(second int, a team.AgentID, b team.EventBody, value any) {
	r.t.Helper()
	if value != nil {
		var err error
		if b.Value, err = json.Marshal(value); err != nil {
			r.t.Fatal(err)
		}
	}
	r.Apply(feed.Entry{Time: at(second), Event: team.Event{AgentID: a, RoleName: "coder", RunID: r.runs[a], Event: b}})
}

func (r *run) joins(second int, a team.AgentID) {
	r.sees(second, a, team.EventBody{Type: team.MemberJoined}, team.Member{AgentID: a, Role: "coder", State: team.Joined, Incarnation: 1})
}

func (r *run) wakes(second int, a team.AgentID) {
	r.runs[a] = fmt.Sprint(a, second)
	r.sees(second, a, team.EventBody{Type: team.RunStarted}, nil)
}

func (r *run) rests(second int, a team.AgentID) {
	r.sees(second, a, team.EventBody{Type: team.RunFinished}, nil)
	r.runs[a] = ""
}

func (r *run) calls(second int, a team.AgentID, tool, args string) {
	r.sees(second, a, team.EventBody{Type: team.ToolCallChunk, ToolCallID: "c", ToolCallName: tool, Delta: args}, nil)
}

func (r *run) returns(second int, a team.AgentID) {
	r.sees(second, a, team.EventBody{Type: team.ToolCallResult, ToolCallID: "c"}, nil)
}

func (r *run) task(second int, id team.TaskID, s team.TaskStatus, by team.AgentID, deps ...team.TaskID) {
	what := map[team.TaskStatus]team.EventType{team.Pending: team.TaskCreated, team.InProgress: team.TaskClaimed, team.Completed: team.TaskCompleted, team.Failed: team.TaskFailed}[s]
	r.sees(second, by, team.EventBody{Type: what}, team.Task{ID: id, Title: "do " + string(id), Status: s, Assignee: by, Dependencies: deps, CreatedAt: noon, UpdatedAt: at(second)})
}

// drawn is a lane in letters: a span a word, with its seconds.
func drawn(l timeline.Lane) string {
	var words []string
	for _, s := range l.Spans {
		w := string(s.Kind)
		if s.For != "" {
			w += ":" + string(s.For)
		} else if s.Tool != "" {
			w += ":" + s.Tool
		}
		if s.Task != "" {
			w += "@" + string(s.Task)
		}
		words = append(words, fmt.Sprintf("%s %g", w, s.To.Sub(s.From).Seconds()))
	}
	return strings.Join(words, ", ")
}

func (r *run) want(to int, lanes ...string) timeline.Timeline {
	r.t.Helper()
	got := r.Timeline(at(to))
	for i, l := range got.Lanes {
		if i >= len(lanes) || drawn(l) != lanes[i] {
			r.t.Errorf("lane of %s: %s; want %s", l.AgentID, drawn(l), lanes[min(i, len(lanes)-1)])
		}
	}
	if len(got.Lanes) != len(lanes) {
		r.t.Errorf("%d lanes, want %d", len(got.Lanes), len(lanes))
	}
	return got
}

func TestSpans(t *testing.T) {
	r := start(t, timeline.Start{})
	r.joins(0, "coder-1")
	r.wakes(10, "coder-1")
	r.calls(13, "coder-1", "bash", `{"command":"make"}`)
	r.returns(20, "coder-1")
	r.sees(22, "coder-1", team.EventBody{Type: team.TextChunk, Delta: "done"}, nil)
	r.rests(22, "coder-1")
	r.sees(30, "coder-1", team.EventBody{Type: team.MemberStopped}, team.Member{AgentID: "coder-1", State: team.Stopped, Incarnation: 1})
	got := r.want(40, "idle 10, model 3, tool:bash 7, model 2, idle 8")
	if s := got.Lanes[0].Seconds; s[timeline.Model] != 5 || s[timeline.Tool] != 7 || s[timeline.Idle] != 18 {
		t.Errorf("its seconds are %v", s)
	}
	if !got.Whole || got.Lanes[0].Role != "coder" {
		t.Errorf("%+v", got)
	}
}

// Each wait has its reason, from what is stored of it.
func TestWaits(t *testing.T) {
	call := team.Approval{ID: "p", Kind: team.OfPermission, AgentID: "coder-1", Approver: team.ByHuman, Call: &team.AskedCall{Tool: "bash"}, Status: team.PlanPending}
	plan := team.Approval{ID: "q", AgentID: "coder-1", Approver: team.ByLeader, Plan: "look", Status: team.PlanPending}
	decided := func(a team.Approval) team.Approval { a.Status = team.PlanApproved; return a }
	question := team.Message{ID: "m", Type: team.MsgMessage, From: "coder-1", To: team.UserAgent, AwaitReply: true, TaskID: "T-001"}
	toLeader := team.Message{ID: "n", Type: team.MsgMessage, From: "coder-1", To: team.Leader, AwaitReply: true}
	for name, tt := range map[string]struct {
		onLine bool
		begin  func(r *run)
		end    func(r *run)
		want   string
	}{
		"a person": {false, func(r *run) {
			r.sees(3, "coder-1", team.EventBody{Type: team.MailSent}, question)
			r.rests(3, "coder-1")
		},
			func(r *run) {
				r.sees(9, team.UserAgent, team.EventBody{Type: team.MailSent}, team.Message{ID: "a", From: team.UserAgent, To: "coder-1", InReplyTo: "m"})
				r.wakes(9, "coder-1")
			}, "wait:person@T-001 6"},
		"a member": {false, func(r *run) {
			r.sees(3, "coder-1", team.EventBody{Type: team.MailSent}, toLeader)
			r.rests(3, "coder-1")
		},
			func(r *run) {
				r.wakes(9, "coder-1")
				r.sees(9, "coder-1", team.EventBody{Type: team.TextChunk, Delta: "on"}, nil)
			}, "wait:answer@T-001 6"},
		"a plan": {false, func(r *run) {
			r.sees(3, "coder-1", team.EventBody{Type: team.ApprovalRequested}, plan)
			r.rests(3, "coder-1")
		},
			func(r *run) {
				r.sees(9, team.Leader, team.EventBody{Type: team.ApprovalApproved}, decided(plan))
				r.wakes(9, "coder-1")
			}, "wait:plan@T-001 6"},
		"a permission": {false, func(r *run) {
			r.sees(3, "coder-1", team.EventBody{Type: team.ApprovalRequested}, call)
			r.rests(3, "coder-1")
		},
			func(r *run) {
				r.sees(9, team.UserAgent, team.EventBody{Type: team.ApprovalApproved}, decided(call))
				r.wakes(9, "coder-1")
			}, "wait:permission@T-001 6"},
		"a model": {false, func(r *run) { r.sees(3, "coder-1", team.EventBody{Type: team.Retry, Message: "429"}, nil) },
			func(r *run) { r.sees(9, "coder-1", team.EventBody{Type: team.TextChunk, Delta: "hi"}, nil) }, "wait:model@T-001 6"},
		"a subagent": {false, func(r *run) { r.wakes(2, "coder-1.a1b2c3d"); r.rests(3, "coder-1") },
			func(r *run) { r.rests(9, "coder-1.a1b2c3d"); r.wakes(9, "coder-1") }, "wait:job@T-001 6"},
		"the line": {true, func(r *run) { r.calls(3, "coder-1", "update_task", `{"task_id":"T-001","status":"completed"}`) },
			func(r *run) { r.returns(9, "coder-1") }, "wait:merge@T-001 6"},
		"no line": {false, func(r *run) { r.calls(3, "coder-1", "update_task", `{"task_id":"T-001","status":"completed"}`) },
			func(r *run) { r.returns(9, "coder-1") }, "tool:update_task@T-001 6"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, timeline.Start{HasBranch: tt.onLine, Members: []team.Member{{AgentID: "coder-1", State: team.Joined, Incarnation: 1}}})
			r.task(0, "T-001", team.InProgress, "coder-1")
			r.wakes(0, "coder-1")
			tt.begin(r)
			tt.end(r)
			got := r.Timeline(at(10))
			if s := drawn(got.Lanes[0]); s != "model@T-001 3, "+tt.want+", model@T-001 1" {
				t.Errorf("the lane is %s", s)
			}
		})
	}
}

// A member that is lost takes its subagents with it: its successor waits for none of them.
func TestSubagentsEndWithTheirMember(t *testing.T) {
	r := start(t, timeline.Start{})
	r.joins(0, "coder-1")
	r.wakes(0, "coder-1")
	r.wakes(1, "coder-1.a1b2c3d")
	r.rests(2, "coder-1")
	r.sees(4, "coder-1", team.EventBody{Type: team.MemberLost}, team.Member{AgentID: "coder-1", State: team.Lost, Incarnation: 1})
	r.joins(5, "coder-1")
	r.task(5, "T-001", team.InProgress, "coder-1")
	r.want(10, "model 2, idle 2, idle@T-001 5")
}

// However many names the log has, there are not more lanes than a team may have members, it is said,
// and all lanes together have not more spans than those of a few.
func TestLanesAreBounded(t *testing.T) {
	r := start(t, timeline.Start{})
	r.task(0, "T-001", team.InProgress, "coder-1")
	for i := range team.MostTeammates + 50 {
		a := team.AgentID(fmt.Sprint("coder-", i+1))
		r.wakes(0, a)
		r.wakes(0, a+".a1b2c3d")
		if n := i + 1; n == team.MostTeammates || n == team.MostTeammates+50 {
			got := r.Timeline(at(1))
			if said := strings.Contains(got.Sentence, "Only the first 1000 members"); len(got.Lanes) != team.MostTeammates || said != (n > team.MostTeammates) {
				t.Errorf("of %d members there are %d lanes, and it says %s", n, len(got.Lanes), got.Sentence)
			}
		}
	}
	for i := range 1000 {
		r.calls(1+2*i, "coder-1", []string{"bash", "read_file"}[i%2], "{}")
		r.returns(2+2*i, "coder-1")
	}
	for points, most := range map[int]int{100: 100, 5000: 250} {
		if n := len(r.Timeline(at(2002)).Window(time.Time{}, time.Time{}, points).Lanes[0].Spans); n > most || n < most/2 {
			t.Errorf("at %d points a lane of many has %d spans", points, n)
		}
	}
}

// What is missing of the feed is not guessed.
func TestMissingEntries(t *testing.T) {
	r := start(t, timeline.Start{Members: []team.Member{{AgentID: "coder-1", State: team.Joined, Incarnation: 1}, {AgentID: "ann", Backend: team.Person, State: team.Joined}}})
	r.wakes(2, "coder-1")
	r.Apply(feed.Entry{Time: at(5), Event: team.Event{Event: team.EventBody{Type: team.Custom, Name: "reset"}}})
	r.calls(9, "coder-1", "bash", "{}")
	if got := r.want(10, "idle 2, model 3, unknown 4, tool:bash 1"); got.Whole {
		t.Error("it is said to be whole")
	}
}

// The critical path goes by what held each task up: what it depends on, or its member, who was
// busy with another.
func TestCriticalPath(t *testing.T) {
	r := start(t, timeline.Start{Members: []team.Member{{AgentID: "coder-1", State: team.Joined}, {AgentID: "coder-2", State: team.Joined}}})
	r.task(0, "T-001", team.Pending, "")
	r.task(0, "T-002", team.Pending, "")
	r.task(0, "T-003", team.Pending, "", "T-001")
	r.task(0, "T-004", team.Pending, "")
	r.task(1, "T-001", team.InProgress, "coder-1")
	r.task(1, "T-002", team.InProgress, "coder-2")
	r.task(10, "T-001", team.Completed, "coder-1")
	r.task(12, "T-003", team.InProgress, "coder-1", "T-001")
	r.task(15, "T-002", team.Completed, "coder-2")
	r.task(30, "T-003", team.Completed, "coder-1", "T-001")
	r.task(31, "T-004", team.InProgress, "coder-1") // ready from the beginning
	r.task(50, "T-004", team.Completed, "coder-1")
	got := r.Timeline(at(60))
	var path []string
	for _, s := range got.Critical {
		path = append(path, fmt.Sprintf("%s %s %g", s.Task, s.After, s.Lag))
	}
	if p := strings.Join(path, ", "); p != "T-001  0, T-003 dependency 2, T-004 member 1" {
		t.Errorf("the path is %s", p)
	}
	if len(got.Tasks) != 4 || len(got.Edges) != 1 || got.Edges[0] != (team.Edge{From: "T-001", To: "T-003"}) {
		t.Errorf("bars %+v, edges %+v", got.Tasks, got.Edges)
	}
	if last := got.Counts[len(got.Counts)-1]; last.Done != 4 || last.Ready+last.Blocked+last.Running != 0 {
		t.Errorf("in the end: %+v", last)
	}
	if first := got.Counts[4]; first.Ready != 3 || first.Blocked != 1 {
		t.Errorf("once all are there: %+v", first)
	}
	if want := "Of the 3 tasks of the critical path 1 were ready and waited for a free member: more members would have helped."; !strings.HasSuffix(got.Sentence, want) {
		t.Errorf("the sentence is %s", got.Sentence)
	}
}

// A task that is tried twice has two bars; one that nobody has ended is open.
func TestBars(t *testing.T) {
	r := start(t, timeline.Start{Members: []team.Member{{AgentID: "coder-1", State: team.Joined}}, Tasks: []team.Task{{ID: "T-009", Status: team.Completed}},
		Counts: func(id team.TaskID) bool { return id != "T-009" }})
	r.task(1, "T-001", team.InProgress, "coder-1")
	r.task(4, "T-001", team.Pending, "")
	r.task(6, "T-001", team.InProgress, "coder-2")
	var bars []string
	for _, b := range r.Timeline(at(9)).Tasks {
		bars = append(bars, fmt.Sprintf("%s %s %s %g", b.Task, b.AgentID, b.Status, b.To.Sub(b.From).Seconds()))
	}
	if got := strings.Join(bars, ", "); got != "T-001 coder-1 pending 3, T-001 coder-2 in_progress 3" {
		t.Errorf("the bars are %s", got)
	}
	if c := r.Timeline(at(9)).Counts; c[len(c)-1].Done != 0 {
		t.Errorf("a task of an earlier goal counts: %+v", c)
	}
}

// check holds lanes against what a drawing relies on.
func check(t interface{ Errorf(string, ...any) }, got timeline.Timeline) {
	for _, l := range got.Lanes {
		end, sums := got.From, map[timeline.Kind]float64{}
		for _, s := range l.Spans {
			if s.From.Before(end) || !s.To.After(s.From) || s.To.After(got.To) || (s.For != "") != (s.Kind == timeline.Wait) {
				t.Errorf("%s: the span %+v follows on %v", l.AgentID, s, end)
			}
			end = s.To
			sums[s.Kind] += s.To.Sub(s.From).Seconds()
		}
		for k, want := range sums {
			if got := l.Seconds[k]; got-want > 1e-6 || want-got > 1e-6 {
				t.Errorf("%s: %g seconds of %s, and spans of %g", l.AgentID, got, k, want)
			}
		}
	}
}

// Whatever is missing, late or there twice, spans are in order, do not overlap and sum up.
func TestSpansOfAnyFeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := timeline.New(timeline.Start{From: noon.Add(-24 * 365 * time.Hour)})
		var last time.Time
		for _, i := range statetest.Faulty(t, statetest.Feed(t)) {
			if i.Entry != nil && i.Entry.Time.After(last) {
				last = i.Entry.Time
			}
			if i.Entry != nil {
				f.Apply(*i.Entry)
			}
		}
		check(t, f.Timeline(last))
	})
}

// A window has few spans, however much was done, and tells exactly how long what took.
func TestWindow(t *testing.T) {
	r := start(t, timeline.Start{Members: []team.Member{{AgentID: "coder-1", State: team.Joined, Incarnation: 1}}})
	r.wakes(0, "coder-1")
	for i := range 500 {
		r.calls(1+2*i, "coder-1", []string{"bash", "read_file"}[i%2], "{}")
		r.returns(2+2*i, "coder-1")
	}
	r.rests(1100, "coder-1")
	whole := r.Timeline(at(2000))
	coarse := whole.Window(time.Time{}, time.Time{}, 20)
	if n := len(coarse.Lanes[0].Spans); n > 20 {
		t.Errorf("%d spans", n)
	}
	if s := coarse.Lanes[0].Seconds; s[timeline.Tool] != 500 || s[timeline.Idle] != 900 {
		t.Errorf("its seconds are %v", s)
	}
	near := whole.Window(at(100), at(110), 1000)
	check(t, near)
	if n := len(near.Lanes[0].Spans); n != 10 || !near.From.Equal(at(100)) || !near.To.Equal(at(110)) {
		t.Errorf("near it has %d spans from %v to %v", n, near.From, near.To)
	}
}
