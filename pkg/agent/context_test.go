package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// contextRecord is how next is recorded.
func contextRecord(next *Conversation) journal.Record {
	return journal.Record{ID: recordID, Kind: journal.Compact, Context: engine.JSON(next)}
}

// Whatever is recorded, and wherever the conversation is made shorter in between, by
// whichever way: what comes out is a conversation that every endpoint takes, and the
// same one whether it is folded from the begin or from the newest context. A request to shut
// down stands in it until it is answered.
func TestShortenedAnywhere(t *testing.T) { rapid.Check(t, shortenedAnywhere) }

func FuzzShortenedAnywhere(f *testing.F) { f.Fuzz(rapid.MakeFuzz(shortenedAnywhere)) }

func shortenedAnywhere(rt *rapid.T) {
	var records []journal.Record
	c := newConversation("")
	add := func(r journal.Record) {
		r.ID = recordID
		records = append(records, r)
		if err := c.Add(r); err != nil {
			rt.Fatal(err)
		}
	}
	calls, seq := 0, uint64(0)
	text := func() string { return rapid.StringMatching(`[a-z<>/" \n]{1,200}`).Draw(rt, "text") }
	for range rapid.IntRange(1, 60).Draw(rt, "records") {
		switch kind := rapid.SampledFrom([]string{"mail", "request", "task", "note", "turn", "turn", "result", "result", "end", "start", "fresh", "marked", "summarized", "bare", "dropped"}).Draw(rt, "kind"); {
		case kind == "mail":
			seq++
			from := rapid.SampledFrom([]team.AgentID{team.UserAgent, team.Leader, "coder-2"}).Draw(rt, "from")
			add(mailRecord(seq, from, rapid.SampledFrom([]team.MessageType{team.MsgMessage, team.MsgBroadcast, team.MsgIdle}).Draw(rt, "type"), text()))
		case kind == "request":
			seq++
			r := mailRecord(seq, team.Leader, team.MsgShutdownRequest, text())
			r.Message.RequestID, r.Message.Drain = fmt.Sprintf("r%d", seq), rapid.Bool().Draw(rt, "drain")
			add(r)
		case kind == "task":
			n := rapid.IntRange(1, 3).Draw(rt, "task")
			add(taskRecord(team.Task{ID: team.TaskID(fmt.Sprintf("T-%03d", n)), Title: "t", Description: text(), Epoch: uint64(len(records))}))
		case kind == "note":
			add(noteRecord(text()))
		case kind == "start":
			add(journal.Record{Kind: journal.Start, Goal: rapid.IntRange(0, 2).Draw(rt, "goal")})
		case kind == "turn" && len(c.Open) == 0:
			var ids []string
			for range rapid.IntRange(0, 3).Draw(rt, "calls") {
				calls++
				ids = append(ids, fmt.Sprintf("c%d", calls))
			}
			add(turnRecord(text(), ids...))
		case kind == "result" && len(c.Open) > 0:
			add(resultRecord(c.Open[rapid.IntRange(0, len(c.Open)-1).Draw(rt, "which")].ID, strings.Repeat(text(), 20)))
		case kind == "end" && len(c.Open) == 0:
			add(endRecord())
		case kind == "fresh":
			add(contextRecord(c.fresh(rapid.SampledFrom([]team.TaskID{"", "T-001", "T-009"}).Draw(rt, "next"), rapid.IntRange(0, 5000).Draw(rt, "room"))))
		case kind == "marked":
			add(contextRecord(c.marked(rigTools{}, rapid.IntRange(0, 2000).Draw(rt, "keep"))))
		case kind == "summarized":
			add(contextRecord(c.summarized(rigTools{}, text(), c.Block, rapid.IntRange(0, 2000).Draw(rt, "room"))))
		case kind == "bare" && len(c.Open) == 0:
			to := rapid.SampledFrom([]engine.Rung{engine.Undone, engine.Compacted, engine.OrdersOnly, engine.WorkOnly}).Draw(rt, "rung")
			if to == engine.Undone && c.LastTurn() < 0 {
				to = engine.Compacted
			}
			add(contextRecord(c.shortened(to, rapid.SampledFrom([]string{"", "a task"}).Draw(rt, "task"), "why")))
		case kind == "dropped" && len(c.Open) == 0:
			add(contextRecord(c.dropped()))
		}
	}
	// A journal is opened at its newest context.
	from := 0
	for i, r := range records {
		if r.Context != nil {
			from = i
		}
	}
	if whole, tail := fold(rt, records...), fold(rt, records[from:]...); from > 0 && string(engine.JSON(whole)) != string(engine.JSON(tail)) {
		rt.Fatalf("folded from the newest context:\n%s\nfrom the begin:\n%s", engine.JSON(tail), engine.JSON(whole))
	}
	for _, call := range slices.Clone(c.Open) {
		add(resultRecord(call.ID, "interrupted"))
	}
	if len(c.Open) > 0 || len(c.Held) > 0 {
		rt.Fatalf("left over: %v, %v", c.Open, c.Held)
	}
	if err := validProtocol(c.Messages); err != nil {
		rt.Fatalf("%v in\n%s", err, transcript(c.Messages))
	}
	for _, r := range c.Requests {
		if told := transcript(c.Messages); strings.Count(told, requestAttribute(r.ID)) != 1 {
			rt.Fatalf("the request %s to shut down is not told once in\n%s", r.ID, told)
		}
	}
}

