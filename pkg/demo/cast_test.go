package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model"
)

// cast is a whole team without processes: it asks the rehearsal endpoint for each
// turn, as an agent does, runs the commands of bash for real and keeps board and mail in memory. Who
// has the next turn and who gets a task is left to chance.
type cast struct {
	t         *testing.T
	rng       *rand.Rand
	model     *model.Client
	workspace string
	players   []*player // the leader first
	tasks     []*task
	all       int // notices that all are idle
	summary   string

	// What is still to go wrong, at moments left to chance: calls cut off, tasks
	// taken back, answers that never come.
	cuts, losses, silences int

	answered, broadcasts, left int
}

type player struct {
	name, role string
	conv       []*model.Message
	mail       []string // not yet seen
	awake      bool
	asked      string // whose answer it waits for, while it has a task; "" if it does not
	stopped    bool   // since the team finished
}

type task struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Description  string   `json:"description"`
	Status       string   `json:"status"`
	Dependencies []string `json:"dependencies"`
	Assignee     string   `json:"assignee"`
	Deliverable  string   `json:"deliverable_path"`
	Summary      string   `json:"result_summary"`

	nudged   bool
	attempts int
}

// play gives the team a goal and lets it work until it finishes, or the leader has been
// told three times that all are idle and nothing came of it.
func (c *cast) play(goal string) {
	c.t.Helper()
	if len(c.players) == 0 {
		c.join("leader")
	}
	c.all, c.summary = 0, ""
	c.post(c.players[0], `<mail from="user" id="m-0" mark="x">`+"\n"+goal+"\n</mail x>")
	for range 500 {
		c.assign()
		awake := slices.DeleteFunc(slices.Clone(c.players), func(p *player) bool { return !p.awake })
		if len(awake) == 0 {
			if c.all++; c.all > 3 {
				return
			}
			notice := "[All Idle] nobody moves\n"
			for _, p := range c.players {
				if p.asked != "" && c.holds(p) != nil {
					notice += "- " + p.name + " waits for an answer\n"
				}
			}
			c.post(c.players[0], `<mail from="watchdog" id="w-1" mark="x">`+"\n"+notice+"</mail x>")
			continue
		}
		p := awake[c.rng.IntN(len(awake))]
		if p.role != "leader" {
			c.all = 0
		}
		c.turn(p)
		if c.summary != "" {
			for _, p := range c.players[1:] {
				p.stopped, p.awake = true, false
			}
			return
		}
	}
	c.t.Fatal("500 turns and no end")
}

func (c *cast) join(role string) *player {
	p := &player{name: role, role: role}
	if role != "leader" {
		p.name = fmt.Sprintf("%s-%d", role, len(c.players))
	}
	system := fmt.Sprintf("Work.\n\nYou are %s, role %s, in team t1.\n", p.name, p.role)
	p.conv = []*model.Message{{Role: "system", Content: system}}
	c.players = append(c.players, p)
	return p
}

func (c *cast) post(to *player, mail string) { to.mail, to.awake = append(to.mail, mail), true }

// holds returns the task that p is at, or nil.
func (c *cast) holds(p *player) *task {
	for _, t := range c.tasks {
		if t.Status == "in_progress" && t.Assignee == p.name {
			return t
		}
	}
	return nil
}

// assign gives claimable tasks to idle teammates, and now and then takes one away
// from its holder, who is stopped in the middle of it.
func (c *cast) assign() {
	for _, t := range c.tasks {
		if t.Status == "in_progress" && c.losses > 0 && c.rng.IntN(15) == 0 {
			c.losses--
			t.Status = "pending"
			p := c.player(t.Assignee)
			p.asked, p.awake = "", len(p.mail) > 0
		}
		if t.Status != "pending" || slices.ContainsFunc(t.Dependencies, func(id string) bool { return c.task(id).Status != "completed" }) {
			continue
		}
		for _, i := range c.rng.Perm(len(c.players)) {
			if p := c.players[i]; p.role != "leader" && !p.stopped && !p.awake && c.holds(p) == nil {
				t.Status, t.Assignee, t.nudged = "in_progress", p.name, false
				c.post(p, c.describe(t))
				break
			}
		}
	}
}

