package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// seedEnv repeats a test that chooses at random, by the seed that it printed.
const seedEnv = "AGENTTEAM_TEST_SEED"

func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64N(1_000_000)
	if s := os.Getenv(seedEnv); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	t.Logf("%s=%d repeats this", seedEnv, seed)
	return seed
}

// fickle answers some requests with a fault, chosen by a seed: the same for the n-th
// request of the same agent.
type fickle struct {
	seed uint64
	mu   sync.Mutex
	dice map[string]*rand.Rand
	mute map[string]bool // by member and task, whether it fell silent before its end
	many int             // faults so far
}

const faultShare = 0.2

// fault is what becomes of the request; nil: it is answered. The endpoint's errors quote
// the key, as some do.
func (f *fickle) fault(e *endpoint, r *request) answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	dice := f.dice[r.agent]
	if dice == nil {
		name := fnv.New64a()
		_, _ = name.Write([]byte(r.agent))
		dice = rand.New(rand.NewPCG(f.seed, name.Sum64()))
		f.dice[r.agent] = dice
	}
	if dice.Float64() >= faultShare {
		return nil
	}
	quote := "Incorrect API key provided: " + r.key + ". Authorization: Bearer " + r.key
	whole := turns(e)
	all := []answer{
		refuse(429, "rate_limit_exceeded", "rate_limit_error", quote), refuse(500, "", "server_error", quote),
		refuse(503, "", "server_error", quote), refuse(400, "context_length_exceeded", "invalid_request_error", quote),
		refuse(401, "invalid_api_key", "invalid_request_error", quote), jsonBody(402, "", quote), html(quote),
		inStream("server_error", "overloaded_error", quote), errorEvent("overloaded_error", quote), lateError(503, quote),
		cut, ended, dropped, stalled,
		whole["made-up name"], whole["arguments cut"],
		whole["empty"], whole["answer at its limit"],
	}
	n := dice.IntN(len(all))
	// Who falls silent twice in one task gives it up, and that counts.
	if key := r.agent + "/" + r.task(); n >= len(all)-2 {
		if f.mute[key] {
			return nil
		}
		f.mute[key] = true
	}
	f.many++
	return all[n]
}

// Two teammates work through 200 turns while the endpoint errs at random. What is stored
// in the end is a consistent conversation, its sums are the endpoint's own, and the key
// is nowhere.
func TestRandomFaults(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const tasks, calls, key = 20, 9, "sk-proof-5ecre7-0123456789abcdef"
	fick := &fickle{seed: seedOf(t), dice: map[string]*rand.Rand{}, mute: map[string]bool{}}
	work := &crew{turns: calls, call: func(n int) call { return use("bash", "command", fmt.Sprintf("echo %d", n)) }}
	var e *endpoint
	e = serve(t, func(r *request) answer {
		if r.role == "leader" {
			return e.say("I wait.")
		}
		if a := fick.fault(e, r); a != nil {
			return a
		}
		return work.next(e, r)
	})
	c := upAt(t, e.url, 2, "OPENAI_API_KEY="+key, "AGENTTEAM_MODEL_FIRST_BYTE=2s", "AGENTTEAM_MODEL_IDLE=1s")
	conn := c.connect()
	tm, bt := watched(t, conn, team.DefaultTeam, shortLease)
	past := remember(t, bt)
	if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 2); err != nil {
		t.Fatal(err)
	}
	todo := make([]team.NewTask, tasks)
	for i := range todo {
		todo[i].Title = fmt.Sprintf("task %d", i+1)
	}
	added, _, err := tm.Board().Add(t.Context(), "", todo...)
	if err != nil {
		t.Fatal(err)
	}
	showJournals(t, bt)
	mend := &mender{e, tm, map[team.AgentID]int{}}
	brokertest.Within(t, longWork, "all tasks are completed", func() bool {
		mend.look(t)
		done := 0
		for _, task := range added {
			if spoilt := past.spoilt(task.ID); spoilt != "" {
				t.Fatal(spoilt)
			}
			if past.last(task.ID).Status == team.Completed {
				done++
			}
		}
		return done == tasks
	})
	until(t, "both are at rest", func() bool {
		agents := mend.look(t)
		return len(agents) >= 2 && !slices.ContainsFunc(agents, func(a client.Agent) bool { return a.State != team.Idle })
	})
	t.Logf("%d requests, %d faults", e.calls, fick.many)
	if len(e.billed) < tasks*(calls+1) {
		t.Errorf("%d turns, want %d or more", len(e.billed), tasks*(calls+1))
	}
	checkJournal(t, bt, e)
	nowhere(t, c, bt, key)
}

// mender tells whoever waits for its model that it is mended: a fault is over once it
// was played.
type mender struct {
	e    *endpoint
	tm   *client.Team
	told map[team.AgentID]int // the request after which it was told last
}

func (m *mender) look(t *testing.T) (agents []client.Agent) {
	t.Helper()
	agents, err := m.tm.Members().List(t.Context(), false)
	if err != nil {
		return nil // asked again soon
	}
	for _, a := range agents {
		last := m.e.lastOf(string(m.tm.ID()), string(a.AgentID))
		if a.State != team.WaitingModel || last == nil || m.told[a.AgentID] == last.serial {
			continue
		}
		if _, _, err := m.tm.Mail().Send(t.Context(), client.NewMail{To: a.AgentID, Text: "The endpoint is mended. Try again."}); err != nil {
			t.Fatal(err)
		}
		m.told[a.AgentID] = last.serial
	}
	return agents
}

