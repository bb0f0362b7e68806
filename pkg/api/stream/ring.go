package stream

import (
	"encoding/json"
	"sort"
	"sync"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// ring is the newest part of a team's feed, with the deltas between. A reader keeps the number of its next item; the
// ring stores nothing for readers. Safe for concurrent use.
type ring struct {
	limits  limits
	metrics metrics

	mu     sync.Mutex
	items  []*kept
	first  uint64     // number of items[0]
	base   feed.Place // before items[0]
	tip    feed.Place // behind the last entry
	known  feed.Place // where the feed ended when the ring began
	bytes  int
	stored *texts        // whose deltas are of no use any more
	more   chan struct{} // closed with the next item, or the end
	err    error         // why nothing more comes
}

// limits bound the part of a feed that is kept for readers.
type limits struct{ items, bytes int }

// kept is one immutable item of a ring.
type kept struct {
	step   feed.Step // the entry, unless there is a delta
	delta  *team.Delta
	behind feed.Place // behind the last entry up to here
	data   json.RawMessage
}

// overhead is about the size of an item besides its texts, in bytes.
const overhead = 1 << 10

func (k *kept) size() int { return 2*len(k.data) + overhead } // once as JSON, once as it was read

func newRing(l limits, m metrics) *ring {
	return &ring{limits: l, metrics: m, stored: newTexts(maxStored), more: make(chan struct{})}
}

// begin sets the beginning of the ring, and the present end of the feed.
func (r *ring) begin(at, end feed.Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base, r.tip, r.known = at, at, end
}

// step appends an entry.
func (r *ring) step(s feed.Step) error {
	data, err := json.Marshal(s.Entry)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tip = s.Behind
	r.stored.took(s.Event)
	r.put(&kept{step: s, behind: s.Behind, data: data})
	return nil
}

// write appends a delta, unless its text is already stored.
func (r *ring) write(d team.Delta) {
	data, err := json.Marshal(d)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stored.has(d.MessageID) {
		r.put(&kept{delta: &d, behind: r.tip, data: data})
	}
}

func (r *ring) put(k *kept) {
	r.items = append(r.items, k)
	r.bytes += k.size()
	r.metrics.kept.Inc()
	for len(r.items) > r.limits.items || r.bytes > r.limits.bytes {
		r.drop()
	}
	close(r.more)
	r.more = make(chan struct{})
}

// drop removes the oldest item.
func (r *ring) drop() {
	k := r.items[0]
	r.items[0] = nil
	r.items = r.items[1:]
	r.first++
	r.base = k.behind
	r.bytes -= k.size()
	r.metrics.kept.Dec()
}

// end ends the ring with err.
func (r *ring) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.err = err
	close(r.more)
	r.more = make(chan struct{})
	r.metrics.kept.Sub(float64(len(r.items)))
}

// had reports whether everything before at is known to have been stored.
func (r *ring) had(at feed.Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tip.Covers(at) || r.known.Covers(at)
}

// join returns the index of the next item for a reader at position at; ok is false if the ring no longer has an item in
// between. Error: the ring's, if nothing is left for this reader.
//
// An item's position covers exactly the items before it. A reader may therefore join at the
// first item whose position it has not passed.
func (r *ring) join(at feed.Place) (n uint64, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !at.Covers(r.base) {
		return 0, false, r.err
	}
	i := sort.Search(len(r.items), func(i int) bool { return !at.Covers(r.items[i].behind) })
	for i > 0 && r.items[i-1].delta != nil { // a text that is being written
		i--
	}
	return r.first + uint64(i), true, nil
}

// batch is how many items a reader takes at a time.
const batch = 256

// take appends to into the items from number n on, and returns the next number; or nothing, and a channel that is
// closed with the next item. Errors: [errSlow] if n is no longer kept; the error with which the ring ended.
func (r *ring) take(into []*kept, n uint64) ([]*kept, uint64, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < r.first {
		return into, n, nil, errSlow
	}
	for _, k := range r.items[n-r.first:] {
		if n++; k.delta == nil || !r.stored.has(k.delta.MessageID) {
			into = append(into, k)
		}
		if len(into) == batch {
			break
		}
	}
	if len(into) == 0 && r.err != nil {
		return into, n, nil, r.err
	}
	return into, n, r.more, nil
}

// The numbers of recently stored texts that a ring and a reader remember.
const maxStored, maxSeen = 1024, 64

// texts are the messages that were stored last. A nil one is empty.
type texts struct {
	ids  map[string]bool
	list []string // a circle
	next int
}

func newTexts(size int) *texts { return &texts{ids: map[string]bool{}, list: make([]string, size)} }

// took records an event of the feed.
func (t *texts) took(e team.Event) {
	id := e.Event.MessageID
	if t == nil || id == "" || t.ids[id] || e.Event.Type != team.TextChunk && e.Event.Type != team.ToolCallChunk {
		return
	}
	delete(t.ids, t.list[t.next])
	t.ids[id] = true
	t.list[t.next] = id
	t.next = (t.next + 1) % len(t.list)
}

func (t *texts) has(id string) bool { return t.ids[id] }
