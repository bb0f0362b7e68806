package rehearsal

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"text/template"

	"agentteam/pkg/team/strictyaml"
)

// Parse parses a script; name, usually its file, is its name in errors.
//
// Errors: [team.InvalidArgument], one line that begins with name:line:column and states what is allowed there. Only the
// first error is reported.
func Parse(name string, src []byte) (*Script, error) {
	d := document{Model: "rehearsal"}
	if _, err := (strictyaml.Format{File: name, Kind: "script"}).Decode(src, &d); err != nil {
		return nil, err
	}
	return &Script{d.Model, d.Agents}, nil
}

// errorName is an error that a script can play.
type errorName string

// Values returns the errors.
func (errorName) Values() []string { return playedNames() }

// pattern is a shell pattern; "" matches anything.
type pattern string

func (p *pattern) UnmarshalText(text []byte) error {
	*p = pattern(text)
	if _, err := path.Match(string(text), ""); err != nil {
		return fmt.Errorf("bad pattern %q: *, ? and [a-z] are understood", text)
	}
	return nil
}

type ruleName string

var ruleNamePattern = regexp.MustCompile(`^[a-z0-9-]+$`)

func (n *ruleName) UnmarshalText(text []byte) error {
	if *n = ruleName(text); !ruleNamePattern.Match(text) {
		return fmt.Errorf("%q may have a-z, 0-9 and - only", text)
	}
	return nil
}

// line is a template of an agent's text; without one, nothing.
type line struct{ *template.Template }

func (l *line) UnmarshalText(text []byte) (err error) {
	l.Template, err = newTemplate(string(text))
	return err
}

// arguments are the arguments of a call. Each string in them, at any depth, is a template.
type arguments map[string]any

// Validate replaces the strings with templates.
func (a arguments) Validate() error {
	_, err := withTemplates(map[string]any(a))
	return err
}

// withTemplates replaces each string in v, which has the types of encoding/json, with a template.
func withTemplates(v any, path ...any) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		t, err := newTemplate(v)
		if err != nil {
			return nil, strictyaml.At(err, path...)
		}
		return t, nil
	case map[string]any:
		for key, item := range v {
			if v[key], err = withTemplates(item, append(path, key)...); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range v {
			if v[i], err = withTemplates(item, append(path, i)...); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (a agent) Validate() error {
	names := map[ruleName]bool{}
	for i, r := range a.Rules {
		if names[r.Name] {
			return strictyaml.At(fmt.Errorf("a second rule with the name %q; names are unique in an agent", r.Name), "rules", i)
		}
		names[r.Name] = true
	}
	return nil
}

// Validate also creates the step of a rule that has only say.
func (r *rule) Validate() error {
	switch {
	case r.Say.Template != nil && r.Steps != nil:
		return strictyaml.At(errors.New("a rule has say or steps, not both"), "say")
	case r.Say.Template != nil:
		r.Steps = []step{{Say: r.Say}}
	case r.Steps == nil:
		return errors.New("a rule needs say or steps")
	}
	for i := 1; i < len(r.Steps); i++ {
		if len(r.Steps[i-1].Calls) == 0 && r.Steps[i].Await == nil {
			return strictyaml.At(errors.New("this step is never reached: the one before only says something, so this one needs await"), "steps", i)
		}
	}
	return nil
}

// Validate also sets the text while the step is closed.
func (s *step) Validate() error {
	switch {
	case s.Say.Template == nil && len(s.Calls) == 0:
		return errors.New("a step needs say or calls")
	case s.Waiting.Template != nil && s.Await == nil:
		return strictyaml.At(errors.New("waiting has no meaning without await"), "waiting")
	case s.Fault != nil && s.Fault.spoilsCall() && len(s.Calls) == 0:
		return strictyaml.At(errors.New("malformed, no_object and odd_ids need a step with calls"), "fault")
	case s.Await != nil && s.Waiting.Template == nil:
		return s.Waiting.UnmarshalText([]byte("Waiting."))
	}
	return nil
}

const faults = "status, error, cut, malformed, no_object, odd_ids, empty, length, page"

// Validate also looks up the refusal, and sets how often the fault is played.
func (f *fault) Validate() error {
	f.refusal = played[string(f.Error)]
	kinds := 0
	for _, set := range []bool{f.Status != 0, f.refusal != nil, f.Cut, f.Malformed, f.NoObject, f.OddIDs, f.Empty, f.Length, f.Page} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0 && f.Delay == 0:
		return errors.New("a fault needs delay or one of " + faults)
	case kinds > 1:
		return errors.New("a fault has only one of " + faults)
	case f.InStream && f.refusal == nil:
		return errors.New("in_stream has no meaning without error")
	case f.RetryAfter != 0 && (f.Status == 0 && f.refusal == nil || f.InStream):
		return errors.New("retry_after has no meaning without status or error, nor in a stream")
	}
	f.Times = max(f.Times, 1)
	return nil
}
