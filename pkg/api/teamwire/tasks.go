package teamwire

import (
	"net/http"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// apiSeat is the seat of a client that claims a task without a name, and in the list the creator of people's tasks.
const apiSeat team.AgentID = "api"

// taskOut is a task in the form of this wire.
type taskOut struct {
	TaskID          team.TaskID     `json:"task_id"`
	Title           string          `json:"title"`
	Description     string          `json:"description"`
	Status          team.TaskStatus `json:"status"`
	Priority        int             `json:"priority"`
	Dependencies    []team.TaskID   `json:"dependencies"`
	AssigneeAgentID *string         `json:"assignee_agent_id"`
	ResultSummary   *string         `json:"result_summary"`
	CreatedBy       team.AgentID    `json:"created_by"`
	IsBlocked       bool            `json:"is_blocked"`
	DeliverablePath *string         `json:"deliverable_path"`
}

func taskOf(v team.TaskView) taskOut {
	t := taskOut{v.ID, v.Title, v.Description, v.Status, v.Priority, v.Dependencies,
		orNull(string(v.Assignee)), orNull(v.ResultSummary), v.CreatedBy, v.IsBlocked, orNull(v.DeliverablePath)}
	if v.CreatedBy == team.UserAgent {
		t.CreatedBy = apiSeat
	}
	return t
}

// tasks lists the board, also after the goal has ended.
func (s *server) tasks(r *http.Request, in *input) (any, error) {
	n := in.pair()
	status, only := in.nullable("status")
	if err := in.err(); err != nil {
		return nil, err
	}
	wanted, err := team.ParseTaskStatus(status)
	if only && err != nil {
		return nil, err
	}
	list := []taskOut{}
	t, err := s.open(r.Context(), n)
	if err != nil {
		return list, unlessUnknown(err)
	}
	views, err := t.Board().Tasks(r.Context())
	for _, v := range views {
		if !only || v.Status == wanted {
			list = append(list, taskOf(v))
		}
	}
	return list, err
}

// addTask adds a task to the board, and creates a missing team. It creates nothing for a refused task.
func (s *server) addTask(r *http.Request, in *input) (any, error) {
	n := in.pair()
	task := team.NewTask{Title: in.text("title"), Description: in.textOr("description", ""), Priority: min(max(in.number("priority"), 0), len(team.Priorities())-1)}
	names := in.texts("dependencies")
	if err := in.err(); err != nil {
		return nil, err
	}
	for _, name := range names {
		id, err := taskID(name)
		if err != nil {
			return nil, err
		}
		task.Dependencies = append(task.Dependencies, id)
	}
	if err := task.Validate(); err != nil {
		return nil, err
	}
	t, err := s.makeFor(r, n, task)
	if err != nil {
		return nil, err
	}
	added, _, err := t.Board().Add(r.Context(), "", task)
	if err != nil {
		return nil, err
	}
	v, err := t.Board().View(r.Context(), added[0])
	return taskOf(v), err
}

// makeFor opens the team of a task, or creates it for a task without dependencies.
func (s *server) makeFor(r *http.Request, n pair, task team.NewTask) (*client.Team, error) {
	if len(task.Dependencies) > 0 {
		return s.open(r.Context(), n)
	}
	return s.make(r.Context(), n)
}

// taskID returns the id of a task. A malformed id is not found.
func taskID(name string) (team.TaskID, error) {
	id, err := team.ParseTaskID(name)
	if err != nil {
		return "", team.Errorf(team.NotFound, "there is no task %q", team.Clean(name, 40))
	}
	return id, nil
}

// claimTask gives a task to a member; it creates no other seat than [apiSeat]. Errors: Busy if the member holds
// another; NotFound for an unknown name.
func (s *server) claimTask(r *http.Request, in *input) (any, error) {
	n, name := in.pair(), in.text("task_id")
	who, named := in.nullable("assignee_agent_id")
	if err := in.err(); err != nil {
		return nil, err
	}
	id, err := taskID(name)
	if err != nil {
		return nil, err
	}
	as := apiSeat
	if named {
		if as, err = team.ParseAgentID(who); err != nil {
			return nil, err
		}
	}
	t, err := s.open(r.Context(), n)
	if err != nil {
		return nil, err
	}
	b := t.Board()
	if as == apiSeat {
		b = b.Seating(as)
	}
	task, err := b.Claim(r.Context(), id, as)
	return struct {
		TaskID          team.TaskID  `json:"task_id"`
		Status          string       `json:"status"`
		AssigneeAgentID team.AgentID `json:"assignee_agent_id"`
	}{task.ID, "claimed", task.Assignee}, err
}

// changeTask changes the status of a task: a seat's task is completed, failed or put back, and any open one is
// cancelled. Errors: Conflict for a task of an agent, or of no member.
func (s *server) changeTask(r *http.Request, in *input) (any, error) {
	where := queryOf(r)
	where.wrong = in.wrong
	n := where.pair()
	name := in.text("status")
	summary, _ := in.nullable("result_summary")
	if err := in.err(); err != nil {
		return nil, err
	}
	status, err := team.ParseTaskStatus(name)
	if err != nil {
		return nil, err
	}
	id, err := taskID(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	t, err := s.open(r.Context(), n)
	if err != nil {
		return nil, err
	}
	v, err := t.Board().Task(r.Context(), id)
	if err != nil {
		return nil, err
	}
	task, err := s.change(r, t, v, status, summary)
	return struct {
		TaskID team.TaskID     `json:"task_id"`
		Status team.TaskStatus `json:"status"`
	}{task.ID, task.Status}, err
}

// noSummary is the summary of a task that was completed without one.
const noSummary = "Completed."

func (s *server) change(r *http.Request, t *client.Team, v team.TaskView, status team.TaskStatus, summary string) (team.Task, error) {
	ctx := r.Context()
	// A repetition is no error, unless its words, or the holder, differ from the record.
	words := v.Reason
	if v.Status == team.Completed {
		words = v.ResultSummary
	}
	same := status == v.Status && (v.Status == team.InProgress || summary == "" || summary == words)
	switch {
	case same && (v.Status == team.Pending || v.Status == team.Cancelled):
		return v.Task, nil
	case status == team.Cancelled:
		return t.Board().Cancel(ctx, v.ID, "", summary)
	case v.Status == team.Pending:
		return team.Task{}, team.Errorf(team.InvalidState, "%s is pending: claim it first", v.ID)
	case v.Status != team.InProgress && !same:
		return team.Task{}, team.Errorf(team.InvalidState, "%s is already %s", v.ID, v.Status)
	}
	if _, err := s.seat(r, t, string(v.Assignee)); err != nil {
		if team.CodeOf(err) == team.PermissionDenied {
			err = team.Errorf(team.Conflict, "%s is %s by %s, which is no seat and acts for itself", v.ID, held(v.Status), v.Assignee)
		}
		return team.Task{}, err
	}
	if same {
		return v.Task, nil
	}
	switch status {
	case team.Completed:
		if summary == "" {
			summary = noSummary
		}
		return t.Board().Complete(ctx, v.ID, v.Assignee, summary)
	case team.Failed:
		return t.Board().Fail(ctx, v.ID, v.Assignee, summary)
	}
	return t.Board().Release(ctx, v.ID, v.Assignee, summary)
}

// held returns what the assignee of a task of that status does with it, or did.
func held(s team.TaskStatus) string {
	if s == team.InProgress {
		return "held"
	}
	return string(s)
}
