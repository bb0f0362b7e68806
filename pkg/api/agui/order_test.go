package agui_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentteam/pkg/api/agui"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/store/feed/state/statetest"
)

// checker holds a stream of events against the rules of the published protocol: which event
// may follow which. It was written from the protocol's text, and shares nothing with the code
// that it checks.
type checker struct {
	begun, ended bool
	texts        map[string]string // of each run, the message that is open
	used         map[string]bool   // ids of messages and calls that were begun
	calls        map[string]string // of each call: open, ended, answered
	subagents    map[string]bool   // by id: whether it is open
	state        any               // nil before the snapshot
}

func newChecker() *checker {
	return &checker{texts: map[string]string{}, used: map[string]bool{}, calls: map[string]string{}, subagents: map[string]bool{}}
}

// anEvent are the fields of any event that the rules are about.
type anEvent struct {
	Type, SubagentRunID, ThreadID, RunID, MessageID, Role, Delta, ToolCallID, ToolCallName, Name, Message string
}

// take returns which rule the next event breaks, or nil.
func (c *checker) take(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	var e anEvent
	patch := raw["delta"]
	if string(raw["type"]) == `"STATE_DELTA"` {
		delete(raw, "delta") // which is no text there
	}
	data, _ = json.Marshal(raw)
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch {
	case c.ended:
		return fmt.Errorf("%s after the end of the run", e.Type)
	case !c.begun && e.Type != "RUN_STARTED" && e.Type != "RUN_ERROR":
		return fmt.Errorf("the first event is %s", e.Type)
	case string(raw["subagentRunId"]) == `null` || string(raw["subagentRunId"]) == `""`:
		return fmt.Errorf("subagentRunId is there and empty")
	}
	open, known := c.subagents[e.SubagentRunID]
	switch {
	case e.Type == "SUBAGENT_STARTED":
		if e.SubagentRunID == "" || e.Name == "" || known {
			return fmt.Errorf("a subagent without a name, or with an id that was used: %q", e.SubagentRunID)
		}
		c.subagents[e.SubagentRunID] = true
		return nil
	case e.SubagentRunID != "" && !open:
		return fmt.Errorf("%s of the subagent %s, which is not at work", e.Type, e.SubagentRunID)
	}
	return c.event(e, raw, patch)
}

func (c *checker) event(e anEvent, raw map[string]json.RawMessage, patch []byte) error {
	switch e.Type {
	case "RUN_STARTED":
		if c.begun || e.ThreadID == "" || e.RunID == "" {
			return fmt.Errorf("a second run, or one without ids")
		}
		c.begun = true
	case "RUN_FINISHED":
		c.ended = true
		return c.nothingOpen()
	case "RUN_ERROR":
		if c.ended = true; e.Message == "" {
			return fmt.Errorf("an error without a message")
		}
	case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		if id := c.texts[e.SubagentRunID]; id != "" || e.SubagentRunID == "" {
			return fmt.Errorf("a subagent ends with its text %q open", id)
		}
		c.subagents[e.SubagentRunID] = false
	case "TEXT_MESSAGE_START":
		if c.texts[e.SubagentRunID] != "" || c.used[e.MessageID] || e.MessageID == "" || e.Role == "" {
			return fmt.Errorf("a text begins while %q is open, or with an id that was used", c.texts[e.SubagentRunID])
		}
		c.texts[e.SubagentRunID], c.used[e.MessageID] = e.MessageID, true
	case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END":
		if c.texts[e.SubagentRunID] != e.MessageID || (e.Delta == "") == (e.Type == "TEXT_MESSAGE_CONTENT") {
			return fmt.Errorf("%s of %q while %q is open, or of nothing", e.Type, e.MessageID, c.texts[e.SubagentRunID])
		}
		if e.Type == "TEXT_MESSAGE_END" {
			c.texts[e.SubagentRunID] = ""
		}
	case "TOOL_CALL_START":
		if c.calls[e.ToolCallID] != "" || e.ToolCallName == "" {
			return fmt.Errorf("the call %q begins twice, or has no name", e.ToolCallID)
		}
		c.calls[e.ToolCallID] = "open"
	case "TOOL_CALL_ARGS", "TOOL_CALL_END":
		if c.calls[e.ToolCallID] != "open" {
			return fmt.Errorf("%s of %q, which is not open", e.Type, e.ToolCallID)
		}
		if e.Type == "TOOL_CALL_END" {
			c.calls[e.ToolCallID] = "ended"
		}
	case "TOOL_CALL_RESULT":
		if c.calls[e.ToolCallID] != "ended" || e.MessageID == "" || e.Role != "tool" {
			return fmt.Errorf("a result of %q, which is %q", e.ToolCallID, c.calls[e.ToolCallID])
		}
		c.calls[e.ToolCallID] = "answered"
	case "STATE_SNAPSHOT":
		return json.Unmarshal(raw["snapshot"], &c.state)
	case "STATE_DELTA":
		if c.state == nil {
			return fmt.Errorf("a change of a state that was not told")
		}
		return c.apply(patch)
	case "CUSTOM":
		if e.Name == "" {
			return fmt.Errorf("a custom event without a name")
		}
	default:
		return fmt.Errorf("the protocol has no event %q", e.Type)
	}
	return nil
}

