package process

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// picky is an endpoint that refuses one field, or once it has changed, requests without that field.
type picky struct {
	refused, asked atomic.Int64
	changed        atomic.Bool
}

func (p *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.asked.Add(1)
	has, changed := strings.Contains(string(body), `"stream_options"`), p.changed.Load()
	if has == changed {
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"fine"}}]}`)
		return
	}
	p.refused.Add(1)
	message := "property 'stream_options' is unsupported"
	if changed {
		message = "no"
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"error":{"message":"`+message+`"}}`)
}

// What an endpoint has taught one process costs no other a refused call. A lesson that is true no more is forgotten by
// all of them.
func TestLessonsAreShared(t *testing.T) {
	url := brokertest.Server(t)
	endpoint := new(picky)
	srv := httptest.NewServer(endpoint)
	defer srv.Close()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	cfg, err := config.Load(config.Sources{Dir: t.TempDir(), Env: func(name string) (string, bool) {
		value, ok := map[string]string{"NATS_URL": url, "OPENAI_BASE_URL": srv.URL + "/v1", "OPENAI_MODEL": "m"}[name]
		return value, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(chan string, 8)
	c := brokertest.Connect(t, url)
	reg, err := registry.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = reg.Bucket().Watch(t.Context(), func(e broker.Entry) error { stored <- string(e.Value); return nil }, nil, "lesson.>")
	}()
	member := func() (ask func(refused int64)) {
		p, err := Open(t.Context(), "teammate", cfg, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		_, with, done := p.As("t", team.Member{AgentID: "coder-1"})
		t.Cleanup(done)
		return func(refused int64) {
			t.Helper()
			before := endpoint.refused.Load()
			_, err := with.Complete(t.Context(), model.Request{Messages: []*model.Message{{Role: "user", Content: "hello"}}}, nil)
			if got := endpoint.refused.Load() - before; got != refused || err != nil {
				t.Errorf("refused %d times, want %d: %v", got, refused, err)
			}
		}
	}
	member()(1)
	if l := brokertest.Receive(t, "a lesson", stored); l != `{"Drop":["stream_options"]}` {
		t.Errorf("stored %q", l)
	}
	second := member()
	second(0)
	endpoint.changed.Store(true)
	second(2) // a 400 in unknown words is tried once more, since it may be chance
	if l := brokertest.Receive(t, "the lesson is forgotten", stored); l != "" {
		t.Errorf("stored %q", l)
	}
	second(0)
	member()(0)
}
