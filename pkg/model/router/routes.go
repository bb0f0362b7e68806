package router

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// Alias is a model under its name in the settings of a process.
type Alias struct {
	Name      string
	Options   model.Options // of its client; without Logger and Registry
	Fallbacks []string      // aliases that are asked, in this order, when it refuses
	Prices    *Prices       // nil: not known
}

// Routes are the models that a [Router] may ask.
type Routes struct {
	Aliases []Alias
	Names   map[string]string // further names, each with the alias that it means
	Default string            // the alias that is asked when none is named; default: the first
}

// asker is the part of a client that a router needs; *Client implements it.
type asker interface {
	Complete(ctx context.Context, req model.Request, onDelta func(text string)) (model.Reply, error)
	Limits() model.Limits
	Patches() bool
}

// opener makes the client of an alias. The function that it returns gives the client with the metrics of a registry.
type opener func(o model.Options) (counting func(prometheus.Registerer) asker, err error)

func openClient(o model.Options) (func(prometheus.Registerer) asker, error) {
	c, err := model.New(o)
	if err != nil {
		return nil, err
	}
	return func(reg prometheus.Registerer) asker { return c.Counting(reg) }, nil
}

// route is one alias of a table.
type route struct {
	Alias
	counting  func(prometheus.Registerer) asker
	chain     []*route  // itself, then those that stand in for it, in order
	cooldowns time.Time // until then others are asked before it; guarded by the router's state
	episodes  int       // times that it has begun to rest; guarded likewise
}

// routeTable is Routes made ready. It does not change, except for the cooldowns of its routes.
type routeTable struct {
	routes  map[string]*route
	names   []string // of the aliases, in the order of the settings
	further map[string]string
	first   string        // the default; "" if there is no alias
	changed chan struct{} // closed when another table has taken its place
}

// newTable makes r ready. It keeps the clients of aliases whose options are the same in old, with their connections and
// lessons.
func newTable(r Routes, old *routeTable, open opener, fill func(*model.Options)) (*routeTable, error) {
	t := &routeTable{routes: map[string]*route{}, further: r.Names, first: r.Default, changed: make(chan struct{})}
	for _, a := range r.Aliases {
		to := &route{Alias: a}
		if before := old.route(a.Name); before != nil && reflect.DeepEqual(before.Options, a.Options) {
			to.counting = before.counting
		} else {
			o := a.Options
			fill(&o)
			var err error
			if to.counting, err = open(o); err != nil {
				return nil, team.Errorf(team.InvalidArgument, "the model alias %s: %w", a.Name, err).WithHint("%s", team.HintOf(err))
			}
		}
		t.routes[a.Name] = to
		t.names = append(t.names, a.Name)
	}
	if t.first == "" && len(t.names) > 0 {
		t.first = t.names[0]
	}
	for _, to := range t.routes {
		var err error
		if to.chain, err = t.chain(nil, to); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// chain appends to and all its fallbacks to sofar, the fallbacks of a fallback right after it; each comes once.
func (t *routeTable) chain(sofar []*route, to *route) ([]*route, error) {
	if slices.Contains(sofar, to) {
		return sofar, nil
	}
	sofar = append(sofar, to)
	for _, name := range to.Fallbacks {
		next := t.routes[name]
		if next == nil {
			return nil, team.Errorf(team.InvalidArgument, "the model alias %s falls back to %q, which is no alias", to.Name, name)
		}
		var err error
		if sofar, err = t.chain(sofar, next); err != nil {
			return nil, err
		}
	}
	return sofar, nil
}

// route returns the route of an alias, nil if there is none.
func (t *routeTable) route(name string) *route {
	if t == nil {
		return nil
	}
	return t.routes[name]
}

func (t *routeTable) resolve(name string) (alias string, known bool) {
	if to, ok := t.further[name]; ok {
		name = to
	}
	if t.routes[name] != nil {
		return name, true
	}
	return t.first, name == "" || name == team.Inherit
}
