package agent

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/team"
)

// promised is within how long of the leader's last beat an idle agent has looked.
const promised = 10 * time.Second

func TestLookoutDue(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		looked, jitter, want time.Duration // since the leader was last heard
	}{
		"never looked":             {-time.Hour, 0, leaderSilent},
		"with jitter":              {-time.Hour, time.Second, leaderSilent + time.Second},
		"looked a moment ago":      {20 * time.Second, 0, 20*time.Second + pollAgain},
		"again, with jitter":       {20 * time.Second, time.Second, 21*time.Second + pollAgain},
		"looked, then heard one":   {-time.Second, 0, leaderSilent},
		"heard one while it looks": {pollAgain, pollJitter, leaderSilent + pollJitter},
	} {
		t.Run(name, func(t *testing.T) {
			l := poller{looked: start.Add(tt.looked), jitter: tt.jitter}
			if got := l.due(start).Sub(start); got != tt.want {
				t.Errorf("due %v after the leader's last beat, want %v", got, tt.want)
			}
		})
	}
}

// A crowd of idle agents does not look in one moment, and nobody of it too late.
func TestLookoutSpreads(t *testing.T) {
	var due []time.Duration
	start := time.Now()
	for range 50 {
		due = append(due, newPoller().due(start).Sub(start))
	}
	slices.Sort(due)
	if first, last := due[0], due[len(due)-1]; first < leaderSilent || last > promised-time.Second || last-first < time.Second {
		t.Errorf("50 agents look from %v to %v after the leader's last beat", first, last)
	}
}

// leader makes the rig hear one that beats until it dies.
func (r *rig) leader() (die func()) {
	var dead atomic.Bool
	var heard atomic.Pointer[time.Time]
	beat := func() {
		now := time.Now()
		heard.Store(&now)
	}
	beat()
	go func() {
		for !dead.Load() {
			time.Sleep(2 * time.Second)
			if !dead.Load() {
				beat()
			}
		}
	}()
	r.team.heard = func() time.Time { return *heard.Load() }
	return func() { dead.Store(true) }
}

// With no leader heard, an idle agent looks for work by itself, in time, and goes on
// looking until there is some.
func TestLooksByItself(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		looks := make(chan time.Time, 100)
		var claimable atomic.Bool
		r.team.look = func(context.Context) (team.TaskID, bool) {
			looks <- time.Now()
			return "T-001", claimable.Load()
		}
		die := r.leader()
		r.says("a", "b")
		r.start()
		r.pass(time.Minute)
		if len(looks) > 0 {
			t.Fatalf("it looked %d times while it heard its leader", len(looks))
		}
		die()
		last := r.team.heard()
		r.pass(time.Minute)
		if first := (<-looks).Sub(last); first < leaderSilent || first >= promised {
			t.Errorf("it looked first %v after the leader's last beat", first)
		}
		if n := len(looks); n < 7 || n > 19 {
			t.Errorf("it looked %d times more in the minute", n)
		}
		r.wantKinds("start")
		claimable.Store(true)
		r.pass(pollAgain + pollJitter)
		claimable.Store(false)
		if !strings.HasPrefix(r.kinds(), "start task turn") {
			t.Errorf("no task was claimed: %s", r.kinds())
		}
	})
}

// What comes while it looks does not wait for that, and the look is made up for.
func TestLookHoldsNothingUp(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var looks atomic.Int32
		r.team.look = func(ctx context.Context) (team.TaskID, bool) {
			looks.Add(1)
			<-ctx.Done() // the board cannot be read
			return "", false
		}
		r.says("done")
		r.start()
		r.pass(promised)
		if looks.Load() != 1 {
			t.Fatalf("%d looks", looks.Load())
		}
		r.post(1, team.UserAgent, team.MsgUser, "go")
		r.wantKinds("start mail turn end")
		if looks.Load() != 2 {
			t.Errorf("idle again, it has begun %d looks", looks.Load())
		}
		r.offer()
		if !strings.HasPrefix(r.kinds(), "start mail turn end task") {
			t.Errorf("the offer was not taken: %s", r.kinds())
		}
	})
}

// One that has work, and waits with it for an answer, looks for no other.
func TestNoLookWhileItWaits(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var looks atomic.Int32
		r.team.look = func(context.Context) (team.TaskID, bool) { looks.Add(1); return "", false }
		r.awaits("coder-2")
		r.says("!ask", "I wait")
		r.start()
		r.offer()
		r.wantStates(team.Idle, team.Running, team.WaitingAnswer)
		r.pass(time.Minute)
		synctest.Wait()
		if looks.Load() != 0 {
			t.Errorf("it looked %d times", looks.Load())
		}
	})
}
