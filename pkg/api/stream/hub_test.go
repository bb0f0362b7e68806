package stream

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry/telemetrytest"
)

// Readers at any place, at one process or at several, are each told what lies behind
// their cursor, once, while more and more happens.
func TestReadersAnywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const before, later = 30, 60
	happen := func(n int) {
		for i := range n {
			switch i % 3 {
			case 0:
				r.says(fmt.Sprint("text ", i))
			case 1:
				r.mails("mail")
			default:
				r.runs("bob")
			}
		}
	}
	happen(before)
	past := r.past(client.FeedOptions{})
	hubs := []*Hub{r.hub, r.another()}
	cursors := []client.Cursor{"", past[0].Cursor, past[len(past)/2].Cursor, past[len(past)-1].Cursor}
	had := []int{0, 1, len(past)/2 + 1, len(past)}
	var readings []*reading
	for i := range 4 * len(cursors) {
		readings = append(readings, r.follow(hubs[i%2], Options{After: cursors[i%4]}))
		happen(later / 16)
	}
	happen(later)
	whole := r.past(client.FeedOptions{})
	for i, f := range readings {
		want := whole[had[i%4]:]
		got := f.take(len(want))
		for _, e := range want {
			n := 0
			for _, g := range got {
				if same(*g.Entry, e) {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("reader %d was told %s %d times", i, told(Item{Entry: &e}), n)
			}
		}
		// Any of its cursors leads on at another process.
		at := rand.IntN(len(got))
		on := r.follow(hubs[(i+1)%2], Options{After: got[at].Entry.Cursor})
		rest := on.take(len(got) - at - 1)
		for _, e := range want {
			same := func(g Item) bool { return same(*g.Entry, e) }
			if slices.ContainsFunc(got[:at+1], same) == slices.ContainsFunc(rest, same) {
				t.Fatalf("reader %d, which went on after %d: %s comes twice or not at all", i, at, told(Item{Entry: &e}))
			}
		}
		on.end()
		f.end()
	}
	for _, h := range hubs {
		if n := len(h.teams); n != 1 {
			t.Errorf("%d followers of one team", n)
		}
	}
}

// inOrder are the steps behind base, as a follower gives them in that order of theirs.
func inOrder(base feed.Place, steps []feed.Step, order []int) (out []feed.Step) {
	at := base
	for _, i := range order {
		s := steps[i]
		for k := range at {
			one := base
			if one[k] = s.Behind[k]; one.Has(s) { // it is of this stream
				at[k] = s.Behind[k]
				break
			}
		}
		s.Behind = at
		s.Cursor = at.Cursor(s.TeamID)
		out = append(out, s)
	}
	return out
}

// shuffled is an order of the steps in which those of each stream stay in theirs.
func shuffled(base feed.Place, steps []feed.Step) (order []int) {
	var of [4][]int
	for i, s := range steps {
		for k := range base {
			one := base
			if one[k] = s.Behind[k]; one.Has(s) {
				of[k] = append(of[k], i)
				break
			}
		}
	}
	for len(order) < len(steps) {
		if k := rand.IntN(len(of)); len(of[k]) > 0 {
			order, of[k] = append(order, of[k][0]), of[k][1:]
		}
	}
	return order
}

// Two processes may hand out entries in different orders, when some came late. A reader
// that goes from one to the other is told each once, wherever it left, and however often.
func TestAnotherOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, err := r.team.End(t.Context())
	r.ok(err)
	base, err := c.Place("t")
	r.ok(err)
	for range 5 {
		r.says("text")
		r.mails("mail")
		r.runs("bob")
	}
	var steps []feed.Step
	_, err = r.team.WalkFeed(t.Context(), client.FeedOptions{After: c}, func(s feed.Step) error {
		steps = append(steps, s)
		return nil
	})
	r.ok(err)
	for range 300 {
		had, at := map[string]int{}, base
		for try := 0; len(had) < len(steps); try++ {
			if try > 1000 {
				t.Fatalf("%d of %d entries never come", len(steps)-len(had), len(steps))
			}
			w := &follower{ring: newRing(r.hub.keep, r.hub.metrics)}
			w.ring.begin(base, base)
			for _, s := range inOrder(base, steps, shuffled(base, steps)) {
				r.ok(w.ring.step(s))
			}
			n, ok, err := w.ring.join(at)
			if !ok || err != nil {
				t.Fatalf("it cannot join: %v, %v", ok, err)
			}
			leave := 1 + rand.IntN(6)
			err = r.hub.stay(t.Context(), w, Options{}, n, at, nil, reader{
				item: func(i Item) error {
					had[i.Entry.Time.String()+told(i)]++
					at, err = i.Entry.Cursor.Place("t")
					r.ok(err)
					if leave--; leave == 0 || len(had) == len(steps) {
						return errEnough
					}
					return nil
				},
				pause: func() error { return nil },
			})
			if !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
		}
		for what, n := range had {
			if n != 1 {
				t.Fatalf("%s comes %d times", what, n)
			}
		}
	}
}

