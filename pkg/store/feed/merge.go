package feed

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

const (
	// patience is the time for which an entry is held back while an older one may be on its way.
	patience = 250 * time.Millisecond
	// askEvery bounds the rate of requests for the end of one stream.
	askEvery = 10 * time.Millisecond
	// margin is the largest difference between two clocks of a cluster, and between the time that a server reports and
	// that at which it has read the stream.
	margin = time.Second
)

// merge reads the streams concurrently and gives their entries in one order.
//
// Each stream is in order, so the oldest of the next entries of all is the next of the feed. A stream without a received next
// entry may still have an older one: it holds the others back until one of these is known:
//   - its newest received entry is not older;
//   - the server, asked after the entry in question had come, named an end of the stream, and everything up to that end has
//     been received;
//   - the same, asked earlier, and the entry is older than that answer by margin;
//   - the reader follows, the stream has given all that it held at the start, and patience is over. It then holds no other
//     stream back until it is heard of again.
type merge struct {
	team    *broker.Storage
	opt     Options
	f       func(Step) error
	ended   error // of f
	view    *view
	sources [kinds]*source

	arrivals chan arrival
	answers  chan answer
	held     time.Time // since when the next entry is held back; zero if it is not
}

// arrival is a received message.
type arrival struct {
	kind kind
	msg  broker.Msg
	at   time.Time
}

func newMerge(t *broker.Storage, o Options, streams [kinds]stream, f func(Step) error) *merge {
	m := &merge{team: t, opt: o, f: f, arrivals: make(chan arrival, int(kinds)*queued), answers: make(chan answer, kinds)}
	for k, s := range streams {
		m.sources[k] = newSource(kind(k), s)
	}
	return m
}

// errDone: the end at the start of the reading is reached.
var errDone = errors.New("the end is reached")

// run reads the feed, see [Read].
func (m *merge) run(ctx context.Context) error {
	err := m.open(ctx)
	if err == nil {
		g, gctx := errgroup.WithContext(ctx)
		for _, s := range m.sources {
			g.Go(func() error { return s.read(gctx, m.arrivals) })
		}
		g.Go(func() error { return m.give(gctx, g) })
		err = g.Wait()
	}
	m.remember(err)
	switch {
	case errors.Is(err, errDone):
		return nil
	case ctx.Err() == nil || err != nil && !errors.Is(err, ctx.Err()):
		return err
	case m.opt.Follow:
		return nil
	}
	return team.Errorf(team.Unavailable, "read the feed of %s: %w", m.team.ID, ctx.Err()) // half a feed must not pass for the whole
}

// remember keeps the view for a next read from here. Any error except that of f may have come in the middle of an update of the
// view.
func (m *merge) remember(err error) {
	switch k := m.opt.Memory; {
	case k == nil:
	case errors.Is(err, errDone), m.ended != nil && errors.Is(err, m.ended):
		*k = Memory{m.view, m.place()}
	default:
		*k = Memory{}
	}
}

