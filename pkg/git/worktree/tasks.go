package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// tasks is the board for the queue, which writes as the holders of tasks, under their epochs.
type tasks struct {
	board  *board.Board
	roster *roster.Roster
}

func holder(e mergequeue.Entry) team.Holder {
	return team.Holder{Agent: e.Agent, Incarnation: e.Incarnation}
}

// Held implements [mergequeue.Tasks].
func (s tasks) Held(ctx context.Context, e mergequeue.Entry) error {
	t, err := s.board.Get(ctx, e.Task)
	if err != nil {
		return err
	}
	return t.MayComplete(holder(e), e.Epoch)
}

// ended reports whether the hold of an entry has ended as a repeated call would end it.
func (s tasks) ended(ctx context.Context, e mergequeue.Entry, as ...team.TaskStatus) bool {
	t, err := s.board.Get(ctx, e.Task)
	return err == nil && t.Epoch == e.Epoch && slices.Contains(as, t.Status)
}

// Complete implements [mergequeue.Tasks].
func (s tasks) Complete(ctx context.Context, e mergequeue.Entry, commit gitrepo.Hash) error {
	_, err := s.board.Complete(ctx, e.Task, holder(e), e.Epoch, team.Done{Summary: e.Summary, Digest: e.Deliverable, Artifacts: e.Artifacts, Commit: string(commit)})
	if err != nil && s.ended(ctx, e, team.Completed) {
		return nil
	}
	return err
}

// Release implements [mergequeue.Tasks].
func (s tasks) Release(ctx context.Context, e mergequeue.Entry, o mergequeue.Outcome) error {
	o.Agent, o.Base = cmp.Or(o.Agent, e.Agent), cmp.Or(o.Base, e.Base) // earlier programs store outcomes without
	g := team.GiveBack{Freed: team.Freed{Reason: report(e.Task, e.Epoch, o), Attempt: o.Own}, Merge: !o.Own, Others: others(o)}
	if o.Commit != "" {
		g.Work = &team.Try{By: e.Agent, Epoch: e.Epoch, Commit: string(o.Commit), Base: string(o.Base)}
	}
	m, err := s.roster.Get(ctx, e.Agent)
	if err != nil && team.CodeOf(err) == team.Unavailable {
		return err
	}
	g.Stays = err == nil && m.HasProcess() && m.Incarnation == e.Incarnation // a process that is gone continues with nothing
	_, err = s.board.GiveBack(ctx, e.Task, holder(e), e.Epoch, g)
	if err != nil && s.ended(ctx, e, team.Pending, team.Failed) {
		return nil
	}
	return err
}

// others returns the members whose work conflicts with the unmerged work.
func others(o mergequeue.Outcome) (all []team.AgentID) {
	for _, e := range o.Since {
		if o.Kind == mergequeue.Conflicting && e.Task != "" && !slices.Contains(all, e.Agent) {
			all = append(all, e.Agent)
		}
	}
	return all
}

// Checks implements [mergequeue.Tasks].
func (s tasks) Checks(ctx context.Context, ids []team.TaskID) (all []mergequeue.Check, err error) {
	for _, id := range ids {
		t, err := s.board.Get(ctx, id)
		switch {
		case errors.Is(err, team.NotFound):
		case errors.Is(err, team.ErrUnreadable):
			all = append(all, mergequeue.Check{Task: id, Unknown: err})
		case err != nil:
			return nil, err
		case t.Check != "":
			all = append(all, mergequeue.Check{Task: id, Title: t.Title, Agent: t.Assignee, Command: t.Check})
		}
	}
	return all, nil
}

// checker runs the checks of tasks on merged files, each as its assignee.
type checker struct{ l *Workspaces }

// member returns the assignee of a task; a member with the zero role if it is gone.
func (c checker) member(ctx context.Context, a team.AgentID) (team.Member, error) {
	m, err := c.l.tasks.roster.Get(ctx, a)
	if errors.Is(err, team.NotFound) {
		return team.Member{AgentID: a}, nil
	}
	return m, err
}

