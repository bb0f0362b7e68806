package main

import (
	"context"
	"fmt"
	"strings"

	"agentteam/pkg/team"
)

// showRequests shows the member's calls that a person must allow.
func (c *chat) showRequests(ctx context.Context) error {
	plans, err := c.team.Plans().List(ctx)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.Call == nil || !p.Waits() || p.AgentID != c.with {
			continue
		}
		if err := c.show(p.Entry()); err != nil {
			return err
		}
	}
	return nil
}

// howToDecide explains how to allow a call in this chat.
func (c *chat) howToDecide(p team.Approval) string {
	scopes := "task|always"
	if p.Call.Rule == "" {
		scopes = string(team.ForTask)
	}
	return fmt.Sprintf("allow: /approve %s [%s]; refuse: /reject %s [TEXT]", p.ID, scopes, p.ID)
}

// decide executes /approve and /reject.
func (c *chat) decide(ctx context.Context, approve bool, rest string) error {
	id, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	d := team.Decision{Approve: approve, Feedback: strings.TrimSpace(text)}
	if approve {
		scope, words, _ := strings.Cut(d.Feedback, " ")
		switch s := team.Scope(scope); s {
		case team.Once, team.ForTask, team.Always:
			d.Scope, d.Feedback = s, strings.TrimSpace(words)
		}
	}
	if id == "" {
		return team.Errorf(team.InvalidArgument, "which? give the ID").WithHint("/approve ID, or /reject ID TEXT; `teamctl approvals` lists what waits")
	}
	found, err := c.app.findPlan(ctx, c.team, id)
	if err != nil {
		return err
	}
	p, err := c.team.Plans().Decide(ctx, "", found.ID, d)
	if err == nil {
		c.app.note(decided(c.team.ID(), p))
	}
	return err
}
