package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"agentteam/pkg/broker/embedded"
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
	for _, part := range []func(context.Context, *rig, scale) ([]figure, error){cycles, synced, postgres, steady, graphs, largeBoard} {
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
func cycles(ctx context.Context, r *rig, s scale) (figures []figure, err error) {
	rate := map[int]float64{}
	for _, load := range []struct {
		workers   int
		bare, get float64 // goals
	}{{8, 0.5, 1}, {64, 0.6, 1}, {256, 0.6, 0}} {
		progress("cycles: %d workers, %d tasks", load.workers, s.cycles)
		c, err := measureCycles(ctx, r, fmt.Sprintf("cycles-%d", load.workers), load.workers, s, load.get != 0)
		if err != nil {
			return nil, fmt.Errorf("cycles of %d workers: %w", load.workers, err)
		}
		rate[load.workers] = median(c.product)
		figures = append(figures, measured(fmt.Sprintf("cycles_%d", load.workers), median(c.product), "1/s").beside(median(c.bare)).atLeast(load.bare))
		if load.get != 0 {
			figures = append(figures, measured(fmt.Sprintf("cycles_%d_get", load.workers), median(c.product), "1/s").beside(median(c.get)).atLeast(load.get))
		}
		switch load.workers {
		case 8:
			figures = append(figures, measured("claim_p99_8", quantile(c.claims, 0.99), "ms").beside(quantile(c.updates, 0.99)).atMost(2))
		case 64:
			figures = append(figures,
				measured("cycles_64_unfollowed", median(c.product), "1/s").beside(median(c.alone)),
				measured("cas_failed_64", c.lostPerClaim(), "1/claim").atMost(0.02),
				measured("wakes_per_task", c.offersPerClaim(), "1/task").atMost(1.05))
		}
	}
	return append(figures,
		measured("scale_64_8", rate[64], "1/s").beside(rate[8]).atLeast(0.9),
		measured("scale_256_64", rate[256], "1/s").beside(rate[64]).atLeast(0.8)), nil
}

// synced is cycles on a server that syncs to disk before each acknowledgement.
func synced(ctx context.Context, r *rig, s scale) (figures []figure, err error) {
	slow, err := newRig(r.bin, embedded.Options{SyncAlways: true})
	if err != nil {
		return nil, err
	}
	defer slow.close()
	s.cycles /= 5
	for _, workers := range []int{8, 64} {
		progress("cycles with fsync: %d workers, %d tasks", workers, s.cycles)
		c, err := measureCycles(ctx, slow, fmt.Sprintf("fsync-%d", workers), workers, s, false)
		if err != nil {
			return nil, fmt.Errorf("cycles of %d workers with fsync: %w", workers, err)
		}
		figures = append(figures, measured(fmt.Sprintf("cycles_%d_fsync", workers), median(c.product), "1/s").beside(median(c.bare)).atLeast(0.75))
	}
	return figures, nil
}

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

func measureCycles(ctx context.Context, r *rig, name string, workers int, s scale, withGet bool) (c measuredCycles, err error) {
	t, err := newCrew(ctx, r, name, workers)
	if err != nil {
		return c, err
	}
	defer t.close()
	for round := range 1 + s.rounds {
		tasks := s.cycles
		if round == 0 { // warms up
			tasks = min(tasks, 10*workers)
		}
		bare, updates, err := t.bare(ctx, tasks, false, followed)
		if err != nil {
			return c, err
		}
		alone, _, err := t.bare(ctx, tasks, false, ignored)
		if err != nil {
			return c, err
		}
		get := 0.0
		if withGet {
			if get, _, err = t.bare(ctx, tasks, true, followed); err != nil {
				return c, err
			}
		}
		if err := t.fill(ctx, tasks, nil); err != nil {
			return c, err
		}
		p, err := t.work(ctx, tasks)
		if err != nil {
			return c, err
		}
		if round == 0 {
			continue
		}
		c.product, c.bare, c.get = append(c.product, p.rate()), append(c.bare, bare), append(c.get, get)
		c.alone = append(c.alone, alone)
		c.claims, c.updates = append(c.claims, p.claims...), append(c.updates, updates...)
		c.won, c.lost, c.offers = c.won+p.done, c.lost+p.lost, c.offers+p.offers
	}
	return c, nil
}
