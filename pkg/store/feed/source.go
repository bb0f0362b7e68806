package feed

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// queued bounds the received messages of one stream that are not given yet.
const queued = 256

// source is a stream that is being read. Only the goroutine of the merge uses it, except the fields that read uses.
type source struct {
	kind   kind
	stream stream
	pos    position // the position of the last given entry
	limit  uint64   // sequence of the last message when the reading began
	whole  bool     // it is read from its beginning
	stored uint64   // how many messages the stream held when the reading began

	from   broker.Mark   // where read begins
	credit chan struct{} // one for each message that has come and was not given

	queue    []arrival // not given yet
	received uint64    // sequence up to which all that is there has come
	newest   time.Time // when the last message that came was stored
	late     bool      // patience was over, and nothing has come since

	asking   bool
	asked    time.Time // when the server was asked last
	reported answer    // its last answer
	cleared  answer    // the last one up to whose end everything has come
}

func newSource(k kind, s stream) *source {
	return &source{kind: k, stream: s, credit: make(chan struct{}, queued)}
}

// begin sets the source to p, or to the oldest message there is, and returns the missing part in between, if any. fresh means
// a reader without a cursor, which misses nothing; there is the message at p, if it exists.
func (s *source) begin(p position, state broker.State, there broker.Msg, fresh bool) *Missing {
	var missing *Missing
	made, oldest := age(state), position{seq: max(state.First, 1) - 1}
	switch {
	case fresh:
		p, s.whole = oldest, true
	case p.made != made || p.seq > state.Last || p.at != 0 && there.Seq == p.seq && stored(there) != p.at: // or it was set back, which is as bad
		missing = &Missing{Source: s.kind.String(), Why: "made_anew"}
		p, s.whole = oldest, true
	case p.seq < oldest.seq && s.kind != bucket: // its newer values replace old ones
		missing = forgotten(s.kind, p.seq, oldest.seq)
		p = oldest
	}
	p.made = made
	s.pos, s.from, s.received, s.limit, s.stored = p, p.mark(), p.seq, state.Last, state.Count
	return missing
}

// forgotten returns the messages behind one sequence and up to another as missing.
func forgotten(k kind, behind, to uint64) *Missing {
	return &Missing{Source: k.String(), Why: "forgotten", From: behind + 1, To: to}
}

// read passes every message on, until ctx ends or the stream fails.
func (s *source) read(ctx context.Context, to chan<- arrival) error {
	return s.stream.Follow(ctx, s.from, func(m broker.Msg) error {
		at := time.Now()
		select {
		case s.credit <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		to <- arrival{s.kind, m, at} // which has room for all credits
		return nil
	}, nil)
}

func (s *source) push(a arrival) {
	if a.msg.Seq <= s.received { // the stream was restored from an older copy
		s.received, s.reported, s.cleared = a.msg.Seq, answer{}, answer{}
	}
	s.queue = append(s.queue, a)
	s.received, s.newest, s.late = max(s.received, a.msg.Seq), a.msg.Time, false
	s.settle()
}

func (s *source) pop() broker.Msg {
	m := s.queue[0].msg
	s.queue[0] = arrival{} // lets the message go
	s.queue = s.queue[1:]
	<-s.credit
	return m
}

// finished reports whether all messages from before the start of the reading were given.
func (s *source) finished() bool {
	return s.received >= s.limit && (len(s.queue) == 0 || s.queue[0].msg.Seq > s.limit)
}

// end moves the position to the end of the reading: the message there may be gone.
func (s *source) end() {
	if s.pos.seq < s.limit {
		s.pos.seq, s.pos.given, s.pos.at = s.limit, 0, 0
	}
}

// holds reports whether an entry older than a may still come.
func (s *source) holds(a arrival) bool {
	return len(s.queue) == 0 && !s.late && a.msg.Time.After(s.newest) &&
		a.at.After(s.cleared.asked) && !a.msg.Time.Before(s.cleared.now.Add(-margin))
}

// answer is the server's answer about a stream.
type answer struct {
	kind  kind
	asked time.Time // by the clock here
	now   time.Time // by the server's
	end   uint64    // sequence of the newest message
	none  uint64    // the messages from this sequence to the end are gone
	err   error     // it has not answered
}

func (s *source) hear(a answer) {
	s.asking, s.asked = false, a.asked
	if a.err != nil {
		return
	}
	if a.none > 0 && a.none == s.received+1 {
		s.received = max(s.received, a.end)
	}
	s.reported = a
	s.settle()
}

func (s *source) settle() {
	if s.received >= s.reported.end && s.reported.asked.After(s.cleared.asked) {
		s.cleared, s.late = s.reported, false
	}
}

// due returns the time at which to ask the server about the stream; ok is false if that is not needed. holds means that the
// source holds back the next entry.
func (s *source) due(holds bool) (at time.Time, ok bool) {
	switch {
	case s.asking || len(s.queue) > 0:
		return at, false
	case s.received < s.reported.end:
		return s.asked.Add(patience), true
	case holds:
		return s.asked.Add(askEvery), true
	}
	return at, false
}

// ask asks the server for the end of the stream. If nothing has come for a while although it should have, it also asks whether
// there is a next message: the one at the end may be gone.
func (s *source) ask(ctx context.Context) func() answer {
	a := answer{kind: s.kind, asked: time.Now()}
	stalled, from := s.received < s.reported.end && a.asked.Sub(s.reported.asked) >= patience, s.received+1
	s.asking = true
	return func() answer {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // one restart of a server, and less than its patience with us
		defer cancel()
		var state broker.State
		if state, a.err = s.stream.State(ctx); a.err != nil {
			return a
		}
		a.now, a.end = state.Now, state.Last
		if stalled {
			if _, err := s.stream.Next(ctx, from); errors.Is(err, team.NotFound) {
				a.none = from
			}
		}
		return a
	}
}
