// Package stream hands the feed of a team to many readers at once: what is stored, in
// its order and with its cursor, and between it the text that models are writing now.
//
// Of each team that somebody follows, one follower reads the feed, however many readers
// there are, and keeps its newest part. A reader that comes from farther back reads for
// itself until it is there. Each goes at its own pace, and nobody waits for another: one
// that falls behind what is kept is cut off, and may come back with its cursor, here or
// at another process.
//
// It stores nothing. [Hub.Serve] writes what it tells as server-sent events; packages
// beside this one write other formats.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/client"
	"agentteam/pkg/feed"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Item is one thing to show: an entry of the feed, or a piece of a text that is being
// written. Exactly one of the two is set; many readers share it, so it must not be
// changed.
type Item struct {
	Entry *client.Entry
	Delta *team.Delta

	data json.RawMessage // what is set, as JSON; nil if nobody has written it yet
}

// JSON returns the entry or the delta as JSON.
func (i Item) JSON() (json.RawMessage, error) {
	switch {
	case i.data != nil:
		return i.data, nil
	case i.Delta != nil:
		return json.Marshal(i.Delta)
	}
	return json.Marshal(i.Entry)
}

// Options say what a reader wants.
type Options struct {
	After  client.Cursor    // the place in the feed to go on at; "" is its beginning
	Follow bool             // go on with what comes, until ctx ends
	Live   bool             // with Follow: deltas too, once the reader has caught up
	Agents []team.AgentID   // only of these; none means of all
	Types  []team.EventType // only entries of these types, none means all; deltas are of type TextChunk
}

func (o Options) feed() client.FeedOptions {
	return client.FeedOptions{After: o.After, Agents: o.Agents, Types: o.Types}
}

// writes reports whether the reader wants d.
func (o Options) writes(d *team.Delta) bool {
	return o.Live && (len(o.Agents) == 0 || slices.Contains(o.Agents, d.AgentID)) &&
		(len(o.Types) == 0 || slices.Contains(o.Types, team.TextChunk))
}

// ErrSlow ends a reader that has fallen behind what the hub keeps. It may begin again
// with its last cursor.
var ErrSlow = team.Errorf(team.Unavailable, "the reader is too slow for this stream").
	WithHint("read faster, or follow fewer agents or types; go on with the last cursor")

// ErrClosed ends a reader when the process stops. What it follows goes on.
var ErrClosed = team.Errorf(team.Unavailable, "this process is stopping").
	WithHint("go on with the last cursor, at another leader process or when it is back")

// HubOptions are the parts of a hub. The zero value will do.
type HubOptions struct {
	Metrics prometheus.Registerer // default: none
	Logger  *slog.Logger          // default: discard
}

// Hub serves any number of readers of any number of teams. Safe for concurrent use.
type Hub struct {
	client  *client.Client
	log     *slog.Logger
	metrics metrics
	times   times
	keep    limits
	pages   chan struct{} // holds one for each reader that reads for itself just now

	mu     sync.Mutex
	teams  map[team.TeamID]*follower
	closed bool
	busy   sync.WaitGroup // followers and their readers; none is added once it is closed
}

// KeepAlive is the time between two signs of life on an open stream.
const KeepAlive = 15 * time.Second

// times are how long things take. Tests shorten them.
type times struct {
	linger    time.Duration // a follower without readers goes on
	keepAlive time.Duration // between two signs of life on an open stream
	write     time.Duration // a write may take
	closing   time.Duration // that followers and readers have to end when the hub is closed
}

// New returns a hub that reads through c. It is to be closed.
func New(c *client.Client, o HubOptions) *Hub {
	return &Hub{
		client: c, log: telemetry.OrDiscard(o.Logger), metrics: newMetrics(o.Metrics),
		times: times{linger: 10 * time.Second, keepAlive: KeepAlive, write: 10 * time.Second, closing: shutdown.Close / 2},
		keep:  limits{items: 8192, bytes: 32 << 20},
		pages: make(chan struct{}, maxPages),
		teams: map[team.TeamID]*follower{},
	}
}

// Close ends all that is followed, and with it those who follow it, with [ErrClosed]. It waits
// until they have returned and use the client no more, but not for longer than half of
// [shutdown.Close]: a reader may wait for somebody who takes nothing. Readers that follow
// nothing end with the context of their request.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, w := range h.teams {
		w.stop(ErrClosed)
	}
	h.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		h.busy.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(h.times.closing):
		h.log.Debug("readers of streams have not ended in time")
	}
}

// Follow calls f for each item, in order, until ctx ends, and then returns nil; without
// o.Follow up to the present end of the feed. f is called by one goroutine. A reader that
// went on with the cursor of an entry, at any process, is given each entry behind it once.
//
// Deltas may be lost. One whose text is in the feed already is left out.
//
// Errors: f's; NotFound for a team that is not there; InvalidArgument for a cursor that is
// none of this team's, or lies beyond its end, before f was called; [ErrSlow]; [ErrClosed];
// Unavailable.
func (h *Hub) Follow(ctx context.Context, id team.TeamID, o Options, f func(Item) error) error {
	return h.read(ctx, id, o, reader{begin: func(*client.Team) error { return nil }, item: f, pause: func() error { return nil }})
}

// reader is told what a stream holds.
type reader struct {
	begin func(*client.Team) error // the request is good, and the stream begins
	item  func(Item) error
	pause func() error // nothing more is there at the moment
}

