package watchdog

import (
	"testing"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/subject"
)

// What the leader was told outlives its process: the next leader's watchdog goes on from
// there, and never behind it.
func TestNote(t *testing.T) {
	b := brokertest.Team(t, "t").Bucket
	ctx := t.Context()
	want := func(what string, told uint64) {
		t.Helper()
		if n, _, err := readNote(ctx, b); err != nil || n.Told != told {
			t.Errorf("%s: told up to %d, %v; want %d", what, n.Told, err, told)
		}
	}
	want("nothing noted", 0)
	for _, step := range []struct{ set, want uint64 }{{0, 0}, {7, 7}, {5, 7}, {9, 9}} {
		if err := storeNote(ctx, b, step.set); err != nil {
			t.Fatal(err)
		}
		want("noted", step.want)
	}
	e, err := b.Get(ctx, subject.KeyWatchdog)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, subject.KeyWatchdog, []byte("{"), e.Revision); err != nil {
		t.Fatal(err)
	}
	want("damaged", 0)
	if err := storeNote(ctx, b, 3); err != nil {
		t.Error(err)
	}
	want("mended", 3)
}
