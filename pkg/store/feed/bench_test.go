package feed

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// BenchmarkRead reads a past of texts and mail, beside a bare reading of their streams.
// It reports entries a second.
func BenchmarkRead(b *testing.B) {
	const stored = 20_000
	r := newRig(b)
	for i := range stored / 2 {
		turn := asJSON(model.Reply{Message: model.Message{Role: "assistant", Content: "I look at it."}})
		text, err := json.Marshal(journal.Record{V: team.Protocol, ID: fmt.Sprint(i), Kind: journal.Turn, Turn: turn, At: time.Now()})
		r.ok(err)
		r.ok(r.bt.Conn.NATS().Publish(subject.Log("t", "ann"), text))
		note, err := json.Marshal(team.Message{V: team.Protocol, ID: fmt.Sprint(i), Type: team.MsgMessage, From: "ann", To: "bob", Content: "look at it"})
		r.ok(err)
		r.ok(r.bt.Conn.NATS().Publish(subject.Inbox("t", "bob", "ann"), note))
		if i%1000 == 999 { // the server takes what is published without being asked in its own time
			r.ok(r.bt.Conn.NATS().Flush())
		}
	}
	if _, err := r.bt.Logs.Append(b.Context(), subject.Log("t", "last"), []byte("{}"), 0); err != nil { // behind all of them
		b.Fatal(err)
	}
	if _, err := r.bt.Messages.Append(b.Context(), subject.Inbox("t", "bob", "last"), []byte("{}"), 0); err != nil {
		b.Fatal(err)
	}
	measure := func(name string, read func() int) {
		b.Run(name, func(b *testing.B) {
			begun, n := time.Now(), 0
			for b.Loop() {
				n += read()
			}
			b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "entries/s")
			if want := b.N * stored; n < want {
				b.Errorf("%d entries, want %d", n, want)
			}
		})
	}
	measure("feed", func() int { return len(r.past(Options{})) })
	measure("streams", func() (n int) { // bare, one after the other
		for _, s := range []*broker.Stream{r.bt.Logs, r.bt.Messages} {
			r.ok(s.Read(b.Context(), 1, func(broker.Msg) error { n++; return nil }))
		}
		return n
	})
}