func (c *cast) player(name string) *player {
	i := slices.IndexFunc(c.players, func(p *player) bool { return p.name == name })
	return c.players[i]
}

func (c *cast) task(id string) *task {
	for _, t := range c.tasks {
		if t.ID == id {
			return t
		}
	}
	c.t.Fatalf("no task %q", id)
	return nil
}

func (c *cast) describe(t *task) string {
	text := fmt.Sprintf("<task id=%q from=\"leader\" mark=\"x\">\ntitle: %s\n\n%s\n\ndeliverable: %s\n", t.ID, t.Title, t.Description, t.Deliverable)
	if len(t.Dependencies) > 0 {
		text += "inputs:\n"
	}
	for _, id := range t.Dependencies {
		in := c.task(id)
		text += fmt.Sprintf("- %s %s (coder-1): %s\n  file: %s\n", id, in.Title, in.Summary, in.Deliverable)
	}
	return text + "</task x>"
}

// turn is one model call of p with the tool calls it asks for.
func (c *cast) turn(p *player) {
	c.t.Helper()
	if len(p.mail) > 0 {
		p.conv = append(p.conv, &model.Message{Role: "user", Content: strings.Join(p.mail, "\n")})
		p.mail = nil
	}
	reply, err := c.model.Complete(c.t.Context(), model.Request{Messages: p.conv}, nil)
	if err != nil {
		c.t.Fatalf("%s gets no turn: %v after %s", p.name, err, encode(p.conv[len(p.conv)-1]))
	}
	said := &reply.Message
	if strings.HasPrefix(said.Content, "(nothing in the script") {
		c.t.Fatalf("%s has no line: %s", p.name, encode(p.conv))
	}
	p.conv = append(p.conv, said)
	if len(said.ToolCalls) == 0 {
		p.awake = len(p.mail) > 0
		c.idle(p)
		return
	}
	for _, call := range said.ToolCalls {
		var in args
		decoder := json.NewDecoder(strings.NewReader(call.Arguments))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil {
			c.t.Fatalf("%s calls %s with %s: %v", p.name, call.Name, call.Arguments, err)
		}
		result := c.run(p, call.Name, in)
		p.conv = append(p.conv, &model.Message{Role: "tool", ToolCallID: call.ID, Content: result})
	}
}

// idle does what the team does with a member that goes idle with a task: it is
// told so once, then the task goes back to the board, three times at most.
func (c *cast) idle(p *player) {
	c.t.Helper()
	t := c.holds(p)
	switch {
	case t == nil || p.asked != "" || p.awake:
	case !t.nudged:
		t.nudged = true
		c.post(p, "Your task "+t.ID+" is still in progress.")
	case t.attempts == 2:
		t.Status = "failed"
	default:
		t.Status = "pending"
		t.attempts++
	}
}

// newTask is one of the tasks that create_tasks creates.
type newTask struct {
	Key, Title, Description string
	Dependencies            []string
}

// args are those of all tools that the script may use.
type args struct {
	Role, Command, To, Content, Path, Status, Reason, Summary, Type string

	Tasks         []newTask
	Limit         int
	TaskID        string `json:"task_id"`
	ResultSummary string `json:"result_summary"`
	AwaitReply    bool   `json:"await_reply"`
	InReplyTo     string `json:"in_reply_to"`
}

