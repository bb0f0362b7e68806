package roster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// listen returns the beats of the team as they come.
func listen(t *testing.T, r *roster.Roster) <-chan team.Heartbeat {
	t.Helper()
	beats := make(chan team.Heartbeat, 100)
	stop, err := r.Listen(team.Everyone, func(b team.Heartbeat) { beats <- b })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return beats
}

// A change of state is told at once; one of no interest waits for the next beat.
func TestHeartTellsChanges(t *testing.T) {
	r, _ := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	beats := listen(t, r)
	h := roster.NewHeart(r, m, team.DefaultLease)
	for i, change := range []func(*team.Heartbeat){
		func(b *team.Heartbeat) { b.State = team.Idle },
		func(b *team.Heartbeat) { b.Unseen = true },
		func(b *team.Heartbeat) { b.Task, b.State = "T-001", team.WaitingAnswer },
	} {
		h.Set(func(b *team.Heartbeat) { b.Turn++ })
		h.Set(change)
		b := brokertest.Receive(t, "the heart beats", beats)
		if b.AgentID != m.AgentID || b.Incarnation != 1 || b.N != uint64(i+1) || b.Turn != uint64(i+1) || b.Role != "coder" {
			t.Errorf("beat %d is %+v", i+1, b)
		}
	}
	if b := h.Now(); b.N != 4 || b.Task != "T-001" {
		t.Errorf("answer to a ping: %+v", b)
	}
}

// A beat tells what was not stored of its own process's writes, not what others say of theirs:
// two that repeated each other would never end.
func TestHeartTellsOfStorage(t *testing.T) {
	r, bt := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	bt.Conn.Reported("nothing is stored")
	if err := bt.Conn.Stores(t.Context()); err == nil || err.Error() != "nothing is stored" {
		t.Errorf("Stores: %v", err)
	}
	for _, who := range []team.AgentID{team.Leader, m.AgentID} {
		if b := roster.NewHeart(r, team.Member{AgentID: who, Incarnation: 1}, team.DefaultLease).Now(); b.Storage != "" {
			t.Errorf("%s says of the storage %q", who, b.Storage)
		}
	}
}

// A heart stops for good once its record says stopped or bears a later incarnation.
func TestHeartSuperseded(t *testing.T) {
	const lease = 60 * time.Millisecond
	for name, end := range map[string]func(*testing.T, *roster.Roster, team.Member){
		"stopped": func(t *testing.T, r *roster.Roster, m team.Member) { leave(t, r, m) },
		"replaced": func(t *testing.T, r *roster.Roster, m team.Member) {
			m.Incarnation++
			if _, err := r.Put(t.Context(), m); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := open(t)
			m := create(t, r, team.Member{Role: "coder"})
			beats := listen(t, r)
			done := make(chan error, 1)
			go func() { done <- roster.NewHeart(r, m, lease).Run(t.Context()) }()
			brokertest.Receive(t, "the heart beats", beats)
			end(t, r, m)
			if err := brokertest.Receive(t, "the heart stops", done); !errors.Is(err, team.ErrSuperseded) {
				t.Errorf("Run = %v, want team.ErrSuperseded", err)
			}
		})
	}
}

// Who was taken for lost and is not replaced is a member again once it is heard.
func TestHeartOfTheLost(t *testing.T) {
	r, bt := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	beats := listen(t, r)
	go func() { _ = roster.NewHeart(r, m, 60*time.Millisecond).Run(t.Context()) }()
	brokertest.Receive(t, "the heart beats", beats)
	back := make(chan struct{})
	go func() {
		_ = bt.Bucket.Watch(t.Context(), func(e broker.Entry) error {
			if now, err := roster.Decode(e); err == nil && now.Revision > m.Revision && now.State == team.Joined && now.LastError == "" {
				close(back)
				return context.Canceled
			}
			return nil
		}, nil, subject.KeyMember(m.AgentID))
	}()
	if err := r.Lose(t.Context(), m.AgentID, m.Incarnation, "was not heard"); err != nil {
		t.Fatal(err)
	}
	brokertest.Receive(t, "the member has joined again", back)
}

// A member that has come back well is as good as new, whoever leads and however often the
// leader changed: it counts its time itself, and writes once.
func TestLossesAreForgotten(t *testing.T) {
	r, _ := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	m.State, m.Losses = team.Joined, 4
	m, err := r.Put(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		lived    time.Duration
		losses   int
		revision uint64
	}{{roster.Steady - 1, 4, m.Revision}, {roster.Steady, 0, m.Revision + 1}, {time.Hour, 0, m.Revision + 1}} {
		if err := r.Lives(t.Context(), m.AgentID, m.Incarnation, tt.lived); err != nil {
			t.Fatal(err)
		}
		if now, err := r.Get(t.Context(), m.AgentID); err != nil || now.Losses != tt.losses || now.Revision != tt.revision || now.State != team.Joined {
			t.Errorf("after %v: %+v, %v", tt.lived, now, err)
		}
	}
}

