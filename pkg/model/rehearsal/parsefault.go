package rehearsal

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

func (p *parser) fault(n *yaml.Node) *fault {
	f := &fault{times: 1}
	kinds := 0
	keys := map[string]func(*yaml.Node){
		"status":      func(v *yaml.Node) { f.status = p.number(v, 400, 599) },
		"retry_after": func(v *yaml.Node) { f.retryAfter = p.duration(v) },
		"error": func(v *yaml.Node) {
			name := p.Text(v, "error")
			if f.refusal = played[name]; f.refusal == nil {
				p.Fail(v, "no error is called %q; there are %s", name, strings.Join(playedNames(), ", "))
			}
		},
		"in_stream": func(v *yaml.Node) { f.inStream = p.isTrue(v) },
		"delay":     func(v *yaml.Node) { f.delay = p.duration(v) },
		"times":     func(v *yaml.Node) { f.times = p.number(v, 1, 1_000_000) },
	}
	for _, s := range spoils {
		keys[string(s)] = func(v *yaml.Node) {
			if p.isTrue(v) {
				f.spoils = s
				kinds++
			}
		}
	}
	p.Object(n, "a fault", keys)
	if f.status != 0 {
		kinds++
	}
	if f.refusal != nil {
		kinds++
	}
	switch {
	case kinds == 0 && f.delay == 0:
		p.Fail(n, "a fault needs status, error, delay or one of %s", spoilNames())
	case kinds > 1:
		p.Fail(n, "a fault has only one of status, error, %s", spoilNames())
	case f.inStream && f.refusal == nil:
		p.Fail(n, "in_stream has no meaning without error")
	case f.retryAfter != 0 && (f.status == 0 && f.refusal == nil || f.inStream):
		p.Fail(n, "retry_after has no meaning without status or error, nor in a stream")
	}
	return f
}

func spoilNames() string {
	var names []string
	for _, s := range spoils {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (p *parser) number(n *yaml.Node, low, high int) int {
	x, err := strconv.Atoi(n.Value)
	if err != nil || x < low || x > high {
		p.Fail(n, "%q is not a number from %d to %d", n.Value, low, high)
	}
	return x
}

func (p *parser) duration(n *yaml.Node) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d <= 0 {
		p.Fail(n, "%q is not a duration like 500ms or 2s", n.Value)
	}
	return d
}

func (p *parser) isTrue(n *yaml.Node) bool {
	if n.Value != "true" {
		p.Fail(n, "%q: only true has a meaning here", n.Value)
	}
	return true
}