func (c *checker) nothingOpen() error {
	for run, id := range c.texts {
		if id != "" {
			return fmt.Errorf("the text %s of %q is open at the end", id, run)
		}
	}
	for id, how := range c.calls {
		if how == "open" {
			return fmt.Errorf("the call %s is open at the end", id)
		}
	}
	for id, open := range c.subagents {
		if open {
			return fmt.Errorf("the subagent %s is at work at the end", id)
		}
	}
	return nil
}

// apply changes the state by a JSON patch (RFC 6902), of which add, replace and remove are
// known.
func (c *checker) apply(patch []byte) error {
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &ops); err != nil {
		return err
	}
	if len(ops) == 0 {
		return fmt.Errorf("an empty patch")
	}
	for _, op := range ops {
		var value any
		if op.Op != "remove" {
			if err := json.Unmarshal(op.Value, &value); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(op.Path, "/") {
			return fmt.Errorf("the path %q", op.Path)
		}
		next, err := changed(c.state, strings.Split(op.Path[1:], "/"), op.Op, value)
		if err != nil {
			return fmt.Errorf("%s %s: %w", op.Op, op.Path, err)
		}
		c.state = next
	}
	return nil
}

// changed returns doc with one operation done at a path.
func changed(doc any, path []string, op string, value any) (any, error) {
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch doc := doc.(type) {
	case map[string]any:
		old, there := doc[key]
		switch {
		case len(path) > 1 && there:
			next, err := changed(old, path[1:], op, value)
			doc[key] = next
			return doc, err
		case len(path) > 1, op != "add" && !there:
			return nil, fmt.Errorf("there is no %q, but %q", key, slices.Sorted(maps.Keys(doc)))
		case op == "remove":
			delete(doc, key)
		default:
			doc[key] = value
		}
		return doc, nil
	case []any:
		at := len(doc)
		if key != "-" {
			if _, err := fmt.Sscan(key, &at); err != nil {
				return nil, err
			}
		}
		switch {
		case at > len(doc), at == len(doc) && (op != "add" || len(path) > 1):
			return nil, fmt.Errorf("there is no %d of %d", at, len(doc))
		case len(path) > 1:
			next, err := changed(doc[at], path[1:], op, value)
			doc[at] = next
			return doc, err
		case op == "add":
			return slices.Insert(doc, at, value), nil
		case op == "remove":
			return slices.Delete(doc, at, at+1), nil
		}
		doc[at] = value
		return doc, nil
	}
	return nil, fmt.Errorf("%q of what has no parts", key)
}

