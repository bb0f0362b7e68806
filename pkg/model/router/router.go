// Package router calls the models of a process by the aliases of its settings, falls back to other aliases when a model
// refuses, and computes costs.
package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Router calls the models of a process by their aliases, and their fallbacks when a model refuses. Safe for concurrent
// use; it needs no closing.
type Router struct {
	*routerState
	registry prometheus.Registerer
	switches *prometheus.CounterVec
	cost     *prometheus.CounterVec

	counting sync.Mutex
	clients  map[string]countingClient // by alias
	notified map[string]cooldown       // the last that was counted as a switch, by alias
}

// routerState is the shared state of all views of one router.
type routerState struct {
	open    opener
	log     *slog.Logger
	lessons model.Lessons

	mu    sync.Mutex
	table *routeTable
}

// Options are the settings of a Router in addition to its routes.
type Options struct {
	Logger  *slog.Logger  // default: discard
	Lessons model.Lessons // of all clients; see [model.Options]

	open opener // default: openClient
}

// New returns a router of the models in r, which may be none. It does not connect yet. Errors: [team.InvalidArgument],
// which names the alias and the fault.
func New(r Routes, o Options) (*Router, error) {
	s := &routerState{open: o.open, log: telemetry.OrDiscard(o.Logger), lessons: o.Lessons}
	if s.open == nil {
		s.open = openClient
	}
	var err error
	if s.table, err = newTable(r, nil, s.open, s.fill); err != nil {
		return nil, err
	}
	return (&Router{routerState: s}).Counting(nil), nil
}

func (s *routerState) fill(o *model.Options) { o.Logger, o.Lessons = s.log, s.lessons }

// Counting returns the same router with the metrics of reg.
func (r *Router) Counting(reg prometheus.Registerer) *Router {
	view := &Router{routerState: r.routerState, registry: reg, clients: map[string]countingClient{}, notified: map[string]cooldown{},
		switches: telemetry.Counters(reg, "agentteam_model_switches_total",
			"Switches to a fallback alias.", "from", "to"),
		cost: telemetry.Counters(reg, "agentteam_model_cost_total", "Cost of model calls with a known price.", "currency")}
	for _, to := range r.now().routes {
		if to.Prices != nil {
			view.cost.WithLabelValues(currencyLabel(to.Prices))
		}
		for i, next := range to.chain[1:] { // at 0, so that the first is seen as an increase
			view.switches.WithLabelValues(to.chain[i].Name, next.Name)
		}
	}
	return view
}

// Reload replaces the routes and clears all cooldowns; calls that run end with the old routes. Errors: as of [New], and
// then nothing has changed.
func (r *Router) Reload(to Routes) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := newTable(to, r.table, r.open, r.fill)
	if err != nil {
		return err
	}
	close(r.table.changed)
	r.table = next
	return nil
}

func (s *routerState) now() *routeTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table
}

// Changed returns a channel that the next [Router.Reload] closes: a refused caller may then try again immediately.
func (r *Router) Changed() <-chan struct{} { return r.now().changed }

// Names returns the aliases in the order of the settings, without their further names. The slice is the caller's.
func (r *Router) Names() []string { return slices.Clone(r.now().names) }

// Known returns every name of an alias: the default, the other aliases in the order of the settings, further names in
// alphabetical order. The slice is the caller's.
func (r *Router) Known() []string {
	t := r.now()
	names := slices.Clone(t.names)
	if i := slices.Index(names, t.first); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, t.first)
	}
	return append(names, slices.Sorted(maps.Keys(t.further))...)
}

// Resolve returns the alias for name, which may be a further name of it, and whether the settings have the name. If
// not, and for "" and [team.Inherit], it is the default, "" if there is none.
func (r *Router) Resolve(name string) (alias string, known bool) { return r.now().resolve(name) }

// Meant returns the alias for name, and its endpoint's name of the model; both are "" if there is none.
func (r *Router) Meant(name string) (alias, model string) {
	t := r.now()
	alias, _ = t.resolve(name)
	if to := t.route(alias); to != nil {
		model = to.Options.Model
	}
	return alias, model
}

// Limits returns the limits of one call of the alias for name.
func (r *Router) Limits(name string) model.Limits {
	t := r.now()
	alias, _ := t.resolve(name)
	if to := t.route(alias); to != nil {
		return r.client(to).Limits()
	}
	return model.Limits{}
}

// Patches reports whether the alias for name edits files best by patches; see [model.Client.Patches].
func (r *Router) Patches(name string) bool {
	t := r.now()
	alias, _ := t.resolve(name)
	to := t.route(alias)
	return to != nil && r.client(to).Patches()
}