// A new task begins a new context: of what came before stay a line a task, and the
// mail that stands.
func TestNewTaskBeginsAnew(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		complete := func(context.Context, tool.Call) tool.Result {
			return r.complete("5 endpoints")
		}
		r.tools["complete"] = complete
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: "a long secret of the first task"}
		}
		r.says("I know", "!look", "!complete")
		r.start()
		r.post(1, team.UserAgent, team.MsgMessage, "the port is 4711")
		r.offer()
		r.post(2, "coder-2", team.MsgIdle, "idle")
		r.next(team.Task{ID: "T-002", Title: "Second", Status: team.Pending})
		r.says("!complete")
		r.offer()
		got := transcript(r.asked[3].Messages[1:])
		for _, want := range []string{"T-001 (Count): completed: 5 endpoints", "the port is 4711", "title: Second", "coder-2"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
		for _, gone := range []string{"assistant", "a long secret", "title: Count"} {
			if strings.Contains(got, gone) {
				t.Errorf("%q is still in\n%s", gone, got)
			}
		}
		if k := r.kinds(); strings.Contains(k, "compact") {
			t.Errorf("the new context took a write of its own: %s", k)
		}
	})
}

// A leader's new goal begins one, too.
func TestNewGoalBeginsAnew(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID, r.journal[0].Goal = team.Leader, 1
		r.says("!look", "the first is done")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "the first goal")
		r.stop()
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 2, Goal: 2,
			PastGoals: []team.PastGoal{{Number: 1, Goal: "the first goal", Status: team.TeamFinished}}})
		r.opts.Member.Incarnation = 2
		r.says("well")
		r.start()
		r.post(2, team.UserAgent, team.MsgUser, "the second goal")
		got := transcript(r.asked[2].Messages[1:])
		if strings.Contains(got, "assistant") || !strings.Contains(got, "the first goal") || !strings.Contains(got, "the second goal") {
			t.Errorf("at the second goal the model was told\n%s", got)
		}
		r.stop()
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 3, Goal: 2})
		before := r.kinds()
		r.start()
		if got := r.kinds(); got != before {
			t.Errorf("the same goal after a restart: %s", strings.TrimPrefix(got, before))
		}
	})
}

