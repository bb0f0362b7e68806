package teamwire

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options are the settings of the handler.
type Options struct {
	Client    *client.Client                 // required
	Hub       *stream.Hub                    // required
	NewTeam   func() (client.NewTeam, error) // what a team is made with, its name and session aside; required
	Workspace string                         // the folder that /files shows; required
	Private   []string                       // files that /files never shows, such as those of tokens
	Log       *slog.Logger                   // default: discard
}

// server is the handler. It stores nothing of a request.
type server struct {
	Options
	mux *http.ServeMux
}

// New returns the handler of all routes. It is safe for concurrent use.
func New(o Options) (http.Handler, error) {
	if o.Client == nil || o.Hub == nil || o.NewTeam == nil || o.Workspace == "" {
		return nil, errors.New("teamwire: Options lack Client, Hub, NewTeam or Workspace")
	}
	o.Log = telemetry.OrDiscard(o.Log)
	s := &server{Options: o, mux: http.NewServeMux()}
	for pattern, answer := range map[string]func(*http.Request, *input) (any, error){
		"GET /{$}":                s.info,
		"GET /team/teammates":     s.teammates,
		"GET /team/tasks":         s.tasks,
		"POST /team/tasks":        s.addTask,
		"POST /team/tasks/claim":  s.claimTask,
		"PATCH /team/tasks/{id}":  s.changeTask,
		"POST /team/message":      s.message,
		"POST /team/user-message": s.userMessage,
		"POST /team/stop":         s.stop,
		"GET /team/status":        s.status,
		"GET /team/history":       s.history,
		"GET /team/sessions":      s.sessions,
		"GET /files/tree":         s.tree,
		"GET /files/content":      s.content,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), answerWait)
			defer cancel()
			s.answer(w, r, reading(answer), ctx)
		})
	}
	s.mux.HandleFunc("POST /team/query", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, s.query, r.Context()) // as long as the goal takes, or the client waits
	})
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("POST /team/stream", s.stream)
	s.mux.HandleFunc("GET /team/subscribe", s.subscribe)
	return s, nil
}

// answerWait bounds an answer that does not wait for a goal; stopping a team takes longest.
const answerWait = time.Minute

// ServeHTTP serves a request. Unknown routes get the JSON of this wire.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, allow := problem.Refused(s.mux, r)
	if status == 0 {
		s.mux.ServeHTTP(w, r)
		return
	}
	if allow != "" {
		w.Header().Set("Allow", allow)
	}
	writeJSON(w, status, detail{http.StatusText(status)})
}

// reading returns f with the fields of a request: of its query, or of its body for a change.
func reading(f func(*http.Request, *input) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return f(r, queryOf(r))
		}
		in, err := bodyOf(r)
		if err != nil {
			return nil, err
		}
		return f(r, in)
	}
}

// answer writes the result of f, or its error.
func (s *server) answer(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error), ctx context.Context) {
	v, err := f(r.WithContext(ctx))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, v)
}

// pair is the two words that name a team.
type pair struct{ user, session string }

// open opens the team of a session. Errors: NotFound.
func (s *server) open(ctx context.Context, n pair) (*client.Team, error) {
	return s.Client.OpenSession(ctx, n.user, n.session)
}

// make creates the team of a session, or opens it.
func (s *server) make(ctx context.Context, n pair) (*client.Team, error) {
	with, err := s.NewTeam()
	if err != nil {
		return nil, err
	}
	return s.Client.MakeSession(ctx, n.user, n.session, with)
}

// info describes the service.
func (s *server) info(*http.Request, *input) (any, error) {
	endpoints := map[string]string{"health": "/health", "files": "/files/tree", "v1": "/v1/openapi.json"}
	for _, name := range strings.Fields("stream query teammates tasks message user-message stop status subscribe history sessions") {
		endpoints[name] = "/team/" + name
	}
	return struct {
		Service   string            `json:"service"`
		Version   string            `json:"version"`
		Status    string            `json:"status"`
		Endpoints map[string]string `json:"endpoints"`
	}{"agentteam", telemetry.Version(), "running", endpoints}, nil
}

// healthWait bounds the check of NATS.
const healthWait = 2 * time.Second

// health reports whether requests can be served: 503 without NATS.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthWait)
	defer cancel()
	status, is := http.StatusOK, "healthy"
	if s.Client.Ready(ctx) != nil {
		status, is = http.StatusServiceUnavailable, "unhealthy"
	}
	writeJSON(w, status, map[string]string{"status": is})
}

// sessions lists the sessions of a user.
func (s *server) sessions(r *http.Request, in *input) (any, error) {
	user := in.text("user_id")
	if err := in.err(); err != nil {
		return nil, err
	}
	return s.Client.Sessions(r.Context(), user)
}

// status reports whether the session's team works on a goal.
func (s *server) status(r *http.Request, in *input) (any, error) {
	n := in.pair()
	if err := in.err(); err != nil {
		return nil, err
	}
	record, err := s.record(r.Context(), n)
	if err != nil {
		return nil, err
	}
	return struct {
		Running   bool   `json:"running"`
		SessionID string `json:"session_id"`
	}{record.AtWork(), n.session}, nil
}

// record returns the record of the session's team, the zero Team if there is none.
func (s *server) record(ctx context.Context, n pair) (team.Team, error) {
	t, err := s.open(ctx, n)
	if err != nil {
		return team.Team{}, unlessUnknown(err)
	}
	return t.Record(ctx)
}

// unlessUnknown returns nil for an unknown session, else err.
func unlessUnknown(err error) error {
	if errors.Is(err, team.NotFound) {
		return nil
	}
	return err
}
