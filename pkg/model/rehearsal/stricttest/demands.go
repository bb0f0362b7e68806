package stricttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Each demand on a request reports whether and where the request breaks it.

// eachMessage returns a demand on single messages; the place is the message's.
func eachMessage(broken func(m message) bool) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		i := slices.IndexFunc(r.Messages, broken)
		return fmt.Sprintf("messages.%d", i), i >= 0
	}
}

var (
	emptyTurn = eachMessage(func(m message) bool {
		return m.Role == "assistant" && len(m.ToolCalls) == 0 && m.silent()
	})
	emptyBeside = eachMessage(func(m message) bool {
		return m.Role == "assistant" && len(m.ToolCalls) > 0 && string(m.RawContent) == `""`
	})
	partsContent = eachMessage(func(m message) bool { return len(m.RawContent) > 0 && m.RawContent[0] == '[' })

	userAfterTool = follows("tool", "user")
	twoUsers      = follows("user", "user")
	twoTurns      = follows("assistant", "assistant")
)

// follows returns the demand that no message of the second role comes right after
// one of the first.
func follows(first, second string) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		for i := 1; i < len(r.Messages); i++ {
			if r.Messages[i-1].Role == first && r.Messages[i].Role == second {
				return fmt.Sprintf("messages.%d", i), true
			}
		}
		return "", false
	}
}

// missing returns the demand that every turn of the assistant has the field.
func missing(field string) func(*request) (string, bool) {
	return eachMessage(func(m message) bool {
		_, has := m.fields[field]
		return m.Role == "assistant" && !has
	})
}

// otherFields returns the demand that the body has no other fields.
func otherFields(known ...string) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		for _, k := range slices.Sorted(maps.Keys(r.fields)) {
			if !slices.Contains(known, k) {
				return k, true
			}
		}
		return "", false
	}
}

// otherMessageFields returns the demand that messages have only the usual fields and these.
func otherMessageFields(known ...string) func(*request) (string, bool) {
	known = append(known, "role", "content", "tool_calls", "tool_call_id", "name")
	return func(r *request) (string, bool) {
		for i, m := range r.Messages {
			for _, k := range slices.Sorted(maps.Keys(m.fields)) {
				if !slices.Contains(known, k) {
					return fmt.Sprintf("messages.%d.%s.%s", i, m.Role, k), true
				}
			}
		}
		return "", false
	}
}

// eachCall returns a demand on single calls; where returns the place.
func eachCall(broken func(c toolCall) bool, where func(i, k int, c toolCall) string) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		for i, m := range r.Messages {
			for k, c := range m.ToolCalls {
				if broken(c) {
					return where(i, k, c), true
				}
			}
		}
		return "", false
	}
}

var badID = eachCall(func(c toolCall) bool { return !nineAlnum.MatchString(c.ID) },
	func(_, _ int, c toolCall) string { return c.ID })

// badCallID returns the demand that ids fit the pattern.
func badCallID(pattern string) func(*request) (string, bool) {
	fits := regexp.MustCompile(pattern)
	return eachCall(func(c toolCall) bool { return !fits.MatchString(c.ID) },
		func(i, k int, _ toolCall) string { return fmt.Sprintf("messages[%d].tool_calls[%d].id", i, k) })
}

func badName(pattern *regexp.Regexp) func(*request) (string, bool) {
	return eachCall(func(c toolCall) bool { return !pattern.MatchString(c.Function.Name) },
		func(i, k int, _ toolCall) string { return fmt.Sprintf("messages[%d].tool_calls[%d]", i, k) })
}

// renamedLimit: OpenAI's models since o1 refuse max_tokens.
func renamedLimit(r *request) (string, bool) {
	_, has := r.fields["max_tokens"]
	return "max_tokens", has && !strings.HasPrefix(r.Model, "gpt-4") && !strings.HasPrefix(r.Model, "gpt-3")
}

var newestModel = regexp.MustCompile(`^gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)`)

// responsesOnly: OpenAI's newest models take tools over Responses only, unless thinking is off.
func responsesOnly(r *request) (string, bool) {
	return r.Model, len(r.Tools) > 0 && newestModel.MatchString(r.Model) && string(r.fields["reasoning_effort"]) != `"none"`
}

// eachSchema returns a demand on the schemas of tools and all schemas in them, as
// properties or items; the place is the property's name.
func eachSchema(broken func(s map[string]any) (string, bool)) func(*request) (string, bool) {
	var look func(name string, v any) (string, bool)
	look = func(name string, v any) (string, bool) {
		s, ok := v.(map[string]any)
		if !ok {
			return "", false
		}
		if where, bad := broken(s); bad {
			return cmp.Or(where, name), true
		}
		properties, _ := s["properties"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(properties)) {
			if where, bad := look(k, properties[k]); bad {
				return where, true
			}
		}
		return look(name, s["items"])
	}
	return func(r *request) (string, bool) {
		for _, t := range r.Tools {
			var schema any
			if json.Unmarshal(t.Function.Parameters, &schema) != nil {
				continue
			}
			if where, bad := look("", schema); bad {
				return where, true
			}
		}
		return "", false
	}
}

func schemaKeyword(unknown ...string) func(*request) (string, bool) {
	return eachSchema(func(s map[string]any) (string, bool) {
		i := slices.IndexFunc(unknown, func(k string) bool { _, has := s[k]; return has })
		if i < 0 {
			return "", false
		}
		return unknown[i], true
	})
}

var (
	manyTypes = eachSchema(func(s map[string]any) (string, bool) {
		_, many := s["type"].([]any)
		return "", many
	})
	bareObject = eachSchema(func(s map[string]any) (string, bool) {
		properties, _ := s["properties"].(map[string]any)
		return "", s["type"] == "object" && len(properties) == 0
	})
)