// Able implements [mergequeue.Checker].
func (c checker) Able(ctx context.Context, e mergequeue.Entry) error {
	leveled := e.Sandbox != "" && c.l.o.Level != nil
	if !leveled && e.Links == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, levelWithin)
	defer cancel()
	m, err := c.member(ctx, e.Agent)
	if err != nil {
		return err
	}
	if e.Links != nil {
		_, here, _ := c.l.links(ctx, m.Role)
		if err := ctx.Err(); err != nil {
			return team.Errorf(team.Unavailable, "the worktree_links of %s: %w", m.Role, err)
		}
		if missing := without(e.Links, here); len(missing) > 0 {
			return team.Errorf(team.InvalidState, "its check has used %s (worktree_links), which cannot be had here", strings.Join(missing, ", "))
		}
	}
	if !leveled {
		return nil
	}
	have := c.l.o.Level(ctx, c.l.o.Record(), m.Role)
	if err := ctx.Err(); err != nil { // which shows nothing of this host
		return team.Errorf(team.Unavailable, "what sandbox there is here: %w", err)
	}
	if have.Stronger(e.Sandbox) != have {
		return team.Errorf(team.InvalidState, "the commands of %s ran in the sandbox %s, and would run in %s here", e.Agent, e.Sandbox, have)
	}
	return nil
}

// Check implements [mergequeue.Checker].
func (c checker) Check(ctx context.Context, dir string, k mergequeue.Check) (passed bool, output string, err error) {
	m, err := c.member(ctx, k.Agent)
	if err != nil {
		return false, "", err
	}
	record := c.l.o.Record()
	at, err := below(dir, record.Branch.Prefix)
	if err != nil { // the work has put something in its place
		return false, team.Line(err), nil
	}
	if may := c.l.o.May; may != nil {
		if err := may(ctx, k.Task, m.Role, k.Command, at); err != nil {
			return false, "", err
		}
	}
	tree := &workspace.Tree{Root: dir, Dir: at}
	from, links, mounted := c.l.links(ctx, m.Role)
	if len(links) > 0 {
		if tree.Shown, err = from.CopyUserFiles(ctx, links, dir, mounted); err != nil {
			return false, "", err
		}
	}
	ws, release, err := c.l.o.Source.Open(ctx, workspace.Work{Team: record, Member: m, Tree: tree}, workspace.Options{})
	if err != nil {
		return false, "", err
	}
	defer release()
	output, passed, err = ws.Check(ctx, k.Command)
	if lacks := without(record.PolicyOf(m.Role).Links, links); err == nil && !passed && k.Earlier && len(lacks) > 0 {
		err = fmt.Errorf("it fails without %s (worktree_links), which cannot be had there: %w", strings.Join(lacks, ", "), mergequeue.ErrNotHere)
	}
	return passed, output, err
}

// without returns the names that are not in here.
func without(names, here []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(here, name) })
}

// LeftOut implements [mergequeue.Checker]: the leader is notified, so that it can have the check run otherwise.
func (c checker) LeftOut(ctx context.Context, e mergequeue.Entry, k mergequeue.Check, why error) error {
	c.l.o.Logger.WarnContext(ctx, "a check of merged files is left out", "task", k.Task, "merges", e.Task, "err", why)
	if c.l.o.Notify == nil {
		return nil
	}
	reason := team.Clean(team.Line(why), 1000)
	text := fmt.Sprintf("[Not checked] The work of %s on %s (%s) is merged without the check of %s (%s), whose files it changes. Host %s does not run it: %s. To have it run, change the rule, or give a member the task to run it.",
		e.Agent, e.Task, e.Title, k.Task, k.Title, host(), reason)
	if errors.Is(why, mergequeue.ErrNotHere) {
		text = fmt.Sprintf("[Not checked] The work of %s on %s (%s) is merged without the check of %s (%s), whose files it changes. On host %s %s. To have it run where that is, give the task to a member there.",
			e.Agent, e.Task, e.Title, k.Task, k.Title, host(), reason)
	}
	if k.Unknown != nil {
		text = fmt.Sprintf("[Not checked] The work of %s on %s (%s) is merged without the check of %s, if that has one, whose files it changes: %s. A person can repair the record. Then give a member the task to run the check.",
			e.Agent, e.Task, e.Title, k.Task, reason)
	}
	return c.l.o.Notify(ctx, team.Leader, fmt.Sprintf("unchecked-%s-%d-%s", e.Task, e.Epoch, k.Task), text)
}