// small is a rig whose model has a window of 8,000 tokens and refuses more.
func small(r *rig) (largest *int) {
	const window = 8000
	largest = new(int)
	r.limits = model.Limits{Window: window, MaxOutput: 1000}
	r.model = func(ctx context.Context, req model.Request) (model.Reply, error) {
		n := sizeOf(req.Messages)
		*largest = max(*largest, n)
		if n > window {
			return model.Reply{}, &model.Refusal{Advice: model.Compact, Reason: model.ContextLength, Window: window, Err: fmt.Errorf("%d tokens are too many", n)}
		}
		if err := validProtocol(req.Messages[1:]); err != nil {
			r.t.Errorf("the model was asked: %v", err)
		}
		r.asked = append(r.asked, req)
		last := req.Messages[len(req.Messages)-1].Content
		if strings.HasPrefix(last, summaryPrompt[:20]) {
			reply := r.reply(fmt.Sprintf("summary %d: the port is 4711", len(r.asked)))
			reply.Usage = model.Usage{PromptTokens: n, CompletionTokens: 20}
			return reply, nil
		}
		reply := r.reply(r.decide(req.Messages))
		reply.Usage = model.Usage{PromptTokens: n, CompletionTokens: size(&reply.Message)}
		return reply, nil
	}
	return largest
}

// A task of 300 turns in a small window: no request is over it, the task and what was
// agreed are known at the end, and after at least ten compactions the first line is
// still that of the system message.
func TestLongTaskInSmallWindow(t *testing.T) {
	t.Parallel()
	loop(t, func(t *testing.T, r *rig) {
		largest := small(r)
		turns := 0
		r.tools["read_file"] = func(_ context.Context, c tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat(fmt.Sprintf("line of file %d\n", turns), 120)}
		}
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result {
			return r.complete("done")
		}
		r.decide = func(messages []*model.Message) string {
			if !r.holds() {
				return "I keep that in mind"
			}
			if turns++; turns > 300 {
				return "!complete"
			}
			return fmt.Sprintf("!read_file,note%d", turns)
		}
		r.edit(func(t *team.Task) { t.Description = "Sum the files up; keep to the style guide." })
		r.start()
		r.post(1, team.UserAgent, team.MsgMessage, "the limit is 99 bottles")
		r.offer()
		if r.task().Status != team.Completed || r.task().Attempts != 0 {
			t.Fatalf("the task is %s after %d attempts: %s", r.task().Status, r.task().Attempts, r.task().Reason)
		}
		if *largest > 8000 {
			t.Errorf("the largest request had %d tokens", *largest)
		}
		last := r.asked[len(r.asked)-1]
		got := transcript(last.Messages)
		for _, want := range []string{"system: You are coder-1.", "keep to the style guide", "99 bottles"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in the last request:\n%s", want, got)
			}
		}
		if n := strings.Count(r.kinds(), "compact"); n < 10 {
			t.Errorf("%d compactions, want ten at least", n)
		}
	})
}

// rewrites is how many requests do not begin with the whole of the one before.
func (r *rig) rewrites() (n int) {
	for i := 1; i < len(r.asked); i++ {
		before, now := r.asked[i-1].Messages, r.asked[i].Messages
		if len(now) < len(before) || string(engine.JSON(now[:len(before)])) != string(engine.JSON(before)) {
			n++
		}
	}
	return n
}

// works makes the rig's model call a tool in each of so many turns, with these arguments, in
// a window of 32,000, and then say that it is done.
func works(r *rig, turns int, name, arguments string) {
	r.limits = model.Limits{Window: 32_000, MaxOutput: 8000}
	r.model = func(_ context.Context, req model.Request) (model.Reply, error) {
		r.asked = append(r.asked, req)
		n := sizeOf(req.Messages)
		text := "done"
		switch {
		case strings.HasPrefix(req.Messages[len(req.Messages)-1].Content, summaryPrompt[:20]):
			text = "in short"
		case turns > 0:
			turns--
			text = "!" + name
		}
		reply := r.reply(text)
		for i := range reply.Message.ToolCalls {
			reply.Message.ToolCalls[i].Arguments = strings.ReplaceAll(arguments, "N", fmt.Sprint(turns))
		}
		reply.Usage = model.Usage{PromptTokens: n, CompletionTokens: size(&reply.Message)}
		return reply, nil
	}
}

