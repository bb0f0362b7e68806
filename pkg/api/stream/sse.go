package stream

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/client"
	"agentteam/pkg/feed"
	"agentteam/pkg/team"
)

// Names of the events that [Hub.Serve] writes. An entry of the feed has none, so that a
// browser's EventSource hands it to onmessage.
const (
	DeltaEvent    = "delta"    // a piece of a text that is being written: a [team.Delta]; without id
	ResetEvent    = "reset"    // something is missing that the reader has not had: an entry; without id
	SnapshotEvent = "snapshot" // after that, how the team stands: a [Snapshot]; its id is the reset's cursor
	ProblemEvent  = "problem"  // why the stream ends: a [problem.Document]; without id
)

// Snapshot is how a team stands. What follows it may tell of changes that it holds already.
type Snapshot struct {
	Members []client.Agent  `json:"members"` // those that have not stopped
	Tasks   []team.TaskView `json:"tasks"`
}

// maxAfter is longer than any cursor.
const maxAfter = 1 << 10

// Ask reads what a request wants of a stream: where to begin, from the header
// Last-Event-ID, which a browser sends when it comes back, or else the parameter after;
// agent and type, which may be given several times and hold several, with commas; and
// live, which is true unless it is false. Error: InvalidArgument.
func Ask(r *http.Request) (Options, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Options{}, team.Errorf(team.InvalidArgument, "the query of the address cannot be read: %w", err)
	}
	o := Options{After: client.Cursor(q.Get("after")), Follow: true, Live: true}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		o.After = client.Cursor(last)
	}
	if len(o.After) > maxAfter {
		return o, team.Errorf(team.InvalidArgument, "the cursor has %d characters, more than any has", len(o.After)).
			WithHint("take one that the stream has given as id, whole")
	}
	for _, s := range list(q["agent"]) {
		a, err := team.ParseAgentID(s)
		if err != nil {
			return o, err
		}
		o.Agents = append(o.Agents, a)
	}
	for _, s := range list(q["type"]) {
		t, err := team.ParseEventType(s)
		if err != nil {
			return o, err
		}
		o.Types = append(o.Types, t)
	}
	if live := q.Get("live"); live != "" {
		if o.Live, err = strconv.ParseBool(live); err != nil {
			return o, team.Errorf(team.InvalidArgument, "live is %q", team.Clean(live, 40)).WithHint("it is true or false")
		}
	}
	return o, nil
}

// list splits values at their commas.
func list(values []string) (all []string) {
	for _, v := range values {
		all = append(all, strings.Split(v, ",")...)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Serve answers r with the team's stream as server-sent events, until the reader leaves
// or is cut off. o is most often what [Ask] has read; it follows in any case.
//
// The id of an event is the cursor of its entry. Nothing is sent before o is known to be
// good: what is wrong with it, or a team that is not there, is answered with a problem
// document. A reader that takes nothing for 10 s is cut off.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, id team.TeamID, o Options) {
	o.Follow = true
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	s := &sse{output: output{
		w: w, rc: http.NewResponseController(w), within: h.times.write, fail: cancel, stalled: func() { h.stalled(ctx, id) },
	}}
	var signs sync.WaitGroup
	defer signs.Wait()
	defer cancel(nil)
	err := h.read(ctx, id, o, reader{
		begin: func(t *client.Team) error {
			s.snapshot = func() (Snapshot, error) { return snapshot(ctx, t) }
			signs.Go(func() { s.keepAlive(ctx, h.times.keepAlive) })
			if r.Method == http.MethodHead {
				cancel(nil)
			}
			return s.begin()
		},
		item:  s.item,
		pause: s.flush,
	})
	switch {
	case err == nil, s.broken():
		return
	case !s.begun:
		problem.Write(w, err)
	default:
		s.end(err)
	}
	if team.CodeOf(err) == "" {
		h.log.ErrorContext(ctx, "a stream has failed", "team", id, "err", err)
	}
}

// snapshot is how the team stands.
func snapshot(ctx context.Context, t *client.Team) (s Snapshot, err error) {
	if s.Members, err = t.Agents(ctx, false); err != nil {
		return s, err
	}
	s.Tasks, err = t.Tasks(ctx)
	return s, err
}

// sse writes one stream of server-sent events. Safe for concurrent use.
type sse struct {
	output
	snapshot func() (Snapshot, error)
	begun    bool
}

func (s *sse) begin() error {
	s.begun = true
	s.open()
	s.mu.Lock()
	s.buffer.WriteString("retry: 1000\n\n")
	s.mu.Unlock()
	return s.flush()
}

func (s *sse) item(i Item) error {
	if i.Entry != nil && feed.IsReset(i.Entry.Event) {
		return s.reset(i)
	}
	data, err := i.JSON()
	if err != nil {
		return err
	}
	if i.Delta != nil {
		return s.write(DeltaEvent, "", data)
	}
	return s.write("", i.Entry.Cursor, data)
}

// reset writes what is missing, and how the team stands. Only the second has an id: who
// is cut off between the two is told both again.
func (s *sse) reset(i Item) error {
	data, err := i.JSON()
	if err == nil {
		err = s.write(ResetEvent, "", data)
	}
	if err != nil {
		return err
	}
	now, err := s.snapshot()
	if err != nil {
		return err
	}
	if data, err = json.Marshal(now); err != nil {
		return err
	}
	return s.write(SnapshotEvent, i.Entry.Cursor, data)
}

// write gathers one event. data has no line breaks.
func (s *sse) write(name string, id client.Cursor, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.buffer.WriteString("id: " + string(id) + "\n")
	}
	if name != "" {
		s.buffer.WriteString("event: " + name + "\n")
	}
	s.buffer.WriteString("data: ")
	s.buffer.Write(data)
	s.buffer.WriteString("\n\n")
	if s.buffer.Len() < full {
		return nil
	}
	return s.send()
}

// end tells why the stream ends.
func (s *sse) end(err error) {
	data, merr := json.Marshal(problem.Of(err))
	if merr == nil && s.write(ProblemEvent, "", data) == nil {
		_ = s.flush() // who does not get it sees the end
	}
}
