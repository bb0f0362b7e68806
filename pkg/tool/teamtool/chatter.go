package teamtool

import (
	"slices"
	"sync"
	"time"

	"agentteam/pkg/team"
)

// How many messages one agent may send in a minute. A turn of a model takes seconds, so
// nobody who reads before answering comes near 20 to one receiver; two agents that thank each
// other without end do. A broadcast wakes everybody, so it costs as many turns as there are
// members.
const (
	maxToOne = 20
	maxToAll = 5
	window   = time.Minute
)

// chatter counts what an agent has sent in the last minute, by receiver, so that a loop of
// two that talk to each other ends up waiting. What it knows goes with the process. Safe
// for concurrent use; the zero value has counted nothing.
type chatter struct {
	mu   sync.Mutex
	sent map[team.AgentID][]time.Time
}

// count takes in a message that is about to be sent. Error: Busy, and then it is not
// counted and must not be sent.
func (c *chatter) count(to team.AgentID, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := slices.DeleteFunc(c.sent[to], func(at time.Time) bool { return now.Sub(at) >= window })
	if c.sent == nil {
		c.sent = map[team.AgentID][]time.Time{}
	}
	most, what := maxToOne, "messages to "+string(to)
	if to == team.Everyone {
		most, what = maxToAll, "broadcasts"
	}
	if c.sent[to] = recent; len(recent) >= most {
		return team.Errorf(team.Busy, "you sent %d %s in the last minute, which is the most", len(recent), what).
			WithHint("put what is left to say into one message, and send it in %v; if nothing is, end your turn", window-now.Sub(recent[0]).Truncate(time.Second))
	}
	c.sent[to] = append(recent, now)
	return nil
}
