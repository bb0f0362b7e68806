package agent

import (
	"context"
	"time"

	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool/job"
)

// Jobs are the agent's background jobs; *job.Jobs is one.
type Jobs interface {
	List() []team.Job
	Waits() bool
	EndTask(id team.TaskID, why error) (wait func(context.Context) error)
	Ended() <-chan job.Ended
}

// noJobs is the Jobs of an agent without any.
type noJobs struct{}

func (noJobs) List() []team.Job { return nil }

func (noJobs) Waits() bool { return false }

func (noJobs) EndTask(team.TaskID, error) (wait func(context.Context) error) {
	return func(context.Context) error { return nil }
}

func (noJobs) Ended() <-chan job.Ended { return nil }

// Team is the agent's view of its team, except mail, tasks and heartbeats.
type Team interface {
	// Wait returns the wait that a tool's call caused; see [Answer], [Person] and [Decision]. holds
	// reports whether the agent holds a task.
	Wait(w team.Await, holds bool) Wait
	// Backlog reads the member's stored mail from a sequence on; see [mailbox.Mailbox.Read].
	Backlog(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error
	// Overview returns the team's state, which the agent reads before a turn if it has changed.
	// After an error it is omitted.
	Overview(ctx context.Context) (explain.Overview, error)
	// Asking returns the last heartbeats of the members that wait for an answer of this one.
	Asking() []team.Heartbeat
	// Peers returns the state of the team's members: which of them could take a task that the
	// agent's model refuses.
	Peers(ctx context.Context) (explain.Situation, error)

	// Inherited returns the inheritance of a task that the agent has taken or adopted: the plan
	// that it needs, which is submitted in the agent's name if it still waits for a decision, and
	// earlier questions about it. It may be called again for the same hold.
	Inherited(ctx context.Context, t team.Task) (team.Inherited, error)
	// Reserved returns a task that is reserved for the agent and can be claimed now; it is called
	// once, before the agent reads its mail.
	Reserved(ctx context.Context) (id team.TaskID, ok bool)
	// Expected reports whether the agent must stay without work: some is reserved for it, of which
	// it may not be able to claim any yet, or it is one of the members that its role keeps ready.
	Expected(ctx context.Context) bool
	// Claimable returns a claimable task for an agent that is idle and hears no leader. ok is false if
	// nothing is claimable.
	Claimable(ctx context.Context) (id team.TaskID, ok bool)
	// LeaderHeard returns when the leader's last heartbeat was received. Before the first one it
	// returns since when the agent listens.
	LeaderHeard() time.Time

	// Backoff is called when the agent goes idle.
	Backoff(ctx context.Context)

	// Lost stores the changes in the files of a task that was taken from the agent, as it was held,
	// for its next holder. No job of the agent changes them any more. It may be called after the
	// agent's context has ended.
	Lost(t team.Task)
	// Parked is called with the cause when the model's endpoint begins to refuse the
	// agent, and with "" when it answers again.
	Parked(ctx context.Context, cause string)
	// BudgetChanged returns a channel that is closed when the team's record changes, which holds its budgets.
	BudgetChanged() <-chan struct{}
	// EndGoal ends the leader's goal as failed, since its model refuses it.
	EndGoal(ctx context.Context, cause string)
	// ModelChanged returns a channel that is closed when the model's settings change; nil: they
	// never do.
	ModelChanged() <-chan struct{}
}
