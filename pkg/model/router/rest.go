package router

import (
	"context"
	"slices"
	"time"

	"agentteam/pkg/model"
)

// Cooldowns of a model that has refused: meanwhile its fallbacks are asked first.
const (
	parkedCooldown = 5 * time.Minute  // a person has to repair what it refuses for
	retryCooldown  = 30 * time.Second // it may come back by itself
)

// order returns whom to ask: the alias and its fallbacks, without those whose known window is too small for req. The
// first awake of them are healthy; those in cooldown come last.
func (r *Router) order(asked *route, req model.Request) (order []*route, awake int) {
	chain := slices.Clone(asked.chain)
	if len(chain) > 1 {
		least := leastTokens(req)
		chain = slices.DeleteFunc(chain, func(to *route) bool {
			window := r.client(to).Limits().Window
			return to != asked && window > 0 && least > window
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var resting []*route
	for _, to := range chain {
		if to.cooldowns.After(time.Now()) {
			resting = append(resting, to)
		} else {
			order = append(order, to)
		}
	}
	return append(order, resting...), len(order)
}

func (r *Router) cooldown(to *route, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if d > 0 && !to.cooldowns.After(now) {
		to.episodes++
	}
	to.cooldowns = now.Add(d)
}

// cooldown identifies a cooldown of a route: n counts them.
type cooldown struct {
	of *route
	n  int
}

// markNotified records that this view has announced a route's present cooldown, and returns false if
// it already had.
func (r *Router) markNotified(of *route) bool {
	r.mu.Lock()
	now := cooldown{of, of.episodes}
	r.mu.Unlock()
	r.counting.Lock()
	defer r.counting.Unlock()
	news := r.notified[of.Name] != now
	r.notified[of.Name] = now
	return news
}

// passed announces, once per cooldown, that a route was skipped.
func (r *Router) passed(ctx context.Context, from, to *route) {
	if r.markNotified(from) {
		r.switches.WithLabelValues(from.Name, to.Name).Inc()
		r.log.WarnContext(ctx, "the model rests, since it has refused; another one is asked", "from", from.Name, "to", to.Name)
	}
}

func (r *Router) switched(ctx context.Context, from, to *route, why refusals) {
	r.markNotified(from)
	r.switches.WithLabelValues(from.Name, to.Name).Inc()
	last := why[len(why)-1].refusal
	// Not the error's text: an endpoint may quote the prompt in it.
	r.log.WarnContext(ctx, "the model refuses, another one is asked", "from", from.Name, "to", to.Name, "reason", last.Reason, "status", last.Status)
	r.log.DebugContext(ctx, "the model refuses", "alias", from.Name, "err", last.Err)
}

// leastTokens estimates the prompt by its texts alone, without the additions of a wire format or images.
func leastTokens(r model.Request) int {
	bytes := 0
	for _, m := range r.Messages {
		bytes += len(m.Content)
		for _, p := range m.Parts {
			bytes += len(p.Text)
		}
		for _, c := range m.ToolCalls {
			bytes += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range r.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return (bytes + 3) / 4 // as the client estimates what its endpoint does not report
}
