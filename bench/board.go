package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"agentteam/pkg/store/broker/embedded"
)

// scale is how much is measured.
type scale struct {
	rounds int // of each figure the median counts
	cycles int // tasks of one pass
	large  int // tasks of the large board
	crowd  int // its idle teammates
	pages  int // queries of it
}

var (
	full  = scale{rounds: 3, cycles: 10_000, large: 100_000, crowd: 1_000, pages: 300}
	quick = scale{rounds: 1, cycles: 1_500, large: 100_000, crowd: 1_000, pages: 100}
)

// boardBench measures the board: how fast tasks are claimed and completed by teams
// of several sizes, beside bare updates of the same bytes, and what a large board
// costs.
func boardBench(ctx context.Context, r *rig) (all []figure, err error) {
	s := full
	if os.Getenv("BENCH") == "quick" {
		s = quick
	}
	begun := time.Now()
	for _, part := range []func(context.Context, *rig, scale) ([]figure, error){cycles, synced, steady, graphs, largeBoard} {
		figures, err := part(ctx, r, s)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	progress("took %v", time.Since(begun).Round(time.Second))
	return all, nil
}

// cycles measures claim and complete with the whole product path (a beat asks, the
// index offers, the hand claims and completes), in turns with two bare updates, and
// with a read before those. The bare ones are made in the team's bucket too, which
// the index follows meanwhile: a board that nobody reads is none. What they would
// make in a bucket that nobody follows is a figure without a goal.
func cycles(ctx context.Context, r *rig, s scale) ([]figure, error) {
	progress("cycles: 8, 64 and 256 workers, %d tasks each", s.cycles)
	all, err := measureCycles(ctx, r, "cycles", s, 8, 64, 256)
	if err != nil {
		return nil, fmt.Errorf("cycles: %w", err)
	}
	few, some, many := all[0], all[1], all[2]
	rate := func(name string, c measuredCycles, beside []float64) figure {
		return measured(name, median(c.product), "1/s").beside(median(beside))
	}
	return []figure{
		rate("cycles_8", few, few.bare).atLeast(0.5),
		rate("cycles_8_get", few, few.get).atLeast(1),
		measured("claim_p99_8", quantile(few.claims, 0.99), "ms").beside(quantile(few.updates, 0.99)).atMost(2),
		rate("cycles_64", some, some.bare).atLeast(0.6),
		rate("cycles_64_get", some, some.get).atLeast(1),
		rate("cycles_64_unfollowed", some, some.alone),
		measured("cas_failed_64", some.lostPerClaim(), "1/claim").atMost(0.02),
		measured("wakes_per_task", some.offersPerClaim(), "1/task").atMost(1.05),
		rate("cycles_256", many, many.bare).atLeast(0.6),
		rate("scale_64_8", some, few.product).atLeast(0.9),
		rate("scale_256_64", many, some.product).atLeast(0.8),
	}, nil
}

// synced is cycles on a server that syncs to disk before each acknowledgement.
func synced(ctx context.Context, r *rig, s scale) ([]figure, error) {
	slow, err := newRig(r.bin, embedded.Options{SyncAlways: true})
	if err != nil {
		return nil, err
	}
	defer slow.close()
	s.cycles /= 5
	progress("cycles with fsync: 8 and 64 workers, %d tasks each", s.cycles)
	all, err := measureCycles(ctx, slow, "fsync", s, 8, 64)
	if err != nil {
		return nil, fmt.Errorf("cycles with fsync: %w", err)
	}
	var figures []figure
	for i, workers := range []int{8, 64} {
		figures = append(figures, measured(fmt.Sprintf("cycles_%d_fsync", workers), median(all[i].product), "1/s").beside(median(all[i].bare)).atLeast(0.75))
	}
	return figures, nil
}

// turns is into how many a round is cut. What is compared is then measured within
// seconds of each other, since nobody has a machine for himself for longer.
const turns = 4

// measuredCycles are rates of each round, and of all rounds what single writes took.
type measuredCycles struct {
	product, bare, get []float64 // 1/s
	alone              []float64 // bare, in a bucket that nobody follows
	claims, updates    []float64 // ms
	won, lost, offers  int
}

func (c measuredCycles) lostPerClaim() float64 { return float64(c.lost) / float64(cmp.Or(c.won, 1)) }
func (c measuredCycles) offersPerClaim() float64 {
	return float64(c.offers) / float64(cmp.Or(c.won, 1))
}

// measureCycles lets a crew of each size do s.cycles tasks a round; the sizes take turns.
func measureCycles(ctx context.Context, r *rig, name string, s scale, sizes ...int) ([]measuredCycles, error) {
	var crews []*crew
	for _, workers := range sizes {
		t, err := newCrew(ctx, r, fmt.Sprintf("%s-%d", name, workers), workers)
		if err != nil {
			return nil, err
		}
		defer t.close()
		crews = append(crews, t)
		if _, err := t.turn(ctx, 10*workers); err != nil { // warms up
			return nil, err
		}
	}
	all := make([]measuredCycles, len(sizes))
	for range s.rounds {
		round := make([]measuredCycles, len(sizes))
		for range turns {
			for i, t := range crews {
				turn, err := t.turn(ctx, s.cycles/turns)
				if err != nil {
					return nil, fmt.Errorf("%d workers: %w", sizes[i], err)
				}
				round[i] = round[i].and(turn)
			}
		}
		for i, c := range round {
			// The turns were of one length, so the round's rate is the harmonic mean of theirs.
			c.product, c.bare, c.get, c.alone = []float64{harmonic(c.product)}, []float64{harmonic(c.bare)}, []float64{harmonic(c.get)}, []float64{harmonic(c.alone)}
			all[i] = all[i].and(c)
		}
	}
	return all, nil
}

// turn measures n tasks once each way.
func (t *crew) turn(ctx context.Context, n int) (c measuredCycles, err error) {
	bare, updates, err := t.bare(ctx, n, false, followed)
	if err != nil {
		return c, err
	}
	alone, _, err := t.bare(ctx, n, false, ignored)
	if err != nil {
		return c, err
	}
	get, _, err := t.bare(ctx, n, true, followed)
	if err != nil {
		return c, err
	}
	if err := t.fill(ctx, n, batch, nil); err != nil {
		return c, err
	}
	p, err := t.work(ctx, n)
	return measuredCycles{product: []float64{p.rate()}, bare: []float64{bare}, get: []float64{get}, alone: []float64{alone},
		claims: p.claims, updates: updates, won: p.done, lost: p.lost, offers: p.offers}, err
}

// and puts what two measured together.
func (c measuredCycles) and(d measuredCycles) measuredCycles {
	return measuredCycles{
		product: append(c.product, d.product...), bare: append(c.bare, d.bare...), get: append(c.get, d.get...), alone: append(c.alone, d.alone...),
		claims: append(c.claims, d.claims...), updates: append(c.updates, d.updates...),
		won: c.won + d.won, lost: c.lost + d.lost, offers: c.offers + d.offers,
	}
}
