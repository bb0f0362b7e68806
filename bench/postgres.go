package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// postgresEnv names a PostgreSQL server ("postgres://...") to measure beside ours:
// the usual task queue in a table, for scale.
const postgresEnv = "BENCH_POSTGRES"

// postgres measures 64 workers on a table of tasks of a PostgreSQL server, claiming
// with FOR UPDATE SKIP LOCKED. It knows no dependencies, no roles, no fence and no
// one-task rule. Without a server it measures nothing.
func postgres(ctx context.Context, _ *rig, s scale) ([]figure, error) {
	const workers = 64
	url := os.Getenv(postgresEnv)
	if url == "" {
		return nil, nil
	}
	progress("PostgreSQL: %d workers, %d tasks", workers, s.cycles)
	var rates []float64
	for range s.rounds {
		rate, err := skipLocked(ctx, url, workers, s.cycles)
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL of %s: %w", postgresEnv, err)
		}
		rates = append(rates, rate)
	}
	return []figure{measured("postgres_skip_locked_64", median(rates), "1/s")}, nil
}

// skipLocked claims and completes n tasks and returns how many a second.
func skipLocked(ctx context.Context, url string, workers, n int) (float64, error) {
	owner, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer owner.Close(ctx) //nolint:errcheck // everything was answered
	const table = "agentteam_bench_tasks"
	_, err = owner.Exec(ctx, `DROP TABLE IF EXISTS `+table+`;
		CREATE TABLE `+table+` (id bigserial PRIMARY KEY, title text, description text, status text NOT NULL DEFAULT 'pending',
			priority int NOT NULL DEFAULT 0, assignee text, result text, updated_at timestamptz NOT NULL DEFAULT now());
		CREATE INDEX ON `+table+` (priority DESC, id) WHERE status = 'pending'`)
	if err != nil {
		return 0, err
	}
	defer owner.Exec(ctx, `DROP TABLE `+table) //nolint:errcheck // the next run drops it first
	if _, err := owner.Exec(ctx, `INSERT INTO `+table+` (title, description) SELECT $1, $2 FROM generate_series(1, $3)`,
		newTask.Title, newTask.Description, n); err != nil {
		return 0, err
	}
	conns := make([]*pgx.Conn, workers)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, url); err != nil {
			return 0, err
		}
		defer conns[i].Close(ctx) //nolint:errcheck // as above
	}
	g, gctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for i, c := range conns {
		g.Go(func() error {
			who := fmt.Sprint("coder-", i)
			for {
				var id int64
				err := c.QueryRow(gctx, `UPDATE `+table+` SET status = 'in_progress', assignee = $1, updated_at = now() WHERE id =
					(SELECT id FROM `+table+` WHERE status = 'pending' ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id`, who).Scan(&id)
				if errors.Is(err, pgx.ErrNoRows) {
					return nil
				}
				if err == nil {
					_, err = c.Exec(gctx, `UPDATE `+table+` SET status = 'completed', result = 'done', updated_at = now() WHERE id = $1 AND assignee = $2`, id, who)
				}
				if err != nil {
					return err
				}
			}
		})
	}
	err = g.Wait()
	return float64(n) / time.Since(begun).Seconds(), err
}
