// Package stream serves the feed of a team to many readers: the stored entries, in order and with cursors, and in
// between the text that models are writing.
//
// For each followed team one follower reads the feed, however many readers there are, and keeps its newest part. A
// reader from farther back reads separately until it has caught up. Each reader has its own pace, and none waits for
// another: a reader that falls behind the kept part is cut off, and may return with its cursor, here or at another
// process.
//
// The package stores nothing. [Hub.Stream] is the only writer of server-sent events: each protocol supplies the events
// and their end. [Hub.Serve] is the protocol of /v1; other packages have others.
package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/client"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Item is an entry of the feed, or a chunk of a text that is being written. Exactly one of the two is set; many readers
// share it, so it must not be changed.
type Item struct {
	Entry *client.Entry
	Delta *team.Delta

	data json.RawMessage // what is set, as JSON; nil if it was not written yet
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

// Options state what a reader wants.
type Options struct {
	After  client.Cursor    // the place in the feed to continue at; "" is its beginning
	Follow bool             // continue with what comes, until ctx ends
	Live   bool             // with Follow: deltas too, once the reader has caught up
	Agents []team.AgentID   // only of these; none means of all
	Types  []team.EventType // only entries of these types, none means all; deltas are of type TextChunk
}

func (o Options) feed(m *feed.Memory) client.FeedOptions {
	return client.FeedOptions{After: o.After, Agents: o.Agents, Types: o.Types, Memory: m}
}

// writes reports whether the reader wants d.
func (o Options) writes(d *team.Delta) bool {
	return o.Live && (len(o.Agents) == 0 || slices.Contains(o.Agents, d.AgentID)) &&
		(len(o.Types) == 0 || slices.Contains(o.Types, team.TextChunk))
}

// errSlow ends a reader that has fallen behind the kept part. It may start again with its last cursor.
var errSlow = team.Errorf(team.Unavailable, "the reader is too slow for this stream").
	WithHint("read faster, or follow fewer agents or types; go on with the last cursor")

// ErrClosed ends a reader when the process stops. The team continues.
var ErrClosed = team.Errorf(team.Unavailable, "this process is stopping").
	WithHint("go on with the last cursor, at another leader process or when it is back")

// HubOptions are the settings of a hub. The zero value is valid.
type HubOptions struct {
	Metrics   prometheus.Registerer // default: none
	Logger    *slog.Logger          // default: discard
	KeepAlive time.Duration         // after which a silent stream shows that it lives; default 15 s
}

// Hub serves any number of readers of any number of teams. Safe for concurrent use.
type Hub struct {
	client  *client.Client
	log     *slog.Logger
	metrics metrics
	times   times
	keep    limits
	pages   chan struct{}   // holds one for each reader that reads for itself just now
	ctx     context.Context // ends when the hub is closed
	end     context.CancelCauseFunc

	mu    sync.Mutex
	teams map[team.TeamID]*follower
	busy  sync.WaitGroup // followers, their readers and streams; none is added once it is closed
}

// times are the durations of a hub. Tests shorten them.
type times struct {
	linger    time.Duration // a follower without readers continues
	keepAlive time.Duration // see [HubOptions]
	closing   time.Duration // that followers and readers have to end when the hub is closed
}

// New returns a hub that reads through c. The caller closes it.
func New(c *client.Client, o HubOptions) *Hub {
	ctx, end := context.WithCancelCause(context.Background()) // what it follows outlives the request of its first reader
	return &Hub{
		client: c, log: telemetry.OrDiscard(o.Logger), metrics: newMetrics(o.Metrics),
		times: times{linger: 10 * time.Second, keepAlive: cmp.Or(o.KeepAlive, 15*time.Second), closing: shutdown.Close / 2},
		keep:  limits{items: 8192, bytes: 32 << 20},
		pages: make(chan struct{}, maxPages),
		ctx:   ctx, end: end,
		teams: map[team.TeamID]*follower{},
	}
}

// enter counts one more user of the hub until busy.Done, unless it is closed.
func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return false
	}
	h.busy.Add(1)
	return true
}

