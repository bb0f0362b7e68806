package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
)

// Set is the tools that an agent knows, in a fixed order, and the ones of them
// that it may use. It does not change and is safe for concurrent use.
type Set struct {
	tools   []Tool
	byName  map[string]int  // index into tools, by name and alias
	forms   map[string]Tool // the tools as these names call them, if in another way
	dialect team.Dialect    // in which the model is told of them
	allowed map[string]bool // by name
	gate    Gate            // nil: there is none
	metrics *metrics
}

// NewSet makes a set in which every tool is allowed. Calls are counted in reg,
// which may be nil; sets that share a registry share the counters.
//
// Errors: two tools with one name or alias; a tool that [New] did not make.
func NewSet(reg prometheus.Registerer, tools ...Tool) (*Set, error) {
	s := &Set{tools: slices.Clone(tools), byName: map[string]int{}, forms: map[string]Tool{}, allowed: map[string]bool{}}
	for i, t := range s.tools {
		if t.Name == "" || t.run == nil {
			return nil, team.Errorf(team.InvalidArgument, "tool %d %q was not made by tool.New", i, t.Name)
		}
		names := append([]string{t.Name}, t.Aliases...)
		for _, f := range t.forms {
			if s.forms[f.Name] = f; f.Name != t.Name {
				names = append(names, f.Name)
			}
		}
		for _, name := range names {
			if other, taken := s.byName[name]; taken {
				return nil, team.Errorf(team.InvalidArgument, "tools %s and %s both answer to %q", s.tools[other].Name, t.Name, name)
			}
			s.byName[name] = i
		}
		s.allowed[t.Name] = true
	}
	s.metrics = newMetrics(reg, s.tools)
	return s, nil
}

// Allow returns the set narrowed to names, a role's tool list of names and
// aliases; an empty list or a "*" in it keeps all that s allows. The tools left
// out stay known, so asking for one is permission_denied and not not_found.
//
// Errors: invalid_argument for a name that no tool has, permission_denied for
// one that s itself does not allow; both name it.
func (s *Set) Allow(names []string) (*Set, error) {
	if len(names) == 0 || slices.Contains(names, "*") {
		return s, nil
	}
	narrow := *s
	narrow.allowed = map[string]bool{}
	for _, name := range names {
		i, known := s.byName[name]
		if !known {
			return nil, team.Errorf(team.InvalidArgument, "there is no tool %q", shorten(name, 80)).WithHint("%s", s.usage())
		}
		if !s.allowed[s.tools[i].Name] {
			return nil, team.Errorf(team.PermissionDenied, "the tool %q cannot be granted here", name).WithHint("%s", s.usage())
		}
		narrow.allowed[s.tools[i].Name] = true
	}
	return &narrow, nil
}

// Speaking returns the set as it is told to a model in a dialect. It answers to the names
// of every dialect.
func (s *Set) Speaking(d team.Dialect) *Set {
	speaking := *s
	speaking.dialect = d
	return &speaking
}

// Behind returns the set behind a gate, which is asked before each call that may change
// something: of a tool that is neither [ReadOnly] nor [Ungated].
func (s *Set) Behind(g Gate) *Set {
	gated := *s
	gated.gate = g
	return &gated
}

// Spec is what a model is told about a tool.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, an object
}

// Specs returns the allowed tools in the order in which NewSet got them: always
// the same, so that a model endpoint can cache the prompt.
func (s *Set) Specs() []Spec {
	var specs []Spec
	for _, t := range s.tools {
		name := s.dialect.Tool(t.Name)
		if !s.allowed[t.Name] || t.untold || name == "" {
			continue
		}
		if f, ok := s.forms[name]; ok && name != t.Name {
			t = f
		}
		specs = append(specs, Spec{Name: name, Description: s.dialect.Say(t.Description), Schema: t.schema})
	}
	return specs
}

// Writes reports whether name, or the tool of which it is an alias, writes files
// or executes. It is false for a name that no tool has.
func (s *Set) Writes(name string) bool {
	i, known := s.byName[name]
	return known && s.tools[i].Writes
}

// Yields reports whether a call of the tool may be cut off in the middle: it was made for
// that, or changes nothing.
func (s *Set) Yields(name string) bool {
	i, known := s.byName[name]
	return known && (s.tools[i].Yields || s.tools[i].ReadOnly)
}

// Bulky reports whether old results of the tool, or of that of which name is an alias, may be
// left out of a conversation; stored are its arguments of which that is so too.
func (s *Set) Bulky(name string) (stored []string, bulky bool) {
	i, known := s.byName[name]
	if !known {
		return nil, false
	}
	return s.tools[i].stored, s.tools[i].Bulky
}

// ReadOnly reports whether name, or the tool of which it is an alias, changes nothing that
// anybody can see. It is false for a name that no tool has.
func (s *Set) ReadOnly(name string) bool {
	i, known := s.byName[name]
	return known && s.tools[i].ReadOnly
}

// Run validates a call, runs it and returns when the tool has ended. It never
// panics and its result is never empty; every error is a result with a code:
// not_found for a tool that does not exist (the names that do are in the hint),
// permission_denied for one that this set does not allow, invalid_argument for
// arguments against the schema, the gate's error for what it refuses, unavailable for a context that is over, a tool
// that panicked and an error without a code, else the tool's own.
func (s *Set) Run(ctx context.Context, call Call) Result {
	label := unknownTool
	if i, known := s.byName[call.Name]; known {
		label = s.tools[i].Name
	}
	begun := time.Now()
	result := s.run(ctx, call)
	s.metrics.observe(label, result, time.Since(begun))
	return result
}

func (s *Set) run(ctx context.Context, call Call) (result Result) {
	i, known := s.byName[call.Name]
	if !known {
		return failure(team.Errorf(team.NotFound, "there is no tool %q", shorten(call.Name, 80)).WithHint("%s", s.usage()))
	}
	t := s.tools[i]
	if !s.allowed[t.Name] {
		return failure(team.Errorf(team.PermissionDenied, "you may not use %s", call.Name).WithHint("%s", s.usage()))
	}
	// An agent that lost its task or is being stopped must not begin to write.
	if ctx.Err() != nil {
		return failure(fmt.Errorf("%s was not started: %w", call.Name, context.Cause(ctx)))
	}
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "tool panicked", "tool", t.Name, "call", call.ID, "err", p, "stack", string(debug.Stack()))
			result = failure(team.Errorf(team.Unavailable, "%s broke down; what it did until then is unknown", call.Name))
		}
	}()
	called := t
	if f, ok := s.forms[call.Name]; ok {
		called = f
	} else if f, ok := s.forms[t.Name]; ok { // by an alias
		called = f
	}
	gate := s.gate
	if gate != nil { // what it refuses is named as it was called
		gate = func(ctx context.Context, _ string) error { return s.gate(ctx, call.Name) }
	}
	value, err := called.run(ctx, call.Arguments, gate)
	if err != nil {
		return failure(err)
	}
	result, err = success(value)
	if err != nil {
		return failure(fmt.Errorf("%s ran, but its result cannot be shown: %w", call.Name, err))
	}
	if called.show != nil {
		result.Content = called.show(result.Content)
	}
	return result
}

func (s *Set) usage() string {
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	return "tools: " + strings.Join(names, ", ")
}