// read is Follow.
func (h *Hub) read(ctx context.Context, id team.TeamID, o Options, r reader) error {
	err := h.readOn(ctx, id, o, r)
	switch {
	case err == nil, o.Follow && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	case errors.Is(err, ErrSlow):
		h.metrics.slow.Inc()
		h.log.InfoContext(ctx, "a reader of the stream is too slow", "team", id)
	case errors.Is(err, os.ErrDeadlineExceeded): // of a write
		h.stalled(ctx, id)
	}
	return err
}

// stalled takes note of a reader that was cut off, since it takes nothing.
func (h *Hub) stalled(ctx context.Context, id team.TeamID) {
	h.metrics.slow.Inc()
	h.log.InfoContext(ctx, "a reader of the stream takes nothing", "team", id)
}

func (h *Hub) readOn(ctx context.Context, id team.TeamID, o Options, r reader) error {
	at, err := o.After.Place(id)
	if err != nil {
		return err
	}
	t, err := h.client.Open(ctx, id)
	if err != nil {
		return err
	}
	if !o.Follow {
		if err = h.begin(ctx, t, o.After, r); err == nil {
			defer h.metrics.open.Dec()
			_, err = h.catchUp(ctx, t, o, nil, r)
		}
		return err
	}
	w, err := h.attach(t)
	if err != nil {
		return err
	}
	defer h.detach(w)
	if err := w.started(ctx); err != nil {
		return err
	}
	unknown := o.After
	if w.ring.had(at) {
		unknown = "" // the server need not be asked
	}
	if err := h.begin(ctx, t, unknown, r); err != nil {
		return err
	}
	defer h.metrics.open.Dec()
	seen := newTexts(maxSeen)
	for {
		n, ok, err := w.ring.join(at)
		if ok {
			return h.stay(ctx, w, o, n, at, seen, r)
		}
		if err != nil {
			return err
		}
		if at, err = h.catchUp(ctx, t, o, seen, r); err != nil {
			return err
		}
		o.After = at.Cursor(id)
	}
}

// begin begins a stream at a cursor, if that is good.
func (h *Hub) begin(ctx context.Context, t *client.Team, after client.Cursor, r reader) error {
	err := t.CheckCursor(ctx, after)
	if err == nil {
		err = r.begin(t)
	}
	if err == nil {
		h.metrics.open.Inc()
	}
	return err
}

// catchUp reads up to the present end, for one reader, and returns that place.
func (h *Hub) catchUp(ctx context.Context, t *client.Team, o Options, seen *texts, r reader) (feed.Place, error) {
	for most := firstPage; ; most = min(4*most, maxPage) {
		page, at, err := h.page(ctx, t, o, most)
		if err != nil && !errors.Is(err, errPage) {
			return at, err
		}
		for i := range page {
			seen.took(page[i].Event)
			h.metrics.entries.Inc()
			if err := r.item(Item{Entry: &page[i]}); err != nil {
				return at, err
			}
		}
		if perr := r.pause(); perr != nil || err == nil {
			return at, perr
		}
		o.After = page[len(page)-1].Cursor
	}
}

// What readers that catch up may take: so many of them read at once, while the others
// wait, and each so much at a time, which it then hands on at its own pace.
const (
	maxPages     = 16
	firstPage    = 256 // entries
	maxPage      = 4096
	maxPageBytes = 1 << 20
)

// errPage: there is more.
var errPage = errors.New("the page is full")

// page reads at most so many entries behind o.After, and returns the place behind them.
// Error: errPage if they are not all.
func (h *Hub) page(ctx context.Context, t *client.Team, o Options, most int) (page []client.Entry, at feed.Place, err error) {
	select {
	case h.pages <- struct{}{}:
		defer func() { <-h.pages }()
	case <-ctx.Done():
		return nil, at, ctx.Err()
	}
	bytes := 0
	at, err = t.WalkFeed(ctx, o.feed(), func(s feed.Step) error {
		page = append(page, s.Entry)
		b := s.Entry.Event.Event
		if bytes += len(b.Value) + len(b.Delta) + len(b.Content) + len(b.Message); len(page) == most || bytes > maxPageBytes {
			return errPage
		}
		return nil
	})
	return page, at, err
}

// stay gives what the follower reads, from number n of its ring on, to a reader who has
// had all that lies before at.
func (h *Hub) stay(ctx context.Context, w *follower, o Options, n uint64, at feed.Place, seen *texts, r reader) error {
	want, joined := o.feed(), time.Now()
	var batch []*kept
	for {
		var more <-chan struct{}
		var err error
		if batch, n, more, err = w.ring.take(batch[:0], n); err != nil {
			return err
		}
		for _, k := range batch {
			if k.delta != nil {
				if !o.writes(k.delta) || seen.has(k.delta.MessageID) {
					continue
				}
				h.metrics.deltas.Inc()
				if err := r.item(Item{Delta: k.delta, data: k.data}); err != nil {
					return err
				}
				continue
			}
			had := at.Has(k.step)
			at = at.And(k.step.Behind)
			if had || !want.Wants(k.step.Event) {
				continue
			}
			item := Item{Entry: &k.step.Entry, data: k.data}
			if at != k.step.Behind { // it has had what comes later here
				e := k.step.Entry
				e.Cursor = at.Cursor(e.TeamID)
				item = Item{Entry: &e}
			}
			h.metrics.entries.Inc()
			if err := r.item(item); err != nil {
				return err
			}
			if k.step.Time.After(joined) { // what it has missed before is not the stream's lag
				h.metrics.lag.Observe(time.Since(k.step.Time).Seconds())
			}
		}
		if len(batch) > 0 {
			if err := r.pause(); err != nil {
				return err
			}
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}
