package leader

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

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

	bye      context.Context // ends a little after the term's, for what must still be said
	respawns sync.WaitGroup

	ending  sync.Mutex // one end of the goal at a time
	refused refusal

	mu       sync.Mutex
	failures map[team.AgentID]failures
}

// failures are the incarnations of a member that ended by an error, one soon after
// the other.
type failures struct {
	n    int
	last time.Time
}

const (
	firstRest = time.Second      // before a member that has failed is brought back; doubles
	maxRest   = 30 * time.Second // at most
	forgotten = 2 * time.Minute  // a member that worked so long had come back well
	tellAfter = 3                // failures in a row: the leader is told
)

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
	task, err := t.board.Get(ctx, id)
	if err != nil {
		return team.Task{}, err
	}
	var taken team.Task
	err = control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Assign,
		team.Assignment{Task: id, By: team.Leader, Take: true, Epoch: task.Epoch}, &taken, 15*time.Second)
	return taken, err
}

// Look is the bucket as the index knows it.
func (t *term) Look() index.Look { return t.index.Look() }

// EndsSince returns the tasks that failed or were cancelled after a revision.
func (t *term) EndsSince(revision uint64) []index.End { return t.index.EndsSince(revision) }

// Unfinished returns the first tasks that are open or have failed.
func (t *term) Unfinished(limit int) ([]index.Unfinished, int) { return t.index.Unfinished(limit) }

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

// Reap frees a task.
func (t *term) Reap(ctx context.Context, task team.Task, reason string, attempt bool) error {
	return t.board.Reap(ctx, task.ID, task.Epoch, reason, attempt)
}

// Respawn brings a lost member back. It does not block: a process may take its
// time, and the watchdog has others to look at. A member that has failed rests first,
// since it may be one that fails whoever plays it.
func (t *term) Respawn(ctx context.Context, m team.Member) error {
	rest := t.rest(m, time.Now())
	t.respawns.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		if _, err := t.spawner.Respawn(ctx, m); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "member not brought back", "agent", m.AgentID, "err", err)
			t.tellLost(ctx, m.AgentID, err)
		}
	})
	return nil
}

// tellLost tells the leader, once, of a member that has failed time and again. It is
// still tried; the leader may not want to wait.
func (t *term) tellLost(ctx context.Context, a team.AgentID, cause error) {
	t.mu.Lock()
	n := t.failures[a].n + 1 // this one is counted when its rest begins
	t.mu.Unlock()
	if n != tellAfter {
		return
	}
	text := "[Lost] " + string(a) + " could not be brought back, and is tried again and again: " + team.Clean(cause.Error(), 1000)
	if err := t.Tell(ctx, "", text); err != nil {
		t.log.WarnContext(ctx, "leader not told", "agent", a, "err", err)
	}
}

// rest is how long m waits to be brought back. One that has failed, or could not be
// brought back, says so in its record; one that fell silent is replaced at once.
func (t *term) rest(m team.Member, now time.Time) time.Duration {
	if m.LastError == "" {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failures[m.AgentID]
	if now.Sub(f.last) > forgotten {
		f.n = 0
	}
	t.failures[m.AgentID] = failures{f.n + 1, now}
	return min(firstRest<<min(f.n, 10), maxRest)
}

// settle waits until nobody is being brought back any more, as long as the goodbye
// lasts.
func (t *term) settle() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.respawns.Wait()
	}()
	select {
	case <-done:
	case <-t.bye.Done():
		t.log.Warn("the term ends while a member is being brought back")
	}
}

// Tell sends the leader a notice of the watchdog.
func (t *term) Tell(ctx context.Context, id, text string) error {
	_, _, err := t.mailbox.Send(ctx, team.Message{ID: id, Type: team.MsgWatchdog, From: team.Watchdog, To: team.Leader, Content: text})
	return err
}

// told is the value of the watchdog's key.
type told struct {
	V    int    `json:"v"`
	Op   string `json:"op"`
	Told uint64 `json:"told"` // the leader was told of all ends up to this revision
}

// Told is the revision up to which the leader was told of tasks that failed or were
// cancelled.
func (t *term) Told(ctx context.Context) (uint64, error) {
	v, _, err := t.told(ctx)
	return v.Told, err
}

func (t *term) told(ctx context.Context) (v told, revision uint64, err error) {
	e, err := t.team.Bucket.Get(ctx, subject.KeyWatchdog)
	if errors.Is(err, team.NotFound) {
		return v, 0, nil
	}
	if err == nil && json.Unmarshal(e.Value, &v) != nil {
		v = told{} // damaged: better told twice than never
	}
	return v, e.Revision, err
}

// SetTold stores that; it never goes back.
func (t *term) SetTold(ctx context.Context, upTo uint64) error {
	for {
		v, revision, err := t.told(ctx)
		if err != nil || v.Told >= upTo {
			return err
		}
		data, err := json.Marshal(told{team.Protocol, ulid.Make().String(), upTo})
		if err != nil {
			return err
		}
		if _, err = t.team.Bucket.Put(ctx, subject.KeyWatchdog, data, revision); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

// LastText is the leader's last text answer.
func (t *term) LastText() string {
	if a := t.agent.Load(); a != nil {
		return a.LastText()
	}
	return ""
}