// showJournals logs how each conversation ended, if the test fails.
func showJournals(t *testing.T, bt *broker.Storage) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		const most = 30
		tails := map[string][]string{}
		err := bt.Logs.Read(context.WithoutCancel(t.Context()), 1, func(m broker.Msg) error {
			tail := append(tails[m.Subject], fmt.Sprintf("%.300s", m.Data))
			tails[m.Subject] = tail[max(0, len(tail)-most):]
			return nil
		})
		for subj, tail := range tails {
			t.Logf("the end of %s (%v):\n%s", subj, err, strings.Join(tail, "\n"))
		}
	})
}

// record is what a test reads of a stored entry of a conversation.
type record struct {
	Kind        string
	Incarnation uint64
	Turn        *struct {
		Message struct {
			Content   string
			ToolCalls []struct{ ID, Name string } `json:"tool_calls"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
	}
	Result *struct {
		CallID        string `json:"call_id"`
		Name, Content string
	}
}

// checkJournal holds the stored conversations against what the endpoint answered: every
// call has one result before the next turn, and each complete answer was taken once, for
// what it cost.
func checkJournal(t *testing.T, bt *broker.Storage, e *endpoint) {
	t.Helper()
	open := map[string]map[string]bool{} // by subject, calls without a result
	newest := map[string]uint64{}        // by subject, the incarnation
	taken := map[int]bool{}
	var prompt, completion, wantPrompt, wantCompletion int
	err := bt.Logs.Read(t.Context(), 1, func(m broker.Msg) error {
		var r record
		if err := json.Unmarshal(m.Data, &r); err != nil {
			return fmt.Errorf("record %d: %w", m.Seq, err)
		}
		calls := open[m.Subject]
		if calls == nil {
			calls = map[string]bool{}
			open[m.Subject] = calls
			if r.Kind != "start" {
				t.Errorf("%s begins with a record of kind %s", m.Subject, r.Kind)
			}
		}
		if r.Incarnation < newest[m.Subject] {
			t.Errorf("record %d of %s is of incarnation %d, after %d", m.Seq, m.Subject, r.Incarnation, newest[m.Subject])
		}
		newest[m.Subject] = r.Incarnation
		switch {
		case r.Result != nil:
			if !calls[r.Result.CallID] {
				t.Errorf("record %d of %s answers %q, which is not an open call", m.Seq, m.Subject, r.Result.CallID)
			}
			delete(calls, r.Result.CallID)
		case r.Turn != nil:
			for id := range calls {
				t.Errorf("record %d of %s is a turn, and call %s before it has no result", m.Seq, m.Subject, id)
			}
			clear(calls)
			for _, call := range r.Turn.Message.ToolCalls {
				if call.ID == "" || calls[call.ID] {
					t.Errorf("record %d of %s has a call with the id %q", m.Seq, m.Subject, call.ID)
				}
				calls[call.ID] = true
			}
			u := r.Turn.Usage
			b, ok := e.billed[u.Completion]
			if !ok || taken[u.Completion] || b.prompt != u.Prompt || !strings.HasSuffix(m.Subject, "."+b.agent) {
				t.Errorf("record %d of %s cost %d and %d tokens: no answer did, or it was taken before (%+v)", m.Seq, m.Subject, u.Prompt, u.Completion, b)
			}
			taken[u.Completion] = true
			prompt, completion = prompt+u.Prompt, completion+u.Completion
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for subj, calls := range open {
		for id := range calls {
			t.Errorf("%s ends with call %s open", subj, id)
		}
	}
	for serial, b := range e.billed {
		if b.empty && !taken[serial] {
			continue // an answer that says nothing may be asked for again
		}
		wantPrompt, wantCompletion = wantPrompt+b.prompt, wantCompletion+b.completion
		if !taken[serial] {
			t.Errorf("an answer to %s/%s of %d and %d tokens is in no journal", b.team, b.agent, b.prompt, b.completion)
		}
	}
	if prompt != wantPrompt || completion != wantCompletion {
		t.Errorf("the journals add up to %d and %d tokens, the endpoint's bills to %d and %d", prompt, completion, wantPrompt, wantCompletion)
	}
}

// nowhere wants a secret to be in nothing that is stored, written, shown or printed.
func nowhere(t *testing.T, c *cluster, bt *broker.Storage, secret string) {
	t.Helper()
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for info := range js.ListStreams(t.Context()).Info() {
		stream, err := js.Stream(t.Context(), info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
			m, err := stream.GetMsg(t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // of a key that was written again
			}
			if err != nil {
				t.Fatal(err)
			}
			messages++
			if strings.Contains(m.Subject+fmt.Sprint(m.Header)+string(m.Data), secret) {
				t.Errorf("message %d of %s holds the key: %s", seq, info.Config.Name, m.Data)
			}
		}
	}
	files := 0
	err = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a file of the server that has just gone
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(secret)) {
			t.Errorf("the file %s holds the key", path)
		}
		files++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.connect().Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, p := range slices.Concat(status.Leaders, status.Standbys, status.Members) {
		resp, err := http.Get(p.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || bytes.Contains(page, []byte(secret)) {
			t.Errorf("%s holds the key, or cannot be read (%v)", p.Metrics, err)
		}
		pages++
	}
	commands := [][]string{{"agents"}, {"agents", "-o", "json"}, {"tasks", "-o", "json"}, {"events"}, {"events", "-o", "jsonl"}, {"status", "-o", "json"}, {"config", "view", "--show-origin"}}
	for _, args := range commands {
		_, out, errs := exit(t, c.command(args...))
		if strings.Contains(out+errs, secret) {
			t.Errorf("teamctl %s prints the key", strings.Join(args, " "))
		}
	}
	t.Logf("the key is looked for in %d messages, %d files, %d metric pages and %d outputs", messages, files, pages, len(commands))
	if messages == 0 || files == 0 || pages == 0 {
		t.Error("there was nothing to look at")
	}
}