// Close ends all followers and streams, with [ErrClosed]. It waits until their readers have returned and no longer use
// the client, for at most half of [shutdown.Close]: a reader may wait for a client that takes nothing.
func (h *Hub) Close() {
	h.mu.Lock()
	h.end(ErrClosed)
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

// Follow calls f for each item, in order, until ctx ends, and then returns nil; without o.Follow up to the present end
// of the feed. One goroutine calls f. A reader that continues with the cursor of an entry, at any process, gets each
// later entry once.
//
// Deltas may be lost. A delta is left out if its text is in the feed already.
//
// Errors: f's; NotFound for an unknown team; InvalidArgument, before f is called, for a cursor of another team, or
// beyond the end; [ErrClosed]; Unavailable, also for a reader that is too slow.
// Unavailable, also for a reader that is too slow.
func (h *Hub) Follow(ctx context.Context, id team.TeamID, o Options, f func(Item) error) error {
	return h.read(ctx, id, o, reader{item: f, pause: func() error { return nil }})
}

// reader handles the items of a stream.
type reader struct {
	begin func(*client.Team) error // if set: the request is good, and the stream begins
	item  func(Item) error
	pause func() error // nothing more is there at the moment
	ready func() error // if set: what had happened before has been read
}

// read is Follow.
func (h *Hub) read(ctx context.Context, id team.TeamID, o Options, r reader) error {
	err := h.readOn(ctx, id, o, r)
	switch {
	case err == nil, o.Follow && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	case errors.Is(err, errSlow):
		h.metrics.slow.Inc()
		h.log.InfoContext(ctx, "a reader of the stream is too slow", "team", id)
	}
	return err
}

// openWithin bounds the time before the first item of a stream. Without NATS the first call would wait for it, and its
// client would get no answer.
const openWithin = 30 * time.Second

func (h *Hub) readOn(ctx context.Context, id team.TeamID, o Options, r reader) error {
	at, err := o.After.Place(id)
	if err != nil {
		return err
	}
	opening, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	late := func(err error) error {
		if opening.Err() != nil && ctx.Err() == nil {
			return team.Errorf(team.Unavailable, "the feed of team %s was not to be had within %v", id, openWithin)
		}
		return err
	}
	t, err := h.client.Open(opening, id)
	if err != nil {
		return late(err)
	}
	if !o.Follow {
		if err = h.begin(opening, t, o.After, r); err == nil {
			_, err = h.catchUp(ctx, t, o, nil, r)
			return err
		}
		return late(err)
	}
	w, err := h.attach(t)
	if err != nil {
		return err
	}
	defer h.detach(w)
	if err := w.started(opening); err != nil {
		return late(err)
	}
	unknown := o.After
	if w.ring.had(at) {
		unknown = "" // the server need not be asked
	}
	if err := h.begin(opening, t, unknown, r); err != nil {
		return late(err)
	}
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

// begin starts a stream at a cursor, if that is valid.
func (h *Hub) begin(ctx context.Context, t *client.Team, after client.Cursor, r reader) error {
	err := t.CheckCursor(ctx, after)
	if err == nil && r.begin != nil {
		err = r.begin(t)
	}
	return err
}

// catchUp reads up to the present end, for one reader, and returns that place.
func (h *Hub) catchUp(ctx context.Context, t *client.Team, o Options, seen *texts, r reader) (feed.Place, error) {
	memory := new(feed.Memory)
	for most := firstPage; ; most = min(4*most, maxPage) {
		page, at, err := h.page(ctx, t, o.feed(memory), most)
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

// Bounds for readers that catch up: so many of them read at the same time, while the others wait, and each reads so
// much at a time, which it then passes on at its own pace.
const (
	maxPages     = 16
	firstPage    = 256 // entries
	maxPage      = 4096
	maxPageBytes = 1 << 20
)

// errPage: there are more entries.
var errPage = errors.New("the page is full")

// page reads at most most entries after o.After, and returns the place behind them. Error: errPage if there are more.
func (h *Hub) page(ctx context.Context, t *client.Team, o client.FeedOptions, most int) (page []client.Entry, at feed.Place, err error) {
	select {
	case h.pages <- struct{}{}:
		defer func() { <-h.pages }()
	case <-ctx.Done():
		return nil, at, ctx.Err()
	}
	bytes := 0
	at, err = t.WalkFeed(ctx, o, func(s feed.Step) error {
		page = append(page, s.Entry)
		b := s.Entry.Event.Event
		if bytes += len(b.Value) + len(b.Delta) + len(b.Content) + len(b.Message); len(page) == most || bytes > maxPageBytes {
			return errPage
		}
		return nil
	})
	return page, at, err
}

// stay passes the items of the follower's ring, from number n on, to a reader at position at.
func (h *Hub) stay(ctx context.Context, w *follower, o Options, n uint64, at feed.Place, seen *texts, r reader) error {
	want, joined := o.feed(nil), time.Now()
	var batch []*kept
	var ready bool
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
		if !ready && r.ready != nil {
			if err := r.ready(); err != nil {
				return err
			}
		}
		ready = true
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}
