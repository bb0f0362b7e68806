package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
)

// Set is the tools that an agent knows, in a fixed order, and those of them that it may use. It does not change and is
// safe for concurrent use.
type Set struct {
	tools   []Tool
	byName  map[string][]int // indexes into tools, by name and alias; several only of variants that share a name
	names   Names            // by which the model sees them; nil: their own
	allowed map[string]bool  // by name
	gates   []Gate
	metrics *metrics
}

// Names are the names by which a model sees tools; a [team.Dialect] is one.
type Names interface {
	// Tool returns the name for one of our tools; "" if the model does not see it.
	Tool(native string) string
	// Say returns one of our texts with the names of tools in it.
	Say(text string) string
}

// NewSet returns a set in which every tool is allowed. It counts calls in reg, which may be nil; sets that share a
// registry share the counters.
//
// Errors: two tools with one name or alias; a tool that [New] did not make.
func NewSet(reg prometheus.Registerer, tools ...Tool) (*Set, error) {
	s := &Set{tools: slices.Clone(tools), byName: map[string][]int{}, allowed: map[string]bool{}}
	for i, t := range s.tools {
		if t.Name == "" || t.run == nil {
			return nil, team.Errorf(team.InvalidArgument, "tool %d %q was not made by tool.New", i, t.Name)
		}
		names := append([]string{t.Name}, t.Aliases...)
		for _, v := range t.variants {
			if v.Name != t.Name {
				names = append(names, v.Name)
			}
		}
		for _, name := range names {
			for _, other := range s.byName[name] {
				if !s.tools[other].shares(name) || !t.shares(name) {
					return nil, team.Errorf(team.InvalidArgument, "tools %s and %s both answer to %q", s.tools[other].Name, t.Name, name)
				}
			}
			s.byName[name] = append(s.byName[name], i)
		}
		s.allowed[t.Name] = true
	}
	s.metrics = newMetrics(reg, s.tools)
	return s, nil
}

// Allow returns the set narrowed to names, a role's list of tool names and aliases; an empty list or a "*" keeps all
// that s allows. The other tools stay known, so a call of one is permission_denied and not not_found.
//
// Errors: invalid_argument for a name that no tool has, permission_denied for a tool that s does not allow; both name
// it.
func (s *Set) Allow(names []string) (*Set, error) {
	if len(names) == 0 || slices.Contains(names, "*") {
		return s, nil
	}
	narrow := *s
	narrow.allowed = map[string]bool{}
	for _, name := range names {
		named := s.byName[name]
		if named == nil {
			return nil, team.Errorf(team.InvalidArgument, "there is no tool %q", shorten(name, 80)).WithHint("%s", s.usage())
		}
		for _, i := range named {
			if !s.allowed[s.tools[i].Name] {
				return nil, team.Errorf(team.PermissionDenied, "the tool %q cannot be granted here", name).WithHint("%s", s.usage())
			}
			narrow.allowed[s.tools[i].Name] = true
		}
	}
	return &narrow, nil
}

// Without returns the set without the tools for which taken is true. They stay known.
func (s *Set) Without(taken func(Tool) bool) *Set {
	narrow := *s
	narrow.allowed = maps.Clone(s.allowed)
	for _, t := range s.tools {
		if taken(t) {
			delete(narrow.allowed, t.Name)
		}
	}
	return &narrow
}

// Speaking returns the set under these names. It accepts the names of all variants.
func (s *Set) Speaking(n Names) *Set {
	speaking := *s
	speaking.names = n
	return &speaking
}

// Behind returns the set with further gates. Before each call all gates are asked, in their order, with valid
// arguments; the first refusal ends the call. Gates let calls pass that change nothing: see [Request.Changes].
func (s *Set) Behind(gates ...Gate) *Set {
	gated := *s
	gated.gates = slices.Concat(s.gates, gates)
	return &gated
}

// Spec is a tool as a model sees it.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, an object
}

// Specs returns the allowed tools in the order of NewSet: always the same, so that a model endpoint can cache the
// prompt.
func (s *Set) Specs() []Spec {
	var specs []Spec
	for _, t := range s.tools {
		spec := Spec{Name: t.Name, Description: t.Description, Schema: t.schema}
		if s.names != nil {
			if spec.Name = s.names.Tool(t.Name); spec.Name != t.Name {
				if v, ok := t.variant(spec.Name); ok {
					spec.Description, spec.Schema = v.Description, v.Schema
				}
			}
			spec.Description = s.names.Say(spec.Description)
		}
		if s.allowed[t.Name] && !t.unlisted && spec.Name != "" {
			specs = append(specs, spec)
		}
	}
	return specs
}

