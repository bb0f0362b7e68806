package agent

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// An idle agent that hears no leader gets no offers, so it looks for work on its own, at most 10 s
// after the leader's last heartbeat. That leaves a second for reading the board and claiming.
const (
	leaderSilent = 6 * time.Second // three missing heartbeats of the leader
	pollAgain    = 3 * time.Second // from the end of one look to the next
	pollJitter   = 3 * time.Second // at most, in addition to either: idle agents must not all read the board at the same time
	pollWithin   = time.Minute     // for one look; the largest boards take seconds
)

// poller computes when an agent looks for work on its own.
type poller struct {
	looked time.Time     // end of the last look
	jitter time.Duration // drawn again for each look
}

func newPoller() poller { return poller{jitter: rand.N(pollJitter)} }

// due returns when to look next, if the leader was last heard at heard.
func (l poller) due(heard time.Time) time.Time {
	at := heard.Add(leaderSilent)
	if again := l.looked.Add(pollAgain); again.After(at) {
		at = again
	}
	return at.Add(l.jitter)
}

// poll looks for work each time that is due, in parallel to other waits, until it has found a task.
// stop ends that and must be called.
func (a *Agent) poll(ctx context.Context) (found <-chan team.TaskID, stop func()) {
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
			attempt, cancel := context.WithTimeout(ctx, pollWithin)
			id, ok := a.o.Team.Claimable(attempt)
			cancel()
			if ctx.Err() != nil {
				return // an interrupted look is still due
			}
			if ok {
				select {
				case <-ctx.Done():
					return // so is a look whose result was not taken
				case task <- id:
				}
			}
			a.poller = poller{time.Now(), rand.N(pollJitter)}
			if ok {
				return
			}
		}
	})
	return task, func() { cancel(); looking.Wait() }
}
