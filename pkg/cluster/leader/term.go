package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/engine"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/cluster/watchdog"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// term is the leadership of one team by this process; it carries out the actions of the leader's
// tools and of the watchdog.
type term struct {
	leader  *leader
	team    *broker.Storage
	member  team.Member
	log     *slog.Logger
	board   *board.Board
	roster  *roster.Roster
	mailbox *mailbox.Mailbox
	plans   *approval.Plans
	pulse   *roster.Pulse
	index   *index.Index
	spawner *spawn.Spawner
	agent   atomic.Pointer[agent.Agent]
	model   engine.Model // nil: none

	bye      context.Context // ends some time after the term's, for the last writes
	respawns sync.WaitGroup

	returning map[team.AgentID]uint64 // the incarnations of lost members that a person has allowed to come back

	ending  sync.Mutex // one end of the goal at a time
	refused refusal
}

// removeWait is how long the leader's call waits for the answer of a member that it asks to leave;
// after that the answer comes as mail.
const removeWait = 5 * time.Second

// Spawn implements spawn_teammate.
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
	m.Role, m.SpawnedBy = role.Name, team.Leader
	type spawned struct {
		member team.Member
		err    error
	}
	done := make(chan spawned, 1)
	t.respawns.Go(func() {
		s, err := t.spawner.Spawn(ctx, m, record.MaxTeammates)
		done <- spawned{s, err}
	})
	select {
	case s := <-done:
		return s.member, s.err
	case <-t.bye.Done(): // taking the member back may take time, and the process must end
		return m, context.Cause(ctx)
	}
}

// Describe implements TeamCreate.
func (t *term) Describe(ctx context.Context, name, text string) error {
	_, err := t.leader.registry.Edit(ctx, t.team, func(record *team.Team) {
		record.Call(name)
		record.Description = cmp.Or(text, record.Description)
	})
	return err
}

// Remove implements remove_teammate: it asks a member to leave. A member without a process is
// stopped without a request.
func (t *term) Remove(ctx context.Context, a team.AgentID, reason string) (spawn.Answer, error) {
	m, err := t.roster.Get(ctx, a)
	if err != nil {
		return spawn.Answer{}, err
	}
	if !m.HasProcess() {
		return spawn.Answer{Left: true}, t.spawner.Force(ctx, t.mailbox, a)
	}
	r, err := t.spawner.Ask(ctx, t.mailbox, spawn.Request{From: team.Leader, To: a, Reason: reason})
	if err != nil {
		return spawn.Answer{}, err
	}
	within, cancel := context.WithTimeout(ctx, removeWait)
	defer cancel()
	return t.spawner.Await(within, r)
}

// Assign gives a task to a member; see [board.Board.Give].
func (t *term) Assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error) {
	m, err := t.roster.Get(ctx, a)
	if err != nil {
		return team.Task{}, err
	}
	record, err := registry.Record(ctx, t.team)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Give(ctx, m, record.Policies, team.Assignment{Task: id, By: team.Leader}, func(ctx context.Context, order team.Assignment) (team.Task, error) {
		return control.Assign(ctx, t.team, a, order)
	})
}

// listen receives the heartbeats of all members until stop is called: for the index, which learns
// from them who is idle, and passes those of current incarnations to the watchdog's pulse.
func (t *term) listen() (stop func(), err error) {
	return t.roster.Listen(team.Everyone, func(b team.Heartbeat) {
		t.index.Hear(b)
	})
}

// Unread counts a member's unread mail.
func (t *term) Unread(ctx context.Context, m team.Member) (int, error) {
	return t.mailbox.Unread(ctx, m.AgentID, m.Incarnation)
}

// Ping asks a member's process for a heartbeat.
func (t *term) Ping(ctx context.Context, a team.AgentID, wait time.Duration) (team.Heartbeat, error) {
	return control.Ping(ctx, t.team, a, wait)
}

// Reap frees a task, unless its work waits to be merged: then its holder is not needed any more.
func (t *term) Reap(ctx context.Context, task team.Task, f team.Freed) error {
	record, _, err := registry.Shown(ctx, t.team) // a task is freed also if the record is damaged
	if err != nil {
		return err
	}
	if merging, err := worktree.Merging(ctx, mergequeue.New(t.team), record, task); err != nil || merging {
		return err
	}
	return t.board.Reap(ctx, task.ID, task.Epoch, f)
}

// Unreserve ends the reservation of a task.
func (t *term) Unreserve(ctx context.Context, task team.Task) error {
	return t.board.Unreserve(ctx, task, team.Actor{Holder: team.Holder{Agent: team.Watchdog}, Leads: true})
}

// Answered reports whether the journal of its holder shows work on a task; true if the journal is
// unreadable, so that a task whose holders are lost is not excused.
func (t *term) Answered(ctx context.Context, task team.Task) (bool, error) {
	answered, err := journal.Answered(ctx, t.team, task)
	if errors.Is(err, team.InvalidState) {
		return true, nil
	}
	return answered, err
}

// GiveUp stops a member that is lost again and again. Its record contains the reason, and the
// leader is notified once, also if this process ends in the middle.
func (t *term) GiveUp(ctx context.Context, m team.Member, why string) error {
	if err := t.Notify(ctx, fmt.Sprintf("given-up-%s-%d", m.AgentID, m.Incarnation), watchdog.GivenUpText(m.AgentID, why)); err != nil {
		return err
	}
	return t.stop(ctx, m, why)
}

