package teamwire

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// frame is one message of a stream. All four keys are always present.
type frame struct {
	Type      string    `json:"type"` // team_event, complete or error
	Envelope  *Envelope `json:"envelope"`
	SessionID string    `json:"session_id"`
	Error     *string   `json:"error"`
}

// frames writes a stream.
type frames struct {
	out     *stream.Writer
	session string
}

func (f *frames) write(m frame) error {
	m.SessionID = f.session
	return f.out.JSON(m)
}

func (f *frames) events(envelopes []Envelope) error {
	for i := range envelopes {
		if err := f.write(frame{Type: "team_event", Envelope: &envelopes[i]}); err != nil {
			return err
		}
	}
	return nil
}

// frames answers with the frames that read writes, and in the last one with the outcome: the failure of the goal, "" if
// there is none, or an error, such as that of a process that stops.
func (s *server) frames(w http.ResponseWriter, r *http.Request, session string, read func(context.Context, *frames) (failure string, err error)) {
	var failure string
	err := s.Hub.Stream(w, r, func(ctx context.Context, out *stream.Writer) (err error) {
		if err = out.Flush(); err == nil {
			failure, err = read(ctx, &frames{out, session})
		}
		return err
	}, func(out *stream.Writer, err error) {
		if err != nil {
			failure = textOf(late(r, err))
		}
		last := frame{Type: "complete"}
		if failure != "" {
			last = frame{Type: "error", Error: &failure}
		}
		_ = (&frames{out, session}).write(last) // a client that has left needs none
	})
	if err != nil {
		s.fail(w, r, err)
	}
}

// run is a message to a team: a goal, or mail to the leader of a team at work.
type run struct {
	pair
	text string
}

// runOf reads the message of a request. Errors: invalid; InvalidArgument.
func runOf(r *http.Request) (run, error) {
	in, err := bodyOf(r)
	if err != nil {
		return run{}, err
	}
	m := run{in.pair(), in.text("message")}
	var template, vars, env map[string]string
	if v := in.object("variables"); v != nil {
		template, vars, env = v.strings("template"), v.strings("runtime_vars"), v.strings("sandbox_env")
	}
	if err := in.err(); err != nil {
		return m, err
	}
	if len(env) > 0 {
		return m, team.Errorf(team.InvalidArgument, "variables.sandbox_env is not possible: what commands get in their environment is set by the team's settings, not by a goal")
	}
	if strings.TrimSpace(m.text) == "" {
		return m, team.Errorf(team.InvalidArgument, "the message is empty")
	}
	m.text += variables("Template variables", template) + variables("Runtime variables", vars)
	return m, (team.Message{Type: team.MsgUser, Content: m.text}).Validate()
}

// variables returns them as lines of a goal: a heading and a line for each, in order of name.
func variables(heading string, m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n" + heading + ":")
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b.WriteString("\n- " + name + ": " + m[name])
	}
	return b.String()
}

// startWait bounds the setting of a goal, which continues if its client leaves: no client would wait for half a goal.
const startWait = 30 * time.Second

// start creates the team and sets the goal, or mails it to the leader. members are the members before.
func (s *server) start(ctx context.Context, m run) (t *client.Team, g *client.Goal, members []team.Member, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startWait)
	defer cancel()
	if t, err = s.make(ctx, m.pair); err != nil {
		return nil, nil, nil, err
	}
	if members, err = t.Members().Records(ctx); err != nil {
		return nil, nil, nil, err
	}
	g, _, err = t.Goals().Set(ctx, client.NewGoal{Text: m.text, Workspace: s.Workspace, Add: true, Budgets: team.Budgets{Goal: team.DefaultBudget}})
	return t, g, members, err
}

// stream sets a goal and streams its progress. While the team is at work, the text is mail to its leader, and the
// stream begins at that time.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	m, err := runOf(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	t, g, members, err := s.start(r.Context(), m)
	if errors.Is(err, team.InvalidArgument) {
		s.fail(w, r, err)
		return
	}
	s.frames(w, r, m.session, func(ctx context.Context, f *frames) (string, error) {
		if err != nil {
			return "", err
		}
		c := newConverter(t.ID())
		c.know(members)
		record, err := f.out.Goal(ctx, t.ID(), g, stream.Options{After: g.After(), Live: true, Types: reported}, func(i stream.Item) error {
			return f.events(c.convert(i))
		})
		if err == nil {
			err = f.events(c.close(record.Status))
		}
		if g.Started() && record.Status == team.TeamFailed {
			return record.Why(), err
		}
		return "", err
	})
}

// subscribe streams the past of a team without the first envelopes, and continues until the team is no longer at work.
func (s *server) subscribe(w http.ResponseWriter, r *http.Request) {
	in := queryOf(r)
	n, after := in.pair(), in.number("after")
	err := in.err()
	var t *client.Team
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), startWait)
		t, err = s.open(ctx, n)
		cancel()
		err = unlessUnknown(err)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.frames(w, r, n.session, func(ctx context.Context, f *frames) (string, error) {
		if t == nil {
			return "", nil
		}
		return "", f.follow(ctx, t, max(after, 0))
	})
}

// follow writes all envelopes of a team except the first ones, in order, until it is no longer at work. It omits texts
// that are being written, so that a count of envelopes is a place in the feed.
func (f *frames) follow(ctx context.Context, t *client.Team, after int) error {
	give := func(all []Envelope) error {
		known := min(after, len(all))
		after -= known
		return f.events(all[known:])
	}
	c := newConverter(t.ID())
	convert := func(i stream.Item) error { return give(c.convert(i)) }
	record, err := t.Record(ctx)
	if err != nil {
		return err
	}
	o := stream.Options{Types: reported}
	if !record.AtWork() {
		return f.out.Follow(ctx, t.ID(), o, convert)
	}
	g, err := t.Goals().Present(ctx)
	if err != nil {
		return err
	}
	if record, err = f.out.Goal(ctx, t.ID(), g, o, convert); err != nil {
		return err
	}
	return give(c.close(record.Status))
}

// query sets a goal and waits for its end; for a team at work, for the end of its present goal.
func (s *server) query(r *http.Request) (any, error) {
	m, err := runOf(r)
	if err != nil {
		return nil, err
	}
	_, g, _, err := s.start(r.Context(), m)
	if err != nil {
		return nil, err
	}
	record, err := g.Wait(r.Context())
	if err != nil {
		return nil, err
	}
	if record.Status == team.TeamFailed || record.Status == team.TeamStopped {
		return nil, team.Errorf(team.InvalidState, "the goal is %s: %s", record.Status, record.Why())
	}
	return struct {
		SessionID string `json:"session_id"`
		Result    string `json:"result"`
	}{m.session, record.Summary}, nil
}
