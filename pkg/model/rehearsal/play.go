package rehearsal

import (
	"fmt"
	"regexp"
	"strings"
)

// turn is an agent's answer.
type turn struct {
	text  string
	calls []toolCall
	rule  string // which rule gave it; "" if none applied
	step  int
	fault *fault

	limited bool // the limit of the answer was met
}

// next returns the turn of who in the conversation conv, which has no system message. An error means a faulty script.
func (s *Script) next(who asker, conv []message) (turn, error) {
	for _, a := range s.agents {
		if !a.plays(who) {
			continue
		}
		if onTrial(who, conv) && string(a.Match.Role) != who.role {
			break
		}
		for _, r := range a.Rules {
			t, ok, err := r.play(who, conv)
			if err != nil {
				return turn{}, fmt.Errorf("rule %s, step %d: %w", r.Name, t.step, err)
			}
			if ok {
				return t.numbered(), nil
			}
		}
		break
	}
	if onTrial(who, conv) {
		return turn{rule: "trial", calls: []toolCall{{Type: "function", Function: function{Name: "ready", Arguments: `{"word":"yes"}`}}}}.numbered(), nil
	}
	return turn{text: fmt.Sprintf("(nothing in the script for %s)", who.name)}, nil
}

// onTrial reports whether the request tests that the model can call a tool, as a rehearsal can. A script plays a model
// that cannot by an agent of the role doctor.
func onTrial(who asker, conv []message) bool {
	return who.role == "doctor" && len(conv) == 1 && strings.HasPrefix(conv[0].Content, "Call the tool ready ")
}

// play returns the rule's turn; ok is false if the rule does not apply.
func (r rule) play(who asker, conv []message) (t turn, ok bool, err error) {
	scope, groups, ok := r.scope(conv)
	if !ok {
		return turn{}, false, nil
	}
	at, waiting, ok := r.stand(scope)
	if !ok {
		return turn{}, false, nil
	}
	s := r.Steps[at]
	t = turn{rule: string(r.Name), step: at}
	st := stage{who: who, match: groups, conv: conv}
	if waiting {
		t.text, err = st.text(s.Waiting.Template)
		return t, true, err
	}
	t.fault = s.Fault
	if t.text, err = st.text(s.Say.Template); err != nil {
		return t, true, err
	}
	for _, c := range s.Calls {
		args, err := st.value(map[string]any(c.Args))
		if err != nil {
			return t, true, fmt.Errorf("call of %s: %w", c.Tool, err)
		}
		t.calls = append(t.calls, toolCall{Type: "function", Function: function{Name: c.Tool, Arguments: string(encoded(args))}})
	}
	return t, true, nil
}

// scope returns the part of the conversation that the rule applies to, and the named groups of its patterns. ok is
// false if its conditions do not hold.
func (r rule) scope(conv []message) (scope []message, groups map[string]string, ok bool) {
	groups = map[string]string{}
	scope = conv
	if r.Since != nil {
		i := lastMatch(r.Since, conv, message.fromUser)
		if i < 0 {
			return nil, nil, false
		}
		collect(groups, r.Since, conv[i].Content)
		scope = conv[i:]
	}
	if r.Unless != nil && lastMatch(r.Unless, scope, message.heard) >= 0 {
		return nil, nil, false
	}
	if r.Newest != nil {
		input := conv[1+lastMatch(nil, conv, message.fromAssistant):]
		i := lastMatch(r.Newest, input, message.heard)
		if i < 0 {
			return nil, nil, false
		}
		collect(groups, r.Newest, input[i].Content)
	}
	return scope, groups, true
}

// stand returns the current step of the rule, given the played steps and the input in its scope, and whether that step
// is still closed. ok is false if all steps are played.
func (r rule) stand(scope []message) (at int, waiting, ok bool) {
	since := 0 // where to listen for what a step awaits: after the last played turn
	for i, s := range r.Steps {
		if len(s.Calls) == 0 {
			continue
		}
		if turn := lastMatch(nil, scope, func(m message) bool { return len(m.callsOf(string(r.Name), i)) > 0 }); turn >= 0 {
			at, since = i+1, turn+1
		}
	}
	heard := func(re *regexp.Regexp) bool { return lastMatch(re, scope[since:], message.heard) >= 0 }

	// A step with only text is repeated until the next one opens; the parser ensures that the next one awaits something.
	for at+1 < len(r.Steps) && len(r.Steps[at].Calls) == 0 && heard(r.Steps[at+1].Await) {
		at++
	}
	if at == len(r.Steps) {
		return 0, false, false
	}
	await := r.Steps[at].Await
	return at, await != nil && !heard(await), true
}

// lastMatch returns the index of the last message of that kind that re matches, or -1; a nil re matches all.
func lastMatch(re *regexp.Regexp, ms []message, kind func(message) bool) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if kind(ms[i]) && (re == nil || re.MatchString(ms[i].Content)) {
			return i
		}
	}
	return -1
}

func collect(groups map[string]string, re *regexp.Regexp, text string) {
	found := re.FindStringSubmatch(text)
	for i, name := range re.SubexpNames() {
		if name != "" {
			groups[name] = found[i]
		}
	}
}

func (m message) fromUser() bool      { return m.Role == "user" }
func (m message) fromAssistant() bool { return m.Role == "assistant" }
func (m message) heard() bool         { return m.Role == "user" || m.Role == "tool" }
