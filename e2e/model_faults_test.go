package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// fault is what the endpoint does to one of four teammates in the middle of a task.
type fault struct {
	name  string
	times int // requests that meet it; 0: all, until the endpoint is mended
	play  func(text string) answer
}

func plain(a answer) func(string) answer { return func(string) answer { return a } }

func refusing(status int, code, kind string) func(string) answer {
	return func(text string) answer { return refuse(status, code, kind, text) }
}

// parking are refusals of the account, the key or the model: until somebody mends that,
// nothing that this teammate asks is answered.
var parking = []fault{
	{"401", 0, refusing(401, "invalid_api_key", "invalid_request_error")}, // whose text may quote the key, and need not be shown
	{"402", 0, refusing(402, "", "insufficient_balance")},
	{"403", 0, refusing(403, "", "permission_error")},
	{"404", 0, refusing(404, "model_not_found", "invalid_request_error")},
	{"429 quota", 0, refusing(429, "insufficient_quota", "insufficient_quota")},
	{"quota in the stream", 0, func(text string) answer { return inStream("insufficient_quota", "insufficient_quota", text) }},
	{"wrong key as an event", 0, func(text string) answer { return errorEvent("authentication_error", text) }},
	{"no credit in the body", 0, func(text string) answer { return jsonBody(402, "", text) }},
}

// rejecting are requests that the endpoint does not take, whatever the reason.
var rejecting = []fault{
	{"400", 0, refusing(400, "", "invalid_request_error")},
	{"422", 0, refusing(422, "", "invalid_request_error")},
}

// passing are faults that are over soon: the teammate keeps its task and goes on.
var passing = []fault{
	{"429", 2, func(text string) answer {
		return func(w http.ResponseWriter, r *request) {
			w.Header().Set("Retry-After", "1")
			refuse(429, "rate_limit_exceeded", "rate_limit_error", text)(w, r)
		}
	}},
	{"500", 2, refusing(500, "", "server_error")},
	{"503", 2, refusing(503, "", "server_error")},
	{"529", 2, refusing(529, "", "overloaded_error")},
	{"overloaded in the stream", 2, func(text string) answer { return inStream("server_error", "overloaded_error", text) }},
	{"overloaded as an event", 2, func(text string) answer { return errorEvent("overloaded_error", text) }},
	{"error late in the stream", 1, func(text string) answer { return lateError(503, text) }},
	{"a page for people", 3, html},
	{"cut", 1, plain(cut)}, // a second one would be rested for
	{"ended early", 1, plain(ended)},
	{"dropped", 1, plain(dropped)},
	{"silent", 1, plain(silent)},
	{"stalled", 1, plain(stalled)},
	{"kept alive and nothing else", 1, plain(kept)},
	{"without an end", 1, plain(endless)},
}

// once are answers that are wrong in themselves, and requests that are refused for what
// they hold: the next one is answered.
var once = []fault{
	{"413", 1, refusing(413, "", "request_too_large")},
	{"too long", 1, refusing(400, "context_length_exceeded", "invalid_request_error")},
	{"too long in the stream", 1, func(text string) answer { return inStream("context_length_exceeded", "invalid_request_error", text) }},
	{"content filter", 1, refusing(400, "content_filter", "invalid_request_error")},
	{"a failed tool call", 3, refusing(400, "tool_use_failed", "invalid_request_error")},
	{"400 once", 1, refusing(400, "", "invalid_request_error")},
	{"422 once", 1, refusing(422, "", "invalid_request_error")},
	{"403 once", 1, refusing(403, "", "permission_error")},
	{"400 of the last turn", 2, refusing(400, "", "invalid_request_error")},
	{"empty", 1, nil},
	{"made-up name", 1, nil},
	{"arguments cut", 1, nil},
	{"filtered answer", 1, nil},
	{"answer at its limit", 1, nil},
}

// turns are the faults of once that are whole turns.
func turns(e *endpoint) map[string]answer {
	return map[string]answer{
		"empty":               e.say(""),
		"made-up name":        e.say("", call{"functions.bash<|channel|>commentary", `{"command": "true"}`}),
		"arguments cut":       e.say("", call{"bash", `{"command": "tr`}),
		"filtered answer":     e.turn("content_filter", "I begin to say", call{"bash", `{"command": "tr`}),
		"answer at its limit": e.turn("length", "I begin to say", call{"bash", `{"command": "tr`}),
	}
}

const (
	teamSize   = 4
	roundTasks = 6

	// patience bounds each wait: above the rest that an agent takes in an outage, and
	// short, so that many broken promises are told soon.
	patience = 40 * time.Second
)

