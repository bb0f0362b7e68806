package v1

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// text is the schema of a type without one.
var text = &huma.Schema{Type: huma.TypeString}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// errPage ends reading: the page is full.
var errPage = errors.New("the page is full")

type eventsIn struct {
	OfTeam
	Last   string   `header:"Last-Event-ID" doc:"The id of the last event that was read, which goes before after."`
	After  string   `query:"after" doc:"The cursor behind which to begin; left out, the beginning."`
	Agent  []string `query:"agent" doc:"Only events of these members, with commas between."`
	Type   []string `query:"type" doc:"Only events of these types, with commas between."`
	Live   bool     `query:"live" default:"true" doc:"In a stream, also the texts that models are writing now."`
	Follow bool     `query:"follow" doc:"Return a stream, regardless of the Accept header."`
	Limit  int      `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"How many events a page has at most."`
}

// events is a page of a team's feed.
type events struct {
	Events []client.Entry `json:"events" nullable:"false"`
	Next   client.Cursor  `json:"next"` // after of the next page
	More   bool           `json:"more"` // there is a next page already
}

const tagEvents = "events"

func (s *service) events() {
	schemas := s.api.OpenAPI().Components.Schemas
	page := schemas.Schema(typeOf[events](), true, "")
	// The values of events, and the other events of a stream, occur in no operation.
	for _, of := range []reflect.Type{typeOf[team.Task](), typeOf[team.Member](), typeOf[team.Message](), typeOf[team.Approval](), typeOf[team.Delta](), typeOf[team.Retrying]()} {
		schemas.Schema(of, true, "")
	}
	addStream(s, operation{
		id: "get-events", method: http.MethodGet, path: "/v1/teams/{team}/events", tag: tagEvents, summary: "Read what happens in a team",
		doc: "All that is stored, in one order, which is the same in every leader process: a page, or, if Accept is text/event-stream or follow is set, a stream of server-sent events that continues with new ones. " +
			"The id of an event is its cursor. Pieces of texts that are being written come between as events called delta, without id; they are stored only once they are whole. " +
			"An event called reset tells a reader what it has missed, and snapshot how the team stands then; ready comes once all that had happened before has been sent; problem says why a stream ends.",
	}, map[string]*huma.MediaType{"application/json": {Schema: page}, eventStream: {Schema: text}}, s.feed)
}

func (s *service) feed(w http.ResponseWriter, r *http.Request, in *eventsIn) error {
	o, err := stream.Ask(r)
	if err != nil {
		return err
	}
	id, err := team.ParseTeamID(in.Team)
	if err != nil {
		return err
	}
	if in.Follow || streams(r) {
		return s.Hub.Serve(w, r, id, o)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.within)
	defer cancel()
	t, err := s.Client.Open(ctx, id)
	if err != nil {
		return err
	}
	body := events{Events: []client.Entry{}, Next: o.After}
	err = t.Feed(ctx, client.FeedOptions{After: o.After, Agents: o.Agents, Types: o.Types}, func(e client.Entry) error {
		if len(body.Events) == in.Limit {
			body.More = true
			return errPage
		}
		body.Events, body.Next = append(body.Events, e), e.Cursor
		return nil
	})
	return s.writePage(ctx, w, body, err)
}

// writePage writes a page after reading ended: it was full, or there was no more.
func (s *service) writePage(ctx context.Context, w http.ResponseWriter, body any, err error) error {
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && !errors.Is(err, errPage) {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return marshal(w, body)
}
