package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/team"
)

// ahead is how many tasks may be on the board while more are being created.
const ahead = 1000

// steady measures 64 workers while somebody creates tasks, 100 a call, as fast as
// they are done.
func steady(ctx context.Context, r *rig, s scale) ([]figure, error) {
	const workers = 64
	progress("steady: %d workers, %d tasks while they are created", workers, s.cycles)
	t, err := newCrew(ctx, r, "steady", workers)
	if err != nil {
		return nil, err
	}
	defer t.close()
	var product, bare []float64
	for range s.rounds * turns {
		raw, _, err := t.bare(ctx, s.cycles/turns, false, followed)
		if err != nil {
			return nil, err
		}
		if err := t.fill(ctx, ahead, batch, nil); err != nil {
			return nil, err
		}
		p, err := t.workSteadily(ctx, s.cycles/turns)
		if err != nil {
			return nil, err
		}
		product, bare = append(product, p.rate()), append(bare, raw)
	}
	return []figure{measured("cycles_64_steady", median(product), "1/s").beside(median(bare)).atLeast(0.4)}, nil
}

// workSteadily is work on n tasks while as many are created as are done. What is left
// then is done too, but does not count.
func (t *crew) workSteadily(ctx context.Context, n int) (res worked, err error) {
	before := t.completed.Load()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for created := 0; created < n; created += batch {
			for int64(created) > t.completed.Load()-before {
				select { // the workers are behind
				case <-t.progressed:
				case <-gctx.Done():
					return gctx.Err()
				}
			}
			if err := t.fill(gctx, batch, batch, nil); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() (err error) {
		res, err = t.work(gctx, ahead+n)
		return err
	})
	if err = g.Wait(); err == nil {
		res.took, res.done = res.tasks[n-1].at.Sub(res.begun), n
	}
	return res, err
}

const (
	layers    = 10
	layerSize = 100
	barriers  = 8 // of each round: one has only nine edges, too few to speak of a p99
)

// graphs measures tasks that wait for others, beside as many with records of the
// same size that wait for none.
func graphs(ctx context.Context, r *rig, s scale) ([]figure, error) {
	const workers = 64
	progress("graphs: %d workers", workers)
	t, err := newCrew(ctx, r, "graphs", workers)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := t.fill(ctx, layerSize, batch, nil); err != nil { // to depend on, once they are done
		return nil, err
	}
	if _, err := t.work(ctx, layerSize); err != nil {
		return nil, err
	}
	var fanin, faninFlat, barrier, barrierFlat, seconds, edges []float64
	type pass struct {
		n, call int
		depends func(first int) func(i int) []team.TaskID
		into    *[]float64
	}
	flat := func(n int) func(int) func(int) []team.TaskID {
		return func(int) func(int) []team.TaskID { return completedOnes(n) }
	}
	for range s.rounds {
		var passes []pass
		for range turns {
			n := s.cycles / 2 / turns
			passes = append(passes, pass{n, batch, flat(3), &faninFlat}, pass{n, threeCall, threeBefore, &fanin})
		}
		for range barriers {
			passes = append(passes, pass{layers * layerSize, batch, flat(layerSize), &barrierFlat}, pass{layers * layerSize, batch, layerBefore, &barrier})
		}
		for _, g := range passes {
			if err := t.fill(ctx, g.n, g.call, g.depends(t.created)); err != nil {
				return nil, err
			}
			p, err := t.work(ctx, g.n)
			if err != nil {
				return nil, fmt.Errorf("%d tasks: %w", g.n, err)
			}
			*g.into = append(*g.into, p.rate())
			if g.into == &barrier {
				seconds, edges = append(seconds, p.took.Seconds()), append(edges, layerEdges(p.tasks, t.created-g.n)...)
			}
		}
	}
	return []figure{
		measured("graph_fanin3", median(fanin), "1/s").beside(median(faninFlat)).atLeast(0.9),
		measured("graph_barrier", median(barrier), "1/s").beside(median(barrierFlat)).atLeast(0.55),
		measured("barrier_seconds", median(seconds), "s").atMost(0.5),
		measured("layer_edge_p99", quantile(edges, 0.99), "ms").atMost(10),
	}, nil
}

// completedOnes makes every task depend on the first n tasks of the team, which are
// completed: it is as large as one that waits, and does not wait.
func completedOnes(n int) func(int) []team.TaskID {
	ids := make([]team.TaskID, n)
	for i := range ids {
		ids[i] = team.MakeTaskID(i + 1)
	}
	return func(int) []team.TaskID { return ids }
}

// threeCall is how many of the tasks that depend on three are created by one call: those
// of the first call of a pass have nothing to wait for.
const threeCall = 10

// threeBefore makes the i-th of the tasks, of which the first has the number first+1,
// depend on three of the last few hundred before it that are not of its own call.
func threeBefore(first int) func(int) []team.TaskID {
	return func(i int) []team.TaskID {
		var ids []team.TaskID
		for range 3 {
			newest := i - i%threeCall // of the calls before
			if newest == 0 {
				return completedOnes(3)(i)
			}
			ids = append(ids, team.MakeTaskID(first+1+max(0, newest-1-rand.IntN(300))))
		}
		return ids
	}
}

// layerBefore makes each task depend on all of the layer before its own.
func layerBefore(first int) func(int) []team.TaskID {
	return func(i int) []team.TaskID {
		layer := i / layerSize
		if layer == 0 {
			return nil
		}
		ids := make([]team.TaskID, layerSize)
		for k := range ids {
			ids[k] = team.MakeTaskID(first + (layer-1)*layerSize + k + 1)
		}
		return ids
	}
}

// layerEdges returns for each layer but the first how long after the completion of
// the layer before its first task was claimed, in ms.
func layerEdges(tasks []finished, first int) (edges []float64) {
	var last, claimed [layers]time.Time
	for _, f := range tasks {
		l := (f.task.Number() - first - 1) / layerSize
		if f.at.After(last[l]) {
			last[l] = f.at
		}
		if claimed[l].IsZero() || f.claimed.Before(claimed[l]) {
			claimed[l] = f.claimed
		}
	}
	for l := 1; l < layers; l++ {
		edges = append(edges, milliseconds(claimed[l].Sub(last[l-1])))
	}
	return edges
}
