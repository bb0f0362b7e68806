package agui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
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
	Client *client.Client // required
	Hub    *stream.Hub    // required
	Log    *slog.Logger   // default: discard
}

// Path is the path of the handler. It takes POST only.
const Path = "/v1/teams/{team}/agui"

type server struct{ Options }

// New returns the handler of [Path]. It is safe for concurrent use.
func New(o Options) (http.Handler, error) {
	if o.Client == nil || o.Hub == nil {
		return nil, errors.New("agui: Options lack Client or Hub")
	}
	o.Log = telemetry.OrDiscard(o.Log)
	s, mux := &server{o}, http.NewServeMux()
	mux.HandleFunc("POST "+Path, s.run)
	return problem.Mux(mux, "POST "+Path+" is what there is"), nil
}

// input is the used part of a client's request.
type input struct {
	ThreadID string            `json:"threadId"`
	RunID    string            `json:"runId"`
	Messages []message         `json:"messages"`
	Context  []item            `json:"context"`
	Resume   []json.RawMessage `json:"resume"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // of a user: a text, or a list of parts
}

// part is a part of a user's message.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// item is further information from the client.
type item struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// read reads a request's body. Errors: InvalidArgument.
func read(r *http.Request) (in input, goal string, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return in, "", team.Errorf(team.InvalidArgument, "the body could not be read to its end")
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, "", noInput(err)
	}
	if err := cmp.Or(checkID("threadId", in.ThreadID), checkID("runId", in.RunID)); err != nil {
		return in, "", err
	}
	if len(in.Resume) > 0 {
		return in, "", team.Errorf(team.InvalidArgument, "resume is set, and no run was interrupted").WithHint("questions of the team are answered by POST /v1/teams/{team}/messages/{message}/answer")
	}
	if goal, err = in.goal(); err != nil {
		return in, "", err
	}
	return in, goal, (team.Message{Type: team.MsgUser, Content: goal}).Validate()
}

// noInput returns the error for a malformed body.
func noInput(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return team.Errorf(team.InvalidArgument, "the body is no JSON: %w", err)
	case wrong.Field == "":
		return team.Errorf(team.InvalidArgument, "the body is a JSON %s", wrong.Value).WithHint("send a RunAgentInput, which is an object")
	}
	return team.Errorf(team.InvalidArgument, "%s cannot be a JSON %s", wrong.Field, wrong.Value)
}

func checkID(name, id string) error {
	switch {
	case id == "":
		return team.Errorf(team.InvalidArgument, "%s is missing", name).WithHint("threadId and runId are ids of the client's own choice")
	case len(id) > team.MaxTitleBytes:
		return team.Errorf(team.InvalidArgument, "%s is %d bytes long, the limit is %d", name, len(id), team.MaxTitleBytes)
	}
	return nil
}

// goal returns the last message of the user, with the context below it.
func (in input) goal() (string, error) {
	said := ""
	for i := len(in.Messages) - 1; i >= 0 && said == ""; i-- {
		if in.Messages[i].Role != "user" {
			continue
		}
		var err error
		if said, err = textOf(in.Messages[i].Content); err != nil {
			return "", err
		}
		break
	}
	if strings.TrimSpace(said) == "" {
		return "", team.Errorf(team.InvalidArgument, "messages hold no text of a user").WithHint("the last message of role user becomes the goal")
	}
	var b strings.Builder
	b.WriteString(said)
	for i, c := range in.Context {
		if i == 0 {
			b.WriteString("\n\nContext:")
		}
		b.WriteString("\n- " + c.Description + ": " + c.Value)
	}
	return b.String(), nil
}

// textOf returns the text of a message: a string, or the texts among its parts.
func textOf(content json.RawMessage) (string, error) {
	var text string
	if len(content) == 0 || bytes.Equal(content, []byte("null")) || json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []part
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", team.Errorf(team.InvalidArgument, "the content of a message is neither a text nor a list of parts")
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != "text" {
			return "", team.Errorf(team.InvalidArgument, "a message has a part of type %q; only text can be taken", team.Clean(p.Type, 40)).
				WithHint("put the file into the workspace and name it")
		}
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n"), nil
}

// startWait bounds the setting of a goal, which continues if its client leaves.
const startWait = 30 * time.Second

// start sets the goal, or mails it to the leader of a team at work, and returns the board as it was.
func (s *server) start(ctx context.Context, id team.TeamID, goal string) (*client.Team, *client.Goal, []team.Task, []team.Member, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startWait)
	defer cancel()
	t, err := s.Client.Open(ctx, id)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	g, _, err := t.Goals().Set(ctx, client.NewGoal{Text: goal, Add: true, Budgets: team.Budgets{Goal: team.DefaultBudget}})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	var members []team.Member
	_, tasks, err := t.Before(ctx, g.After())
	if err == nil {
		members, err = t.Members().Records(ctx)
	}
	return t, g, tasks, members, isSet(err)
}

// isSet returns err for a goal that was set already.
func isSet(err error) error {
	if err == nil {
		return nil
	}
	return team.Errorf(team.Unavailable, "the goal is set, and its run cannot be streamed: %s", team.Line(err)).
		WithHint("do not send it again; GET /v1/teams/{team}/events tells how it goes on")
}

// errStopping ends the runs of a process that stops.
var errStopping = team.Errorf(team.Unavailable, "this process is stopping; the goal goes on")

// run sets a goal and streams its progress. A client that leaves does not stop it.
func (s *server) run(w http.ResponseWriter, r *http.Request) {
	id, err := team.ParseTeamID(r.PathValue("team"))
	var in input
	var goal string
	write := withoutSubagents
	if err == nil && r.Header.Get("Idempotency-Key") != "" {
		err = team.Errorf(team.InvalidArgument, "header Idempotency-Key is not kept here").WithHint("set the goal by POST /v1/teams/{team}/goal, which keeps it")
	}
	if err == nil {
		write, err = writing(r)
	}
	if err == nil {
		in, goal, err = read(r)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	t, g, tasks, members, err := s.start(r.Context(), id, goal)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var run *run
	var record team.Team
	err = s.Hub.Stream(w, r, func(ctx context.Context, out *stream.Writer) (err error) {
		run = newRun(in.ThreadID, in.RunID, write(out.JSON))
		run.know(members)
		if err := run.begin(g.Record(), tasks); err != nil {
			return err
		}
		record, err = out.Goal(ctx, id, g, stream.Options{After: g.After(), Live: true, Types: reported}, func(i stream.Item) error {
			if i.Entry != nil && i.Entry.Event.Event.Type == team.Custom {
				now, err := t.Board().Tasks(ctx)
				if err != nil {
					return err
				}
				return run.reset(now)
			}
			return run.take(i)
		})
		return err
	}, func(_ *stream.Writer, err error) { _ = run.end(record, err) }) // a client that has left needs none
	if err != nil {
		s.fail(w, r, isSet(err))
	}
}

// end ends the run for the end of its goal or its stream.
func (r *run) end(record team.Team, err error) error {
	switch {
	case errors.Is(err, stream.ErrClosed):
		err = errStopping
	case err != nil && team.CodeOf(err) == "":
		err = errors.New("the stream has failed")
	}
	switch {
	case err != nil:
		return r.fail(problem.Of(err).Detail, string(team.CodeOf(err)))
	case record.Status == team.TeamFailed || record.Status == team.TeamStopped:
		return r.fail(record.Why(), string(record.Status))
	}
	return r.finish(record)
}

// writing returns the form of members' runs that the client wants, by the parameter subagents. Errors: InvalidArgument.
func writing(r *http.Request) (func(func(any) error) func(any) error, error) {
	query := r.URL.Query()
	subagents, err := true, error(nil)
	if query.Has("subagents") {
		subagents, err = strconv.ParseBool(query.Get("subagents"))
	}
	switch {
	case err != nil:
		return nil, team.Errorf(team.InvalidArgument, "query.subagents: %q is neither true nor false", team.Clean(query.Get("subagents"), 40))
	case subagents:
		return func(write func(any) error) func(any) error { return write }, nil
	}
	return withoutSubagents, nil
}

// fail answers with a problem document. It logs an error without a code and does not send its text.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = team.Errorf(team.Unavailable, "the cluster did not answer in time").WithHint("look whether the team has the goal before you send it again")
	}
	if team.CodeOf(err) == "" {
		s.Log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "err", err)
	}
	problem.Write(w, err)
}