var errEnough = errors.New("enough")

// A reader that falls behind what is kept is cut off; another one is not.
func TestSlow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.hub.keep.items = 10
	stuck, release := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	end, err := r.team.End(t.Context())
	r.ok(err)
	quick := r.follow(r.hub, Options{After: end})
	go func() {
		slow <- r.hub.Follow(t.Context(), "t", Options{After: end, Follow: true}, func(Item) error {
			select {
			case <-stuck:
			default:
				close(stuck)
				<-release
			}
			return nil
		})
	}()
	brokertest.Until(t, "both read what comes", func() bool { return r.hub.readers("t") == 2 }) // else the slow one might still be catching up
	brokertest.Receive(t, "the follower has begun", r.hub.of("t").begun)
	r.runs("bob")
	quick.take(1)
	brokertest.Receive(t, "the slow reader reads", stuck)
	for range 20 {
		r.runs("bob")
		quick.take(1)
	}
	close(release)
	if err := brokertest.Receive(t, "the slow reader is cut off", slow); !errors.Is(err, errSlow) || !errors.Is(err, team.Unavailable) {
		t.Errorf("the slow reader ends with %v", err)
	}
	quick.end()
	if n := r.count("agentteam_stream_slow_readers_total"); n != 1 {
		t.Errorf("%v slow readers are counted", n)
	}
	telemetrytest.Lint(t, r.metrics)
	w := r.hub.teams["t"]
	if got := len(w.ring.items); got != 10 {
		t.Errorf("%d items are kept", got)
	}
}

// Pieces of a text come between the entries, to those who want them, and not after the
// text is stored.
func TestDeltas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.follow(r.hub, Options{Live: true})
	brokertest.Until(t, "the reader is sent a delta", func() (listens bool) {
		r.writes("other", 0, "x")
		r.runs("bob")
		for i := (Item{}); i.Entry == nil; {
			i = first.take(1)[0]
			listens = listens || i.Delta != nil
		}
		return listens
	})
	end, err := r.team.End(t.Context())
	r.ok(err)
	all := r.follow(r.hub, Options{After: end, Live: true})
	others := r.follow(r.hub, Options{After: end, Live: true, Agents: []team.AgentID{"bob"}})
	none := r.follow(r.hub, Options{After: end})
	mail := r.follow(r.hub, Options{After: end, Live: true, Types: []team.EventType{team.RunStarted}})
	r.writes("m1", 0, "Hel")
	r.writes("m1", 3, "lo")
	for _, want := range []string{"ann 0+Hel", "ann 3+lo"} {
		got := told(all.take(1)[0])
		for got == "ann 0+x" { // the last of those before may be late
			got = told(all.take(1)[0])
		}
		if got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	id := r.says("Hello")
	if got := told(all.take(1)[0]); got != "ann TEXT_MESSAGE_CHUNK Hello" {
		t.Errorf("then comes %q", got)
	}
	first.stop()
	r.writes(id, 5, "late")
	r.writes("m2", 0, "next")
	if got := told(all.take(1)[0]); got != "ann 0+next" {
		t.Errorf("after the text is stored comes %q", got)
	}
	r.runs("bob")
	for _, f := range []*reading{all, others, mail} {
		if got := told(f.take(1)[0]); got != "bob RUN_STARTED " {
			t.Errorf("then comes %q", got)
		}
		f.end()
	}
	if got := tell(none.take(2)); !slices.Equal(got, []string{"ann TEXT_MESSAGE_CHUNK Hello", "bob RUN_STARTED "}) {
		t.Errorf("who wants no deltas is told %q", got)
	}
	none.end()
}

// A follower ends a while after its last reader, and the next reader begins another.
func TestFollowerEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.hub.times.linger = 0
	r.runs("bob")
	f := r.follow(r.hub, Options{})
	f.take(1)
	w := r.hub.of("t")
	f.end()
	w.ring.waitEnd(t)
	f = r.follow(r.hub, Options{})
	f.take(1)
	if r.hub.of("t") == w {
		t.Error("the follower has not ended")
	}
	f.end()
}

// readers is how many readers the team has.
func (h *Hub) readers(id team.TeamID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.teams[id]; w != nil {
		return w.readers
	}
	return 0
}

// waitEnd waits until nothing more comes.
func (r *ring) waitEnd(t *testing.T) {
	t.Helper()
	for n := uint64(0); ; {
		batch, next, more, err := r.take(nil, n)
		switch {
		case err != nil:
			return
		case len(batch) == 0:
			brokertest.Receive(t, "more comes, or the end", more)
		}
		n = next
	}
}

// of is the follower of a team.
func (h *Hub) of(id team.TeamID) *follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.teams[id]
}

