package client

import (
	"context"
	"errors"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/team"
)

// Land updates the checkout in dir, a folder of the user's, to the head of the integration branch.
// It is for the user's command only. The result is the commits and files that the checkout lacked,
// without the text; a checkout that lacked no commit stays.
//
// Errors: InvalidState, with instructions, for a checkout that has changes, or commits that the
// integration branch lacks; then the branch exists in the repository, as after Publish, whose
// errors it returns, too.
func (t Branch) Land(ctx context.Context, dir string) (Diff, error) {
	p, c, lacks, err := t.landing(ctx, dir)
	if err != nil || lacks.From == lacks.Head {
		return lacks, err
	}
	if err = p.Repo.Publish(ctx, c, p.head); err == nil { // the instructions after a refusal use that branch
		err = p.Repo.Land(ctx, c, p.head)
	}
	return lacks, err
}

// Publish makes the head of the integration branch a branch of the repository in dir, perhaps for a
// pull request, and returns what the checkout lacks; the checkout stays as it is. Errors: Conflict
// if that branch was moved by hand; NotFound for a folder that is not a checkout; those of Log.
func (t Branch) Publish(ctx context.Context, dir string) (Diff, error) {
	p, c, lacks, err := t.landing(ctx, dir)
	if err == nil {
		err = p.Repo.Publish(ctx, c, p.head)
	}
	return lacks, err
}

// landing returns the checkout in dir and the part of the integration branch that it lacks, if any.
func (t Branch) landing(ctx context.Context, dir string) (p position, c gitrepo.Checkout, lacks Diff, err error) {
	if p, err = t.position(ctx); err != nil {
		return p, c, lacks, err
	}
	if c, err = gitrepo.Inspect(ctx, dir); err != nil {
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

// CheckLinks returns an error for worktree_links of the team that the checkout in dir does not
// have; nil for a folder that cannot have trees. Errors: InvalidArgument; NotFound for a missing
// path.
func (t Branch) CheckLinks(ctx context.Context, dir string) error {
	record, err := t.record(ctx)
	if err != nil {
		return err
	}
	c, err := gitrepo.Inspect(ctx, dir)
	if err != nil {
		return nil // the process that leads the team will report it
	}
	return worktree.CheckLinks(ctx, record, c)
}

// Changes returns the files of the checkout in dir that differ from its HEAD and are not part of
// the next goal by default; none if the folder cannot have trees. With take it checks that they can
// be included. Errors: InvalidState if not; Conflict, with the files, if the integration branch has
// commits that do not merge with them; those of [gitrepo.Repo.Changes].
func (t Branch) Changes(ctx context.Context, dir string, take bool) ([]string, error) {
	c, err := gitrepo.Inspect(ctx, dir)
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
	if _, err := site.Bring(ctx); err == nil { // else there is nothing to merge, or the process that leads the team will report it
		if _, err := site.Repo.Next(ctx, at, m); errors.Is(err, team.Conflict) {
			return nil, err
		}
	}
	return site.Repo.Changes(ctx, c)
}