// In a long task the prefix of the prompt, which endpoints cache, changes seldom.
func TestPrefixIsRewrittenSeldom(t *testing.T) {
	t.Parallel()
	loop(t, func(t *testing.T, r *rig) {
		works(r, 300, "read_file", `{"path":"N.go"}`)
		r.tools["read_file"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat(fmt.Sprintf("line of file %d\n", len(r.ran)), 300)}
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		n, compactions := r.rewrites(), strings.Count(r.kinds(), "compact")
		t.Logf("%d of %d requests rewrite the prefix; %d compactions, %d summaries", n, len(r.asked), compactions, len(r.asked)-301)
		if len(r.asked) < 300 || n > 60 {
			t.Errorf("%d of %d requests rewrite the prefix", n, len(r.asked))
		}
	})
}

// What a model writes to files is left out once it is old, like results.
func TestWrittenContentIsMarked(t *testing.T) {
	t.Parallel()
	loop(t, func(t *testing.T, r *rig) {
		works(r, 60, "write_file", `{"path":"N.go","content":"`+strings.Repeat("some text of the file N, ", 440)+`"}`)
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		summaries := 0
		for _, req := range r.asked {
			if strings.HasPrefix(req.Messages[len(req.Messages)-1].Content, summaryPrompt[:20]) {
				summaries++
			}
		}
		t.Logf("%d summaries in %d requests", summaries, len(r.asked))
		if summaries > 1 || len(r.ran) != 60 {
			t.Errorf("%d summaries, %d calls", summaries, len(r.ran))
		}
		last := r.asked[len(r.asked)-1].Messages
		for _, m := range last {
			for _, call := range m.ToolCalls {
				if !json.Valid([]byte(call.Arguments)) || !strings.Contains(call.Arguments, `.go"`) {
					t.Errorf("the arguments became %s", call.Arguments)
				}
			}
		}
		if newest := last[len(last)-2].ToolCalls[0].Arguments; !strings.Contains(newest, "some text of the file 0,") {
			t.Errorf("the newest call became %s", newest)
		}
	})
}

// Two requests have the same prefix, but where the conversation was made shorter.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	loop(t, func(t *testing.T, r *rig) {
		small(r)
		turns := 0
		r.tools["bash"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat(fmt.Sprint(turns, " "), 500)}
		}
		r.decide = func([]*model.Message) string {
			if turns++; turns > 100 {
				return "done"
			}
			return fmt.Sprintf("!bash,look%d", turns)
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		breaks := 0
		for i := 1; i < len(r.asked); i++ {
			before, now := r.asked[i-1].Messages, r.asked[i].Messages
			if len(now) < len(before) || string(engine.JSON(now[:len(before)])) != string(engine.JSON(before)) {
				breaks++
			}
		}
		// A summary asks in a request of its own, which none continues.
		if n := strings.Count(r.kinds(), "compact"); n == 0 || breaks > 2*n {
			t.Errorf("%d breaks of the prefix with %d compactions", breaks, n)
		}
	})
}

// Markers are enough where old results make up most of it: no model call is spent.
func TestMarkersAreEnough(t *testing.T) {
	c := fold(t, taskRecord(team.Task{ID: "T-001", Title: "Count"}))
	for i := range 6 {
		turn := turnRecord("", fmt.Sprint("c", i))
		turn.Turn = json.RawMessage(strings.ReplaceAll(string(turn.Turn), `"look"`, `"read_file"`))
		if err := c.Add(turn); err != nil {
			t.Fatal(err)
		}
		if err := c.Add(resultRecord(fmt.Sprint("c", i), strings.Repeat("x", 4000))); err != nil {
			t.Fatal(err)
		}
	}
	turn := sizeOf(c.Messages[len(c.Messages)-2:])
	m := c.marked(rigTools{}, 3*turn+turn/2)
	if n := strings.Count(transcript(m.Messages), "left out to save room"); n != 3 {
		t.Errorf("%d results are markers, want those that do not fit, 3", n)
	}
	if n := strings.Count(transcript(c.marked(rigTools{}, 0).Messages), "left out to save room"); n != 5 {
		t.Errorf("%d results are markers, want all but the one that the model has not seen, 5", n)
	}
	if len(m.Messages) != len(c.Messages) || strings.Contains(transcript(c.Messages), "left out") {
		t.Error("the conversation itself was changed, or lost a message")
	}
}

