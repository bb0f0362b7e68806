package state_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/store/feed/state/statetest"
	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "write testdata/cases.json")

// caseFile holds feeds and how the team stands after them. The page's fold, in TypeScript, is held
// against the same file (package api/web).
const caseFile = "testdata/cases.json"

// input is one step of a case: an entry, a piece of a text, or a snapshot.
type input struct {
	Entry   *feed.Entry   `json:"entry,omitempty"`
	Times   int           `json:"times,omitempty"` // the entry comes so often, with the number in place of each #
	Delta   *team.Delta   `json:"delta,omitempty"`
	Members []team.Member `json:"members,omitempty"`
	Tasks   []team.Task   `json:"tasks,omitempty"`
	Earlier []team.TaskID `json:"earlier,omitempty"` // of Tasks: those of earlier goals
	Want    *stand        `json:"want,omitempty"`    // after it
}

type feedCase struct {
	Name   string  `json:"name"`
	Inputs []input `json:"inputs"`
}

// stand is how a team stands, in the words of both languages. Times are milliseconds since 1970; 0
// = not known.
type stand struct {
	Tokens    int                            `json:"tokens"`
	Members   map[team.AgentID]memberStand   `json:"members"`
	Tasks     map[team.TaskID]taskStand      `json:"tasks"`
	Questions []string                       `json:"questions"`
	Plans     []string                       `json:"plans"`
	Calls     map[team.AgentID][]callOfStand `json:"calls"`
	Drafts    []draftStand                   `json:"drafts"`
}

type memberStand struct {
	Role, Colour, State, Run, Task, Call, Asks, Trouble string
	Person, Here, Lost, Idle, Retried, Parked, Damaged  bool
	Incarnation                                         uint64
	Joined, Refused                                     int
	Since                                               int64
}

type taskStand struct {
	Status, Assignee string
	Tokens           int
	Earlier          bool
}

type callOfStand struct {
	ID, Name, Args string
	Over           bool
}

type draftStand struct {
	Agent, Message, Text string
	From                 int
}

