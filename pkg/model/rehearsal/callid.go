package rehearsal

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// idPrefix begins the id of every call of a step, which marks the step as played in the conversation.
func idPrefix(rule string, step int) string { return fmt.Sprintf("call_%s_%d_", rule, step) }

func callID(rule string, step int) string { return idPrefix(rule, step) + rand.Text()[:8] }

// numbered returns t with ids for its calls.
func (t turn) numbered() turn {
	for i := range t.calls {
		t.calls[i].ID = callID(t.rule, t.step)
	}
	return t
}

// callsOf returns the calls of m that the rule's step made.
func (m message) callsOf(rule string, step int) (calls []toolCall) {
	for _, c := range m.ToolCalls {
		if strings.HasPrefix(c.ID, idPrefix(rule, step)) {
			calls = append(calls, c)
		}
	}
	return calls
}
