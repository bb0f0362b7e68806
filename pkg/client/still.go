package client

import (
	"context"
	"slices"
	"sync"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// stills caches the status of idle teams without work. It is valid until a write to their bucket or
// their mail: no member is asked until then, and nothing else is read.
type stills struct {
	mu sync.Mutex
	of map[team.TeamID]still
}

// still is the cached status of one team.
type still struct {
	storage *broker.Storage
	of      uint64 // revision of its record, as the registry has it
	at      mark
	status  TeamStatus
}

// mark is the state of the streams from which an idle team's status is read.
type mark struct{ bucket, messages broker.State }

func (m mark) same(o mark) bool {
	same := func(a, b broker.State) bool {
		return a.Last == b.Last && a.Count == b.Count && a.Created.Equal(b.Created)
	}
	return same(m.bucket, o.bucket) && same(m.messages, o.messages)
}

func markOf(ctx context.Context, s *broker.Storage) (m mark, err error) {
	if m.bucket, err = s.Bucket.State(ctx); err == nil {
		m.messages, err = s.Messages.State(ctx)
	}
	return m, err
}

// poll returns the cached status of a team if nothing has changed since.
func (s *stills) poll(ctx context.Context, sm team.Small) (TeamStatus, bool) {
	s.mu.Lock()
	known, ok := s.of[sm.ID]
	s.mu.Unlock()
	if !ok || known.of != sm.Of {
		return TeamStatus{}, false
	}
	now, err := markOf(ctx, known.storage)
	return known.status, err == nil && now.same(known.at)
}

// keep caches the status of a team, unless it may change without a write. The mark is from before
// the status was read.
func (s *stills) keep(sm team.Small, storage *broker.Storage, at mark, is TeamStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[team.TeamID]still{}
	}
	delete(s.of, sm.ID)
	moves := is.Status == team.Active && is.Goal != "" || is.Work != nil || is.Parked != nil || is.Silent != nil || is.Storage != ""
	for state := range is.Members {
		moves = moves || state != team.Idle
	}
	if !moves {
		s.of[sm.ID] = still{storage, sm.Of, at, is}
	}
}

// forget removes teams that no longer exist.
func (s *stills) forget(there []team.Small) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.of {
		if !slices.ContainsFunc(there, func(sm team.Small) bool { return sm.ID == id }) {
			delete(s.of, id)
		}
	}
}
