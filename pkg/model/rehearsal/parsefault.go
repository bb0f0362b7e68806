package rehearsal

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

func (p *parser) fault(n *yaml.Node) *fault {
	f := &fault{times: 1}
	p.Object(n, "a fault", map[string]func(*yaml.Node){
		"status":      func(v *yaml.Node) { f.status = p.number(v, 400, 599) },
		"retry_after": func(v *yaml.Node) { f.retryAfter = p.duration(v) },
		"error": func(v *yaml.Node) {
			name := p.Text(v, "error")
			if f.refusal = played[name]; f.refusal == nil {
				p.Fail(v, "no error is called %q; there are %s", name, strings.Join(playedNames(), ", "))
			}
		},
		"in_stream": func(v *yaml.Node) { f.inStream = p.isTrue(v) },
		"cut":       func(v *yaml.Node) { f.cut = p.isTrue(v) },
		"malformed": func(v *yaml.Node) { f.malformed = p.isTrue(v) },
		"delay":     func(v *yaml.Node) { f.delay = p.duration(v) },
		"times":     func(v *yaml.Node) { f.times = p.number(v, 1, 1_000_000) },
	})
	kinds := 0
	for _, chosen := range []bool{f.status != 0, f.refusal != nil, f.cut, f.malformed} {
		if chosen {
			kinds++
		}
	}
	switch {
	case kinds == 0 && f.delay == 0:
		p.Fail(n, "a fault needs status, error, cut, malformed or delay")
	case kinds > 1:
		p.Fail(n, "a fault has only one of status, error, cut and malformed")
	case f.inStream && f.refusal == nil:
		p.Fail(n, "in_stream has no meaning without error")
	case f.retryAfter != 0 && (f.status == 0 && f.refusal == nil || f.inStream):
		p.Fail(n, "retry_after has no meaning without status or error, nor in a stream")
	}
	return f
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
