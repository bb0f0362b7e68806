package broker_test

import (
	"errors"
	"fmt"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// two returns the bucket of a new team as a writer has it and, on a connection of
// their own, as the others have it.
func two(t *testing.T) (mine, others *broker.Storage) {
	t.Helper()
	url := brokertest.Server(t)
	mine, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	others, err = brokertest.Connect(t, url).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return mine, others
}

// A refusal is of the try that it answers. An earlier one, of which nothing was
// heard, may have been applied, or else the write is still to be made.
func TestPutRefusedAfterDoubt(t *testing.T) {
	for name, applied := range map[string]bool{"was applied": true, "was lost": false} {
		t.Run(name, func(t *testing.T) {
			mine, others := two(t)
			brokertest.Intercept(t, others.Conn, "t", "graph", func(n int, w brokertest.Write) ([]byte, bool) {
				if n > 2 {
					t.Error("asked again although the write is there")
				}
				if n > 1 {
					return []byte(`{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`), applied && n < 3
				}
				if applied {
					w.Store(t, others.Conn)
				}
				return nil, true
			})
			rev, err := mine.Bucket.Put(t.Context(), "graph", []byte("mine"), 0)
			e, gerr := others.Bucket.Get(t.Context(), "graph")
			if err != nil || gerr != nil || rev != e.Revision || rev != 1 || string(e.Value) != "mine" {
				t.Errorf("Put = %d, %v, and the key holds %q at %d, %v", rev, err, e.Value, e.Revision, gerr)
			}
		})
	}
}

// An answer that comes a second time, when the next write already waits for its own, is
// not taken for that.
func TestAnswerComesAgain(t *testing.T) {
	mine, others := two(t)
	var first string // where the first write was answered
	brokertest.Intercept(t, others.Conn, "t", "graph", func(n int, w brokertest.Write) ([]byte, bool) {
		if n == 1 {
			first = w.Reply
		} else if err := others.Conn.NATS().Publish(first, []byte(`{"stream":"KV_x","seq":99}`)); err != nil {
			t.Error(err)
		}
		return w.Store(t, others.Conn), n < 2
	})
	for want := range uint64(2) {
		if rev, err := mine.Bucket.Put(t.Context(), "graph", []byte{'0' + byte(want)}, want); err != nil || rev != want+1 {
			t.Errorf("Put = %d, %v, want %d", rev, err, want+1)
		}
	}
}

// A write whose answer was lost is found under those that came after it. Where the
// history does not reach back so far, nobody can tell, and so it does.
func TestPutOvertaken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fresh   bool // the key is not there yet
		applied bool
		later   int // writes of others before it is asked again
		want    error
	}{
		{fresh: true, applied: true, later: 63},
		{fresh: true, applied: true, later: 64, want: broker.ErrOvertaken},
		{fresh: true, later: 63, want: team.Conflict},
		{fresh: true, later: 64, want: broker.ErrOvertaken},
		{applied: true, later: 63},
		{applied: true, later: 64, want: broker.ErrOvertaken},
		{later: 63, want: team.Conflict},
		{later: 64, want: broker.ErrOvertaken},
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			t.Parallel()
			others := brokertest.Team(t, "t")
			link := brokertest.NewProxy(t, others.Conn.Server())
			mine, err := brokertest.Connect(t, link.URL).Open(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			put := func(what string, revision uint64) uint64 {
				revision, err := others.Bucket.Put(t.Context(), "graph", []byte(what), revision)
				if err != nil {
					t.Error(err)
				}
				return revision
			}
			var base uint64
			if !tt.fresh {
				base = put("before", 0)
			}
			brokertest.Intercept(t, others.Conn, "t", "graph", func(_ int, w brokertest.Write) ([]byte, bool) {
				link.Close() // it asks again once the others are done, however long they take
				defer link.Open()
				last := base
				if tt.applied {
					w.Store(t, others.Conn)
					last++
				}
				for n := range tt.later {
					last = put(fmt.Sprint(n), last)
				}
				return nil, false
			})
			rev, err := mine.Bucket.Put(t.Context(), "graph", []byte("mine"), base)
			if !errors.Is(err, tt.want) || err == nil && rev != base+1 {
				t.Errorf("Put = %d, %v, want %v", rev, err, tt.want)
			}
			if tt.want != nil && errors.Is(err, team.Unavailable) != (tt.want == broker.ErrOvertaken) {
				t.Errorf("%v has the code %s", err, team.CodeOf(err))
			}
		})
	}
}

// A write that was made by somebody else in one's stead counts as made.
func TestPutAgain(t *testing.T) {
	b := brokertest.Team(t, "t").Bucket
	rev, err := b.Put(t.Context(), "graph", []byte("shared"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "graph", []byte("later"), rev); err != nil {
		t.Fatal(err)
	}
	if again, err := b.PutAgain(t.Context(), "graph", []byte("shared"), 0); err != nil || again != rev {
		t.Errorf("PutAgain = %d, %v, want %d", again, err, rev)
	}
	if _, err := b.PutAgain(t.Context(), "graph", []byte("another"), 0); !errors.Is(err, team.Conflict) {
		t.Errorf("PutAgain of what nobody made: %v, want conflict", err)
	}
	if e, err := b.Get(t.Context(), "graph"); err != nil || string(e.Value) != "later" {
		t.Errorf("the key holds %q, %v", e.Value, err)
	}
}
