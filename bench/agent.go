package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// agentScale is how much of an agent is measured.
type agentScale struct {
	rounds int // conversations of each kind
	demos  int // of which the median counts
}

var (
	agentFull  = agentScale{rounds: 8, demos: 5}
	agentQuick = agentScale{rounds: 2, demos: 1}
)

const (
	shortFrom, shortTo = 10, 60   // messages of a conversation that counts as one of 20
	longFrom, longTo   = 780, 860 // and as one of 800
	memoryMessages     = 2000
	memoryCalls        = 9  // a turn, so that the conversation is that long soon
	writeTurns         = 60 // over which stored writes are counted
	streamTurns        = 4  // each a text of streamTokens
	streamTokens       = 20_000
	subagentTurns      = 40 // each of which starts one
	subagentGoal       = 5  // ms that the start of one may take over a plain turn
	demoCallsGoal      = 35 // a sixth fewer than the 43 of the demo's first version
)

// agentBench measures what an agent adds to its model's time: a real teammate on real
// NATS, in turns with a plain loop over go-openai that does the same, both before one
// scripted endpoint, which keeps the time: from the last byte of an answer to the
// arrival of the next request.
func agentBench(ctx context.Context, r *rig) (all []figure, err error) {
	s := agentFull
	if os.Getenv("BENCH") == "quick" {
		s = agentQuick
	}
	begun := time.Now()
	b, err := newAgentRig(ctx, r)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for _, part := range []func(context.Context, *agentRig, agentScale) ([]figure, error){turnGaps, subagentStarts, streamRates, agentMemory, turnWrites, demoCalls, cachedShare} {
		figures, err := part(ctx, b, s)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	progress("took %v", time.Since(begun).Round(time.Second))
	return all, nil
}

// sides are gaps, in ms, of both sides.
type sides struct{ product, plain []float64 }

// turnGaps are the times between two model calls, by number of calls in the turn and by
// length of the conversation.
func turnGaps(ctx context.Context, b *agentRig, s agentScale) (all []figure, err error) {
	progress("turns: %d conversations of each kind, up to %d messages", s.rounds, longTo)
	for _, calls := range []int{1, 4} {
		var short, long sides
		for range s.rounds {
			kind := talkKind{calls: calls, turns: longTo / (1 + calls)}
			for _, side := range []struct {
				run         func(context.Context, talkKind, func(int) error) (*talk, error)
				short, long *[]float64
			}{{b.plain, &short.plain, &long.plain}, {b.product, &short.product, &long.product}} {
				t, err := side.run(ctx, kind, nil)
				if err != nil {
					return nil, err
				}
				*side.short = append(*side.short, t.between(shortFrom, shortTo)...)
				*side.long = append(*side.long, t.between(longFrom, longTo)...)
			}
		}
		goal := 1.0 // ms over the plain loop
		if calls > 1 {
			goal = 2
		}
		for _, at := range []struct {
			messages int
			sides
		}{{20, short}, {800, long}} {
			name := fmt.Sprintf("turn_%d_calls_%d_messages", calls, at.messages)
			product, plain := median(at.product), median(at.plain)
			all = append(all,
				measured(name+"_p50", product, "ms").beside(plain),
				measured(name+"_p95", quantile(at.product, 0.95), "ms").beside(quantile(at.plain, 0.95)),
				measured(name+"_over_p50", product-plain, "ms").atMost(goal))
		}
		all = append(all, measured(fmt.Sprintf("turn_%d_calls_800_to_20", calls), median(long.product), "ms").beside(median(short.product)).atMost(1.3))
	}
	return all, nil
}

// subagentStarts is how long it takes from the end of the answer that calls a subagent to the first request
// of that, beside the time to the next request after a call that reads a file.
func subagentStarts(ctx context.Context, b *agentRig, s agentScale) ([]figure, error) {
	progress("subagents: %d starts", s.rounds*subagentTurns)
	var starts, turns []float64
	for range s.rounds {
		t, err := b.product(ctx, talkKind{calls: 1, turns: subagentTurns, subs: true}, nil)
		if err != nil {
			return nil, err
		}
		starts = append(starts, t.starts...)
		if t, err = b.product(ctx, talkKind{calls: 1, turns: subagentTurns}, nil); err != nil {
			return nil, err
		}
		turns = append(turns, t.gaps...)
	}
	if len(starts) < s.rounds*subagentTurns*9/10 { // a probe of the window takes the place of a turn
		return nil, fmt.Errorf("%d subagents were started, of %d", len(starts), s.rounds*subagentTurns)
	}
	start, turn := median(starts), median(turns)
	return []figure{
		measured("subagent_start_p50", start, "ms").beside(turn),
		measured("subagent_start_over_p50", start-turn, "ms").atMost(subagentGoal),
	}, nil
}

// streamRates is how fast long answers are read, in tokens a second.
func streamRates(ctx context.Context, b *agentRig, s agentScale) ([]figure, error) {
	progress("stream: answers of %d tokens", streamTokens)
	kind := talkKind{calls: 1, turns: streamTurns, tokens: streamTokens}
	var rates sides
	for range s.rounds {
		plain, err := b.plain(ctx, kind, nil)
		if err != nil {
			return nil, err
		}
		product, err := b.product(ctx, kind, nil)
		if err != nil {
			return nil, err
		}
		rates.plain = append(rates.plain, plain.rates()...)
		rates.product = append(rates.product, product.rates()...)
	}
	return []figure{measured("stream", median(rates.product), "tokens/s").beside(median(rates.plain)).atLeast(0.9)}, nil
}

// agentMemory is what a process holds once its conversation is long, and how much of
// that came with the conversation.
func agentMemory(ctx context.Context, b *agentRig, _ agentScale) ([]figure, error) {
	if runtime.GOOS != "linux" {
		progress("memory is measured on Linux only")
		return nil, nil
	}
	progress("memory: conversations of %d messages", memoryMessages)
	kind := talkKind{calls: memoryCalls, turns: memoryMessages / (1 + memoryCalls)}
	var before, after [2]float64
	for i, run := range []func(context.Context, talkKind, func(int) error) (*talk, error){b.product, b.plain} {
		_, err := run(ctx, kind, func(pid int) (err error) {
			if before[i] == 0 { // called before the first turn, and after the last
				before[i], err = resident(pid)
			} else {
				after[i], err = resident(pid)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return []figure{
		measured("memory_2000_messages", after[0], "MiB").beside(after[1]),
		measured("memory_2000_messages_growth", after[0]-before[0], "MiB").beside(after[1] - before[1]),
	}, nil
}

// turnWrites is how many messages the team's streams hold more for each turn, as the
// server counts them.
func turnWrites(ctx context.Context, b *agentRig, _ agentScale) (all []figure, err error) {
	progress("writes: %d turns", writeTurns)
	for _, calls := range []int{1, 4} {
		var first, last uint64
		const margin = 5 // turns at either end that are not counted
		_, err := b.product(ctx, talkKind{calls: calls, turns: writeTurns + 2*margin, at: map[int]func() error{
			margin:              func() (err error) { first, err = b.stored(ctx); return err },
			margin + writeTurns: func() (err error) { last, err = b.stored(ctx); return err },
		}}, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, measured(fmt.Sprintf("writes_per_turn_%d_calls", calls), float64(last-first)/writeTurns, "writes").atMost(float64(1+calls)))
	}
	return all, nil
}

// demoCalls is how many model calls the demo takes. One more or less is a matter of who
// falls asleep first, so it is played a few times.
func demoCalls(ctx context.Context, b *agentRig, s agentScale) ([]figure, error) {
	progress("demo: %d times", s.demos)
	bin, err := filepath.Abs(filepath.Join(b.rig.bin, "teamctl"))
	if err != nil {
		return nil, err
	}
	var counts []float64
	for range s.demos {
		cmd := exec.CommandContext(ctx, bin, "demo", "-o", "json", b.workspace)
		cmd.Dir = b.rig.dir
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("teamctl demo: %w", err)
		}
		var result struct {
			Usage struct {
				Calls int `json:"model_calls"`
			} `json:"usage"`
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil || result.Usage.Calls == 0 {
			return nil, fmt.Errorf("teamctl demo tells no model calls (%v)", err)
		}
		counts = append(counts, float64(result.Usage.Calls))
	}
	return []figure{measured("demo_model_calls", math.Round(median(counts)), "calls").atMost(demoCallsGoal)}, nil
}
