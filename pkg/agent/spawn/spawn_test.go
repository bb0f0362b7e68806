package spawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// site is a team with standbys that join as package teammate does.
type site struct {
	t      *testing.T
	team   *broker.Storage
	roster *roster.Roster

	mu     sync.Mutex
	joined []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	bt := brokertest.Team(t, "t")
	return &site{t: t, team: bt, roster: roster.New(bt)}
}

func (s *site) spawner() *spawn.Spawner {
	return spawn.New(spawn.Options{Team: s.team, Roster: s.roster})
}

// standby offers a process with these model aliases that takes one order with f.
func (s *site) standby(f func(o control.Order) error, aliases ...string) {
	s.t.Helper()
	conn := s.team.Conn
	var once sync.Once
	stop, err := control.ServePool(s.t.Context(), conn, aliases, func(_ context.Context, o control.Order) error {
		err := error(team.Errorf(team.Busy, "this standby was just taken"))
		once.Do(func() { err = f(o) })
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(stop)
	if err := conn.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// join takes the record and beats.
func (s *site) join(o control.Order) error {
	ctx := s.t.Context()
	m, err := s.roster.Get(ctx, o.Agent)
	if err == nil && (m.State != team.Created || m.Incarnation != o.Incarnation) {
		err = team.Errorf(team.Conflict, "%s is %s", o.Agent, m.State)
	}
	if err == nil {
		m.State = team.Joined
		m, err = s.roster.Put(ctx, m)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.joined = append(s.joined, fmt.Sprintf("%s/%d", m.AgentID, m.Incarnation))
	s.mu.Unlock()
	roster.NewHeart(s.roster, m, team.DefaultLease).Set(func(b *team.Heartbeat) { b.State = team.Idle })
	return nil
}

// gone sees that the member is stopped and that its record says why.
func (s *site) gone(a team.AgentID) {
	s.t.Helper()
	if m, err := s.roster.Get(s.t.Context(), a); err != nil || m.State != team.Stopped || m.LastError == "" {
		s.t.Errorf("%s is %+v, %v; want it stopped, with the reason", a, m, err)
	}
}

var coder = team.Member{Role: "coder", Prompt: "请小心 🚀"}

func TestSpawnFromPool(t *testing.T) {
	s := newSite(t)
	s.standby(s.join)
	s.standby(s.join)
	for i := range 2 {
		m, err := s.spawner().Spawn(t.Context(), coder, 10)
		if want := team.AgentID(fmt.Sprintf("coder-%d", i+1)); err != nil || m.AgentID != want || m.State != team.Joined || m.Backend != team.Pool || m.Prompt != coder.Prompt {
			t.Fatalf("spawned %+v, %v, want %s joined", m, err, want)
		}
	}
	if len(s.joined) != 2 {
		t.Errorf("joined: %v", s.joined)
	}
}

// A member that names a model, itself or by its role, goes to a process that has it.
func TestSpawnWithModel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reg, err := registry.Open(t.Context(), s.team.Conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := reg.Make(t.Context(), team.Team{ID: "t", Roles: map[string]team.Role{
		"coder": {Name: "coder"}, "thinker": {Name: "thinker", Model: "strong"}}}); err != nil {
		t.Fatal(err)
	}
	by := func(process string) func(control.Order) error {
		return func(o control.Order) error {
			m, err := s.roster.Get(t.Context(), o.Agent)
			if err == nil {
				m.Host = process
				_, err = s.roster.Put(t.Context(), m)
			}
			if err == nil {
				err = s.join(o)
			}
			return err
		}
	}
	announce := func(aliases ...string) {
		t.Helper()
		hide, err := control.Announce(s.team.Conn, control.Process{ID: strings.Join(aliases, "+"), Kind: "teammate", Aliases: aliases})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(hide)
	}
	announce("fast")
	announce("fast", "strong")
	wild := strings.Repeat("a ", 1<<16) // no subject could hold it
	for name, tt := range map[string]struct {
		m    team.Member
		want string // process that takes it
	}{
		"its own":           {team.Member{Role: "coder", Model: "strong"}, "strong"},
		"its role's":        {team.Member{Role: "thinker"}, "strong"},
		"not its role's":    {team.Member{Role: "thinker", Model: "fast"}, "fast"},
		"a stranger":        {team.Member{Role: "coder", Model: "opus"}, "fast"},
		"what none can be":  {team.Member{Role: "coder", Model: wild}, "fast"},
		"none":              {team.Member{Role: "coder"}, "fast"},
		"a standby is gone": {team.Member{Role: "coder", Model: "strong"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			own := &site{t: t, team: s.team, roster: s.roster} // its standbys end with this case
			for range 3 {
				own.standby(by("fast"), "fast")
			}
			if tt.want == "strong" { // else the process that has it is a member
				own.standby(by("strong"), "fast", "strong")
			}
			m, err := own.spawner().Spawn(t.Context(), tt.m, 100)
			if tt.want == "" {
				if team.CodeOf(err) != team.Unavailable || !strings.Contains(fmt.Sprint(err), "with the model alias strong") || team.HintOf(err) == "" {
					t.Errorf("Spawn = %+v, %v; want unavailable, which names the alias", m, err)
				}
				return
			}
			if err != nil || m.Host != tt.want {
				t.Errorf("taken by %q, %v; want %s", m.Host, err, tt.want)
			}
		})
	}
}

// Of many standbys and many orders, each member is taken once.
func TestSpawnTogether(t *testing.T) {
	s := newSite(t)
	const n = 6
	for range n {
		s.standby(s.join)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := s.spawner().Spawn(t.Context(), coder, 100); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, who := range s.joined {
		if seen[who] {
			t.Errorf("%s was taken twice", who)
		}
		seen[who] = true
	}
	if len(seen) != n {
		t.Errorf("joined: %v", s.joined)
	}
}

func TestNoStandby(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.spawner().Spawn(t.Context(), coder, 10)
	if team.CodeOf(err) != team.Unavailable || team.HintOf(err) == "" {
		t.Errorf("Spawn = %v (%s), hint %q", err, team.CodeOf(err), team.HintOf(err))
	}
	s.gone("coder-1")
}

func TestSpawnRefused(t *testing.T) {
	s := newSite(t)
	s.standby(s.join)
	if _, err := s.spawner().Spawn(t.Context(), coder, 0); team.CodeOf(err) != team.InvalidState {
		t.Errorf("past the limit: %v, want invalid_state", err)
	}
	named := coder
	named.AgentID = "bob"
	if _, err := s.spawner().Spawn(t.Context(), named, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.spawner().Spawn(t.Context(), named, 10); team.CodeOf(err) != team.Conflict {
		t.Errorf("a name that is there: %v, want conflict", err)
	}
}

// While no process has taken a member, its record names the cluster of the spawner, and
// nothing of the process that it had.
func TestCreatedNamesItsSpawner(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var seen []team.Member
	spawner := spawn.New(spawn.Options{Team: s.team, Roster: s.roster, Cluster: "now", Exec: func(ctx context.Context, o control.Order) error {
		m, err := s.roster.Get(ctx, o.Agent)
		if seen = append(seen, m); err == nil {
			err = s.join(o)
		}
		return err
	}})
	m, err := spawner.Spawn(t.Context(), coder, 10)
	if err != nil {
		t.Fatal(err)
	}
	m.Cluster, m.Host, m.PID = "before", "here", 7
	if _, err := spawner.Respawn(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, m := range seen {
		if m.State != team.Created || m.Cluster != "now" || m.Host != "" || m.PID != 0 {
			t.Errorf("while it was created the record was %+v", m)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d orders, want 2", len(seen))
	}
}

// A standby that confines less refuses: another takes the member, or a child process does; where there is
// none its reason is the error.
func TestConfinesLess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	weak := func(_ context.Context, o control.Order) error {
		if o.Sandbox != team.Bubblewrap {
			t.Errorf("the order asks for the sandbox %q", o.Sandbox)
		}
		return team.Errorf(team.PermissionDenied, "commands there have the sandbox none").WithHint("start it with auto")
	}
	stop, err := control.ServePool(t.Context(), s.team.Conn, nil, weak)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := s.team.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := spawn.Options{Team: s.team, Roster: s.roster, Level: func(context.Context, team.Team) team.Sandbox { return team.Bubblewrap }}
	_, err = spawn.New(o).Spawn(t.Context(), coder, 10)
	if !errors.Is(err, team.PermissionDenied) || team.HintOf(err) != "start it with auto" {
		t.Errorf("with no other process: %v (%s)", err, team.HintOf(err))
	}
	s.gone("coder-1")
	s.standby(s.join)
	if _, err := spawn.New(o).Spawn(t.Context(), coder, 10); err != nil {
		t.Errorf("beside another standby: %v", err)
	}
	o.Exec = func(_ context.Context, o control.Order) error { return s.join(o) }
	if _, err := spawn.New(o).Spawn(t.Context(), coder, 10); err != nil {
		t.Errorf("with a child process: %v", err)
	}
}

// A standby that has not answered may be about to join: that others refuse is no reason to give up before.
func TestConfinesLessBesideSilent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var orders atomic.Int64
	late := make(chan struct{})
	stop, err := control.ServePool(t.Context(), s.team.Conn, nil, func(ctx context.Context, o control.Order) error {
		switch orders.Add(1) {
		case 1:
			select {
			case <-late:
				return s.join(o)
			case <-ctx.Done():
				return ctx.Err()
			}
		case 30: // with 50 ms between orders that is later than a spawn waits for another standby
			close(late)
		}
		return team.Errorf(team.PermissionDenied, "commands there have the sandbox none")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := s.team.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := s.spawner().Spawn(t.Context(), coder, 10); err != nil || m.State != team.Joined {
		t.Errorf("spawned %+v, %v", m, err)
	}
}

// Without a standby the process that may start children does.
func TestExec(t *testing.T) {
	s := newSite(t)
	exec := func(_ context.Context, o control.Order) error { return s.join(o) }
	local := spawn.New(spawn.Options{Team: s.team, Roster: s.roster, Exec: exec})
	if m, err := local.Spawn(t.Context(), coder, 10); err != nil || m.AgentID != "coder-1" {
		t.Errorf("spawned %+v, %v", m, err)
	}
	// From elsewhere it is asked of the leader's process.
	stop, err := control.Serve(t.Context(), s.team.Conn, control.Membership{Team: "t", AgentID: team.Leader}, control.Handlers{Start: exec})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if m, err := s.spawner().Spawn(t.Context(), coder, 10); err != nil || m.AgentID != "coder-2" {
		t.Errorf("spawned %+v, %v", m, err)
	}
	broken := spawn.New(spawn.Options{Team: s.team, Roster: s.roster, Exec: func(context.Context, control.Order) error {
		return team.Errorf(team.NotFound, "no such program")
	}})
	if _, err := broken.Spawn(t.Context(), coder, 10); team.CodeOf(err) != team.NotFound {
		t.Errorf("a child that cannot be started: %v", err)
	}
	s.gone("coder-3")
}

// A process that takes the order and is never heard: all is taken back, and the
// process told to go.
func TestNeverUp(t *testing.T) {
	s := newSite(t)
	told := make(chan struct{}, 1)
	stop, err := control.Serve(t.Context(), s.team.Conn, control.Membership{Team: "t", AgentID: "coder-1"}, control.Handlers{
		Stop: func() { told <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	s.standby(func(o control.Order) error {
		m, err := s.roster.Get(ctx, o.Agent)
		if err == nil {
			m.State = team.Joined
			_, err = s.roster.Put(ctx, m)
		}
		time.AfterFunc(0, cancel) // the wait for its beat is over early
		return err
	})
	if _, err := s.spawner().Spawn(ctx, coder, 10); team.CodeOf(err) != team.Unavailable {
		t.Errorf("Spawn = %v, want unavailable", err)
	}
	s.gone("coder-1")
	brokertest.Receive(t, "the process is asked to stop", told)
}

// A beat of another incarnation, as a program may send one by mistake, brings nobody up.
func TestForeignBeat(t *testing.T) {
	s := newSite(t)
	s.standby(func(o control.Order) error {
		future := team.Member{AgentID: o.Agent, Incarnation: o.Incarnation + 98}
		roster.NewHeart(s.roster, future, team.DefaultLease).Set(func(b *team.Heartbeat) { b.State = team.Idle })
		return s.roster.Leave(t.Context(), o.Agent, o.Incarnation, "the workspace is gone")
	})
	if m, err := s.spawner().Spawn(t.Context(), coder, 10); team.CodeOf(err) != team.InvalidState {
		t.Errorf("Spawn = %+v, %v; want invalid_state", m, err)
	}
	s.gone("coder-1")
}

// A spawn whose member is replaced meanwhile ends, and takes nothing from the one that replaced it.
func TestReplacedMeanwhile(t *testing.T) {
	s := newSite(t)
	s.standby(func(o control.Order) error {
		m, err := s.roster.Get(t.Context(), o.Agent)
		if err == nil {
			m.Incarnation++
			m.State = team.Joined
			m, err = s.roster.Put(t.Context(), m)
		}
		roster.NewHeart(s.roster, m, team.DefaultLease).Set(func(b *team.Heartbeat) { b.State = team.Idle })
		return err
	})
	if _, err := s.spawner().Spawn(t.Context(), coder, 10); team.CodeOf(err) != team.Conflict {
		t.Errorf("Spawn = %v, want conflict", err)
	}
	if m, err := s.roster.Get(t.Context(), "coder-1"); err != nil || m.State != team.Joined || m.Incarnation != 2 {
		t.Errorf("it has become %+v, %v", m, err)
	}
}

// A process that takes the order and cannot become the member says why, and whoever
// spawned need not wait for a beat that will not come.
func TestCannotStart(t *testing.T) {
	s := newSite(t)
	s.standby(func(o control.Order) error {
		m, err := s.roster.Get(t.Context(), o.Agent)
		if err == nil {
			m.State, m.Host, m.PID = team.Joined, "here", 4711
			_, err = s.roster.Put(t.Context(), m)
		}
		if err == nil {
			err = s.roster.Leave(t.Context(), o.Agent, o.Incarnation, "the workspace is gone")
		}
		return err
	})
	_, err := s.spawner().Spawn(t.Context(), coder, 10)
	if team.CodeOf(err) != team.InvalidState || !strings.Contains(fmt.Sprint(err), "coder-1 cannot start: the workspace is gone") || !strings.Contains(team.HintOf(err), "pid 4711") {
		t.Errorf("Spawn = %v, hint %q; want invalid_state with the reason", err, team.HintOf(err))
	}
	s.gone("coder-1")
}

// A standby that is slow to answer is waited for, also when nobody else is there to be
// asked, or another standby finds the record taken.
func TestSlowStandby(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]error{
		"alone":          nil,
		"beside another": team.Errorf(team.Conflict, "coder-1 is no longer to be started"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			again := make(chan struct{}, 1000) // the spawner asks elsewhere
			slow, err := s.team.Conn.NATS().QueueSubscribe(subject.Pool, subject.Queue, func(m *nats.Msg) {
				var o control.Order
				if err := json.Unmarshal(m.Data, &o); err != nil {
					t.Error(err)
				}
				<-again
				if other != nil {
					s.standby(func(control.Order) error { return other })
				}
				<-time.After(2 * time.Second) // as long as a spawner waits for a standby to come free
				if err := s.join(o); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := slow.AutoUnsubscribe(1); err != nil {
				t.Fatal(err)
			}
			spawner := spawn.New(spawn.Options{Team: s.team, Roster: s.roster, Exec: func(context.Context, control.Order) error {
				again <- struct{}{}
				return spawn.NoStandby(errors.New("none is started here"))
			}})
			if m, err := spawner.Spawn(t.Context(), coder, 10); err != nil || m.State != team.Joined {
				t.Errorf("Spawn = %+v, %v", m, err)
			}
		})
	}
}

// A role limits its members, and one whose members work in separate trees is not spawned where they
// would share the workspace. Nothing is left of what was refused.
func TestSpawnByRole(t *testing.T) {
	s := newSite(t)
	reg, err := registry.Open(t.Context(), s.team.Conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := reg.Make(t.Context(), team.Team{ID: "t", Branch: &team.GoalBranch{Goal: 1, Why: "it is no git repository"}, Roles: map[string]team.Role{
		"coder": {Name: "coder", Description: "d", MaxInstances: 1, Color: "orange"},
		"apart": {Name: "apart", Description: "d", Policy: team.Policy{Isolation: team.Worktrees}},
	}}); err != nil {
		t.Fatal(err)
	}
	s.standby(s.join)
	if m, err := s.spawner().Spawn(t.Context(), team.Member{Role: "coder"}, 10); err != nil || m.Color != "orange" {
		t.Fatalf("spawned %+v, %v", m, err)
	}
	for role, want := range map[string]string{
		"coder": "1 of role coder are there, the limit of the role is 1 (max_instances)",
		"apart": "role apart works in separate trees only (isolation: worktree), and team t shares its workspace: it is no git repository",
	} {
		if _, err := s.spawner().Spawn(t.Context(), team.Member{Role: role}, 10); team.CodeOf(err) != team.InvalidState || err.Error() != want {
			t.Errorf("%s: %v, want %s", role, err, want)
		}
	}
	if all, err := s.roster.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("members: %+v, %v", all, err)
	}
}