func standOf(s *state.Team) *stand {
	d := &stand{Tokens: s.Tokens, Members: map[team.AgentID]memberStand{}, Tasks: map[team.TaskID]taskStand{},
		Questions: slices.Sorted(maps.Keys(s.Questions)), Plans: slices.Sorted(maps.Keys(s.Plans)), Calls: map[team.AgentID][]callOfStand{}}
	for id, m := range s.Members {
		call := ""
		if m.Call != nil {
			call = m.Call.ID
		}
		d.Members[id] = memberStand{m.Role, m.Colour, string(m.State), m.Run, string(m.Task), call, string(m.Asks), m.Trouble,
			m.Person, m.Here, m.Lost, m.Idle, m.Retried, m.Parked, m.Damaged, m.Incarnation, m.Joined, m.Refused, milli(m.Since)}
		for _, c := range s.Calls(id) {
			d.Calls[id] = append(d.Calls[id], callOfStand{c.ID, c.Name, c.Args, c.Over})
		}
	}
	for id, t := range s.Tasks {
		d.Tasks[id] = taskStand{string(t.Status), string(t.Assignee), t.Tokens, t.Earlier}
	}
	for _, w := range s.Drafts() {
		d.Drafts = append(d.Drafts, draftStand{string(w.AgentID), w.MessageID, w.Text, w.From})
	}
	return d
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// TestCases: the fold comes to what the file holds, whose cases are those made here.
func TestCases(t *testing.T) {
	got := casesFile(t)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(caseFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(caseFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the fold comes to; see what has changed: go test ./pkg/store/feed/state -run TestCases -update", caseFile)
	}
}

// casesFile folds all cases and writes them, an input a line.
func casesFile(t *testing.T) []byte {
	var b bytes.Buffer
	for i, c := range cases() {
		s := state.New()
		fmt.Fprintf(&b, "%s{\"name\":%q,\"inputs\":[", map[bool]string{true: "[", false: ",\n"}[i == 0], c.Name)
		for n, in := range c.Inputs {
			fold(s, in)
			if n%8 == 7 || n == len(c.Inputs)-1 {
				in.Want = standOf(s)
			}
			line, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n%s", map[bool]string{true: "", false: ","}[n == 0], line)
		}
		b.WriteString("\n]}")
	}
	b.WriteString("]\n")
	return b.Bytes()
}

func fold(s *state.Team, in input) {
	switch {
	case in.Times > 0:
		for i := range in.Times {
			e, number := *in.Entry, strings.NewReplacer("#", strconv.Itoa(i))
			e.AgentID, e.RunID = team.AgentID(number.Replace(string(e.AgentID))), number.Replace(e.RunID)
			s.Apply(e)
		}
	case in.Entry != nil:
		s.Apply(*in.Entry)
	case in.Delta != nil:
		s.Write(*in.Delta, noon)
	case in.Members != nil:
		s.KnowMembers(in.Members)
	default:
		s.KnowTasks(in.Tasks, func(id team.TaskID) bool { return !slices.Contains(in.Earlier, id) })
	}
}

// cases are some that are written down, and some that are left to chance, which is the same each
// time.
func cases() []feedCase {
	all := []feedCase{{"a day of a team", day()}, {"texts in other letters", letters()}, {"what is missing", missing()}, {"a second goal", second()}, {"a task that changes hands", handedOver()},
		{"many subagents", subagents()}}
	faulty := rapid.Custom(func(t *rapid.T) []statetest.Input { return statetest.Faulty(t, statetest.Feed(t)) })
	for seed := range 16 {
		c := feedCase{Name: fmt.Sprint("left to chance, ", seed)}
		for _, i := range faulty.Example(seed) {
			c.Inputs = append(c.Inputs, input{Entry: i.Entry, Delta: i.Delta})
		}
		if len(c.Inputs) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// told makes an entry, each a second after the one before.
type told struct{ all []input }

func (d *told) tell(a team.AgentID, run string, b team.EventBody, value any) {
	at := noon.Add(time.Duration(len(d.all)) * time.Second)
	if value != nil {
		b.Value, _ = json.Marshal(value) // records of ours
	}
	d.all = append(d.all, input{Entry: &feed.Entry{Time: at, Event: team.Event{AgentID: a, RunID: run, Event: b.Stamp(at)}}})
}

func day() []input {
	d := &told{}
	m := func(id team.AgentID, s team.MemberState) team.Member {
		return team.Member{AgentID: id, Role: "coder", Color: "cyan", State: s, Incarnation: 1, Backend: team.Pool}
	}
	t := team.Task{ID: "T-001", Title: "Port the lexer", Status: team.Pending}
	d.tell("user", "", team.EventBody{Type: team.TaskCreated}, t)
	d.tell("coder-1", "", team.EventBody{Type: team.MemberCreated}, m("coder-1", team.Created))
	d.tell("coder-1", "", team.EventBody{Type: team.MemberJoined}, m("coder-1", team.Joined))
	seat := m("ann", team.Joined)
	seat.Backend = team.Person
	d.tell("ann", "", team.EventBody{Type: team.MemberJoined}, seat)
	t.Status, t.Assignee = team.InProgress, "coder-1"
	d.tell("coder-1", "", team.EventBody{Type: team.TaskClaimed}, t)
	d.tell("coder-1", "r1", team.EventBody{Type: team.RunStarted}, nil)
	d.tell("coder-1", "r1", team.EventBody{Type: team.TextChunk, MessageID: "01", Delta: "I begin.", Tokens: 40}, nil)
	d.tell("coder-1", "r1", team.EventBody{Type: team.ToolCallChunk, MessageID: "01", ToolCallID: "c1", ToolCallName: "Read", Delta: `{"path":"a"}`}, nil)
	d.tell("coder-1", "r1", team.EventBody{Type: team.ToolCallChunk, MessageID: "01", ToolCallID: "c2", ToolCallName: "Bash", Delta: `{"command":"ls"}`}, nil)
	asked := team.Approval{ID: "ab", Kind: team.OfPermission, AgentID: "coder-1", Task: t.ID, Approver: team.ByHuman, Status: team.PlanPending, Call: &team.AskedCall{Tool: "bash"}}
	d.tell("coder-1", "r1", team.EventBody{Type: team.ApprovalRequested}, asked)
	asked.Status, asked.DecidedBy = team.PlanApproved, team.UserAgent
	d.tell("user", "", team.EventBody{Type: team.ApprovalApproved}, asked)
	d.tell("coder-1", "r1", team.EventBody{Type: team.ToolCallResult, MessageID: "02", ToolCallID: "c2", Content: "a"}, nil)
	plan := team.Approval{ID: "cd", AgentID: "coder-1", Task: t.ID, Approver: team.ByHuman, Plan: "First I look.", Status: team.PlanPending}
	d.tell("coder-1", "r1", team.EventBody{Type: team.ApprovalRequested}, plan)
	q := team.Message{ID: "03", Type: team.MsgMessage, From: "coder-1", To: team.UserAgent, Content: "Which?", AwaitReply: true, TaskID: t.ID, CreatedAt: noon}
	d.tell("coder-1", "r1", team.EventBody{Type: team.MailSent, MessageID: q.ID}, q)
	other := q
	other.ID, other.To, other.Choices = "04", "ann", []string{"a", "b"}
	d.tell("coder-1", "r1", team.EventBody{Type: team.MailSent, MessageID: other.ID}, other)
	d.tell("coder-2", "", team.EventBody{Type: team.MailSent}, team.Message{ID: "05", Type: team.MsgMessage, From: "coder-2", To: "coder-1", Content: "I wait for you."})
	d.tell("user", "", team.EventBody{Type: team.MailSent}, team.Message{ID: "06", Type: team.MsgUser, From: "user", To: "coder-1", Content: "That one.", InReplyTo: q.ID})
	d.tell("coder-1", "r1", team.EventBody{Type: team.Retry, Message: "no  credit"}, team.Retrying{Tried: 1, Of: 3})
	d.tell("coder-1", "r1", team.EventBody{Type: team.Retry, Message: "no credit"}, nil)
	parked := m("coder-1", team.WaitingModel)
	parked.LastError = "no\ncredit"
	d.tell("coder-1", "", team.EventBody{Type: team.MemberParked}, parked)
	d.tell("coder-1", "", team.EventBody{Type: team.MemberResumed}, m("coder-1", team.Joined))
	d.tell("coder-1", "r1", team.EventBody{Type: team.RunFinished}, nil)
	d.tell("coder-1", "", team.EventBody{Type: "TASK_FROM_THE_FUTURE"}, t)
	d.tell("coder-1", "", team.EventBody{Type: "SOMETHING_ELSE"}, map[string]int{"x": 1})
	t.Status = team.Completed
	d.tell("coder-1", "", team.EventBody{Type: team.TaskCompleted}, t)
	d.tell("coder-1", "", team.EventBody{Type: team.MemberLost}, m("coder-1", team.Lost))
	d.tell("ann", "", team.EventBody{Type: team.MemberStopped}, m("ann", team.Stopped))
	return d.all
}

// subagents are more than a reader keeps, and then so many runs of their owner that none is left, but
// for one that has not ended.
func subagents() []input {
	d := &told{}
	d.tell("coder-1.1", "1", team.EventBody{Type: team.RunStarted}, nil)
	const agent, run = "coder-1.a#", "a#"
	d.tell(agent, run, team.EventBody{Type: team.RunStarted}, nil)
	d.tell(agent, run, team.EventBody{Type: team.TextChunk, MessageID: "01", Delta: "I look."}, nil)
	d.tell(agent, run, team.EventBody{Type: team.ToolCallChunk, MessageID: "01", ToolCallID: "c1", ToolCallName: "bash"}, nil)
	d.tell(agent, run, team.EventBody{Type: team.RunFinished}, nil)
	d.tell("coder-1", "r#", team.EventBody{Type: team.RunStarted}, nil)
	d.tell("coder-1", "r#", team.EventBody{Type: team.RunFinished}, nil)
	for i := range d.all[1:] {
		d.all[i+1].Times = 1200
	}
	return d.all
}

// letters are pieces of a text of more than ASCII: offsets are bytes.
func letters() []input {
	d := &told{}
	d.tell("coder-1", "r1", team.EventBody{Type: team.RunStarted}, nil)
	piece := func(offset int, text string) {
		d.all = append(d.all, input{Delta: &team.Delta{AgentID: "coder-1", RunID: "r1", MessageID: "01", Offset: offset, Text: text}})
	}
	piece(0, "Grüße ")
	piece(8, "日本語 ")
	piece(18, "👩‍💻!")
	piece(8, "äö") // another try from here on
	piece(99, "lost")
	piece(0, "again ü")
	piece(8, ".")
	return d.all
}

// missing is a feed with a hole, and the snapshot that stands for it.
func missing() []input {
	d := &told{}
	d.tell("coder-1", "r1", team.EventBody{Type: team.RunStarted}, nil)
	d.tell("", "", team.EventBody{Type: team.Custom, Name: "reset"}, feed.Reset{})
	d.all = append(d.all,
		input{Members: []team.Member{{AgentID: "coder-1", Role: "coder", State: team.Joined, Incarnation: 2}, {AgentID: "coder-2", State: team.Lost, Incarnation: 1}}},
		input{Tasks: []team.Task{{ID: "T-007", Status: team.InProgress, Assignee: "coder-2", UpdatedAt: noon}, {ID: "T-008", Status: team.Pending}}})
	d.tell("coder-2", "r2", team.EventBody{Type: team.TextChunk, MessageID: "09", Delta: "I am back.", Tokens: 7}, nil)
	d.all = append(d.all, input{Members: []team.Member{{AgentID: "coder-2", State: team.Joined, Incarnation: 1}}})
	return d.all
}

// handedOver is a question that is open when its task changes hands, and is answered to the next holder; one of a task
// that has ended is gone.
func handedOver() []input {
	var d told
	t := team.Task{ID: "T-001", Status: team.InProgress, Assignee: "joe"}
	d.tell("joe", "", team.EventBody{Type: team.TaskClaimed}, t)
	q := team.Message{ID: "01", Type: team.MsgMessage, From: "joe", To: team.UserAgent, Content: "Tabs?", AwaitReply: true, TaskID: t.ID}
	d.tell("joe", "", team.EventBody{Type: team.MailSent, MessageID: q.ID}, q)
	t.Status = team.Pending
	d.tell("joe", "", team.EventBody{Type: team.TaskReleased}, t)
	word := team.Message{ID: "02", Type: team.MsgUser, From: "user", To: "joe", Content: "Rest."}
	d.tell("user", "", team.EventBody{Type: team.MailSent}, word)
	t.Status, t.Assignee = team.InProgress, "bob"
	d.tell("bob", "", team.EventBody{Type: team.TaskClaimed}, t)
	word.ID = "03"
	d.tell("user", "", team.EventBody{Type: team.MailSent}, word)
	d.tell("user", "", team.EventBody{Type: team.MailSent}, team.Message{ID: "04", Type: team.MsgUser, From: "user", To: "bob", Content: "Tabs.", InReplyTo: q.ID})
	q.ID, q.From = "05", "bob"
	d.tell("bob", "", team.EventBody{Type: team.MailSent, MessageID: q.ID}, q)
	t.Status = team.Completed
	d.tell("bob", "", team.EventBody{Type: team.TaskCompleted}, t)
	return d.all
}

// second is a team whose second goal has one of the tasks of its first.
func second() []input {
	tasks := []team.Task{{ID: "T-001", Status: team.Completed}, {ID: "T-002", Status: team.Failed}, {ID: "T-003", Status: team.Pending}}
	d := &told{all: []input{{Tasks: tasks, Earlier: []team.TaskID{"T-001", "T-002"}}}}
	tasks[1].Status = team.Pending // somebody has it done again
	d.tell("user", "", team.EventBody{Type: team.TaskUpdated}, tasks[1])
	return d.all
}

// Mail of others lets a question wait on; the word of whoever was asked ends it.
func TestQuestionWaitsForWhomItAsks(t *testing.T) {
	s := state.New()
	q := team.Message{ID: "01", Type: team.MsgMessage, From: "coder-1", To: team.UserAgent, AwaitReply: true}
	mail := func(m team.Message) {
		value, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(feed.Entry{Time: noon, Event: team.Event{AgentID: m.From, Event: team.EventBody{Type: team.MailSent, Value: value}}})
	}
	mail(q)
	mail(team.Message{ID: "02", Type: team.MsgWatchdog, From: team.Watchdog, To: "coder-1"})
	if len(s.Questions) != 1 {
		t.Error("a notice of the watchdog has answered the question to the user")
	}
	mail(team.Message{ID: "03", Type: team.MsgUser, From: team.UserAgent, To: "coder-1"})
	if len(s.Questions) != 0 {
		t.Error("the user's word has not answered it")
	}
}
