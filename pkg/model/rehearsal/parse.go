package rehearsal

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"agentteam/pkg/team"
)

// Parse reads a script; name stands for it in errors, usually its file.
//
// Errors: [team.InvalidArgument], one line that begins with name:line:column and
// says what is allowed there. Only the first fault is reported.
func Parse(name string, src []byte) (*Script, error) {
	var doc yaml.Node
	err := yaml.Unmarshal(src, &doc)
	p := &parser{file: name}
	switch {
	case err != nil: // "yaml: line 3: what"
		line, what := 1, strings.TrimPrefix(err.Error(), "yaml: ")
		if n, _ := fmt.Sscanf(what, "line %d:", &line); n == 1 {
			_, what, _ = strings.Cut(what, ": ")
		}
		p.fail(&yaml.Node{Line: line, Column: 1}, "%s", what)
	case doc.Kind == 0:
		p.fail(&yaml.Node{Line: 1, Column: 1}, "the script is empty; it needs agents")
	default:
		s := p.script(doc.Content[0])
		if p.err == nil {
			return s, nil
		}
	}
	return nil, p.err
}

// parser turns YAML nodes, which know their line and column, into a Script. After
// the first fault it goes on with zero values.
type parser struct {
	file string
	err  error
}

func (p *parser) fail(at *yaml.Node, format string, args ...any) {
	if p.err == nil {
		p.err = team.Errorf(team.InvalidArgument, "%s:%d:%d: %s", p.file, at.Line, at.Column, fmt.Sprintf(format, args...))
	}
}

// object calls the function of each key that n has.
func (p *parser) object(n *yaml.Node, what string, keys map[string]func(*yaml.Node)) {
	allowed := strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
	if n.Kind != yaml.MappingNode {
		p.fail(n, "%s must be a mapping with the keys %s", what, allowed)
		return
	}
	p.pairs(n, func(key, v *yaml.Node) {
		if read, ok := keys[key.Value]; ok {
			read(v)
		} else {
			p.fail(key, "unknown key %q in %s; allowed: %s", key.Value, what, allowed)
		}
	})
}

// pairs calls read for each entry of a mapping and refuses a key that comes twice.
func (p *parser) pairs(n *yaml.Node, read func(key, v *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			p.fail(key, "a key must be plain text")
		} else if seen[key.Value] {
			p.fail(key, "the key %q comes twice", key.Value)
		}
		seen[key.Value] = true
		read(key, v)
	}
}

// items returns the entries of a list that must have some.
func (p *parser) items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, "%s must be a list with at least one entry", what)
		return nil
	}
	return n.Content
}

func (p *parser) script(n *yaml.Node) *Script {
	s := &Script{model: "rehearsal"}
	p.object(n, "the script", map[string]func(*yaml.Node){
		"model": func(v *yaml.Node) { s.model = p.text(v, "model") },
		"agents": func(v *yaml.Node) {
			for _, a := range p.items(v, "agents") {
				s.agents = append(s.agents, p.agent(a))
			}
		},
	})
	switch {
	case s.model == "":
		p.fail(n, "model must not be empty")
	case len(s.agents) == 0:
		p.fail(n, "the script needs agents")
	}
	return s
}

func (p *parser) agent(n *yaml.Node) (a agent) {
	p.object(n, "an agent", map[string]func(*yaml.Node){
		"match": func(v *yaml.Node) {
			p.object(v, "match", map[string]func(*yaml.Node){
				"name": func(v *yaml.Node) { a.match.name = p.pattern(v) },
				"role": func(v *yaml.Node) { a.match.role = p.pattern(v) },
				"team": func(v *yaml.Node) { a.match.team = p.pattern(v) },
			})
		},
		"rules": func(v *yaml.Node) {
			for _, item := range p.items(v, "rules") {
				r := p.rule(item)
				if slices.ContainsFunc(a.rules, func(o rule) bool { return o.name == r.name }) {
					p.fail(item, "a second rule with the name %q; names are unique in an agent", r.name)
				}
				a.rules = append(a.rules, r)
			}
		},
	})
	if len(a.rules) == 0 {
		p.fail(n, "an agent needs rules")
	}
	return a
}

var ruleName = regexp.MustCompile(`^[a-z0-9-]+$`)

