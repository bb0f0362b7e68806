package brokertest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Write is the request of a writer to store a value.
type Write struct{ *nats.Msg }

// Store forwards the request to the server and returns the server's answer.
func (w Write) Store(t testing.TB, c *broker.Conn) []byte {
	t.Helper()
	m, err := c.NATS().RequestMsgWithContext(t.Context(), &nats.Msg{Subject: w.Subject, Header: w.Header, Data: w.Data})
	if err != nil {
		t.Error(err)
		return nil
	}
	return m.Data
}

// Intercept passes the next writes of key, which must be the next of the bucket, to f instead of the server, until f
// returns more false, and answers them with f's answer; a nil answer leaves the writer in doubt. While f runs, and
// afterwards, the bucket works as usual. The writers need a connection other than c.
func Intercept(t testing.TB, c *broker.Conn, id team.TeamID, key string, f func(n int, w Write) (answer []byte, more bool)) {
	t.Helper()
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	bucket := subject.Bucket(id)
	s, err := js.Stream(t.Context(), "KV_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	takes := func(subjects string) {
		cfg := s.CachedInfo().Config
		cfg.Subjects = []string{subjects}
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Error(err)
		}
	}
	writes := make(chan *nats.Msg, 64)
	shut := func() *nats.Subscription {
		takes("$KV." + bucket + ".nothing")
		sub, err := c.NATS().ChanSubscribe("$KV."+bucket+"."+key, writes)
		if err == nil {
			err = c.NATS().Flush()
		}
		if err != nil {
			t.Error(err)
		}
		return sub
	}
	sub := shut()
	go func() {
		for n := 1; ; n++ {
			var m *nats.Msg
			select {
			case m = <-writes:
			case <-t.Context().Done():
				return
			}
			if err := sub.Unsubscribe(); err != nil {
				t.Error(err)
			}
			takes("$KV." + bucket + ".>")
			answer, more := f(n, Write{m})
			if more {
				sub = shut()
			}
			if answer == nil {
				answer = []byte("?") // as good as silence, and takes no time
			}
			if err := m.Respond(answer); err != nil {
				t.Error(err)
			}
			if !more {
				return
			}
		}
	}()
}
