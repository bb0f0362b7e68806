package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentteam/pkg/agent"
	"agentteam/pkg/board"
	"agentteam/pkg/board/index"
	"agentteam/pkg/broker"
	"agentteam/pkg/control"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/spawn"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// term is one team led by this process: what the leader's tools and the watchdog
// do to the team.
type term struct {
	leader  *leader
	team    *broker.Team
	member  team.Member
	log     *slog.Logger
	board   *board.Board
	roster  *roster.Roster
	mailbox *mailbox.Mailbox
	pulse   *roster.Pulse
	index   *index.Index
	spawner *spawn.Spawner
	agent   atomic.Pointer[agent.Agent]

	mu      sync.Mutex
	refused bool // finish_team was refused once because of unread mail
}

// removeWait is how long a member that is asked to leave may take.
const removeWait = 10 * time.Second

// Spawn is what spawn_teammate does.
func (t *term) Spawn(ctx context.Context, m team.Member) (team.Member, error) {
	record, err := registry.Record(ctx, t.team)
	if err != nil {
		return m, err
	}
	role, err := record.Role(m.Role)
	if err != nil {
		return m, err
	}
	if role.Name == team.LeaderRole {
		return m, team.Errorf(team.InvalidArgument, "a team has one leader; it cannot be spawned")
	}
	m.Role = role.Name
	return t.spawner.Spawn(ctx, m, record.MaxTeammates)
}

// Remove is what remove_teammate does.
func (t *term) Remove(ctx context.Context, a team.AgentID) error {
	return t.spawner.Stop(ctx, t.mailbox, team.Leader, a, removeWait)
}

// Assign has a member's own process claim a task.
func (t *term) Assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error) {
	if _, err := t.roster.Get(ctx, a); err != nil {
		return team.Task{}, err
	}
	var task team.Task
	err := control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Assign, id, &task, 15*time.Second)
	return task, err
}

// Finish is what finish_team does. Mail that the leader has not read refuses it
// once: the mail stands in its next input, and it may decide again.
func (t *term) Finish(ctx context.Context, summary string) error {
	unread, err := t.mailbox.Unread(ctx, team.Leader, t.member.Incarnation)
	if err != nil {
		return err
	}
	t.mu.Lock()
	refuse := unread > 0 && !t.refused
	t.refused = refuse
	t.mu.Unlock()
	if refuse {
		return team.Errorf(team.Conflict, "%d messages came that you have not read", unread).
			WithHint("they stand in your next input; call finish_team again if they change nothing")
	}
	if err := t.board.Close(ctx); err != nil {
		return err
	}
	_, err = t.leader.registry.End(context.WithoutCancel(ctx), t.team, team.TeamFinished, summary)
	return err
}

// Look is the bucket as the index knows it.
func (t *term) Look() index.Look { return t.index.Look() }

// Heard is the last beat of every member.
func (t *term) Heard() map[team.AgentID]roster.Heard { return t.pulse.Last() }

// BucketSeq reads the bucket's newest sequence from the server.
func (t *term) BucketSeq(ctx context.Context) (uint64, error) { return t.team.Bucket.LastSeq(ctx) }

// MailSeq reads the message stream's newest sequence from the server.
func (t *term) MailSeq(ctx context.Context) (uint64, error) { return t.team.Messages.LastSeq(ctx) }

// Unread counts a member's unread mail.
func (t *term) Unread(ctx context.Context, m team.Member) (int, error) {
	return t.mailbox.Unread(ctx, m.AgentID, m.Incarnation)
}

// Ping asks a member's process for a beat.
func (t *term) Ping(ctx context.Context, a team.AgentID, nonce string, wait time.Duration) (b team.Beat, err error) {
	err = control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Ping, nonce, &b, wait)
	return b, err
}

// Reap frees a task, and tells the former holder's process, should it live.
func (t *term) Reap(ctx context.Context, task team.Task, reason string, attempt bool) error {
	if err := t.board.Reap(ctx, task.ID, task.Epoch, reason, attempt); err != nil {
		return err
	}
	return control.Notify(t.team.Conn, t.team.ID, task.Assignee, subject.Revoked, task.ID)
}

// Respawn brings a lost member back. It does not block: a process may take its
// time, and the watchdog has others to look at.
func (t *term) Respawn(ctx context.Context, m team.Member) error {
	go func() {
		if _, err := t.spawner.Respawn(ctx, m); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "member not brought back", "agent", m.AgentID, "err", err)
		}
	}()
	return nil
}

// Tell sends the leader a notice of the watchdog.
func (t *term) Tell(ctx context.Context, text string) error {
	_, _, err := t.mailbox.Send(ctx, team.Message{Type: team.MsgWatchdog, From: team.Watchdog, To: team.Leader, Content: text})
	return err
}

// LastText is the leader's last text answer.
func (t *term) LastText() string {
	if a := t.agent.Load(); a != nil {
		return a.LastText()
	}
	return ""
}

// End ends the goal on behalf of a leader that has nothing more to do.
func (t *term) End(ctx context.Context, status team.Status, summary string) error {
	_, err := t.leader.registry.End(context.WithoutCancel(ctx), t.team, status, summary)
	return err
}

// broken ends the goal when the leader's model refuses for good: nobody else can
// answer for it.
func (t *term) broken(ctx context.Context, cause error) {
	record, err := registry.Record(ctx, t.team)
	if err == nil && record.Goal != "" {
		err = t.End(ctx, team.TeamFailed, "The leader's model refuses to answer: "+cause.Error())
	}
	if err != nil {
		t.log.WarnContext(ctx, "goal not ended", "err", err)
	}
}

// leave closes the leader's record once the team has ended.
func (t *term) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	err := t.roster.Leave(ctx, team.Leader, t.member.Incarnation, "")
	if errors.Is(err, roster.ErrSuperseded) {
		err = nil
	}
	if cerr := t.mailbox.Close(ctx, team.Leader, t.member.Incarnation); cerr != nil && !errors.Is(cerr, team.NotFound) {
		err = errors.Join(err, cerr)
	}
	return err
}
