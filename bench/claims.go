package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// rounds are measured after a first one that only warms up; of each figure the
// median counts.
const rounds = 3

// claims measures how many claims a second the board takes, beside bare updates of
// keys of the same bucket with bytes that are ready.
func claims(ctx context.Context, r *rig) (all []figure, err error) {
	for _, load := range []struct{ workers, tasks int }{{8, 300}, {64, 60}} {
		progress("claims: %d workers, %d tasks each", load.workers, load.tasks)
		figures, err := claimsOf(ctx, r, load.workers, load.tasks)
		if err != nil {
			return nil, fmt.Errorf("claims of %d workers: %w", load.workers, err)
		}
		all = append(all, figures...)
	}
	return all, nil
}

func claimsOf(ctx context.Context, r *rig, workers, tasks int) ([]figure, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	id := team.TeamID(fmt.Sprintf("claims-%d", workers))
	bt, err := r.makeTeam(ctx, conn, id)
	if err != nil {
		return nil, err
	}
	todo, err := createTasks(ctx, board.New(bt.Bucket, board.Options{}), workers*tasks)
	if err != nil {
		return nil, err
	}
	var crew []*claimer
	for mine := range slices.Chunk(todo, tasks) {
		c, err := newClaimer(ctx, r, id, len(crew), mine)
		if err != nil {
			return nil, err
		}
		defer c.conn.Close()
		crew = append(crew, c)
	}
	var raw, byID, offered []float64
	for range 1 + rounds {
		for _, step := range []struct {
			do   func(*claimer, context.Context, int) error
			into *[]float64 // nil: not a measurement
		}{
			{(*claimer).update, &raw}, {(*claimer).claim, &byID}, {(*claimer).release, nil},
			{(*claimer).take, &offered}, {(*claimer).release, nil},
		} {
			perSecond, err := pass(ctx, crew, tasks, step.do)
			if err != nil {
				return nil, err
			}
			if step.into != nil {
				*step.into = append(*step.into, perSecond)
			}
		}
	}
	bare := median(raw[1:])
	return []figure{
		measured(fmt.Sprintf("claim_by_id_%d_workers", workers), median(byID[1:]), "1/s").beside(bare),
		measured(fmt.Sprintf("claim_offered_%d_workers", workers), median(offered[1:]), "1/s").beside(bare),
	}, nil
}

// createTasks makes n tasks with records of a usual size.
func createTasks(ctx context.Context, b *board.Board, n int) (all []team.Task, err error) {
	task := team.NewTask{Title: "Migrate the orders API to GraphQL", Description: strings.Repeat("Read the handlers, write the resolvers. ", 8)}
	for batch := range slices.Chunk(slices.Repeat([]team.NewTask{task}, n), 200) {
		created, err := b.Create(ctx, team.Leader, batch...)
		if err != nil {
			return nil, err
		}
		all = append(all, created...)
	}
	return all, nil
}

// pass lets every claimer do each of its n tasks, all claimers at once, and returns
// how many were done a second.
func pass(ctx context.Context, crew []*claimer, n int, do func(*claimer, context.Context, int) error) (float64, error) {
	g, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for _, c := range crew {
		g.Go(func() error {
			for i := range n {
				if err := do(c, ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return float64(len(crew)*n) / time.Since(begun).Seconds(), err
}

// claimer is one worker with a connection, a share of the tasks, and as many keys
// of its own for the bare updates.
type claimer struct {
	conn   *broker.Conn
	board  *board.Board
	holder team.Holder
	tasks  []team.Task

	kv        jetstream.KeyValue
	value     []byte // as long as a claim's
	revisions []uint64
}

func newClaimer(ctx context.Context, r *rig, id team.TeamID, n int, tasks []team.Task) (*claimer, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &claimer{conn: conn, tasks: tasks, revisions: make([]uint64, len(tasks)),
		holder: team.Holder{Agent: team.AgentID(fmt.Sprintf("coder-%d", n)), Incarnation: 1, Role: "coder"}}
	if err := c.open(ctx, id); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *claimer) open(ctx context.Context, id team.TeamID) error {
	bt, err := c.conn.Open(ctx, id)
	if err != nil {
		return err
	}
	c.board = board.New(bt.Bucket, board.Options{})
	js, err := jetstream.New(c.conn.NATS())
	if err != nil {
		return err
	}
	if c.kv, err = js.KeyValue(ctx, subject.Bucket(id)); err != nil {
		return err
	}
	claimed, err := c.tasks[0].Claim(c.holder, time.Now().UTC())
	if err != nil {
		return err
	}
	c.value, err = json.Marshal(claimed)
	return err
}

// update is the raw work: a compare-and-set of one key.
func (c *claimer) update(ctx context.Context, i int) (err error) {
	c.revisions[i], err = c.kv.Update(ctx, "bench."+string(c.tasks[i].ID), c.value, c.revisions[i])
	return err
}

// claim is how a model or a person claims: by the task's id.
func (c *claimer) claim(ctx context.Context, i int) (err error) {
	c.tasks[i], err = c.board.Claim(ctx, c.tasks[i].ID, c.holder)
	return err
}

// take is how an idle agent claims: the task was offered, with its record.
func (c *claimer) take(ctx context.Context, i int) (err error) {
	c.tasks[i], err = c.board.ClaimAt(ctx, c.tasks[i], c.holder)
	return err
}

// release makes the task claimable again.
func (c *claimer) release(ctx context.Context, i int) (err error) {
	c.tasks[i], err = c.board.Release(ctx, c.tasks[i].ID, team.Actor{Holder: c.holder}, c.tasks[i].Epoch, "", false)
	return err
}