// Has reports whether a tool of the set has that name, alias or variant.
func (s *Set) Has(name string) bool {
	_, known := s.byName[name]
	return known
}

// Traits returns the traits of the tool that name calls, with its names of the arguments; the zero Traits for an
// unknown name. If several tools share the name, they are the traits of the first; see [Set.TraitsOf].
func (s *Set) Traits(name string) Traits { return s.TraitsOf(Call{Name: name}) }

// TraitsOf returns the traits of the tool of a call, as [Set.Traits].
func (s *Set) TraitsOf(c Call) Traits {
	t, known := s.called(c)
	if !known {
		return Traits{}
	}
	if v, ok := t.called(c.Name); ok {
		return v.Traits
	}
	return t.Traits
}

// called returns the tool of a call.
func (s *Set) called(c Call) (t Tool, known bool) {
	named := s.byName[c.Name]
	if len(named) > 1 {
		given, _ := Parse(c.Arguments) // what cannot be read is refused by whichever tool it is
		for _, i := range named {
			if v, ok := s.tools[i].variant(c.Name); ok && v.When(given) {
				return s.tools[i], true
			}
		}
	}
	if named == nil {
		return Tool{}, false
	}
	return s.tools[named[0]], true
}

// Run validates a call, runs it and returns when the tool has ended. It never panics and its result is never empty. An
// error is a result with a code: not_found for an unknown tool (the hint has the known names), permission_denied for
// one that this set does not allow, invalid_argument for arguments against the schema, a gate's error, unavailable for
// an ended context, a panic and an error without a code, else the tool's own.
func (s *Set) Run(ctx context.Context, call Call) Result {
	label, name := unknownTool, call.Name
	if t, known := s.called(call); known {
		name = t.Name
		label = name
	}
	begun := time.Now()
	ctx, end := accounted(ctx, call, name)
	result := s.run(ctx, call)
	end(&result)
	s.metrics.observe(label, result, time.Since(begun))
	return result
}

func (s *Set) run(ctx context.Context, call Call) (result Result) {
	t, known := s.called(call)
	if !known {
		return failure(team.Errorf(team.NotFound, "there is no tool %q", shorten(call.Name, 80)).WithHint("%s", s.usage()))
	}
	if !s.allowed[t.Name] {
		return failure(team.Errorf(team.PermissionDenied, "you may not use %s", call.Name).WithHint("%s", s.usage()))
	}
	// An agent that lost its task or is being stopped must not start to write.
	if ctx.Err() != nil {
		return failure(fmt.Errorf("%s was not started: %w", call.Name, context.Cause(ctx)))
	}
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "tool panicked", "tool", t.Name, "call", call.ID, "err", p, "stack", string(debug.Stack()))
			result = failure(team.Errorf(team.Unavailable, "%s broke down; what it did until then is unknown", call.Name))
		}
	}()
	out, err := s.output(ctx, t, call)
	if err != nil {
		return failure(err)
	}
	result, err = success(out)
	if err != nil {
		return failure(fmt.Errorf("%s ran, but its result cannot be shown: %w", call.Name, err))
	}
	return result
}

// output runs a call of t.
func (s *Set) output(ctx context.Context, t Tool, call Call) (Output, error) {
	ask := func(ctx context.Context, arguments json.RawMessage, traits Traits) error {
		for _, gate := range s.gates {
			if err := gate(ctx, Request{Called: call.Name, Tool: t.Name, Arguments: arguments, Traits: traits}); err != nil {
				return err
			}
		}
		return nil
	}
	v, ok := t.called(call.Name)
	if !ok {
		return t.run(ctx, call.Arguments, ask)
	}
	return v.Run(ctx, call.Arguments, func(arguments map[string]any) (Output, error) {
		text, err := json.Marshal(arguments)
		if err != nil {
			return Output{}, team.Errorf(team.InvalidArgument, "arguments: %w", err)
		}
		return t.run(ctx, string(text), ask)
	})
}

func (s *Set) usage() string {
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	return "tools: " + strings.Join(names, ", ")
}
