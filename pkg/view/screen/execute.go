package screen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// stopWait is how long a member may take to answer a request to leave, as in teamctl stop.
const stopWait = 30 * time.Second

// perform performs a person's action, and returns the outcome in words.
func perform(ctx context.Context, t *client.Team, d action) (text string, err error) {
	switch d.kind {
	case answers:
		q, _, err := t.Mail().Answer(ctx, "", d.id, d.text)
		return "answered " + string(q.From), err
	case approves, rejects:
		p, err := t.Plans().Decide(ctx, "", d.id, team.Decision{Approve: d.kind == approves, Feedback: d.text, Scope: d.scope})
		return fmt.Sprintf("%s: %s of %s", p.Status, p.Brief(), p.AgentID), err
	case writes:
		_, to, err := t.Mail().Send(ctx, client.NewMail{To: d.agent, Text: d.text, Urgent: d.urgent})
		if d.agent == team.Everyone {
			return "sent to " + explain.Counted(len(to), "member"), err
		}
		return "sent to " + string(d.agent), err
	case sets:
		_, _, err := t.Goals().Set(ctx, client.NewGoal{Text: d.text, Budgets: team.Budgets{Goal: team.DefaultBudget}})
		return "the goal is set", err
	case ends:
		return "the goal has ended", t.StopTeam(ctx, stopWait)
	case stops, kills, drains, compacts:
		return onMember(ctx, t, d)
	}
	return onTask(ctx, t, d)
}

func onMember(ctx context.Context, t *client.Team, d action) (text string, err error) {
	if d.kind == compacts {
		return string(d.agent) + " shortens its conversation", t.Members().Compact(ctx, d.agent)
	}
	if d.kind == drains {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // it is asked, and leaves when it can
		defer cancel()
		_, err = t.Members().Stop(ctx, d.agent, client.StopOptions{Reason: d.text, Drain: true})
		if errors.Is(err, client.ErrDrains) {
			return string(d.agent) + " leaves after its task", nil
		}
		return string(d.agent) + " has left", err
	}
	f := client.StopOptions{Reason: d.text, Wait: stopWait}
	if d.kind == kills {
		f.Wait = 0
	}
	forced, err := t.Members().Stop(ctx, d.agent, f)
	switch {
	case d.kind == kills:
		return string(d.agent) + " is stopped", err
	case forced:
		return string(d.agent) + " gave no answer and was stopped", err
	}
	return string(d.agent) + " has left", err
}

func onTask(ctx context.Context, t *client.Team, d action) (text string, err error) {
	b := t.Board()
	switch d.kind {
	case adds:
		added, _, err := b.Add(ctx, "", team.NewTask{Title: d.text})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is on the board", added[0].ID), nil
	case assigns:
		task, _, err := b.Assign(ctx, d.task, d.agent)
		if task.ReservedFor == d.agent {
			return fmt.Sprintf("%s is reserved for %s", d.task, d.agent), err
		}
		return fmt.Sprintf("%s has %s", d.agent, d.task), err
	case releases:
		_, err := b.Release(ctx, d.task, "", d.text)
		return fmt.Sprintf("%s is back on the board", d.task), err
	case cancels:
		_, err := b.Cancel(ctx, d.task, "", d.text)
		return fmt.Sprintf("%s is cancelled", d.task), err
	}
	return "", team.Errorf(team.InvalidArgument, "nothing is known of %q", d.kind)
}