// stage is one team, on whose members the endpoint plays faults.
type stage struct {
	e     *endpoint
	c     *cluster
	tm    *client.Team
	bt    *broker.Storage
	past  *history
	judge *boardtest.Recorder
	crew  crew

	mu     sync.Mutex
	fault  *fault // armed; nil: none
	answer answer
	left   int
	victim string
	met    int    // messages of the victim's request that met the fault last
	next   int    // of its next one; 0: there was none
	wanted string // who is to get a task before the others complete theirs
	before string // its task before that

	forbidden map[string]string // by code of the refusal, words that no request may hold
}

// play answers a member of the stage's team.
func (s *stage) play(r *request) answer {
	if r.role == "leader" {
		return s.e.say("I wait.")
	}
	if a := s.interfere(r); a != nil {
		return a
	}
	return s.crew.next(s.e, r)
}

// interfere is the fault that a request meets; nil if none.
func (s *stage) interfere(r *request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for code, words := range s.forbidden {
		if strings.Contains(string(r.body), words) {
			return refuse(400, code, "invalid_request_error", "PROOF-"+code)
		}
	}
	if s.wanted == r.agent && r.task() != s.before {
		s.wanted = ""
	}
	if s.fault != nil && s.victim == "" && s.crew.begun(r) {
		s.victim = r.agent
	}
	if s.fault == nil || s.victim != r.agent || s.fault.times > 0 && s.left == 0 {
		if s.victim == r.agent && s.next == 0 {
			s.next = len(r.messages)
		}
		return nil
	}
	s.left, s.met = s.left-1, len(r.messages)
	return s.answer
}

// begun reports whether the member is in the middle of a task.
func (c *crew) begun(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := c.steps[r.team+"/"+r.agent+"/"+r.task()]
	return 1 <= step && step < c.turns
}

// busy holds back those who might take all tasks before the wanted one has any.
func (s *stage) busy(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted != "" && s.wanted != r.agent
}

func (s *stage) arm(f fault, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := turns(s.e)[f.name]
	if f.play != nil {
		a = f.play(text)
	}
	s.fault, s.answer, s.left, s.victim, s.met, s.next = &f, a, f.times, "", 0, 0
}

// mend ends the fault.
func (s *stage) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = nil
}

// want has the other members go on with their tasks until this one has a new one.
func (s *stage) want(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.before = agent, ""
	if r := s.e.lastOf(string(s.tm.ID()), agent); r != nil {
		s.before = r.task()
	}
}

// lost is how many messages the conversation had less after the fault.
func (s *stage) lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met - s.next
}

// shortens reports whether the conversation is to be shortened after the fault.
func (f fault) shortens() bool { return strings.HasPrefix(f.name, "too long") || f.name == "413" }

// struck is who met the fault, or "".
func (s *stage) struck() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.victim
}

// stages starts a cluster with a team of four for each name, on one endpoint.
func stages(t *testing.T, names ...string) map[string]*stage {
	t.Helper()
	all := map[string]*stage{}
	e := serve(t, func(r *request) answer { return all[r.team].play(r) })
	for _, name := range names {
		s := &stage{e: e}
		s.crew = crew{turns: 3, busy: s.busy, call: func(n int) call {
			return use("bash", "command", fmt.Sprintf("sleep 0.05; echo %d", n))
		}}
		all[name] = s
	}
	c := upAt(t, e.url, teamSize*len(names), "OPENAI_API_KEY=sk-proof-5ecre7",
		"AGENTTEAM_MODEL_CONNECT=2s", "AGENTTEAM_MODEL_FIRST_BYTE=2s", "AGENTTEAM_MODEL_IDLE=1s", "AGENTTEAM_MODEL_TOTAL=5s")
	conn := c.connect()
	for name, s := range all {
		s.c = c
		s.tm, s.bt = watched(t, conn, team.TeamID(name), shortLease)
		s.past = remember(t, s.bt)
		s.judge = boardtest.Record(t, s.bt.Bucket)
		if _, err := s.tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, teamSize); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each fault is played to one of four teammates in the middle of its work. No task has
// an attempt counted or fails, and all are done in the end.
func TestModelFaults(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	all := stages(t, "parking", "passing", "once")
	rounds := map[string][]fault{"parking": slices.Concat(parking, rejecting), "passing": passing, "once": once}
	t.Run("all", func(t *testing.T) { // returns when the parallel ones have ended, before the cluster does
		for name, faults := range rounds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, f := range faults {
					t.Run(f.name, func(t *testing.T) { all[name].round(t, f) })
				}
				if name == "passing" {
					t.Run("an outage", all[name].outage)
				}
				if name == "once" {
					t.Run("a task that is refused", all[name].refusedAlone)
				}
			})
		}
	})
	for _, s := range all {
		s.judge.Judge(t)
	}
}