// Somebody may ask for a shorter conversation, of an idle agent too.
func TestAskedToCompact(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		compacts := make(chan struct{}, 1)
		r.opts.Input.Compacts = compacts
		r.says("hello", "what was said")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		compacts <- struct{}{}
		r.pass(1)
		r.wantKinds("start mail turn end compact")
		if got := transcript(fold(t, r.journal...).Messages); !strings.Contains(got, "what was said") || !strings.Contains(got, "|go|") {
			t.Errorf("what is left:\n%s", got)
		}
		if r.beat.State != team.Idle {
			t.Errorf("it is %s", r.beat.State)
		}
	})
}

// An endpoint that cuts the prompt without a word is found out by what it counts: that
// is its window from then on.
func TestSilentCut(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat(fmt.Sprintf("finding %d of the survey\n", len(r.ran)), 200)}
		}
		turns := 0
		r.decide = func([]*model.Message) string {
			if turns++; turns > 20 {
				return "done"
			}
			return "!look"
		}
		largest := 0
		r.model = func(_ context.Context, req model.Request) (model.Reply, error) {
			r.asked = append(r.asked, req)
			reply := r.reply(r.decide(req.Messages))
			if n := sizeOf(req.Messages); n > 4096 {
				reply.Usage.PromptTokens = 2048 // half of its window, as one does
				largest = max(largest, n)
			}
			return reply, nil
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if r.beat.Window != 2048 || !strings.Contains(r.kinds(), "compact") {
			t.Errorf("the window is taken for %d; journal %s", r.beat.Window, r.kinds())
		}
		if largest > 7000 { // it takes two such reports
			t.Errorf("it went on to a request of %d tokens", largest)
		}
	})
}

// What the model has yet to see is never dropped by a compaction: results that are more
// than there is room for are given by head and tail.
func TestUnseenResultsSurvive(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		small(r)
		r.tools["read_file"] = func(_ context.Context, c tool.Call) tool.Result {
			return tool.Result{Content: "begin of " + c.ID + "\n" + strings.Repeat("a line of it\n", 250)}
		}
		turns := 0
		r.decide = func(messages []*model.Message) string {
			if turns++; turns > 12 {
				return "done"
			}
			last := messages[len(messages)-1]
			if turns > 1 && !strings.HasPrefix(last.Content, "begin of") {
				t.Errorf("turn %d: the newest thing that the model sees is %.80q", turns, last.Content)
			}
			return "!read_file,read_file,read_file,read_file"
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if n := strings.Count(r.kinds(), "compact"); n == 0 || n > 12 {
			t.Errorf("%d compactions in 12 turns", n)
		}
	})
}

// Reasoning that is not sent back fills no window.
func TestReasoningFillsNothing(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits = model.Limits{Window: 8000, MaxOutput: 1000}
		turns := 0
		r.model = func(_ context.Context, req model.Request) (model.Reply, error) {
			if turns++; turns > 10 {
				return r.reply("done"), nil
			}
			reply := r.reply(fmt.Sprintf("!look%d", turns))
			reply.Usage = model.Usage{PromptTokens: sizeOf(req.Messages), CompletionTokens: 7000, ReasoningTokens: 6950}
			return reply, nil
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if k := r.kinds(); strings.Contains(k, "compact") {
			t.Errorf("journal: %s", k)
		}
	})
}

