// Command postgres measures the usual task queue in a table of a PostgreSQL server, for
// the scale of what `make bench-board` measures: 64 workers claim and complete 10,000
// tasks with FOR UPDATE SKIP LOCKED. The table knows no dependencies, no roles, no fence
// and no one-task rule.
//
// It is a module of its own, so that nobody needs the database driver to build the product.
//
//	BENCH_POSTGRES=postgres://... go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const (
	serverEnv = "BENCH_POSTGRES"

	rounds  = 3 // the median counts
	workers = 64
	tasks   = 10_000

	table = "agentteam_bench_tasks"
	title = "Migrate the orders API to GraphQL"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv(serverEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	if url == "" {
		return errors.New(serverEnv + " names no server (postgres://...)")
	}
	var rates []float64
	for range rounds {
		rate, err := skipLocked(ctx, url)
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	slices.Sort(rates)
	fmt.Printf("PostgreSQL, %d workers: %.0f tasks claimed and completed a second\n", workers, rates[rounds/2])
	return nil
}

// skipLocked has the workers claim and complete all tasks, and returns how many a second.
func skipLocked(ctx context.Context, url string) (float64, error) {
	owner, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer owner.Close(ctx) // everything was answered
	_, err = owner.Exec(ctx, `DROP TABLE IF EXISTS `+table+`;
		CREATE TABLE `+table+` (id bigserial PRIMARY KEY, title text, description text, status text NOT NULL DEFAULT 'pending',
			priority int NOT NULL DEFAULT 0, assignee text, result text, updated_at timestamptz NOT NULL DEFAULT now());
		CREATE INDEX ON `+table+` (priority DESC, id) WHERE status = 'pending'`)
	if err != nil {
		return 0, err
	}
	defer owner.Exec(ctx, `DROP TABLE `+table) // the next run drops it first
	description := strings.Repeat("Read the handlers, write the resolvers. ", 8)
	if _, err := owner.Exec(ctx, `INSERT INTO `+table+` (title, description) SELECT $1, $2 FROM generate_series(1, $3)`,
		title, description, tasks); err != nil {
		return 0, err
	}
	conns := make([]*pgx.Conn, workers)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, url); err != nil {
			return 0, err
		}
		defer conns[i].Close(ctx) // as above
	}
	g, gctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for i, c := range conns {
		g.Go(func() error { return work(gctx, c, fmt.Sprint("coder-", i)) })
	}
	err = g.Wait()
	return tasks / time.Since(begun).Seconds(), err
}

// work claims and completes tasks until none is left.
func work(ctx context.Context, c *pgx.Conn, who string) error {
	for {
		var id int64
		err := c.QueryRow(ctx, `UPDATE `+table+` SET status = 'in_progress', assignee = $1, updated_at = now() WHERE id =
			(SELECT id FROM `+table+` WHERE status = 'pending' ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id`, who).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = c.Exec(ctx, `UPDATE `+table+` SET status = 'completed', result = 'done', updated_at = now() WHERE id = $1 AND assignee = $2`, id, who)
		}
		if err != nil {
			return err
		}
	}
}
