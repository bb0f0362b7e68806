package agent

import (
	"context"
	"time"

	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool/job"
)

// Jobs are what the agent has under way beside its conversation; *job.Jobs is one.
type Jobs interface {
	List() []team.Job
	Waits() bool
	EndTask(id team.TaskID, why error) (wait func(context.Context) error)
	Ended() <-chan job.Ended
}

// noJobs are those of an agent that can have none.
type noJobs struct{}

func (noJobs) List() []team.Job { return nil }

func (noJobs) Waits() bool { return false }

func (noJobs) EndTask(team.TaskID, error) (wait func(context.Context) error) {
	return func(context.Context) error { return nil }
}

func (noJobs) Ended() <-chan job.Ended { return nil }

// Team is what an agent asks of its team, and reports to it, beside mail, tasks and heartbeats.
type Team interface {
	// Wait returns what the agent waits for because of a tool's call; see [Answer], [Person] and
	// [Decision]. holds reports whether the agent holds a task.
	Wait(w team.Await, holds bool) Wait
	// Backlog reads the member's stored mail from a sequence on; see [mailbox.Mailbox.Read].
	Backlog(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error
	// Overview returns how the team is, which the agent reads before a turn if it has
	// changed. An error leaves it out.
	Overview(ctx context.Context) (explain.Overview, error)
	// Asking returns the last beats of the members that wait for an answer of this one.
	Asking() []team.Heartbeat
	// Peers returns how the team's members are: which of them could take a task that the agent's
	// model refuses.
	Peers(ctx context.Context) (explain.Situation, error)

	// Inherited returns what a task brings along that the agent has taken, or has adopted: the plan that it needs, which is
	// submitted in the agent's name if it still waits for a decision, and what was asked for it before. It may be called
	// again for the same hold.
	Inherited(ctx context.Context, t team.Task) (team.Inherited, error)
	// Reserved finds a task that is reserved for the agent and that it could claim now; it is
	// called once, before the agent reads its mail.
	Reserved(ctx context.Context) (id team.TaskID, ok bool)
	// Expected reports whether the agent is to stay without work: some is kept for it, of which it may
	// not be able to claim any yet, or it is one of the members that its role keeps ready.
	Expected(ctx context.Context) bool
	// Look finds a claimable task for an agent that is idle and hears no leader. ok is false if
	// nothing is claimable.
	Look(ctx context.Context) (id team.TaskID, ok bool)
	// LeaderHeard returns when the leader's last beat was heard. Before the first beat it
	// returns since when the agent listens.
	LeaderHeard() time.Time

	// Rests is called when the agent goes idle.
	Rests(ctx context.Context)

	// Lost stores the changes in the files of a task that was taken from the agent, as it was held, for its next holder.
	// Nothing of the agent changes them any more. It may be called after the agent's context has ended.
	Lost(t team.Task)
	// Parked is called with the cause when the model's endpoint begins to refuse the
	// agent, and with "" when it answers again.
	Parked(ctx context.Context, cause string)
	// EndGoal ends the leader's goal as failed, since its model refuses it.
	EndGoal(ctx context.Context, cause string)
	// ModelChanged returns a channel that is closed when the model's settings change; nil: they
	// never do.
	ModelChanged() <-chan struct{}
}