// A leader's goal stays word for word, whatever broadcasts come after it.
func TestGoalSurvivesCompactions(t *testing.T) {
	c := newConversation("")
	add := func(r journal.Record) {
		if err := c.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	add(journal.Record{Kind: journal.Start, Goal: 1})
	add(mailRecord(1, team.UserAgent, team.MsgUser, "migrate the API, port 4711"))
	add(turnRecord("first thing said"))
	for i := range 40 {
		add(mailRecord(uint64(i+2), "coder-1", team.MsgBroadcast, strings.Repeat("chatter ", 200)))
		add(turnRecord(fmt.Sprint("said ", i)))
	}
	for range 3 {
		add(contextRecord(c.summarized(rigTools{}, "what was said before", "", 100)))
		add(noteRecord("go on"))
		add(turnRecord("well"))
	}
	got := transcript(c.Messages)
	if strings.Count(got, "migrate the API, port 4711") != 1 {
		t.Errorf("the goal is not there once:\n%s", got)
	}
}

// However many broadcasts came, a context holds few of them.
func TestFactsAreBounded(t *testing.T) {
	t.Parallel()
	c := newConversation("")
	for i := range 2000 {
		if err := c.Add(mailRecord(uint64(i+1), "coder-1", team.MsgBroadcast, strings.Repeat("chatter ", 100))); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(turnRecord("ok")); err != nil {
		t.Fatal(err)
	}
	if n := len(engine.JSON(c.fresh("", 20_000))); n > 100_000 {
		t.Errorf("a new context has %d bytes", n)
	}
}

// Compacting what was just compacted makes it no larger.
func TestCompactedTwice(t *testing.T) {
	c := fold(t, mailRecord(1, team.UserAgent, team.MsgUser, "go"), turnRecord("a"), noteRecord("on"), turnRecord("b"))
	once := c.summarized(rigTools{}, "short", "", 0)
	twice := once.summarized(rigTools{}, "short", "", 0).summarized(rigTools{}, "short", "", 0)
	if sizeOf(twice.Messages) > sizeOf(once.Messages) {
		t.Errorf("%s\nbecame\n%s", transcript(once.Messages), transcript(twice.Messages))
	}
}

// A shutdown is granted however full the context is.
func TestShutdownWithFullContext(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits = model.Limits{Window: 100}
		r.refuses(model.Compact, model.ContextLength)
		r.refuses(model.Compact, model.ContextLength)
		r.refuses(model.Compact, model.ContextLength)
		r.refuses(model.Compact, model.ContextLength)
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, strings.Repeat("go ", 1000))
		r.mail <- delivery(2, team.MsgShutdownRequest)
		if err := <-r.ended; err != ErrShutdown {
			t.Errorf("Run = %v", err)
		}
		r.cancel = nil
	})
}

// A result beyond its share of the window is stored, and given as head, tail and where
// it lies.
func TestLongResult(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		store := &shelf{}
		r.opts.Store, r.limits = store, model.Limits{Window: 8000}
		long := "first line\n" + strings.Repeat("0123456789 abcdef\n", 2000) + "last line\n"
		r.tools["look"] = func(context.Context, tool.Call) tool.Result { return tool.Result{Content: long} }
		r.says("!look", "done")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, long)
		if len(store.texts) != 2 || store.texts[0] != long || store.texts[1] != long {
			t.Fatalf("%d texts were stored", len(store.texts))
		}
		for _, m := range r.asked[1].Messages[1:] {
			if m.Role == "assistant" {
				continue
			}
			if !strings.Contains(m.Content, "first line") || !strings.Contains(m.Content, "last line") || !strings.Contains(m.Content, "stored:") || size(m) > 8000/resultShare*5/4 {
				t.Errorf("a %s message of %d tokens", m.Role, size(m))
			}
		}
	})
}

type shelf struct{ texts []string }

func (s *shelf) Put(_ context.Context, text string) (string, error) {
	s.texts = append(s.texts, text)
	return fmt.Sprint("stored:", len(s.texts)), nil
}
