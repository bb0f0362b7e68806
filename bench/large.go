package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// fewWorkers work on the large board and on the small one.
const fewWorkers = 8

// largeBoard measures what a board with many tasks and many idle teammates costs,
// beside one with hardly any.
func largeBoard(ctx context.Context, r *rig, s scale) (figures []figure, err error) {
	progress("large board: %d tasks, %d idle teammates", s.large, s.crowd)
	small, err := newCrew(ctx, r, "small", fewWorkers)
	if err != nil {
		return nil, err
	}
	defer small.close()
	large, err := newCrew(ctx, r, "large", fewWorkers)
	if err != nil {
		return nil, err
	}
	defer large.close()
	if err := large.pile(ctx, s.large); err != nil {
		return nil, err
	}
	disperse, err := large.crowd(ctx, r, s.crowd)
	if err != nil {
		return nil, err
	}
	defer disperse()
	for _, part := range []func(context.Context, *rig, scale, *crew, *crew) ([]figure, error){claimsOfLarge, memoryOfTeammate, pages, watchLoad} {
		more, err := part(ctx, r, s, small, large)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// pile puts n tasks on the board that nobody takes: they are for a role that nobody
// plays.
func (t *crew) pile(ctx context.Context, n int) error {
	task := newTask
	task.Role = "planner"
	call := make([]team.NewTask, 2*batch)
	for i := range call {
		call[i] = task
	}
	for done := 0; done < n; done += len(call) {
		if _, err := t.board.Create(ctx, team.Leader, call...); err != nil {
			return err
		}
		t.created += len(call)
	}
	return nil
}

// claimsOfLarge measures how long a claim takes and what it costs all processes
// together, the server included.
func claimsOfLarge(ctx context.Context, _ *rig, s scale, small, large *crew) ([]figure, error) {
	type cost struct{ claim, cpu []float64 }
	costs := map[*crew]*cost{small: {}, large: {}}
	for round := range 1 + s.rounds {
		for _, t := range []*crew{small, large} {
			if err := t.fill(ctx, s.cycles/2, batch, nil); err != nil {
				return nil, err
			}
			p, err := t.work(ctx, s.cycles/2)
			if err != nil {
				return nil, err
			}
			if c := costs[t]; round > 0 {
				c.claim = append(c.claim, median(p.claims))
				c.cpu = append(c.cpu, milliseconds(p.cpu)/float64(p.done))
			}
		}
	}
	return []figure{
		measured("claim_p50_100k_1k", median(costs[large].claim), "ms").beside(median(costs[small].claim)).atMost(1.3),
		measured("claim_cpu_100k_1k", median(costs[large].cpu), "ms").beside(median(costs[small].cpu)).atMost(1.2),
	}, nil
}

// cpuTime is what this process has used so far, on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memoryOfTeammate measures a real teammate process in each of the teams.
func memoryOfTeammate(ctx context.Context, r *rig, _ scale, small, large *crew) ([]figure, error) {
	if runtime.GOOS != "linux" {
		progress("memory is measured on Linux only")
		return nil, nil
	}
	memory := map[*crew]float64{}
	for _, t := range []*crew{small, large} {
		m, err := t.teammateMemory(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("teammate of team %s: %w", t.id, err)
		}
		memory[t] = m
	}
	return []figure{measured("teammate_rss_100k_1k", memory[large], "MiB").beside(memory[small]).atMost(1.1)}, nil
}

func (t *crew) teammateMemory(ctx context.Context, r *rig) (float64, error) {
	const name team.AgentID = "tester-1"
	heard := make(chan beat, 1000)
	stop, err := roster.New(t.team).Listen(name, func(b team.Heartbeat) { heard <- beat{b, time.Now()} })
	if err != nil {
		return 0, err
	}
	defer stop()
	if err := t.conn.Flush(ctx); err != nil {
		return 0, err
	}
	lifeline, held, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer lifeline.Close()
	defer held.Close()
	p, err := r.startTeammate(t.id, name, lifeline)
	if err != nil {
		return 0, err
	}
	defer func() { p.Kill(); <-p.Done() }()
	n := 0
	if _, err := await(ctx, heard, p.Done(), func(b beat) bool {
		if b.State == team.Idle {
			n++
		}
		return n == 6
	}); err != nil {
		return 0, err
	}
	return resident(p.PID())
}

// pages measures how long a page of the list takes, asked of the acting leader's
// index, with the usual filters in turns.
func pages(ctx context.Context, _ *rig, s scale, _, large *crew) ([]figure, error) {
	yes := true
	var took []float64
	cursor := ""
	for i := range s.pages {
		q := []team.Query{
			{After: cursor}, {Status: []team.TaskStatus{team.Pending}}, {Status: []team.TaskStatus{team.Completed}},
			{Text: "graphql"}, {Claimable: &yes, Role: "planner"}, {Assignee: "coder-1"},
		}[i%6]
		begun := time.Now()
		page, err := index.Ask(ctx, large.team, q, 0)
		if err != nil {
			return nil, err
		}
		if len(page.Tasks) == 0 {
			return nil, fmt.Errorf("the query %+v found nothing", q)
		}
		took = append(took, milliseconds(time.Since(begun)))
		if i%6 == 0 {
			cursor = page.Next
		}
	}
	return []figure{measured("list_page_p95", quantile(took, 0.95), "ms").atMost(50)}, nil
}

// watchLoad measures how long it takes until a reader who begins to follow the board
// knows all of it, beside taking in the same messages without looking at them.
func watchLoad(ctx context.Context, r *rig, s scale, _, large *crew) ([]figure, error) {
	all, err := index.Ask(ctx, large.team, team.Query{Limit: 1}, 0)
	if err != nil {
		return nil, err
	}
	var product, raw []float64
	for range s.rounds * turns {
		runtime.GC()
		begun := time.Now()
		if err := rawLoad(ctx, r, large.id); err != nil {
			return nil, err
		}
		raw = append(raw, time.Since(begun).Seconds())
		runtime.GC()
		begun = time.Now()
		if err := load(ctx, large.team.Bucket, all.Total); err != nil {
			return nil, err
		}
		product = append(product, time.Since(begun).Seconds())
	}
	return []figure{measured("watch_load", median(product), "s").beside(median(raw)).atMost(1.5)}, nil
}

func load(ctx context.Context, b *broker.Bucket, want int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks := make(map[team.TaskID]team.Task, want)
	err := b.Watch(ctx, func(e broker.Entry) error {
		t, err := board.Decode(e)
		tasks[t.ID] = t
		return err
	}, cancel, subject.AllTasks)
	if err == nil && len(tasks) < want {
		err = fmt.Errorf("%d tasks were loaded of %d", len(tasks), want)
	}
	return err
}

// rawLoad takes in the messages of a board and looks at none.
func rawLoad(ctx context.Context, r *rig, id team.TeamID) error {
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn.NATS())
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, "KV_"+subject.Bucket(id), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"$KV." + subject.Bucket(id) + "." + subject.AllTasks}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return err
	}
	it, err := c.Messages()
	if err != nil {
		return err
	}
	defer it.Stop()
	for left := uint64(math.MaxUint64); left > 0; {
		m, err := it.Next()
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		left = meta.NumPending
	}
	return nil
}
