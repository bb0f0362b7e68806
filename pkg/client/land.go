package client

import (
	"context"
	"errors"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/team"
)

// Land brings the checkout in dir, a folder of the user's, forward to the head of the line. It is
// for the user's command only. The result is what the checkout lacked, without its text; a checkout
// that lacked no commit stays.
//
// Errors: InvalidState, with what to do, for a checkout that has changes, or commits which the line
// has not; then only the branch of the line is there, as by Publish, whose errors it has, too.
func (t Branch) Land(ctx context.Context, dir string) (Diff, error) {
	p, c, lacks, err := t.landing(ctx, dir)
	if err != nil || lacks.From == lacks.Head {
		return lacks, err
	}
	if err = p.Repo.Publish(ctx, c, p.head); err == nil { // what to do after a refusal is done with that branch
		err = p.Repo.Land(ctx, c, p.head)
	}
	return lacks, err
}

// Publish makes the head of the line a branch of the repository in dir, perhaps for a pull request, and
// returns what the checkout there lacks; it stays as it is. Errors: Conflict if that branch was
// moved by hand; NotFound for a folder that is no checkout; those of Log.
func (t Branch) Publish(ctx context.Context, dir string) (Diff, error) {
	p, c, lacks, err := t.landing(ctx, dir)
	if err == nil {
		err = p.Repo.Publish(ctx, c, p.head)
	}
	return lacks, err
}

// landing looks at the checkout in dir, and what it lacks of the line; nothing if its HEAD has all.
func (t Branch) landing(ctx context.Context, dir string) (p position, c gitrepo.Checkout, lacks Diff, err error) {
	if p, err = t.position(ctx); err != nil {
		return p, c, lacks, err
	}
	if c, err = gitrepo.Look(ctx, dir); err != nil {
		return p, c, lacks, err
	}
	lacks = p.diff(t.id(), c.Head)
	if err = p.Repo.Fetch(ctx, c); err != nil {
		return p, c, lacks, err
	}
	if has, err := p.Repo.Contains(ctx, c.Head, p.head); err != nil || has {
		lacks.From = lacks.Head
		return p, c, lacks, err
	}
	if lacks.Commits, err = p.Repo.Log(ctx, c.Head, p.head); err == nil {
		lacks.Files, err = p.Repo.Files(ctx, c.Head, p.head)
	}
	return p, c, lacks, err
}

// CheckLinks refuses what the team wishes to have in trees (worktree_links) and the checkout in dir cannot
// give; a folder that cannot have trees gives nothing. Errors: InvalidArgument; NotFound for what is not there.
func (t Branch) CheckLinks(ctx context.Context, dir string) error {
	record, err := t.record(ctx)
	if err != nil {
		return err
	}
	c, err := gitrepo.Look(ctx, dir)
	if err != nil {
		return nil // who leads the team will report it
	}
	return worktree.CheckLinks(ctx, record, c)
}

// Changes names the files of the checkout in dir that differ from its HEAD, with which the next
// goal does not begin unless it is to; none if the folder cannot have trees. With take it makes sure
// that they can be taken along. Errors: InvalidState if not; Conflict, with the files, if what the line has and
// the checkout has not does not merge with it; those of [gitrepo.Repo.Changes].
func (t Branch) Changes(ctx context.Context, dir string, take bool) ([]string, error) {
	c, err := gitrepo.Look(ctx, dir)
	if errors.Is(err, team.NotFound) || errors.Is(err, team.Unavailable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record, err := t.record(ctx)
	if err != nil {
		return nil, err
	}
	site, err := mergequeue.At(ctx, "", t.team, record)
	if err != nil {
		return nil, err
	}
	if err := site.Repo.Fetch(ctx, c); err != nil {
		return nil, err
	}
	m, at := gitrepo.Message{Subject: "Uncommitted changes", Agent: team.UserAgent}, c.Head
	if take {
		if at, err = site.Repo.Snapshot(ctx, c, m); err != nil {
			return nil, err
		}
	}
	if _, err := site.Bring(ctx); err == nil { // else there is nothing to merge, or who leads the team will report it
		if _, err := site.Repo.Next(ctx, at, m); errors.Is(err, team.Conflict) {
			return nil, err
		}
	}
	return site.Repo.Changes(ctx, c)
}
