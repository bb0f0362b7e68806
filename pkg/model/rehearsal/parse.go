package rehearsal

import (
	"errors"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/strictyaml"
)

// Parse reads a script; name stands for it in errors, usually its file.
//
// Errors: [team.InvalidArgument], one line that begins with name:line:column and
// says what is allowed there. Only the first fault is reported.
func Parse(name string, src []byte) (*Script, error) {
	p := &parser{strictyaml.Reader{File: name, Files: "scripts"}}
	root := p.Document(src)
	if root == nil {
		p.Fail(strictyaml.Start, "the script is empty; it needs agents")
		return nil, p.Err()
	}
	s := p.script(root)
	if p.Err() != nil {
		return nil, p.Err()
	}
	return s, nil
}

// parser turns YAML nodes into a Script.
type parser struct {
	strictyaml.Reader
}

func (p *parser) script(n *yaml.Node) *Script {
	s := &Script{model: "rehearsal"}
	p.Object(n, "the script", map[string]func(*yaml.Node){
		"model": func(v *yaml.Node) { s.model = p.Text(v, "model") },
		"strict": func(v *yaml.Node) {
			name := p.Text(v, "strict")
			if s.strict = strictest[name]; s.strict == nil {
				p.Fail(v, "no endpoint called %q is known to be strict in its own way; known are %s", name, strings.Join(strictNames(), ", "))
			}
		},
		"agents": func(v *yaml.Node) {
			for _, a := range p.Items(v, "agents") {
				s.agents = append(s.agents, p.agent(a))
			}
		},
	})
	switch {
	case s.model == "":
		p.Fail(n, "model must not be empty")
	case len(s.agents) == 0:
		p.Fail(n, "the script needs agents")
	}
	return s
}

func (p *parser) agent(n *yaml.Node) (a agent) {
	p.Object(n, "an agent", map[string]func(*yaml.Node){
		"match": func(v *yaml.Node) {
			p.Object(v, "match", map[string]func(*yaml.Node){
				"name": func(v *yaml.Node) { a.match.name = p.pattern(v) },
				"role": func(v *yaml.Node) { a.match.role = p.pattern(v) },
				"team": func(v *yaml.Node) { a.match.team = p.pattern(v) },
			})
		},
		"rules": func(v *yaml.Node) {
			for _, item := range p.Items(v, "rules") {
				r := p.rule(item)
				if slices.ContainsFunc(a.rules, func(o rule) bool { return o.name == r.name }) {
					p.Fail(item, "a second rule with the name %q; names are unique in an agent", r.name)
				}
				a.rules = append(a.rules, r)
			}
		},
	})
	if len(a.rules) == 0 {
		p.Fail(n, "an agent needs rules")
	}
	return a
}

var ruleName = regexp.MustCompile(`^[a-z0-9-]+$`)

func (p *parser) rule(n *yaml.Node) (r rule) {
	var say, steps *yaml.Node
	p.Object(n, "a rule", map[string]func(*yaml.Node){
		"name": func(v *yaml.Node) {
			if r.name = p.Text(v, "name"); !ruleName.MatchString(r.name) {
				p.Fail(v, "the rule name %q may have a-z, 0-9 and - only", r.name)
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
			for _, item := range p.Items(v, "steps") {
				r.steps = append(r.steps, p.step(item))
			}
		},
	})
	switch {
	case r.name == "":
		p.Fail(n, "a rule needs a name")
	case say != nil && steps != nil:
		p.Fail(say, "a rule has say or steps, not both")
	case say == nil && steps == nil:
		p.Fail(n, "a rule needs say or steps")
	}
	for i := 1; p.Err() == nil && i < len(r.steps); i++ {
		if len(r.steps[i-1].calls) == 0 && r.steps[i].await == nil {
			p.Fail(steps.Content[i], "this step is never reached: the one before only says something, so this one needs await")
		}
	}
	return r
}

func (p *parser) step(n *yaml.Node) (s step) {
	var waiting *yaml.Node
	p.Object(n, "a step", map[string]func(*yaml.Node){
		"say":     func(v *yaml.Node) { s.say = p.template(v, "say") },
		"await":   func(v *yaml.Node) { s.await = p.regexp(v) },
		"waiting": func(v *yaml.Node) { waiting, s.waiting = v, p.template(v, "waiting") },
		"fault":   func(v *yaml.Node) { s.fault = p.fault(v) },
		"calls": func(v *yaml.Node) {
			for _, item := range p.Items(v, "calls") {
				s.calls = append(s.calls, p.call(item))
			}
		},
	})
	switch {
	case s.say == nil && len(s.calls) == 0:
		p.Fail(n, "a step needs say or calls")
	case waiting != nil && s.await == nil:
		p.Fail(waiting, "waiting has no meaning without await")
	case s.fault != nil && s.fault.spoils.ofCalls() && len(s.calls) == 0:
		p.Fail(n, "the fault %s needs a step with calls", s.fault.spoils)
	}
	if s.await != nil && s.waiting == nil {
		s.waiting, _ = newTemplate("Waiting.")
	}
	return s
}

func (p *parser) call(n *yaml.Node) call {
	c := call{args: map[string]any{}}
	p.Object(n, "a call", map[string]func(*yaml.Node){
		"tool": func(v *yaml.Node) { c.tool = p.Text(v, "tool") },
		"args": func(v *yaml.Node) {
			if v.Kind != yaml.MappingNode {
				p.Fail(v, "args must be a mapping")
			}
			c.args = p.Value(v, func(text *yaml.Node) any { return p.template(text, "an argument") })
		},
	})
	if c.tool == "" {
		p.Fail(n, "a call needs a tool")
	}
	return c
}

func (p *parser) pattern(n *yaml.Node) string {
	s := p.Text(n, "a pattern")
	if _, err := path.Match(s, ""); err != nil {
		p.Fail(n, "bad pattern %q: *, ? and [a-z] are understood", s)
	}
	return s
}

func (p *parser) regexp(n *yaml.Node) *regexp.Regexp {
	re, err := regexp.Compile(p.Text(n, "a regular expression"))
	if bad := (*syntax.Error)(nil); errors.As(err, &bad) {
		p.Fail(n, "bad regular expression: %s: %s", bad.Code, bad.Expr)
	}
	return re
}

func (p *parser) template(n *yaml.Node, what string) *template.Template {
	t, err := newTemplate(p.Text(n, what))
	if err != nil {
		p.Fail(n, "bad template: %s", plain(err))
	}
	return t
}
