package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// How long an answer is waited for. A missing answer is Unavailable. It proves neither that the
// process is dead nor that it has done nothing.
const (
	assignWait  = 15 * time.Second // the claim may wait for the broker
	compactWait = 5 * time.Second  // to take the request, not for the work
	stopWait    = 2 * time.Second
	leaderWait  = 5 * time.Second // to start the program
	standbyWait = time.Second     // a busy standby answers immediately
)

// Order asks a process to become a member whose record already exists.
type Order struct {
	Team        team.TeamID  `json:"team"`
	Agent       team.AgentID `json:"agent_id"`
	Incarnation uint64       `json:"incarnation"`
	Sandbox     team.Sandbox `json:"sandbox,omitempty"` // of who spawns: a process whose commands are confined less refuses; "" = any will do
}

// Ping asks a member's process for a new heartbeat, and waits up to wait for it. Errors:
// Unavailable.
func Ping(ctx context.Context, t *broker.Storage, a team.AgentID, wait time.Duration) (team.Heartbeat, error) {
	nonce := ulid.Make().String()
	var b team.Heartbeat
	data, err := ask(ctx, t, a, subject.Ping, nonce, wait)
	if err != nil {
		return team.Heartbeat{}, err
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return team.Heartbeat{}, fmt.Errorf("answer of %s: %w", a, err)
	}
	if b.Nonce != nonce {
		return team.Heartbeat{}, team.Errorf(team.Unavailable, "%s answered another ping", a)
	}
	return b, nil
}

// Assign has a member's process claim a task, waits for the answer up to 15 s, and returns the task
// as the member holds it. Errors: those of the claim; Unavailable, and then a claim that is under
// way may still be made: the same assignment may be sent again.
//
// The process is pinged first. Its answer contains its clock, which the order's deadline uses: a
// process that reads the order later, since it was frozen or cut off, refuses it. Only that one
// clock counts, so differences between the hosts' clocks do not matter.
func Assign(ctx context.Context, t *broker.Storage, a team.AgentID, order team.Assignment) (team.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, assignWait)
	defer cancel()
	b, err := Ping(ctx, t, a, assignWait)
	if err != nil && !NoResponders(err) {
		return team.Task{}, err
	}
	if end, _ := ctx.Deadline(); b.Clock != nil { // another program may serve no ping
		order.Until = b.Clock.Add(time.Until(end))
	}
	data, err := ask(ctx, t, a, subject.Assign, order, assignWait)
	if err != nil {
		return team.Task{}, err
	}
	task, err := decodeTask(data)
	if err != nil {
		return team.Task{}, fmt.Errorf("answer of %s: %w", a, err)
	}
	return task, nil
}

// Compact asks a member to shorten its conversation at its next turn, and waits up to 5 s until its
// process has taken the request. Errors: Unavailable.
func Compact(ctx context.Context, t *broker.Storage, a team.AgentID) error {
	_, err := ask(ctx, t, a, subject.Compact, nil, compactWait)
	return err
}

// Stop has a member's process end the membership immediately, and waits up to 2 s until the process
// has received the request. Errors: Unavailable.
func Stop(ctx context.Context, t *broker.Storage, a team.AgentID) error {
	_, err := ask(ctx, t, a, subject.Stop, nil, stopWait)
	return err
}

// StartAtLeader has the process that leads the order's team start a child process as the
// member, and waits up to 5 s for the start. Errors: those of the start; Unavailable.
func StartAtLeader(ctx context.Context, c *broker.Conn, o Order) error {
	_, err := request(ctx, c, subject.Control(o.Team, team.Leader, subject.Start), o, leaderWait)
	return err
}

// StartAtStandby has one standby that serves the model alias (any alias if "") become the member,
// and waits up to 1 s until it has joined. Errors: Busy if the standby was just taken; Conflict if
// the member must not be started any more; PermissionDenied if the standby confines commands less
// than the order requires, and another may take it; Unavailable, and then, unless [NoResponders]
// holds, a standby may be about to join.
func StartAtStandby(ctx context.Context, c *broker.Conn, alias string, o Order) error {
	_, err := request(ctx, c, subject.PoolOf(alias), o, standbyWait)
	return err
}

// SendOffer offers a task to a member's process. Like every notification, it does not block and may
// get lost.
func SendOffer(t *broker.Storage, a team.AgentID, task team.Task) error {
	data, err := encodeTask(task)
	if err != nil {
		return err
	}
	return t.Conn.NATS().Publish(subject.Control(t.ID, a, subject.Offer), data)
}

// SendRevoked notifies a member's process that the member no longer holds a task.
func SendRevoked(t *broker.Storage, a team.AgentID, id team.TaskID) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return t.Conn.NATS().Publish(subject.Control(t.ID, a, subject.Revoked), data)
}

// SendStop notifies a member's process to end the membership immediately.
func SendStop(t *broker.Storage, a team.AgentID) error {
	return t.Conn.NATS().Publish(subject.Control(t.ID, a, subject.Stop), nil)
}

// taskMessage is a task sent between processes, offered or as the answer to an assignment: its
// record, and its revision in the bucket, so that the receiver need not read it.
type taskMessage struct {
	team.Task
	Revision uint64 `json:"revision"`
}

// encodeTask returns the message of t. A stored record has no field revision; only such a message
// or a printed task has one.
func encodeTask(t team.Task) ([]byte, error) {
	kept := t.Kept
	if _, clash := kept["revision"]; clash {
		kept = maps.Clone(kept)
		delete(kept, "revision")
	}
	return codec.Encode(&taskMessage{t, t.Revision}, kept)
}

// decodeTask returns the task of a message; its strings are slices of data.
func decodeTask(data []byte) (team.Task, error) {
	var m taskMessage
	kept, err := codec.Decode(data, &m)
	if err != nil {
		return team.Task{}, err
	}
	m.Task.Revision, m.Task.Kept = m.Revision, kept
	return m.Task, nil
}

// ask sends a verb to a member's process and returns its answer.
func ask(ctx context.Context, t *broker.Storage, a team.AgentID, verb subject.Verb, in any, wait time.Duration) ([]byte, error) {
	return request(ctx, t.Conn, subject.Control(t.ID, a, verb), in, wait)
}

func request(ctx context.Context, c *broker.Conn, subj string, in any, wait time.Duration) ([]byte, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := c.NATS().RequestWithContext(ctx, subj, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, team.Errorf(team.Unavailable, "nobody serves %s: %w", subj, errNoResponders)
	case err != nil:
		return nil, team.Errorf(team.Unavailable, "%s did not answer within %v: %w", subj, wait, broker.Unheard(err))
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		e := team.Errorf(team.Code(code), "%s", m.Header.Get(micro.ErrorHeader))
		var hint string
		if json.Unmarshal(m.Data, &hint) == nil && hint != "" {
			e = e.WithHint("%s", hint)
		}
		return nil, e
	}
	return m.Data, nil
}

var errNoResponders = errors.New("no responders")

// NoResponders reports whether err is "no responders", as opposed to a timeout.
func NoResponders(err error) bool { return errors.Is(err, errNoResponders) }
