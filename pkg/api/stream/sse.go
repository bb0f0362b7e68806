package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/client"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// Names of the events of [Hub.Serve]. An entry of the feed has none, so that a browser's EventSource passes it to
// onmessage.
const (
	deltaEvent      = "delta"      // a piece of a text that is being written: a [team.Delta]; without id
	resetEvent      = "reset"      // something is missing that the reader has not had: an entry; without id
	snapshotEvent   = "snapshot"   // after that, how the team stands: a [snapshot]; its id is the reset's cursor
	readyEvent      = "ready"      // the reader has had what had happened when it came: an empty object; without id
	connectionEvent = "connection" // this process has lost NATS, or has it again: {"connected": false}; without id
	problemEvent    = "problem"    // why the stream ends: a [problem.Document]; without id
)

// snapshot is the state of a team. Later entries may report changes that it already contains.
type snapshot struct {
	Members []client.Agent  `json:"members"` // those that have not stopped
	Tasks   []team.TaskView `json:"tasks"`
}

// maxAfter is longer than any cursor.
const maxAfter = 1 << 10

// Ask returns the stream that a request asks for: the cursor from the header Last-Event-ID, which a browser sends when
// it reconnects, or else the parameter after; agent and type, which may occur several times and have several values,
// with commas; and live, true unless it is false. Error: InvalidArgument.
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

// Serve answers r with the team's stream, until its reader leaves or is cut off. o is usually the result of [Ask]; the
// stream follows in any case. The id of an event is the cursor of its entry. Errors, before anything is sent: for an
// invalid o, and for an unknown team.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, id team.TeamID, o Options) error {
	o.Follow = true
	return h.Stream(w, r, func(ctx context.Context, out *Writer) error {
		s := sse{out: out}
		ctx, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel()
		return h.read(ctx, id, o, reader{
			begin: func(t *client.Team) error {
				s.snapshot = func() (snapshot, error) { return standing(ctx, t) }
				watching.Go(func() { h.client.Connection(ctx, s.connection) })
				return out.Resumable()
			},
			item:  s.item,
			pause: out.Flush,
			ready: func() error {
				if err := out.Event("", readyEvent, []byte("{}")); err != nil {
					return err
				}
				return out.Flush()
			},
		})
	}, Problem)
}

// Resumable starts a stream whose events have ids. A browser that loses it reconnects after a second.
func (o *Writer) Resumable() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffer.WriteString("retry: 1000\n\n")
	return o.send()
}

// Problem ends a stream with the reason err, as an event named [problemEvent].
func Problem(out *Writer, err error) {
	if err == nil {
		return
	}
	if data, err := json.Marshal(problem.Of(err)); err == nil {
		_ = out.Event("", problemEvent, data) // a reader that has left needs none
	}
}

// standing returns the state of the team.
func standing(ctx context.Context, t *client.Team) (s snapshot, err error) {
	if s.Members, err = t.Members().List(ctx, false); err != nil {
		return s, err
	}
	s.Tasks, err = t.Board().Tasks(ctx)
	return s, err
}

// sse writes the items of a feed.
type sse struct {
	out      *Writer
	snapshot func() (snapshot, error)
}

// connection writes that NATS is away, which no other event shows, or is back.
func (s *sse) connection(connected bool) {
	if s.out.Event("", connectionEvent, fmt.Appendf(nil, `{"connected":%t}`, connected)) == nil {
		_ = s.out.Flush() // a reader that has left needs none
	}
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
		return s.out.Event("", deltaEvent, data)
	}
	return s.out.Event(string(i.Entry.Cursor), "", data)
}

// reset writes the missing part, and the state of the team. Only the second has an id: a reader that is cut off between
// the two gets both again.
func (s *sse) reset(i Item) error {
	data, err := i.JSON()
	if err == nil {
		err = s.out.Event("", resetEvent, data)
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
	return s.out.Event(string(i.Entry.Cursor), snapshotEvent, data)
}
