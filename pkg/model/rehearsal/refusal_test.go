package rehearsal

import (
	"strings"
	"testing"
)

// A refusal with a body is played before the step, or in the middle of its stream.
func TestPlayedRefusals(t *testing.T) {
	for name, told := range played {
		h := handlerOf(t, "agents: [{rules: [{name: a, steps: [{say: fine and dandy, fault: {error: "+name+"}}]}]}]")
		w := post(t, h, "", hello)
		if w.Code != told.status || !strings.Contains(w.Body.String(), `"message":"`+told.message) || !strings.Contains(w.Body.String(), `"code":"`+told.code+`"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w := post(t, h, "", hello); w.Code != 200 {
			t.Errorf("%s a second time: %d", name, w.Code)
		}
	}
	h := handlerOf(t, "agents: [{rules: [{name: a, steps: [{say: fine and dandy, fault: {error: context_length, in_stream: true}}]}]}]")
	w := post(t, h, `"stream":true,`, hello)
	body := w.Body.String()
	if w.Code != 200 || !strings.Contains(body, `"content":"`) || !strings.Contains(body, `data: {"error":{"code":"context_length_exceeded"`) ||
		strings.Contains(body, "d dandy") || strings.Contains(body, `"finish_reason":"stop"`) || strings.Contains(body, "[DONE]") {
		t.Errorf("in the stream: %d %s", w.Code, body)
	}
	for fault, want := range map[string]string{
		"{error: nope}":                                    `error: "nope" is not known; allowed: bad_key, content_filter,`,
		"{in_stream: true, delay: 1s}":                     "in_stream has no meaning without error",
		"{error: quota, status: 500}":                      "only one of status, error",
		"{error: quota, in_stream: true, retry_after: 1s}": "retry_after has no meaning",
	} {
		_, err := Parse("x", []byte("agents: [{rules: [{name: a, steps: [{say: x, fault: "+fault+"}]}]}]"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fault, err, want)
		}
	}
}
