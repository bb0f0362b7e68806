package spawn_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// A lost member comes back once, whoever brings it back.
func TestRespawn(t *testing.T) {
	s := newSite(t)
	s.standby(s.join)
	m, err := s.spawner().Spawn(t.Context(), coder, 10)
	if err != nil {
		t.Fatal(err)
	}
	s.standby(s.join)
	s.standby(s.join)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.spawner().Respawn(t.Context(), m) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || team.CodeOf(errors.Join(errs...)) != team.Conflict {
		t.Errorf("two respawns: %v", errs)
	}
	if now, err := s.roster.Get(t.Context(), m.AgentID); err != nil || now.Incarnation != 2 || now.State != team.Joined {
		t.Errorf("after it: %+v, %v", now, err)
	}
}

// A respawn that finds no process leaves the member lost, for another try, with the
// reason; the next one finds a process.
func TestRespawnFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m, err := s.roster.Create(t.Context(), coder, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.spawner().Respawn(t.Context(), m); team.CodeOf(err) != team.Unavailable {
		t.Errorf("without a standby: %v, want unavailable", err)
	}
	lost, err := s.roster.Get(t.Context(), m.AgentID)
	if err != nil || lost.State != team.Lost || lost.Incarnation != 2 || lost.LastError == "" {
		t.Errorf("after it: %+v, %v; want incarnation 2, lost, with the reason", lost, err)
	}
	s.standby(s.join)
	if m, err := s.spawner().Respawn(t.Context(), lost); err != nil || m.State != team.Joined || m.Incarnation != 3 {
		t.Errorf("the next try: %+v, %v", m, err)
	}
}

// A member whose process was started by hand while a respawn looked for one in vain is not lost.
func TestRespawnMeetsProcess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m, err := s.roster.Create(t.Context(), coder, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	s.standby(func(control.Order) error {
		m, err := s.roster.Get(t.Context(), m.AgentID)
		if err != nil {
			return err
		}
		m.State = team.Joined
		if _, err := s.roster.Put(t.Context(), m); err != nil {
			return err
		}
		return team.Errorf(team.Conflict, "it is taken")
	})
	if _, err := s.spawner().Respawn(t.Context(), m); err == nil {
		t.Error("Respawn = nil, though nothing was heard of it")
	}
	if now, err := s.roster.Get(t.Context(), m.AgentID); err != nil || now.State != team.Joined || now.Incarnation != 2 {
		t.Errorf("after it: %+v, %v; want it joined", now, err)
	}
}

// A respawn whose caller stops, as a leader that is deposed, leaves the record to
// the caller's successor.
func TestRespawnAbandoned(t *testing.T) {
	s := newSite(t)
	m, err := s.roster.Create(t.Context(), coder, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.standby(func(o control.Order) error {
		cancel()
		return team.Errorf(team.Busy, "not now")
	})
	if _, err := s.spawner().Respawn(ctx, m); err == nil {
		t.Error("Respawn = nil")
	}
	if now, err := s.roster.Get(t.Context(), m.AgentID); err != nil || now.State != team.Created || now.Incarnation != 2 {
		t.Errorf("after it: %+v, %v; want it created", now, err)
	}
}
