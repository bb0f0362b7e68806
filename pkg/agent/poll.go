package agent

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// An idle agent that hears no leader is made no offers, so it looks for work by
// itself, at the latest 10 s after the leader's last beat. That leaves a second for
// reading the board and claiming.
const (
	leaderSilent = 6 * time.Second // three beats of the leader that did not come
	lookAgain    = 3 * time.Second // from the end of one look to the next
	lookJitter   = 3 * time.Second // at most, on top of either: not all who are idle are to read the board at once
	lookWithin   = time.Minute     // for one look; the largest boards take seconds
)

// lookout is when an agent looks by itself.
type poller struct {
	looked time.Time     // end of the last look
	jitter time.Duration // drawn anew for each look
}

func newLookout() poller { return poller{jitter: rand.N(lookJitter)} }

// due returns when the next look is to be, if the leader was last heard then.
func (l poller) due(heard time.Time) time.Time {
	at := heard.Add(leaderSilent)
	if again := l.looked.Add(lookAgain); again.After(at) {
		at = again
	}
	return at.Add(l.jitter)
}

// look looks for work each time that is due, beside whatever else the agent waits
// for, until it has found some. stop ends that and must be called.
func (a *Agent) look(ctx context.Context) (found <-chan team.TaskID, stop func()) {
	if a.leads() {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	task := make(chan team.TaskID)
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			rest := time.Until(a.poller.due(a.o.Team.LeaderHeard()))
			if rest > 0 { // the leader may be heard meanwhile
				if !shutdown.Sleep(ctx, rest) {
					return
				}
				continue
			}
			attempt, cancel := context.WithTimeout(ctx, lookWithin)
			id, ok := a.o.Team.Look(attempt)
			cancel()
			if ctx.Err() != nil {
				return // an interrupted look is still due
			}
			if ok {
				select {
				case <-ctx.Done():
					return // so is a look whose result nobody took
				case task <- id:
				}
			}
			a.poller = poller{time.Now(), rand.N(lookJitter)}
			if ok {
				return
			}
		}
	})
	return task, func() { cancel(); looking.Wait() }
}