// check holds a whole stream against the rules, and returns the state at its end.
func check(events []string) (state any, err error) {
	c := newChecker()
	for i, e := range events {
		if err := c.take([]byte(e)); err != nil {
			return nil, fmt.Errorf("event %d: %w: %s", i+1, err, e)
		}
	}
	if !c.ended {
		return nil, fmt.Errorf("the stream has no end")
	}
	return c.state, nil
}

// TestChecker: the checker sees what is wrong.
func TestChecker(t *testing.T) {
	const (
		begin  = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
		finish = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`
		state  = `{"type":"STATE_SNAPSHOT","snapshot":{"tasks":{"a":[1]}}}`
		text   = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
		more   = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`
		end    = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
		call   = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}`
		called = `{"type":"TOOL_CALL_END","toolCallId":"c"}`
		result = `{"type":"TOOL_CALL_RESULT","toolCallId":"c","messageId":"m","role":"tool"}`
		sub    = `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`
		left   = `{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}`
		theirs = `{"type":"TEXT_MESSAGE_START","subagentRunId":"s","messageId":"m2","role":"assistant"}`
		done   = `{"type":"TEXT_MESSAGE_END","subagentRunId":"s","messageId":"m2"}`
		patch  = `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/tasks/b","value":2},{"op":"replace","path":"/tasks/a/0","value":3},{"op":"remove","path":"/tasks/b"},{"op":"add","path":"/tasks/a/-","value":4}]}`
	)
	good := []string{begin, state, text, sub, theirs, more, end, done, call, called, result, patch, left, finish}
	got, err := check(good)
	if data, _ := json.Marshal(got); err != nil || string(data) != `{"tasks":{"a":[3,4]}}` {
		t.Errorf("what is right: %v, state %s", err, data)
	}
	for name, bad := range map[string][]string{
		"no beginning":             {state, finish},
		"no end":                   {begin, state},
		"goes on after its end":    {begin, finish, state},
		"two runs":                 {begin, begin, finish},
		"a text that stays open":   {begin, text, finish},
		"two texts":                {begin, text, strings.ReplaceAll(text, `"m"`, `"m2"`), finish},
		"an id twice":              {begin, text, end, text, end, finish},
		"a piece of no text":       {begin, more, finish},
		"an empty piece":           {begin, text, strings.ReplaceAll(more, `"x"`, `""`), end, finish},
		"a result before the call": {begin, result, finish},
		"a result too early":       {begin, call, result, called, finish},
		"two results":              {begin, call, called, result, result, finish},
		"a call that stays open":   {begin, call, finish},
		"a subagent of nobody":     {begin, theirs, done, finish},
		"a subagent that stays":    {begin, sub, finish},
		"a subagent twice":         {begin, sub, left, sub, left, finish},
		"a subagent cut off":       {begin, sub, theirs, left, finish},
		"a change of no state":     {begin, patch, finish},
		"a change of nothing":      {begin, state, `{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/tasks/x","value":2}]}`, finish},
		"an unknown event":         {begin, `{"type":"MAIL"}`, finish},
	} {
		if _, err := check(bad); err == nil {
			t.Errorf("%s: nothing was found wrong", name)
		}
	}
}

// TestAnyFeed: whatever happens, and whatever of it is missing, late or there twice, the stream
// keeps to the protocol.
func TestAnyFeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		feed := statetest.Faulty(t, statetest.Feed(t))
		from := rapid.IntRange(0, len(feed)-1).Draw(t, "from")
		var items []stream.Item
		for _, i := range feed[from:] {
			items = append(items, stream.Item{Entry: i.Entry, Delta: i.Delta})
		}
		var told []string
		err := agui.Tell(items, slices.Collect(maps.Values(feed[from].Tasks)), func(event any) error {
			data, err := json.Marshal(event)
			told = append(told, string(data))
			return err
		})
		if err == nil {
			_, err = check(told)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, strings.Join(told, "\n"))
		}
	})
}
