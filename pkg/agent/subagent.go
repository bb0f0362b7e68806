package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// Subagent returns the system message of a subagent of m, whose role is r; changes reports whether
// it may write files or run commands.
func Subagent(t team.Team, m team.Member, name team.AgentID, r team.Role, at projectcontext.Place, changes bool) string {
	parts := []string{fmt.Sprintf("You are a subagent of %s. Do what it asks, and nothing else. It reads your last text only: report there what you did and found, with file names and line numbers, and what you could not do. You can ask nothing, and no mail reaches you.", m.AgentID)}
	if !changes {
		parts = append(parts, "You only look: you have no tool that changes anything.")
	}
	where := workspaceOf(t, at)
	if t.HasBranch() {
		where = fmt.Sprintf("%s (the shell starts here, paths are relative to it). It is the tree of %s, in which no other member works.", neutral(at.Workspace), m.AgentID)
	}
	return joined(append(parts, skills(t.Dialect(r), at), instructions(at), ofRole(r), environment(t, r.Name, where, at), introduction(t, name, r.Name)))
}

// Part is a subagent's memory: a conversation without mail and tasks. It implements
// [engine.Memory].
type Part struct {
	*Conversation
	work string // the first note, which is its order
}

// NewPart returns the empty memory of a subagent.
func NewPart(d team.Dialect) *Part { return &Part{Conversation: newConversation(d)} }

// Add implements [engine.Memory].
func (p *Part) Add(r journal.Record) error {
	if r.Kind == journal.Note && p.work == "" {
		p.work = r.Text
	}
	return p.Conversation.Add(r)
}

// Kept implements [engine.Memory].
func (p *Part) Kept(c engine.Cut) engine.Kept {
	k := p.kept(c, p.work)
	k.Missing = "" // it has no mail to read
	return k
}

// Context implements [engine.Memory].
func (p *Part) Context(next engine.Conversation, c engine.Cut) json.RawMessage {
	return engine.JSON(p.shorter(next, c))
}

// NoteFolders shows the subagent the repository's instructions for the folders in which its calls
// have read or written these files, once each. No call may be open.
func (p *Part) NoteFolders(ctx context.Context, touched []string, find Folders, log engine.Journal) error {
	return p.noteFolders(ctx, touched, find, func(ctx context.Context, r journal.Record) error { return p.Add(log.Enqueue(ctx, r)) })
}