// round has the team do some tasks while the fault is played.
func (s *stage) round(t *testing.T, f fault) {
	text := "PROOF-" + strings.ReplaceAll(f.name, " ", "-")
	begun, err := s.bt.Messages.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.arm(f, text)
	defer s.mend()
	tasks := s.add(t, roundTasks, f.name, "")
	if f.times > 0 {
		s.completed(t, tasks)
		if s.struck() == "" {
			t.Fatal("nobody met the fault")
		}
		if lost := s.lost(); lost > 2 && !f.shortens() {
			t.Errorf("the request after the refusal had %d messages less", lost)
		}
		for _, id := range tasks {
			if last := s.past.last(id); last.Epoch != 1 {
				t.Errorf("%s was claimed %d times: who met the fault was to keep it", id, last.Epoch)
			}
		}
		return
	}
	// The others do it all, but for what the one who is refused still holds.
	s.until(t, "the others do the tasks", tasks, func() bool {
		return s.struck() != "" && !slices.ContainsFunc(tasks, func(id team.TaskID) bool {
			last := s.past.last(id)
			held := last.Status == team.InProgress && string(last.Assignee) == s.struck() && !f.parks()
			return last.Status != team.Completed && !held
		})
	})
	victim := team.AgentID(s.struck())
	if f.parks() {
		s.parked(t, victim, text, begun)
	}
	s.mend()
	if _, _, err := s.tm.Mail().Send(t.Context(), client.NewMail{To: victim, Text: "The endpoint is mended. Try again."}); err != nil {
		t.Fatal(err)
	}
	s.completed(t, tasks)
	s.until(t, string(victim)+" comes back", tasks, func() bool {
		a, err := s.tm.Members().Get(t.Context(), victim)
		return err == nil && a.State == team.Idle
	})
	s.want(string(victim))
	more := s.add(t, teamSize, f.name+", mended", "")
	s.completed(t, more)
	if !slices.ContainsFunc(more, func(id team.TaskID) bool { return s.past.last(id).Assignee == victim }) {
		t.Errorf("%s was given none of %d tasks after it came back", victim, teamSize)
	}
	if told := s.told(t, victim, begun); f.parks() && len(told) != 1 {
		t.Errorf("the leader was told %d times, want once: %q", len(told), told)
	}
	if a, err := s.tm.Members().Get(t.Context(), victim); err != nil || f.parks() && a.LastError != "" {
		t.Errorf("%s is back, and its last error is still %q (%v)", victim, a.LastError, err)
	}
}

// parks reports whether the teammate is to wait for somebody to mend its endpoint.
func (f fault) parks() bool {
	return slices.ContainsFunc(parking, func(p fault) bool { return p.name == f.name })
}

// names reports whether a text tells why a teammate is refused: in the endpoint's own
// words, but for a wrong key.
func names(text, cause string) bool {
	return strings.Contains(text, cause) || (cause == "PROOF-401" || cause == "PROOF-wrong-key-as-an-event") && strings.Contains(text, "key")
}

