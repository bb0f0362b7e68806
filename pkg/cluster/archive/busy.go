package archive

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/election"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// Bounds of the wait for a member's process, and of the time that a leader's lease is watched for a
// change in addition to a third of the lease.
const (
	answerWait  = 2 * time.Second
	renewalRoom = time.Second
)

// busy returns Conflict if the team is worked for, with the workers: a member that answers, a
// person with a task, or, with leading, the process that leads it. A member that is only about to
// begin finds the mark.
func (s *Store) busy(ctx context.Context, bt *broker.Storage, leading bool) error {
	members, err := roster.New(bt).List(ctx)
	if err != nil {
		return err
	}
	tasks, err := board.New(bt.Bucket, board.Options{}).All(ctx)
	if err != nil {
		return err
	}
	who := alive(ctx, bt, members)
	for _, t := range tasks {
		is := func(m team.Member) bool { return m.AgentID == t.Assignee && m.Backend == team.Person }
		if t.Status == team.InProgress && slices.ContainsFunc(members, is) {
			who = append(who, fmt.Sprintf("%s (has %s)", t.Assignee, t.ID))
		}
	}
	if len(who) == 0 && leading {
		leads, err := s.leads(ctx, bt.ID)
		if err != nil {
			return err
		}
		if leads != "" {
			who = append(who, "process "+leads+", which leads it")
		}
	}
	if len(who) == 0 {
		return nil
	}
	slices.Sort(who)
	return team.Errorf(team.Conflict, "team %s is at work: %s", bt.ID, strings.Join(who, ", ")).
		WithHint("`teamctl stop --team %s` ends that; --copy saves it as it is, and it continues here", bt.ID)
}

// alive returns the members whose processes answer.
func alive(ctx context.Context, bt *broker.Storage, members []team.Member) (who []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range members {
		if m.State == team.Stopped || m.Backend == team.Person || m.State == team.Unreadable {
			continue
		}
		wg.Go(func() {
			if b, err := control.Ping(ctx, bt, m.AgentID, answerWait); err == nil {
				mu.Lock()
				defer mu.Unlock()
				who = append(who, fmt.Sprintf("%s (%s)", m.AgentID, b.State))
			}
		})
	}
	wg.Wait()
	return who
}

// leads returns the process that renews its lease on the team; "" if there is none. The lease of a
// killed process remains, so it is watched for some time.
func (s *Store) leads(ctx context.Context, id team.TeamID) (process string, err error) {
	first, ok, err := election.Holder(ctx, s.registry.Bucket(), id)
	if err != nil || !ok {
		return "", err
	}
	wait := election.LeaseOn(s.registry.Bucket().Replicas())/3 + renewalRoom
	for end := time.After(wait); ; {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-end:
			return "", nil
		case <-time.After(wait / 20):
		}
		switch now, ok, err := election.Holder(ctx, s.registry.Bucket(), id); {
		case err != nil || !ok:
			return "", err
		case now != first:
			return now.Process, nil
		}
	}
}