// Mark writes a member's fault into its record, and notifies the leader.
func (t *term) Mark(ctx context.Context, m team.Member, why, notice string) error {
	if err := t.Notify(ctx, fmt.Sprintf("silent-%s-%d-%s", m.AgentID, m.Incarnation, hyphened(why)), notice); err != nil {
		return err
	}
	err := t.roster.Note(ctx, m.AgentID, m.Incarnation, why)
	if errors.Is(err, team.ErrSuperseded) { // it was stopped, or a later incarnation exists
		return nil
	}
	return err
}

// hyphened returns a text as part of a message's id, which people type.
func hyphened(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }), "-")
}

// Refuse stops a member that joined uninvited. Its record contains the reason, and the leader is
// notified.
func (t *term) Refuse(ctx context.Context, m team.Member, why string) error {
	if err := t.Notify(ctx, fmt.Sprintf("refused-%s-%d", m.AgentID, m.Incarnation), watchdog.RefusedText(m.AgentID, why)); err != nil {
		return err
	}
	return t.stop(ctx, m, why)
}

// Dismiss stops a member that an earlier end of the team has dismissed.
func (t *term) Dismiss(ctx context.Context, m team.Member) error { return t.stop(ctx, m, "") }

// dismissLost stops, at the end of the goal, members whose processes are known to be gone. Live
// members see the end in the team's record. The watchdog of the next goal dismisses members that
// are missed later.
func (t *term) dismissLost(ctx context.Context) error {
	all, err := t.roster.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range all {
		if m.State == team.Lost || m.State == team.Created || m.AgentID != team.Leader && m.Ended(childproc.Cluster()) {
			errs = append(errs, t.stop(ctx, m, ""))
		}
	}
	return errors.Join(errs...)
}

// stop ends the membership of a member without a process, or whose process does not answer.
func (t *term) stop(ctx context.Context, m team.Member, why string) error {
	if err := t.roster.Leave(ctx, m.AgentID, m.Incarnation, why); err != nil {
		if errors.Is(err, team.ErrSuperseded) {
			return nil // it was stopped, or a later incarnation exists
		}
		return err
	}
	_ = control.SendStop(t.team, m.AgentID)
	err := t.mailbox.Close(ctx, m.AgentID, m.Incarnation)
	if errors.Is(err, team.NotFound) {
		return nil
	}
	return err
}

// Respawn brings a lost member back after wait. It does not block: a process may take its time, and
// the watchdog has other members to check.
func (t *term) Respawn(ctx context.Context, m team.Member, wait time.Duration) error {
	t.respawns.Go(func() {
		if !shutdown.Sleep(ctx, wait) {
			return
		}
		if _, err := t.spawner.Respawn(ctx, m); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "member not brought back", "agent", m.AgentID, "err", err)
		}
	})
	return nil
}

// MayReturn reports whether a person has allowed a lost member to be brought back, and there is
// room for it. If there is none, its record and a notice to the leader state that. It must not be
// called concurrently.
func (t *term) MayReturn(ctx context.Context, m team.Member, record team.Team) (bool, error) {
	may, err := t.plans.MayReturn(ctx, m, record.Workspace, m.LastError)
	if err != nil || !may || t.returning[m.AgentID] == m.Incarnation {
		return may, err
	}
	all, err := t.roster.List(ctx)
	if err != nil {
		return false, err
	}
	for i, o := range all {
		if o.State == team.Lost && t.returning[o.AgentID] == o.Incarnation { // its record does not show that yet
			all[i].State = team.Created
		}
	}
	if err := roster.LimitOf(record, m.Role, record.MaxTeammates).Check(all, m.Role); err != nil {
		why := "it may come back, and there is no room: " + team.OneLine(err.Error())
		if m.LastError == why { // its record has that after the notice
			return false, nil
		}
		return false, t.Mark(ctx, m, why, watchdog.NoRoomText(m.AgentID, err))
	}
	t.returning[m.AgentID] = m.Incarnation
	return true, nil
}

// Ready spawns members of a role that the team keeps ready. It does not block.
func (t *term) Ready(ctx context.Context, record team.Team, role string, n int) error {
	for range n {
		t.respawns.Go(func() {
			_, err := t.spawner.Spawn(ctx, team.Member{Role: role, SpawnedBy: team.Leader}, record.MaxTeammates)
			if err == nil || ctx.Err() != nil {
				return
			}
			t.log.WarnContext(ctx, "member not kept ready", "role", role, "err", err)
			if err := t.Notify(ctx, fmt.Sprintf("not-ready-%s-%d", role, record.GoalNumber), watchdog.NotReadyText(role, err)); err != nil && ctx.Err() == nil {
				t.log.WarnContext(ctx, "no notice for the leader", "err", err)
			}
		})
	}
	return nil
}

// Lose records that a member is lost, and why.
func (t *term) Lose(ctx context.Context, m team.Member, why string) error {
	err := t.roster.Lose(ctx, m.AgentID, m.Incarnation, why)
	if errors.Is(err, team.ErrSuperseded) { // it was stopped, or a later incarnation exists
		return nil
	}
	return err
}

// settle waits until no member is being brought back any more, or the context bye ends.
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

// Notify sends the leader a notice of the watchdog. The text may quote output of programs and is
// cleaned: the mailbox would refuse it unchanged, at each check again.
func (t *term) Notify(ctx context.Context, id, text string) error {
	_, _, err := t.mailbox.Send(ctx, team.Message{ID: id, Type: team.MsgWatchdog, From: team.Watchdog, To: team.Leader, Content: team.Clean(text, team.MaxTextBytes)})
	return err
}

// lastText returns the leader's last text answer.
func (t *term) lastText() string {
	if a := t.agent.Load(); a != nil {
		return a.LastText()
	}
	return ""
}
