package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

const (
	quiets   = 20
	idleGoal = 0.3 // s
)

// idle measures how long a leader waits to be told that all are idle: from when the last
// task was completed until the notice is stored. The member has to end its turn first, which
// takes a call of its model; the one here answers at once. There is no raw figure:
// JetStream alone has no agents.
func idle(ctx context.Context, r *rig) (all []figure, err error) {
	progress("all idle: %d times", quiets)
	w, err := startWorks()
	if err != nil {
		return nil, err
	}
	defer w.close()
	const id = "idle"
	a, err := startApart(ctx, r, w, id, 1)
	defer a.close()
	if err != nil {
		return nil, err
	}
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	notices, nerr := arrivals(conn, subject.Inbox(id, team.Leader, team.Watchdog))
	tasks, terr := arrivals(conn, "$KV."+subject.Bucket(id)+"."+subject.KeyTask("*"))
	if err := errors.Join(nerr, terr); err != nil {
		return nil, err
	}
	if err := conn.Flush(ctx); err != nil {
		return nil, err
	}
	if err := a.rested(ctx); err != nil {
		return nil, err
	}
	var took []float64 // s
	for n := range quiets {
		// The next task comes before the leader is told again and again, which ends a goal.
		added, _, err := a.team.Board().Add(ctx, "", team.NewTask{Title: soonDone, Role: "coder"})
		if err != nil {
			return nil, err
		}
		if n == 0 {
			if _, err := a.team.Goals().Start(ctx, "wait", ""); err != nil {
				return nil, err
			}
		}
		completed, err := arrived(ctx, tasks, func(m arrival) bool {
			var t team.Task
			return json.Unmarshal(m.data, &t) == nil && t.ID == added[0].ID && t.Status == team.Completed
		})
		if err != nil {
			return nil, fmt.Errorf("%s is not completed: %w", added[0].ID, err)
		}
		told, err := arrived(ctx, notices, func(m arrival) bool { return m.at.After(completed.at) })
		if err != nil {
			return nil, fmt.Errorf("the leader is not told that all are idle: %w", err)
		}
		took = append(took, told.at.Sub(completed.at).Seconds())
	}
	return []figure{measured("completed_to_all_idle_p50", median(took), "s").atMost(idleGoal), measured("completed_to_all_idle_max", quantile(took, 1), "s")}, nil
}

// arrival is a message and when it came here.
type arrival struct {
	data []byte
	at   time.Time
}

// arrivals are the messages on a subject as they are stored.
func arrivals(conn *broker.Conn, subj string) (<-chan arrival, error) {
	all := make(chan arrival, 1000) // many more than come while nobody reads
	_, err := conn.NATS().Subscribe(subj, func(m *nats.Msg) { all <- arrival{m.Data, time.Now()} })
	return all, err
}

// arrived returns the next one that is wanted.
func arrived(ctx context.Context, all <-chan arrival, wanted func(arrival) bool) (arrival, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		select {
		case m := <-all:
			if wanted(m) {
				return m, nil
			}
		case <-ctx.Done():
			return arrival{}, context.Cause(ctx)
		}
	}
}