// A hub that is closed ends its readers, and takes no more.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs("bob")
	f := r.follow(r.hub, Options{})
	f.take(1)
	w := r.hub.of("t")
	r.hub.Close()
	if _, _, _, err := w.ring.take(nil, w.ring.first+uint64(len(w.ring.items))); !errors.Is(err, ErrClosed) || len(r.hub.teams) > 0 || w.readers > 0 {
		t.Errorf("after Close the follower has not ended: %v, %d teams, %d readers", err, len(r.hub.teams), w.readers)
	}
	if err := brokertest.Receive(t, "the reader ends", f.done); !errors.Is(err, ErrClosed) || !errors.Is(err, team.Unavailable) {
		t.Errorf("it ends with %v", err)
	}
	err := r.hub.Follow(brokertest.Context(t), "t", Options{Follow: true}, func(Item) error { return nil })
	if !errors.Is(err, team.Unavailable) {
		t.Errorf("then it is %v", err)
	}
}

// A reader that does not return holds Close up for a while only.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.hub.times.closing = time.Millisecond
	r.runs("bob")
	stuck, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- r.hub.Follow(t.Context(), "t", Options{Follow: true}, func(Item) error {
			close(stuck)
			<-release
			return nil
		})
	}()
	brokertest.Receive(t, "the reader reads", stuck)
	r.hub.Close()
	select {
	case err := <-done:
		t.Errorf("the reader has ended with %v", err)
	default:
	}
	close(release)
	if err := brokertest.Receive(t, "the reader ends", done); !errors.Is(err, ErrClosed) {
		t.Errorf("the reader ends with %v", err)
	}
}

// A team that nobody follows any more costs nothing: no follower, no goroutine, nothing kept.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.hub.times.linger = 0
	address := r.serve(r.hub) + "/t"
	for range 3 {
		r.runs("bob")
	}
	var sources []*source
	for range 20 {
		s := r.open(address, "")
		for range 3 {
			s.next()
		}
		sources = append(sources, s)
	}
	for _, s := range sources {
		s.resp.Body.Close()
	}
	brokertest.Returns(t, "the readers end, and then their follower", r.hub.busy.Wait)
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if n := len(r.hub.teams); n > 0 {
		t.Errorf("%d followers are left", n)
	}
	for _, name := range []string{"agentteam_streams_open", "agentteam_stream_kept_items"} {
		if n := r.count(name); n != 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
}

// future is a cursor as c, in a part of the feed that has not come yet.
func future(c client.Cursor) client.Cursor {
	b, _ := base64.RawURLEncoding.DecodeString(string(c))
	b[5] += 100 // the sequence in the event log, behind the version and the team's hash
	b = binary.BigEndian.AppendUint32(b[:len(b)-4], crc32.ChecksumIEEE(b[:len(b)-4]))
	return client.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// What is wrong with a request is told before anything is given.
func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.hub.client.Make(t.Context(), client.NewTeam{ID: "other"})
	r.ok(err)
	r.runs("bob")
	end, err := r.team.End(t.Context())
	r.ok(err)
	p, err := end.Place("t")
	r.ok(err)
	for name, tt := range map[string]struct {
		id    team.TeamID
		after client.Cursor
		want  error
	}{
		"no such team":    {"nobody", "", team.NotFound},
		"garbage":         {"t", "garbage", team.InvalidArgument},
		"of another team": {"t", p.Cursor("other"), team.InvalidArgument},
		"of the future":   {"t", future(end), team.InvalidArgument},
	} {
		for _, follow := range []bool{false, true} {
			err := r.hub.Follow(brokertest.Context(t), tt.id, Options{After: tt.after, Follow: follow}, func(i Item) error {
				t.Errorf("%s: told %s", name, told(i))
				return nil
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		}
	}
}

// Many who come at once with nothing are each told everything, over more than one page.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range firstPage + 10 {
		r.runs("bob")
	}
	want := r.past(client.FeedOptions{})
	var readings []*reading
	for range 10 * maxPages {
		readings = append(readings, r.follow(r.hub, Options{}))
	}
	for _, f := range readings {
		for i, got := range f.take(len(want)) {
			if !same(*got.Entry, want[i]) {
				t.Fatalf("entry %d is %s", i, told(got))
			}
		}
		f.end()
	}
}

// A reader misses nothing of a stream that was restored from an older copy and uses sequences a second time.
func TestRestoredStream(t *testing.T) {
	t.Parallel()
	srv := brokertest.NewRestorable(t)
	r := rigAt(t, srv.URL())
	mail, _ := subject.Messages("t")
	r.mails("kept")
	srv.Keep(mail)
	r.mails("lost 1")
	r.mails("lost 2")
	f := r.follow(r.hub, Options{Types: []team.EventType{team.MailSent}})
	f.take(3)
	srv.Restore(mail, nil)
	r.mails("new 1")
	r.mails("new 2")
	for n, i := range f.take(2) {
		if want := fmt.Sprintf("new %d", n+1); !strings.Contains(string(i.Entry.Event.Event.Value), want) {
			t.Errorf("the reader is sent %s, want %s", i.Entry.Event.Event.Value, want)
		}
	}
}