// open finds the place to begin at, gives a reset if entries are missing there, and gives the rest of a message that the reader
// has got in part.
func (m *merge) open(ctx context.Context) error {
	p, err := m.opt.After.Place(m.team.ID)
	if err != nil {
		return err
	}
	var reset Reset
	for k, s := range m.sources {
		asked := time.Now()
		state, err := s.stream.State(ctx)
		if err != nil {
			return err
		}
		var there broker.Msg
		if p[k].at != 0 {
			if there, err = s.stream.Next(ctx, p[k].seq); err != nil && !errors.Is(err, team.NotFound) {
				return err
			}
		}
		if missing := s.begin(p[k], state, there, m.opt.After == ""); missing != nil {
			reset.Missing = append(reset.Missing, *missing)
		}
		s.hear(answer{asked: asked, end: state.Last, now: state.Now})
	}
	m.view = newView(m.team, m.sources[events], m.sources[bucket])
	if k := m.opt.Memory; k != nil && k.view != nil && k.at == p && len(reset.Missing) == 0 {
		m.view = k.view
	}
	if len(reset.Missing) > 0 {
		if err := m.reset(m.sources[events], reset); err != nil {
			return err
		}
	}
	for _, s := range m.sources {
		if s.pos.given == 0 {
			continue
		}
		msg, err := s.stream.Next(ctx, s.pos.seq)
		switch {
		case err == nil && msg.Seq == s.pos.seq:
			err = m.report(ctx, s, msg)
		case err == nil || errors.Is(err, team.NotFound): // it was removed meanwhile
			s.pos.given, err = 0, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// give gives the entries in order.
func (m *merge) give(ctx context.Context, g *errgroup.Group) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		m.receive()
		if !m.opt.Follow && m.atEnd() {
			for _, s := range m.sources {
				s.end()
			}
			return errDone
		}
		s, wait := m.next(ctx, g)
		if s != nil {
			if err := m.report(ctx, s, s.pop()); err != nil {
				return err
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-m.arrivals:
			m.sources[a.kind].push(a)
		case a := <-m.answers:
			m.sources[a.kind].hear(a)
		case <-timer.C:
		}
	}
}

// receive takes received messages and answers, without waiting.
func (m *merge) receive() {
	for {
		select {
		case a := <-m.arrivals:
			m.sources[a.kind].push(a)
		case a := <-m.answers:
			m.sources[a.kind].hear(a)
		default:
			return
		}
	}
}

func (m *merge) atEnd() bool {
	for _, s := range m.sources {
		if !s.finished() {
			return false
		}
	}
	return true
}

// next returns the source with the next entry of the feed; or nil, and the time to wait for news.
func (m *merge) next(ctx context.Context, g *errgroup.Group) (*source, time.Duration) {
	var first *source
	for _, s := range m.sources { // by kind, so that of the same time the lower one stays
		if len(s.queue) > 0 && (first == nil || s.queue[0].msg.Time.Before(first.queue[0].msg.Time)) {
			first = s
		}
	}
	now, wait, blocked := time.Now(), patience, false
	for _, s := range m.sources {
		holds := first != nil && s.holds(first.queue[0])
		// Messages from before the start are waited for without a limit: the past is the same for every reader.
		if holds && m.opt.Follow && s.received >= s.limit && !m.held.IsZero() && now.Sub(m.held) >= patience {
			s.late, holds = true, false
		}
		blocked = blocked || holds
		switch at, due := s.due(holds); {
		case due && !at.After(now):
			ask := s.ask(ctx)
			g.Go(func() error { m.answers <- ask(); return nil })
		case due:
			wait = min(wait, at.Sub(now))
		}
	}
	if first == nil {
		m.held = time.Time{}
		return nil, wait
	}
	if !blocked {
		m.held = time.Time{}
		return first, 0
	}
	if m.held.IsZero() {
		m.held = now
	}
	return nil, min(wait, max(m.held.Add(patience).Sub(now), askEvery))
}

// report gives the events of a message, except those that the reader has got.
func (m *merge) report(ctx context.Context, s *source, msg broker.Msg) error {
	if s.kind == events && msg.Seq > s.pos.seq+1 { // only its limits remove from it
		missing := forgotten(s.kind, s.pos.seq, msg.Seq-1)
		s.pos.seq, s.pos.given, s.pos.at = msg.Seq-1, 0, 0
		if err := m.reset(s, Reset{Missing: []Missing{*missing}}); err != nil {
			return err
		}
	}
	told, err := m.view.events(ctx, s.kind, msg)
	if err != nil {
		return err
	}
	given, at := 0, stored(msg)
	if s.pos.seq == msg.Seq && s.pos.at == at {
		given = s.pos.given
	}
	for i := given; i < len(told); i++ {
		s.pos.seq, s.pos.given, s.pos.at = msg.Seq, (i+1)%len(told), at
		if err := m.show(s, msg.Time.UTC(), told[i]); err != nil {
			return err
		}
	}
	s.pos.seq, s.pos.given, s.pos.at = msg.Seq, 0, at
	return nil
}

// reset gives a reset event for the entries missing up to the present position of s.
func (m *merge) reset(s *source, r Reset) error {
	now := time.Now().UTC()
	return m.show(s, now, r.event(m.team.ID, now))
}

// show gives an event at the present position of s.
func (m *merge) show(s *source, at time.Time, e team.Event) error {
	if !m.opt.Wants(e) {
		return nil
	}
	p := m.place()
	m.ended = m.f(Step{Entry: Entry{Cursor: p.Cursor(m.team.ID), Time: at, Event: e}, Behind: p, kind: s.kind, at: s.pos})
	return m.ended
}

// place returns the positions in the streams.
func (m *merge) place() (p Place) {
	for k, s := range m.sources {
		p[k] = s.pos
	}
	return p
}
