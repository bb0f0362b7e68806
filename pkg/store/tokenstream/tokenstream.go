// Package tokenstream streams the output of models to watchers while it is written; nothing
// is stored.
//
// Publishing does not wait: a piece that cannot be sent immediately is lost, and so is a piece
// for which a listener has no room. The whole text is in the feed (package feed) once the
// turn is complete. Package engine cuts the text into pieces.
package tokenstream

import (
	"context"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// The bounds of the backlog of a slow listener, and of a slow connection.
const (
	maxDeltas = 4096
	maxBytes  = 8 << 20
	maxQueued = 64
)

// Publisher publishes the output of the models of one member and its subagents. Safe for concurrent use.
type Publisher struct {
	team  *broker.Storage
	queue chan team.Delta
}

// NewPublisher returns the publisher of an agent and its subagents. It publishes while
// [Publisher.Run] runs.
func NewPublisher(t *broker.Storage) *Publisher {
	return &Publisher{t, make(chan team.Delta, maxQueued)}
}

// Publish queues d for publication, and drops it if the queue is full. It never blocks.
func (p *Publisher) Publish(d team.Delta) {
	select {
	case p.queue <- d:
	default:
	}
}

// Run publishes until ctx ends, then it returns nil.
func (p *Publisher) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-p.queue:
			data, err := codec.Marshal(d)
			if err == nil {
				_ = p.team.Conn.NATS().Publish(subject.Live(p.team.ID, d.AgentID), data) // a listener that missed it reads the whole text
			}
		}
	}
}

// Listen calls f for each chunk of text that models of these agents are writing, or of all if none is named, until ctx
// ends; then it returns nil. f runs on one goroutine. Chunks are lost that f is too slow for, or that are published while
// NATS is away. Errors: Unavailable.
func Listen(ctx context.Context, t *broker.Storage, agents []team.AgentID, f func(team.Delta)) error {
	of := map[team.AgentID]bool{}
	for _, a := range agents {
		of[a] = true
	}
	subj := subject.LiveAll(t.ID)
	if len(agents) == 1 {
		subj = subject.Live(t.ID, agents[0])
	}
	sub, err := t.Conn.NATS().Subscribe(subj, func(m *nats.Msg) {
		var d team.Delta
		if codec.Unmarshal(m.Data, &d) != nil || d.TeamID != t.ID || m.Subject != subject.Live(t.ID, d.AgentID) {
			return
		}
		if len(of) == 0 || of[d.AgentID] {
			f(d)
		}
	})
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
		err = sub.SetPendingLimits(maxDeltas, maxBytes)
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "listen to what is written in team %s: %w", t.ID, broker.Unheard(err))
	}
	<-ctx.Done()
	return nil
}