// run carries out a call and returns what the model is told.
func (c *cast) run(p *player, tool string, in args) string {
	c.t.Helper()
	switch tool {
	case "bash":
		return c.bash(in.Command)
	case "read_file":
		text, err := os.ReadFile(filepath.Join(c.workspace, in.Path))
		if err != nil {
			return failure("not_found", err.Error())
		}
		lines := strings.SplitAfter(string(text), "\n")
		return strings.Join(lines[:min(in.Limit, len(lines))], "")
	case "spawn_teammate":
		return encode(map[string]string{"agent_id": c.join(in.Role).name, "role": in.Role})
	case "list_teammates":
		var list []map[string]string
		for _, p := range c.players {
			list = append(list, map[string]string{"agent_id": p.name, "role": p.role, "state": map[bool]string{false: "idle", true: "stopped"}[p.stopped]})
		}
		return encode(list)
	case "create_tasks":
		type made struct {
			Key string `json:"key"`
			ID  string `json:"id"`
		}
		var list []made
		for _, n := range in.Tasks {
			t := &task{ID: fmt.Sprintf("T-%03d", len(c.tasks)+1), Title: n.Title, Description: n.Description, Status: "pending"}
			for _, d := range n.Dependencies {
				i := slices.IndexFunc(list, func(m made) bool { return m.Key == d })
				t.Dependencies = append(t.Dependencies, list[i].ID)
			}
			slug := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(n.Title), "-"), "-")
			t.Deliverable = "deliverables/" + t.ID + "-" + slug + ".md"
			c.tasks = append(c.tasks, t)
			list = append(list, made{n.Key, t.ID})
		}
		return encode(list)
	case "get_task":
		return encode(c.task(in.TaskID))
	case "update_task", "release_task":
		t := c.task(in.TaskID)
		if t.Status != "in_progress" || t.Assignee != p.name {
			if c.holds(p) != nil {
				c.t.Errorf("%s goes on with %s, which it lost, instead of %s", p.name, t.Title, c.holds(p).Title)
			}
			return failure("conflict", "the task is not yours any more")
		}
		t.Status, t.Summary = in.Status, in.ResultSummary
		if tool == "release_task" {
			t.Status = "pending"
		}
		return encode(t)
	case "send_message":
		return c.send(p, in)
	case "finish_team":
		c.summary = in.Summary
		return `{"completed_tasks":4}`
	}
	c.t.Fatalf("%s calls the unknown tool %s", p.name, tool)
	return ""
}

func (c *cast) bash(command string) string {
	if c.cuts > 0 && c.rng.IntN(8) == 0 {
		c.cuts--
		return failure("unavailable", "the process was restarted; whether the command ended is unknown")
	}
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = c.workspace
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "\n%v", err)
	}
	if len(out) == 0 {
		return "(no output)"
	}
	return string(out)
}

func (c *cast) send(from *player, in args) string {
	all := in.To == "*"
	if in.Type == "shutdown_request" { // its receiver is idle, and agrees
		i := slices.IndexFunc(c.players, func(p *player) bool { return p.name == in.To && !p.stopped })
		if i < 1 {
			return failure("invalid_argument", "nobody to ask")
		}
		c.players[i].stopped, c.players[i].awake = true, false
		c.left++
		c.post(from, `<mail from="`+in.To+`" type="shutdown_response" id="s-1" request_id="r-1" approve="true" mark="x">`+"\nleaves\n</mail x>")
		return `{"message_id":"m-9","delivered_to":["` + in.To + `"],"request_id":"r-1"}`
	}
	kind := ""
	if all {
		kind = ` type="broadcast"`
	}
	if in.InReplyTo != "" {
		c.answered++
		if c.silences > 0 {
			c.silences--
			return encode(map[string]any{"message_id": "m", "delivered_to": []string{}})
		}
	}
	var to []string
	for _, p := range c.players {
		if !p.stopped && (p.name == in.To || all && p != from) {
			to = append(to, p.name)
			if !all && p.asked == from.name {
				p.asked = ""
			}
			c.post(p, fmt.Sprintf("<mail from=%q%s id=\"m-%d\" mark=\"x\">\n%s\n</mail x>", from.name, kind, c.rng.IntN(1e6), in.Content))
		}
	}
	if len(to) == 0 || in.To == from.name {
		c.t.Fatalf("%s writes to %q", from.name, in.To)
	}
	if from.asked = ""; in.AwaitReply {
		from.asked = in.To
	}
	if all {
		c.broadcasts++
	}
	return encode(map[string]any{"message_id": "m", "delivered_to": to})
}

func failure(code, text string) string {
	return encode(map[string]string{"error": text, "code": code, "status": "error"})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data always encodes
	}
	return string(b)
}
