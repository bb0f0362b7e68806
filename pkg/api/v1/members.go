package v1

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// OfMember is a member in a path.
type OfMember struct {
	OfTeam
	Name string `path:"name" doc:"The name of a member: its agent_id." example:"coder-1"`
}

// member opens the team and parses the name.
func (s *service) member(ctx context.Context, in OfMember) (*client.Team, team.AgentID, error) {
	name, err := team.ParseAgentID(in.Name)
	if err != nil {
		return nil, "", err
	}
	t, err := s.open(ctx, in.OfTeam)
	return t, name, err
}

type listMembersIn struct {
	OfTeam
	All bool `query:"all" doc:"Also members that have left."`
}

type membersOut struct {
	Body struct {
		Members []client.Agent `json:"members" nullable:"false"`
	} `nameHint:"Members"`
}

type spawnOut struct {
	Status int
	Body   struct {
		Members []client.Agent `json:"members" nullable:"false"`
		Existed bool           `json:"existed" doc:"An earlier request had the same Idempotency-Key."`
	} `nameHint:"SpawnedMembers"`
}

type spawnIn struct {
	OfTeam
	Key  string `header:"Idempotency-Key" doc:"A key of at most 256 bytes of your choice. A request with the same key spawns no member twice and returns the members of the first request as they are now, with status 200. Another request with it is a conflict."`
	Body struct {
		Role     string        `json:"role" doc:"The role that they get." example:"coder"`
		AgentID  string        `json:"agent_id,omitempty" doc:"The name of the one member; left out, the role with the next number."`
		Count    int           `json:"count,omitempty" default:"1" minimum:"1" maximum:"1000" doc:"How many; either all of them come up or none stays."`
		Prompt   string        `json:"prompt,omitempty" doc:"Their first mail, on which they begin immediately."`
		Model    string        `json:"model,omitempty" doc:"The alias of the model that they use; left out, the role's, else that of their process."`
		PlanMode bool          `json:"plan_mode,omitempty" doc:"They change nothing before their plans are approved."`
		Approver team.Approver `json:"approver,omitempty" doc:"Who approves their plans: leader or human; left out, as the role or the team says."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"NewMembers"`
}

type stopMemberIn struct {
	OfMember
	Timeout
	Reason string `query:"reason" doc:"Why, for the member to read."`
	Force  bool   `query:"force" doc:"Do not ask it."`
	Drain  bool   `query:"drain" doc:"Do not ask it, but let it end its task first. If that takes longer than timeout, the status is 202, and it leaves later all the same."`
}

type stopMemberOut struct {
	Status int
	Body   struct {
		Member client.Agent `json:"member"`
		Forced bool         `json:"forced" doc:"It gave no answer in time, and was stopped by force."`
	} `nameHint:"MemberStopped"`
}

type transcriptIn struct {
	OfMember
	Last string `header:"Last-Event-ID" maxLength:"20" doc:"The id of the last entry that was read from a stream, which goes before page."`
	Paging
}

// Paging selects a part of a list.
type Paging struct {
	Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"How many entries a page has at most."`
	Page  string `query:"page" maxLength:"20" doc:"The page that begins here: next of the page before."`
}

// from returns the place in the list where the page begins. Errors: InvalidArgument.
func (p Paging) from() (int, error) {
	if p.Page == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(p.Page, 10, 31)
	if err != nil {
		return 0, noPlace(p.Page)
	}
	return int(n), nil
}

func noPlace(page string) error {
	return team.Errorf(team.InvalidArgument, "query.page: %q is no place in this list", team.Clean(page, 40)).WithHint("take next of the page before, or leave page out")
}

// next returns the name of the next page.
func next(at int) string {
	if at == 0 {
		return ""
	}
	return strconv.Itoa(at)
}

// transcript is a page of a member's conversation.
type transcript struct {
	Entries []client.Entry `json:"entries" nullable:"false"`
	Next    string         `json:"next,omitempty"` // page of the next page; "" = this is the last so far
}

const tagMembers = "members"

func (s *service) members() {
	addOf(s, operation{
		id: "list-members", method: http.MethodGet, path: "/v1/teams/{team}/members", tag: tagMembers, summary: "List a team's members",
		doc: "In order of joining, each with its state and what it works on.",
	}, func(ctx context.Context, t *client.Team, in *listMembersIn) (*membersOut, error) {
		var out membersOut
		agents, err := t.Members().List(ctx, in.All)
		out.Body.Members = slices.DeleteFunc(append([]client.Agent{}, agents...), neverWas)
		return &out, err
	})
	addOf(s, operation{
		id: "spawn-members", method: http.MethodPost, path: "/v1/teams/{team}/members", tag: tagMembers, summary: "Start teammates of a role", status: http.StatusCreated, also: []int{http.StatusOK},
		doc: "New members come out of standby processes.",
	}, spawn)
	add(s, operation{
		id: "get-member", method: http.MethodGet, path: "/v1/teams/{team}/members/{name}", tag: tagMembers, summary: "Show a member",
		doc: "Its state and what it works on; also of one that has left.",
	}, func(ctx context.Context, in *struct{ OfMember }) (*answer[client.Agent], error) {
		t, name, err := s.member(ctx, in.OfMember)
		if err != nil {
			return nil, err
		}
		a, err := agent(ctx, t, name)
		return &answer[client.Agent]{a}, err
	})
	add(s, operation{
		id: "stop-member", method: http.MethodDelete, path: "/v1/teams/{team}/members/{name}", tag: tagMembers, summary: "Stop a member",
		status: http.StatusOK, also: []int{http.StatusAccepted},
		doc: "It is asked to leave. One with work may refuse: that is a conflict with its reason, and it stays. If it has not answered after timeout it is stopped by force. " +
			"A task that it holds goes back to the board. A person's seat is just ended.",
	}, s.stopMember)
	add(s, operation{
		id: "compact-member", method: http.MethodPost, path: "/v1/teams/{team}/members/{name}/compact", tag: tagMembers, summary: "Have a member shorten its conversation", status: http.StatusAccepted,
		doc: "It does so before its next model call, or immediately if it is idle. The answer is how the member stands.",
	}, func(ctx context.Context, in *struct{ OfMember }) (*answer[client.Agent], error) {
		t, name, err := s.member(ctx, in.OfMember)
		if err == nil {
			err = t.Members().Compact(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		a, err := agent(ctx, t, name)
		return &answer[client.Agent]{a}, err
	})
	entries := s.api.OpenAPI().Components.Schemas.Schema(typeOf[transcript](), true, "")
	addStream(s, operation{
		id: "get-transcript", method: http.MethodGet, path: "/v1/teams/{team}/members/{name}/transcript", tag: tagMembers, summary: "Read a member's conversation",
		doc: "The conversation and the calls of a member, or of a subagent as coder-1.a1b2c3d, from its journal: a page, or, if Accept is text/event-stream, a stream of server-sent events, each an entry, which continues with new ones.",
	}, map[string]*huma.MediaType{"application/json": {Schema: entries}, eventStream: {Schema: text}}, s.transcript)
}

// neverWas reports whether a member's spawn failed. Its record stays, so that a process which takes it too late sees
// that.
func neverWas(a client.Agent) bool {
	return a.TakenBack && a.State == team.Stopped && a.Incarnation <= 1
}

// agent returns a present or former member. Errors: NotFound.
func agent(ctx context.Context, t *client.Team, name team.AgentID) (client.Agent, error) {
	a, err := t.Members().Get(ctx, name)
	if err == nil && neverWas(a) {
		err = team.Errorf(team.NotFound, "there is no member %s in team %s: its spawn has failed", name, t.ID())
	}
	return a, err
}

func spawn(ctx context.Context, t *client.Team, in *spawnIn) (*spawnOut, error) {
	name, err := nameOf(in.Body.AgentID)
	if err != nil {
		return nil, err
	}
	m := team.Member{
		AgentID: name, Role: in.Body.Role, Prompt: in.Body.Prompt, Model: in.Body.Model, PlanMode: in.Body.PlanMode, Approver: in.Body.Approver,
	}
	out := spawnOut{Status: http.StatusCreated}
	var spawned []team.Member
	if in.Key == "" {
		spawned, err = t.Members().Spawn(ctx, m, in.Body.Count)
	} else if spawned, out.Body.Existed, err = t.Members().SpawnOnce(ctx, in.Key, m, in.Body.Count); out.Body.Existed {
		out.Status = http.StatusOK
	}
	if err != nil {
		return nil, err
	}
	out.Body.Members = make([]client.Agent, len(spawned))
	for i, m := range spawned {
		if out.Body.Members[i], err = t.Members().Get(ctx, m.AgentID); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// asking is the minimal wait for a member that is drained: it has to be asked.
const asking = 2 * time.Second

func (s *service) stopMember(ctx context.Context, in *stopMemberIn) (*stopMemberOut, error) {
	if in.Force && in.Drain {
		return nil, team.Errorf(team.InvalidArgument, "query.force and query.drain exclude each other").WithHint("leave one of them out")
	}
	t, name, err := s.member(ctx, in.OfMember)
	if err == nil && name != team.Leader { // which cannot be stopped alone, there or not
		_, err = agent(ctx, t, name)
	}
	if err != nil {
		return nil, err
	}
	f := client.StopOptions{Reason: in.Reason, Wait: in.wait(), Drain: in.Drain}
	if in.Force {
		f.Wait = 0
	}
	out := stopMemberOut{Status: http.StatusOK}
	stopping := ctx
	if in.Drain {
		var cancel context.CancelFunc
		stopping, cancel = context.WithTimeout(ctx, max(in.wait(), asking))
		defer cancel()
	}
	out.Body.Forced, err = t.Members().Stop(stopping, name, f)
	if errors.Is(err, client.ErrDrains) && ctx.Err() == nil {
		out.Status, err = http.StatusAccepted, nil
	}
	if err != nil {
		return nil, err
	}
	out.Body.Member, err = t.Members().Get(ctx, name)
	return &out, err
}

func (s *service) transcript(w http.ResponseWriter, r *http.Request, in *transcriptIn) error {
	if in.Last != "" {
		in.Page = in.Last
	}
	from, err := in.from()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.within)
	defer cancel()
	name, of, err := team.ParseConversation(in.Name)
	if err == nil && of != "" {
		err = team.Errorf(team.InvalidArgument, "path.name: %q names a team", in.Name).WithHint("leave out what is behind the name")
	}
	if err != nil {
		return err
	}
	t, err := s.open(ctx, in.OfTeam)
	if err != nil {
		return err
	}
	if streams(r) {
		if _, err := t.Members().Get(ctx, name.Owner()); err != nil { // which a stream could not tell so well
			return err
		}
		return s.followTranscript(w, r, t, name, from)
	}
	body, at := transcript{Entries: []client.Entry{}}, 0
	err = t.Members().Transcript(ctx, name, false, func(e client.Entry) error {
		at++
		switch {
		case at <= from:
		case len(body.Entries) < in.Limit:
			body.Entries = append(body.Entries, e)
		default:
			body.Next = next(from + in.Limit)
			return errPage
		}
		return nil
	})
	return s.writePage(ctx, w, body, err)
}

// followTranscript streams a member's conversation from a place on; the place is the id of each event.
func (s *service) followTranscript(w http.ResponseWriter, r *http.Request, t *client.Team, name team.AgentID, from int) error {
	return s.Hub.Stream(w, r, func(ctx context.Context, out *stream.Writer) error {
		if err := out.Resumable(); err != nil {
			return err
		}
		at := 0
		return t.Members().Transcript(ctx, name, true, func(e client.Entry) error {
			if at++; at <= from {
				return nil
			}
			data, err := json.Marshal(e)
			if err == nil {
				err = out.Event(strconv.Itoa(at), "", data)
			}
			if err == nil {
				err = out.Flush()
			}
			return err
		})
	}, stream.Problem)
}

// streams reports whether a client asks for a stream.
func streams(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), eventStream) }
