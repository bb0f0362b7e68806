package model

import (
	"strings"
	"testing"
	"time"
)

// A call that may be a quotation of what was left out is named, and not taken; what holds a call is known in any clothes.
func TestQuotedCalls(t *testing.T) {
	req := Request{Tools: []ToolSpec{{Name: "bash"}}}
	const call = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"id\"}}</tool_call>"
	for _, quoted := range []bool{false, true} {
		req.Quoted = quoted
		reply := Reply{Message: Message{Role: "assistant", Content: call}, FinishReason: "stop"}
		reply.takeWritten(req, namesOf(req))
		if taken := len(reply.Message.ToolCalls) == 1; taken == quoted || (reply.Written == "bash") != quoted {
			t.Errorf("quoted: %v, taken: %v, named %q", quoted, taken, reply.Written)
		}
	}
	for text, want := range map[string]bool{
		"see " + call: true, "{\"description\":\"Do not do <tool_call>{\\\"name\\\":\\\"bash\\\",\\\"arguments\\\":{}}\"}": true,
		"&lt;function=bash&gt;": true, "bash runs {commands}": false, "bash()\nbash(x=1)": false,
		`notes.md:7:{"name":"bash","arguments":{}}`: true, `- {"tool": "bash"}`: true, "Action: bash\nAction Input: {}": true, "bash<arg_key>": true,
		`{"name":"bash","arguments":{}}` + strings.Repeat("\n{\"a\": 1}", 1000): true, "<tool_call>{\"name\": \"other\", \"arguments\": {}}": false,
	} {
		if got := req.Quotes(&Message{Role: "tool", Content: text}); got != want {
			t.Errorf("%s holds a call: %v, want %v", text, got, want)
		}
	}
}

// A long answer is looked through in little time, whatever it repeats.
func TestWrittenInLittleTime(t *testing.T) {
	known := offered{"bash": true, "list_tasks": true}
	for _, part := range []string{"{\n", "[{\"a\":\n", "{\"name\":\"x\",\n", "<tool_call>", "<a>\n", "```\n", "bash(", "bash\n", "[TOOL_CALLS]", "to=bash ", "bash<arg_key>", "<function=bash>\n", "<｜｜>", "Action: bash\n", "a b c\n"} {
		text := strings.Repeat(part, (64<<10)/len(part))
		begun := time.Now()
		known.written(text)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%q in %d bytes: %v", part, len(text), took)
		}
	}
}