func TestHeartStops(t *testing.T) {
	r, _ := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	beats := listen(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- roster.NewHeart(r, m, team.DefaultLease).Run(ctx) }()
	brokertest.Receive(t, "the heart beats", beats) // the first one at once
	cancel()
	if err := brokertest.Receive(t, "the heart stops", done); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// A beat counts only under its agent's own subject.
func TestListenRefusesForgery(t *testing.T) {
	r, bt := open(t)
	beats := listen(t, r)
	nc := bt.Conn.NATS()
	for _, m := range []struct{ subject, data string }{
		{subject.Heartbeat("t", "coder-2"), `{"agent_id":"coder-1","n":7}`},
		{subject.Heartbeat("t", "coder-1"), `nonsense`},
		{subject.Heartbeat("t", "coder-1"), `{"agent_id":"coder-1","n":8}`},
	} {
		if err := nc.Publish(m.subject, []byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	if b := brokertest.Receive(t, "the beat is heard", beats); b.N != 8 {
		t.Errorf("heard %+v, want the third one only", b)
	}
}

func TestPulse(t *testing.T) {
	p := roster.NewPulse()
	beat := func(incarnation, n uint64, s team.MemberState) team.Heartbeat {
		return team.Heartbeat{AgentID: "coder-1", Incarnation: incarnation, N: n, State: s}
	}
	for _, tt := range []struct {
		b    team.Heartbeat
		news bool
	}{
		{beat(1, 5, team.Running), true},
		{beat(1, 5, team.Running), false},
		{beat(1, 4, team.Idle), false}, // late
		{beat(1, 6, team.Idle), true},
		{beat(2, 1, team.Running), true},
		{beat(99, 1, team.Idle), true}, // whose that is, others know
		{beat(2, 2, team.Running), true},
	} {
		if p.Hear(tt.b) != tt.news {
			t.Errorf("beat %d of incarnation %d is news: %v, want %v", tt.b.N, tt.b.Incarnation, !tt.news, tt.news)
		}
	}
	if h, ok := p.Of("coder-1"); !ok || h.Incarnation != 2 || h.Heartbeat.State != team.Running || len(p.Last()) != 1 {
		t.Errorf("last heard: %+v", p.Last())
	}
	if _, ok := p.Of("nobody"); ok {
		t.Error("nobody was heard")
	}
}

func TestHeardState(t *testing.T) {
	const lease = 10 * time.Second
	at := time.Unix(1000, 0)
	of := team.Team{LeaseSeconds: int(lease / time.Second)}
	h := roster.Heard{Heartbeat: team.Heartbeat{AgentID: "coder-1", Incarnation: 2, State: team.Idle}, At: at}
	hangs := roster.Heard{Heartbeat: team.Heartbeat{AgentID: "coder-1", Incarnation: 2, State: team.Running, Still: int(team.DefaultStall / time.Second)}, At: at}
	for name, tt := range map[string]struct {
		h    roster.Heard
		m    team.Member
		now  time.Time
		want team.MemberState
	}{
		"heard":                      {h, team.Member{State: team.Joined, Incarnation: 2}, at.Add(lease - 1), team.Idle},
		"silent for the lease":       {h, team.Member{State: team.Joined, Incarnation: 2}, at.Add(lease), team.Lost},
		"heard its predecessor":      {h, team.Member{State: team.Joined, Incarnation: 3}, at, team.Lost},
		"stopped":                    {h, team.Member{State: team.Stopped, Incarnation: 2}, at, team.Stopped},
		"being started":              {h, team.Member{State: team.Created, Incarnation: 3}, at, team.Created},
		"a seat, silent forever":     {h, team.Member{State: team.Joined, Backend: team.Person}, at.Add(time.Hour), team.Joined},
		"no progress":                {hangs, team.Member{State: team.Joined, Incarnation: 2}, at, team.Stalled},
		"no progress, and no beat":   {hangs, team.Member{State: team.Joined, Incarnation: 2}, at.Add(lease), team.Lost},
		"no progress of another one": {hangs, team.Member{State: team.Joined, Incarnation: 3}, at, team.Lost},
	} {
		if got := tt.h.State(tt.m, of, tt.now); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
