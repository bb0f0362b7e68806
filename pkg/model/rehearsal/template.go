package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// stage is the data of a template: the agent and the conversation.
type stage struct {
	who   asker
	match map[string]string
	conv  []message
}

// newTemplate parses text; it may use the functions of [stage.functions].
func newTemplate(text string) (*template.Template, error) {
	t, err := template.New("").Option("missingkey=error").Funcs(stage{}.functions()).Parse(text)
	if err != nil {
		return nil, errors.New("bad template: " + plain(err))
	}
	return t, nil
}

func (s stage) functions() template.FuncMap {
	return template.FuncMap{
		"result":     s.result,
		"heard":      s.heard,
		"field":      field,
		"json":       asJSON,
		"shellquote": func(x any) string { return "'" + strings.ReplaceAll(asText(x), "'", `'\''`) + "'" },
		"regex":      firstGroup,
		"trim":       func(x any) string { return strings.TrimSpace(asText(x)) },
		"lines":      lines,
	}
}

// text executes t; a nil t is "".
func (s stage) text(t *template.Template) (string, error) {
	if t == nil {
		return "", nil
	}
	t, err := t.Clone() // the functions are bound to this request
	if err != nil {
		return "", err
	}
	var b strings.Builder
	data := map[string]any{"Name": s.who.name, "Role": s.who.role, "Team": s.who.team, "Match": s.match}
	if err := t.Funcs(s.functions()).Execute(&b, data); err != nil {
		return "", errors.New(plain(err))
	}
	return b.String(), nil
}

// value executes the templates in the arguments of a call, at any depth.
func (s stage) value(v any) (any, error) {
	switch v := v.(type) {
	case *template.Template:
		return s.text(v)
	case map[string]any:
		filled := make(map[string]any, len(v))
		for k, item := range v {
			x, err := s.value(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			filled[k] = x
		}
		return filled, nil
	case []any:
		filled := make([]any, len(v))
		for i, item := range v {
			x, err := s.value(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			filled[i] = x
		}
		return filled, nil
	}
	return v, nil
}

// result returns the newest result of a call of a rule's step, by default its first: decoded from JSON, else as a
// string.
func (s stage) result(rule string, step int, call ...int) (any, error) {
	n := 0
	if len(call) > 0 {
		n = call[0]
	}
	i := lastMatch(nil, s.conv, func(m message) bool { return len(m.callsOf(rule, step)) > 0 })
	if i < 0 {
		return nil, fmt.Errorf("step %d of rule %s was not played", step, rule)
	}
	calls := s.conv[i].callsOf(rule, step)
	if n < 0 || n >= len(calls) {
		return nil, fmt.Errorf("step %d of rule %s has no call %d", step, rule, n)
	}
	for _, m := range s.conv[i:] {
		if m.ToolCallID == calls[n].ID {
			return decoded(m.Content), nil
		}
	}
	return nil, fmt.Errorf("call %d of rule %s, step %d has no answer", n, rule, step)
}

// heard returns the first group of the newest match in the agent's input.
func (s stage) heard(pattern string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	i := lastMatch(re, s.conv, message.heard)
	if i < 0 {
		return "", fmt.Errorf("nothing heard matches %s", pattern)
	}
	all := re.FindAllStringSubmatch(s.conv[i].Content, -1)
	return group(all[len(all)-1]), nil
}

func firstGroup(pattern string, x any) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	found := re.FindStringSubmatch(asText(x))
	if found == nil {
		return "", fmt.Errorf("no match for %s", pattern)
	}
	return group(found), nil
}

// group returns the first group of a match, or all of it if the pattern has none.
func group(found []string) string { return found[min(1, len(found)-1)] }

func field(name string, x any) (any, error) {
	m, ok := x.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("field %q of something that is not an object: %s", name, asText(x))
	}
	v, ok := m[name]
	if !ok {
		return nil, fmt.Errorf("no field %q in %s", name, asText(x))
	}
	return v, nil
}

// lines returns the first n lines of x.
func lines(n int, x any) string {
	all := strings.SplitAfter(asText(x), "\n")
	return strings.TrimSuffix(strings.Join(all[:min(max(n, 0), len(all))], ""), "\n")
}

// decoded decodes text as JSON and keeps numbers as they are written; it returns other text unchanged.
func decoded(text string) any {
	if !json.Valid([]byte(text)) {
		return text
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	_ = dec.Decode(&v) // cannot fail: it is valid
	return v
}

func asJSON(x any) (string, error) {
	raw, err := json.Marshal(x)
	return string(raw), err
}

// asText returns x as a template prints it, objects and lists as JSON.
func asText(x any) string {
	switch x := x.(type) {
	case string:
		return x
	case map[string]any, []any:
		text, _ := asJSON(x) // came from JSON
		return text
	}
	return fmt.Sprint(x)
}

// plain removes the prefix of a template's error: the templates have no names.
func plain(err error) string {
	return regexp.MustCompile(`^template: :(\d+:)*\d*:? ?`).ReplaceAllString(err.Error(), "")
}