// Complete calls the alias req.Model, as [model.Client.Complete] does, and sets Reply.Alias and the cost in
// Reply.Usage.
//
// If the alias refuses this account or is away, its fallbacks are called, in order. A model that refused is tried last
// for a while. Only the last healthy candidate and the very last one are retried with backoff. A fallback whose known
// window is too small is skipped. A request that is too long or filtered is not passed to another model. The Usage
// includes discarded tries.
//
// Errors: a *[model.Refusal]: the alias's own if all refuse, with the advice TryAgain if one of them is only away;
// ctx's. Its Window is that of the alias itself, if any.
func (r *Router) Complete(ctx context.Context, req model.Request, onDelta func(text string)) (model.Reply, error) {
	t := r.now()
	alias, _ := t.resolve(req.Model)
	asked := t.route(alias)
	if asked == nil {
		return model.Reply{}, &model.Refusal{Advice: model.Park, Reason: model.NoEndpoint, Err: team.Errorf(team.InvalidArgument, "no model is configured")}
	}
	req.Model = "" // to its client the model has no other name than its own
	metered := req.Meter
	var used model.Usage
	var all refusals
	order, awake := r.order(asked, req)
	if order[0] != asked {
		r.passed(ctx, asked, order[0])
	}
	for i, to := range order {
		req.Once = i != awake-1 && i != len(order)-1 // another one answers sooner than this one is back
		if i > 0 {
			r.switched(ctx, order[i-1], to, all)
		}
		req.Meter = to.metered(metered)
		reply, err := r.client(to).Complete(ctx, req, onDelta)
		if err == nil {
			r.cooldown(to, 0)
			reply.Alias = to.Name
			reply.Usage = together(used, r.price(to, reply.Usage, reply.Usage.PromptTokens))
			return reply, nil
		}
		refusal, ok := errors.AsType[*model.Refusal](err)
		if !ok {
			return model.Reply{}, err
		}
		used = together(used, r.price(to, refusal.Used, refusal.Longest))
		switch refusal.Advice {
		case model.Park:
			r.cooldown(to, parkedCooldown)
		case model.TryAgain:
			r.cooldown(to, retryCooldown)
		default: // it speaks of the request
			spoken := *refusal
			spoken.Used, spoken.Alias = used, to.Name
			if to != asked {
				spoken.Window = 0 // that of another model
			}
			return model.Reply{}, &spoken
		}
		all = append(all, refusedBy{to, refusal})
	}
	return model.Reply{}, all.of(asked, used)
}

// price returns u, of tries whose longest prompt has that many tokens, with its cost, and counts it.
func (r *Router) price(of *route, u model.Usage, longest int) model.Usage {
	more, moreOut := model.Surcharge(of.Options.Model, longest)
	u = of.Prices.price(u, more, moreOut)
	if of.Prices != nil {
		r.cost.WithLabelValues(currencyLabel(of.Prices)).Add(u.Cost)
	}
	return u
}

func currencyLabel(p *Prices) string { return cmp.Or(p.Currency, "none") }

// together adds two parts of the usage of one call.
func together(a, b model.Usage) model.Usage {
	sum := a.Add(b)
	sum.Unpriced = min(sum.Unpriced, 1)
	return sum
}

// countingClient is the client of a route with the metrics of one view of the router.
type countingClient struct {
	asker
	of *route
}

func (r *Router) client(to *route) asker {
	r.counting.Lock()
	defer r.counting.Unlock()
	c := r.clients[to.Name]
	if c.of != to { // none yet, or one of before the last Reload
		c = countingClient{to.counting(r.registry), to}
		r.clients[to.Name] = c
	}
	return c
}

// refusals are the refusals of one call.
type refusals []refusedBy

type refusedBy struct {
	by      *route
	refusal *model.Refusal
}

// of returns the refusal of the alias asked, on behalf of all.
func (all refusals) of(asked *route, used model.Usage) *model.Refusal {
	var first model.Refusal
	var others []string
	advice, thrown := model.Park, 0
	for _, r := range all {
		thrown += r.refusal.Thrown
		if r.by == asked {
			first = *r.refusal
		} else {
			others = append(others, fmt.Sprintf("%s (%s)", r.by.Name, r.refusal.Reason))
		}
		if r.refusal.Advice == model.TryAgain {
			advice = model.TryAgain
		}
	}
	first.Advice, first.Used, first.Thrown, first.Alias = advice, used, thrown, asked.Name
	if others != nil {
		first.Err = fmt.Errorf("%w; so do those that stand in for it: %s", first.Err, strings.Join(others, ", "))
	}
	return &first
}
