package blob_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
)

// written is how many messages the team's object store has ever taken.
func written(t *testing.T, bt *broker.Storage) uint64 {
	t.Helper()
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "OBJ_"+subject.Files(bt.ID))
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

func TestPut(t *testing.T) {
	bt := brokertest.Team(t, "t")
	texts := blob.In(bt.Files)
	long := strings.Repeat("出力 📦 of a tool\n", 50_000)
	for _, text := range []string{"", "short", long} {
		ref, err := texts.Put(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("stored:%x", sha256.Sum256([]byte(text))); ref != want {
			t.Errorf("the reference is %s, want %s", ref, want)
		}
		if got, err := texts.Get(t.Context(), ref); err != nil || got != text {
			t.Errorf("got %d bytes back of %d: %v", len(got), len(text), err)
		}
		before := written(t, bt)
		if again, err := texts.Put(t.Context(), text); err != nil || again != ref {
			t.Errorf("the same text again is %s, %v", again, err)
		}
		if after := written(t, bt); after != before {
			t.Errorf("the same text was written again: %d messages more", after-before)
		}
	}
}

// What lies under a text's name and is another text is not taken for it.
func TestPutOverAnotherText(t *testing.T) {
	bt := brokertest.Team(t, "t")
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("right")))
	if _, err := bt.Files.Put(t.Context(), "stored/"+digest, strings.NewReader("wrong")); err != nil {
		t.Fatal(err)
	}
	ref, err := blob.In(bt.Files).Put(t.Context(), "right")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := blob.In(bt.Files).Get(t.Context(), ref); got != "right" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNotThere(t *testing.T) {
	texts := blob.In(brokertest.Team(t, "t").Files)
	digest := strings.Repeat("0", 64)
	for ref, want := range map[string]team.Code{
		"stored:" + digest:                       team.NotFound,
		digest:                                   team.InvalidArgument,
		"stored:":                                team.InvalidArgument,
		"stored:" + digest[1:]:                   team.InvalidArgument,
		"stored:" + digest + "/../T-001/1/x":     team.InvalidArgument,
		"stored:" + strings.Repeat("A", 64):      team.InvalidArgument,
		"stored:\n" + strings.Repeat("0", 63):    team.InvalidArgument,
		"stored:" + strings.Repeat("z", 64):      team.InvalidArgument,
		"STORED:" + digest:                       team.InvalidArgument,
		"stored:" + strings.Repeat("0", 100_000): team.InvalidArgument,
	} {
		r, err := texts.Open(t.Context(), ref)
		if r != nil || team.CodeOf(err) != want || team.HintOf(err) == "" || len(err.Error()) > 250 {
			t.Errorf("%.80q: %v, want %s in one line and with a hint", ref, err, want)
		}
	}
}

// Without NATS a call ends with its context.
func TestAway(t *testing.T) {
	url := brokertest.Server(t)
	proxy := brokertest.NewProxy(t, url)
	bt, err := brokertest.Connect(t, proxy.URL).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	texts := blob.In(bt.Files)
	ref, err := texts.Put(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	proxy.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := texts.Put(ctx, "lost"); team.CodeOf(err) != team.Unavailable {
		t.Errorf("Put: %v, want unavailable", err)
	}
	if r, err := texts.Open(ctx, ref); r != nil || team.CodeOf(err) != team.Unavailable {
		t.Errorf("Open: %v, want unavailable", err)
	}
	proxy.Open()
	if got, err := texts.Get(t.Context(), ref); got != "kept" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// Texts go with their team: nothing of them lies outside its object store.
func TestFreed(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ref, err := blob.In(bt.Files).Put(t.Context(), "gone")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "OBJ_"+subject.Files("t")); err != nil {
		t.Fatal(err)
	}
	if bt, err = bt.Conn.Make(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.In(bt.Files).Open(t.Context(), ref); team.CodeOf(err) != team.NotFound {
		t.Errorf("in a team made anew: %v, want not_found", err)
	}
}

func ExampleExcerpt() {
	var log strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&log, "line %d\n", i+1)
	}
	fmt.Print(blob.Excerpt(log.String(), 260, "stored:4f5e"))
	// Output:
	// line 1
	// line 2
	// line 3
	// line 4
	// line 5
	// line 6
	// line 7
	// line 8
	// line 9
	// line 10
	// line 11
	// line 12
	// line 13
	// [8752 bytes are left out here, lines 14 to 995 of 1000; to read them, read "stored:4f5e" from offset 14]
	// line 996
	// line 997
	// line 998
	// line 999
	// line 1000
}