// parked wants a teammate to be shown as one that waits, and why, and the leader to
// hear of it.
func (s *stage) parked(t *testing.T, victim team.AgentID, cause string, begun uint64) {
	t.Helper()
	s.until(t, string(victim)+" waits for its model", nil, func() bool {
		a, err := s.tm.Members().Get(t.Context(), victim)
		return err == nil && a.State == team.WaitingModel
	})
	var shown []struct {
		AgentID   team.AgentID     `json:"agent_id"`
		State     team.MemberState `json:"state"`
		LastError string           `json:"last_error"`
	}
	if err := json.Unmarshal([]byte(s.c.ok("agents", "--team", string(s.tm.ID()), "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	for _, a := range shown {
		waits := a.State == team.WaitingModel && names(a.LastError, cause)
		if a.AgentID == victim && !waits || a.AgentID != victim && a.State == team.WaitingModel {
			t.Errorf("agents shows %s as %s, last error %q; want %s alone to wait for %q", a.AgentID, a.State, a.LastError, victim, cause)
		}
	}
	s.until(t, "the leader is told", nil, func() bool { return len(s.told(t, victim, begun)) > 0 })
	if told := s.told(t, victim, begun); !names(told[0], cause) {
		t.Errorf("the leader is told %q, want the cause %q", told[0], cause)
	}
}

// told is what the leader was sent about a teammate after the given sequence, but for
// the everyday notice that it is idle.
func (s *stage) told(t *testing.T, about team.AgentID, after uint64) (texts []string) {
	t.Helper()
	err := s.bt.Messages.Read(t.Context(), after+1, func(m broker.Msg) error {
		var mail team.Message
		if err := json.Unmarshal(m.Data, &mail); err != nil {
			return err
		}
		if mail.Type != team.MsgIdle && strings.Contains(string(m.Data), string(about)) {
			texts = append(texts, mail.Content)
		}
		return nil
	}, subject.Mail(s.tm.ID(), team.Leader)[0])
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// outage is one that lasts: who meets it keeps its task, rests, and does it when the
// endpoint is back, by itself.
func (s *stage) outage(t *testing.T) {
	s.arm(fault{"outage", 0, refusing(500, "", "server_error")}, "PROOF-outage")
	defer s.mend()
	tasks := s.add(t, roundTasks, "outage", "")
	held := func() (id team.TaskID) {
		for _, id := range tasks {
			if last := s.past.last(id); last.Status == team.InProgress && s.struck() == string(last.Assignee) {
				return id
			}
		}
		return ""
	}
	s.until(t, "the others do the tasks", tasks, func() bool {
		done := 0
		for _, id := range tasks {
			if s.past.last(id).Status == team.Completed {
				done++
			}
		}
		return done == len(tasks)-1 && held() != ""
	})
	id, victim := held(), s.struck()
	s.mend()
	s.completed(t, tasks)
	if last := s.past.last(id); string(last.Assignee) != victim || last.Epoch != 1 {
		t.Errorf("%s was completed by %s, epoch %d; want %s, which kept it", id, last.Assignee, last.Epoch, victim)
	}
}

// refusedAlone has tasks that no endpoint takes, whoever asks and however little else
// is said: they fail, with that reason, and nothing else does.
func (s *stage) refusedAlone(t *testing.T) {
	words := map[string]string{"content_filter": "the forbidden words", "context_length_exceeded": "the endless words"}
	s.mu.Lock()
	s.forbidden = words
	s.mu.Unlock()
	others := s.add(t, teamSize, "harmless", "")
	for code, forbidden := range words {
		// Long, for what is said to be too long must be most of what is said.
		id := s.add(t, 1, code, strings.Repeat("Write a line, and then one more. ", 1500)+"Write "+forbidden+".")[0]
		s.until(t, string(id)+" fails", others, func() bool { return s.past.last(id).Status == team.Failed })
		if last := s.past.last(id); !strings.Contains(last.Reason, "PROOF-"+code) {
			t.Errorf("%s failed for %q, want the endpoint's own %q", id, last.Reason, "PROOF-"+code)
		}
	}
	s.completed(t, others)
	s.completed(t, s.add(t, teamSize, "after", ""))
}

// add puts n tasks on the board.
func (s *stage) add(t *testing.T, n int, title, description string) (ids []team.TaskID) {
	t.Helper()
	tasks := make([]team.NewTask, n)
	for i := range tasks {
		tasks[i] = team.NewTask{Title: fmt.Sprintf("%s %d", title, i+1), Description: description}
	}
	added, _, err := s.tm.Board().Add(t.Context(), "", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range added {
		ids = append(ids, a.ID)
	}
	return ids
}

// completed waits until all of the tasks are.
func (s *stage) completed(t *testing.T, ids []team.TaskID) {
	t.Helper()
	s.until(t, "the tasks are completed", ids, func() bool {
		return !slices.ContainsFunc(ids, func(id team.TaskID) bool { return s.past.last(id).Status != team.Completed })
	})
}

// until waits, and gives up at once if one of the tasks has an attempt counted or fails.
func (s *stage) until(t *testing.T, what string, ids []team.TaskID, ok func() bool) {
	t.Helper()
	brokertest.Within(t, patience, what, func() bool {
		for _, id := range ids {
			if spoilt := s.past.spoilt(id); spoilt != "" {
				t.Fatalf("waiting until %s: %s", what, spoilt)
			}
		}
		return ok()
	})
}

// history is every revision of every task of a team, as stored.
type history struct {
	mu    sync.Mutex
	tasks map[team.TaskID][]team.Task
}

// remember follows a team's board until the test ends.
func remember(t *testing.T, bt *broker.Storage) *history {
	t.Helper()
	h := &history{tasks: map[team.TaskID][]team.Task{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- bt.Bucket.Changes(ctx, 1, func(e broker.Entry) error {
			task, err := board.Decode(e)
			if err != nil {
				return err
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.tasks[task.ID] = append(h.tasks[task.ID], task)
			return nil
		}, nil, subject.AllTasks)
	}()
	t.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(t, "the board is read no more", done); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return h
}

// last is the newest revision of a task; the zero value if there is none.
func (h *history) last(id team.TaskID) (last team.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.tasks[id]; len(all) > 0 {
		last = all[len(all)-1]
	}
	return last
}

// spoilt tells of the first revision of a task with an attempt counted or as failed, or
// is "".
func (h *history) spoilt(id team.TaskID) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, task := range h.tasks[id] {
		if task.Attempts != 0 || task.Status == team.Failed {
			return fmt.Sprintf("%s is %s with %d attempts at revision %d: %s", id, task.Status, task.Attempts, task.Revision, task.Reason)
		}
	}
	return ""
}
