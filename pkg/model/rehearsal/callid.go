package rehearsal

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
)

// The id of every call that a step makes begins with what names the step, which
// marks it as played in the conversation. Where ids are nine letters and digits, that
// is a digest.

func idPrefix(rule string, step int) string { return fmt.Sprintf("call_%s_%d_", rule, step) }

func ninePrefix(rule string, step int) string {
	sum := sha256.Sum256([]byte(idPrefix(rule, step)))
	digits := new(big.Int).SetBytes(sum[:]).Text(62)
	return digits[len(digits)-5:]
}

// numbered returns t with ids for its calls.
func (t turn) numbered() turn {
	for i := range t.calls {
		t.calls[i].ID = t.newID(t.rule, t.step)
	}
	return t
}

func (t turn) newID(rule string, step int) string {
	if t.nine {
		return ninePrefix(rule, step) + rand.Text()[:4]
	}
	return idPrefix(rule, step) + rand.Text()[:8]
}

// callsOf returns the calls of m that the rule's step made.
func (m message) callsOf(rule string, step int) (calls []toolCall) {
	plain, nine := idPrefix(rule, step), ninePrefix(rule, step)
	for _, c := range m.ToolCalls {
		if strings.HasPrefix(c.ID, plain) || len(c.ID) == 9 && strings.HasPrefix(c.ID, nine) {
			calls = append(calls, c)
		}
	}
	return calls
}