func (p *parser) rule(n *yaml.Node) (r rule) {
	var say, steps *yaml.Node
	p.object(n, "a rule", map[string]func(*yaml.Node){
		"name": func(v *yaml.Node) {
			if r.name = p.text(v, "name"); !ruleName.MatchString(r.name) {
				p.fail(v, "the rule name %q may have a-z, 0-9 and - only", r.name)
			}
		},
		"since":  func(v *yaml.Node) { r.since = p.regexp(v) },
		"unless": func(v *yaml.Node) { r.unless = p.regexp(v) },
		"newest": func(v *yaml.Node) { r.newest = p.regexp(v) },
		"say": func(v *yaml.Node) {
			say = v
			r.steps = []step{{say: p.template(v, "say")}}
		},
		"steps": func(v *yaml.Node) {
			steps = v
			for _, item := range p.items(v, "steps") {
				r.steps = append(r.steps, p.step(item))
			}
		},
	})
	switch {
	case r.name == "":
		p.fail(n, "a rule needs a name")
	case say != nil && steps != nil:
		p.fail(say, "a rule has say or steps, not both")
	case say == nil && steps == nil:
		p.fail(n, "a rule needs say or steps")
	}
	for i := 1; p.err == nil && i < len(r.steps); i++ {
		if len(r.steps[i-1].calls) == 0 && r.steps[i].await == nil {
			p.fail(steps.Content[i], "this step is never reached: the one before only says something, so this one needs await")
		}
	}
	return r
}

func (p *parser) step(n *yaml.Node) (s step) {
	var waiting *yaml.Node
	p.object(n, "a step", map[string]func(*yaml.Node){
		"say":     func(v *yaml.Node) { s.say = p.template(v, "say") },
		"await":   func(v *yaml.Node) { s.await = p.regexp(v) },
		"waiting": func(v *yaml.Node) { waiting, s.waiting = v, p.template(v, "waiting") },
		"fault":   func(v *yaml.Node) { s.fault = p.fault(v) },
		"calls": func(v *yaml.Node) {
			for _, item := range p.items(v, "calls") {
				s.calls = append(s.calls, p.call(item))
			}
		},
	})
	switch {
	case s.say == nil && len(s.calls) == 0:
		p.fail(n, "a step needs say or calls")
	case waiting != nil && s.await == nil:
		p.fail(waiting, "waiting has no meaning without await")
	case s.fault != nil && s.fault.malformed && len(s.calls) == 0:
		p.fail(n, "the fault malformed needs a step with calls")
	}
	if s.await != nil && s.waiting == nil {
		s.waiting, _ = newTemplate("Waiting.")
	}
	return s
}

func (p *parser) call(n *yaml.Node) call {
	c := call{args: map[string]any{}}
	p.object(n, "a call", map[string]func(*yaml.Node){
		"tool": func(v *yaml.Node) { c.tool = p.text(v, "tool") },
		"args": func(v *yaml.Node) {
			if v.Kind != yaml.MappingNode {
				p.fail(v, "args must be a mapping")
			}
			c.args = p.value(v)
		},
	})
	if c.tool == "" {
		p.fail(n, "a call needs a tool")
	}
	return c
}

// value reads arguments of any shape; every string in them is a template.
func (p *parser) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		p.pairs(n, func(key, v *yaml.Node) { m[key.Value] = p.value(v) })
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, item := range n.Content {
			l = append(l, p.value(item))
		}
		return l
	}
	var v any
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		if err := n.Decode(&v); err != nil {
			p.fail(n, "%q cannot be read as %s", n.Value, n.Tag)
		}
		if _, err := asJSON(v); err != nil {
			p.fail(n, "%s has no place in JSON", n.Value)
		}
		return v
	}
	return p.template(n, "an argument")
}

func (p *parser) text(n *yaml.Node, what string) string {
	switch {
	case n.Kind == yaml.AliasNode:
		p.fail(n, "aliases are not understood in scripts")
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		p.fail(n, "%s must be a text", what)
	}
	return n.Value
}

func (p *parser) pattern(n *yaml.Node) string {
	s := p.text(n, "a pattern")
	if _, err := path.Match(s, ""); err != nil {
		p.fail(n, "bad pattern %q: *, ? and [a-z] are understood", s)
	}
	return s
}

func (p *parser) regexp(n *yaml.Node) *regexp.Regexp {
	re, err := regexp.Compile(p.text(n, "a regular expression"))
	if bad := (*syntax.Error)(nil); errors.As(err, &bad) {
		p.fail(n, "bad regular expression: %s: %s", bad.Code, bad.Expr)
	}
	return re
}

func (p *parser) template(n *yaml.Node, what string) *template.Template {
	t, err := newTemplate(p.text(n, what))
	if err != nil {
		p.fail(n, "bad template: %s", plain(err))
	}
	return t
}
