package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// answerWithin is the longest time that an index takes to answer a query. A client without an answer by then reads the
// bucket itself.
const answerWithin = time.Second

// maxReply bounds an answer; a message to NATS may hold 1 MiB.
const maxReply = 900 << 10

// request is a query on subject.Query.
type request struct {
	team.Query
	Seq uint64 `json:"seq"` // of the bucket, up to which the answer must have been read
}

// reply is the answer.
type reply struct {
	*team.Page
	Error string `json:"error,omitempty"` // why the query is refused
}

// Ask queries the index of the process that leads the team. The answer includes every write of the bucket up to seq, so a
// client sees its own writes. Errors: InvalidArgument; Unavailable if no index answers within [answerWithin].
func Ask(ctx context.Context, t *broker.Storage, q team.Query, seq uint64) (team.Page, error) {
	if err := q.Validate(); err != nil {
		return team.Page{}, err
	}
	data, err := json.Marshal(request{q, seq})
	if err != nil {
		return team.Page{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	m, err := t.Conn.NATS().RequestWithContext(ctx, subject.Query(t.ID), data)
	if err != nil {
		return team.Page{}, team.Errorf(team.Unavailable, "no index answers for team %s: %w", t.ID, err).WithHint("the bucket has the same: read it")
	}
	var r reply
	switch err := json.Unmarshal(m.Data, &r); {
	case err != nil:
		return team.Page{}, fmt.Errorf("answer of the index: %w", err)
	case r.Error != "" || r.Page == nil:
		return team.Page{}, team.Errorf(team.InvalidArgument, "the index refuses the query: %s", r.Error).WithHint("the process that leads the team may be of another version")
	}
	for i := range r.Tasks {
		r.Tasks[i].Task.Revision = r.Tasks[i].Revision
	}
	return *r.Page, nil
}

// List returns the part of the board that q selects, with the caller's own writes. It asks the index of the process that
// leads the team. Without an answer in time it reads the bucket itself and applies the same rule. Errors: InvalidArgument;
// Unavailable.
func List(ctx context.Context, t *broker.Storage, b *board.Board, q team.Query) (team.Page, error) {
	if err := q.Validate(); err != nil {
		return team.Page{}, err
	}
	seq, err := t.Bucket.LastSeq(ctx)
	if err != nil {
		return team.Page{}, err
	}
	if p, err := Ask(ctx, t, q, seq); err == nil {
		return p, nil
	}
	l, err := b.Load(ctx)
	if err != nil {
		return team.Page{}, err
	}
	p := q.Page(l.Tasks)
	p.Seq, p.Quarantined = seq, l.Bad
	return p, nil
}

// serve answers queries until ctx ends, as one of the parts.
func (x *Index) serve(ctx context.Context, parts *sync.WaitGroup) error {
	sub, err := x.o.Team.Conn.NATS().SubscribeSync(subject.Query(x.o.Team.ID))
	if err != nil {
		return fmt.Errorf("answer queries: %w", err)
	}
	parts.Go(func() {
		defer sub.Unsubscribe() // no more answers
		for {
			m, err := sub.NextMsgWithContext(ctx)
			switch {
			case err == nil:
				parts.Go(func() { x.answer(ctx, m) })
			case errors.Is(err, nats.ErrSlowConsumer): // questions were dropped; who asked reads the bucket
			default:
				return
			}
		}
	})
	return nil
}

func (x *Index) answer(ctx context.Context, m *nats.Msg) {
	var q request
	err := json.Unmarshal(m.Data, &q)
	if err == nil {
		err = q.Validate()
	}
	r := reply{}
	if err != nil {
		r.Error = err.Error()
	} else {
		p, err := x.page(ctx, q)
		if err != nil {
			return // silence sends the client to the bucket
		}
		r.Page = &p
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		x.log.WarnContext(ctx, "query not answered", "err", err)
	}
}

// errBehind: the feed has not reached the client's revision.
var errBehind = errors.New("the index is behind")

func (x *Index) page(ctx context.Context, q request) (team.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	x.mu.Lock()
	for !x.ready || x.state.seq < q.Seq {
		if x.news == nil {
			x.news = make(chan struct{})
		}
		news := x.news
		x.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return team.Page{}, errBehind
		}
		x.mu.Lock()
	}
	p := x.state.page(q.Query)
	x.mu.Unlock()
	return q.Fit(p, maxReply)
}
