package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Teams returns the states of all teams, in order of their names. A team that has lost part of its
// storage has the status "broken", with the reason as its goal; a team that is being deleted or
// loaded has only that status.
func (c *Client) Teams(ctx context.Context) ([]TeamStatus, error) {
	teams, _, err := c.TeamsFrom(ctx, "", math.MaxInt)
	return teams, err
}

// atOnce is how many teams are read in parallel.
const atOnce = 16

// TeamsFrom is [Client.Teams] for those from a name on, at most limit of them, and the name of the
// next one; "" at the end.
func (c *Client) TeamsFrom(ctx context.Context, from team.TeamID, limit int) (teams []TeamStatus, next team.TeamID, err error) {
	small, err := c.registry.List(ctx)
	if err != nil {
		return nil, "", err
	}
	c.stills.forget(small)
	small = slices.DeleteFunc(small, func(sm team.Small) bool { return sm.ID < from })
	if len(small) > limit {
		small, next = small[:limit], small[limit].ID
	}
	found := make([]*TeamStatus, len(small)) // nil: it was deleted since
	looks, within := errgroup.WithContext(ctx)
	looks.SetLimit(atOnce)
	for i, sm := range small {
		looks.Go(func() (err error) {
			found[i], err = c.stands(within, sm)
			return err
		})
	}
	if err := looks.Wait(); err != nil {
		return nil, "", err
	}
	teams = make([]TeamStatus, 0, len(found))
	for _, s := range found {
		if s != nil {
			teams = append(teams, *s)
		}
	}
	return teams, next, nil
}

// stands returns the state of a team; nil if it was deleted.
func (c *Client) stands(ctx context.Context, sm team.Small) (*TeamStatus, error) {
	if sm.Status == team.TeamLoading || sm.Status == team.TeamDeleting {
		return &TeamStatus{ID: sm.ID, Status: sm.Status}, nil
	}
	if s, ok := c.stills.poll(ctx, sm); ok {
		return &s, nil
	}
	t, err := c.Open(ctx, sm.ID)
	switch {
	case errors.Is(err, team.NotFound):
		return nil, nil
	case errors.Is(err, team.Conflict):
		return &TeamStatus{ID: sm.ID, Status: team.TeamDeleting}, nil
	case errors.Is(err, team.InvalidState): // the others are returned all the same
		return &TeamStatus{ID: sm.ID, Status: "broken", Goal: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	at, err := markOf(ctx, t.team)
	if err != nil {
		return nil, err
	}
	s, err := t.status(ctx)
	if err != nil {
		return nil, err
	}
	c.stills.keep(sm, t.team, at, s)
	return &s, nil
}

// AddTeam makes a team that must not exist yet. Errors: Conflict; InvalidArgument.
func (c *Client) AddTeam(ctx context.Context, n NewTeam, choices team.Choices) (team.Team, error) {
	record := n.record()
	record.Choose(choices)
	_, record, err := c.registry.Add(ctx, record)
	return record, err
}

// AddTeamOnce is [Client.AddTeam] for a caller that may have to repeat it: an existing team that
// equals the one this call would make, and has had no goal, is returned, with existed set. Errors:
// those of AddTeam.
func (c *Client) AddTeamOnce(ctx context.Context, n NewTeam, choices team.Choices) (record team.Team, existed bool, err error) {
	record, err = c.AddTeam(ctx, n, choices)
	if !errors.Is(err, team.Conflict) {
		return record, false, err
	}
	want := n.record()
	want.Choose(choices)
	_, there, oerr := c.registry.Open(ctx, n.ID)
	same := there.Description == want.Description && there.MaxTeammates == want.MaxTeammates && there.Policies == want.Policies && reflect.DeepEqual(there.Policy, want.Policy) && there.Workspace == want.Workspace
	if oerr != nil || !same || there.GoalNumber > 0 {
		return record, false, err
	}
	return there, true, nil
}

// Choose changes the team's record. Its leader and its members act on that immediately. Errors:
// InvalidArgument, and then nothing is changed; Conflict if the team is being deleted.
func (t *Team) Choose(ctx context.Context, choices team.Choices) (team.Team, error) {
	return t.client.registry.Edit(ctx, t.team, func(record *team.Team) { record.Choose(choices) })
}

// Anyway lets a saved team continue here, as it was before, also if the file is loaded elsewhere;
// marked is false, and nothing is changed, if it was not saved. Errors: Conflict if it is being
// deleted.
func (t *Team) Anyway(ctx context.Context) (record team.Team, marked bool, err error) {
	return t.client.registry.Unsave(ctx, t.team)
}

// Deleted is a team that was deleted.
type Deleted struct {
	Team  team.TeamID    `json:"team"`
	Ended []team.AgentID `json:"ended"`      // members that lived, and were stopped by force
	Open  int            `json:"open_tasks"` // tasks that were not done
}

// DeleteTeam deletes a team and all that NATS stores of it: board, mail, conversations, files, and
// the homes of its members on this machine. It must have no live members; with force it is stopped
// first, and members that have not left after wait are stopped by force. The next call completes a
// deletion that was interrupted.
//
// Errors: NotFound; Conflict while it is at work or a member lives, with the members and their
// times, and, without force, for work that the checkout in its workspace lacks; InvalidState if
// part of its storage is gone, and then force deletes the other parts.
func (c *Client) DeleteTeam(ctx context.Context, id team.TeamID, force bool, wait time.Duration) (Deleted, error) {
	d := Deleted{Team: id, Ended: []team.AgentID{}}
	t, err := c.Open(ctx, id)
	if err == nil {
		if d.Ended, d.Open, err = t.settle(ctx, force, wait); err != nil {
			return d, err
		}
	} else if errors.Is(err, team.NotFound) {
		return d, err
	}
	var record team.Team
	err = c.registry.Delete(ctx, id, force, func(ctx context.Context, bt *broker.Storage) error {
		record, _ = c.open(bt).record(ctx) // the zero Team has no homes
		present, _, err := c.open(bt).present(ctx)
		if force { // such a member cannot work any more once the team is gone
			present = slices.DeleteFunc(present, func(m team.Member) bool { return m.State == team.Unreadable })
		}
		if err == nil && len(present) > 0 {
			err = stillThere(id, "has members", present).WithHint("`teamctl stop --team %s` ends that; --force stops them and deletes the team", id)
		}
		return err
	})
	if homes, ok := c.workspaces.(interface{ Forget(team.Team) }); ok && err == nil {
		homes.Forget(record)
	}
	if err == nil && record.ID != "" {
		if ferr := mergequeue.Forget(record); ferr != nil {
			err = team.Errorf(team.InvalidState, "team %s is deleted, but not its line on this machine: %w", id, ferr)
		}
	}
	return d, err
}

// elsewhere returns Conflict if the checkout in the team's workspace, on this machine, lacks the
// head of the integration branch. A checkout that cannot be read is no error.
func (t *core) elsewhere(ctx context.Context, record team.Team) error {
	if !record.HasBranch() {
		return nil
	}
	h, err := mergequeue.New(t.team).Head(ctx)
	if err != nil {
		return nil
	}
	c, err := gitrepo.Inspect(ctx, record.Workspace)
	if err != nil {
		return nil
	}
	if _, err := c.At(ctx, string(h.Commit)); !errors.Is(err, team.NotFound) || ctx.Err() != nil {
		return nil
	}
	return team.Errorf(team.Conflict, "the line of team %s is at commit %s, which the checkout %s lacks: what was merged there is nowhere else", t.id(), h.Commit.Short(), c.Root).
		WithHint("`teamctl land --publish --team %s` makes it a branch there; --force deletes it", t.id())
}

// settle stops the team if force is set, and returns the members that lived and the number of open
// tasks.
func (t *core) settle(ctx context.Context, force bool, wait time.Duration) (ended []team.AgentID, open int, err error) {
	record, err := t.record(ctx)
	if err != nil {
		if force && errors.Is(err, team.ErrUnreadable) { // without it its members cannot be notified
			err = nil
		}
		return []team.AgentID{}, 0, err
	}
	present, open, err := t.present(ctx)
	if err != nil {
		return nil, 0, err
	}
	ended = []team.AgentID{}
	if !force {
		if record.Status == team.Active {
			err = stillThere(t.id(), "is at work", present).WithHint("`teamctl stop --team %s` ends that; --force stops them and deletes the team", t.id())
		} else {
			err = t.elsewhere(ctx, record)
		}
		return ended, open, err
	}
	if err := (&Team{t}).StopTeam(ctx, wait); err != nil {
		return ended, open, err
	}
	for _, m := range present {
		ended = append(ended, m.AgentID)
	}
	return ended, open, nil
}

// present returns the live members, and how many tasks are open. A person without a task does not
// count.
func (t *core) present(ctx context.Context) (members []team.Member, open int, err error) {
	if members, err = t.roster.List(ctx); err != nil {
		return nil, 0, err
	}
	tasks, err := t.board.All(ctx)
	if err != nil {
		return nil, 0, err
	}
	working := map[team.AgentID]bool{}
	for _, task := range tasks {
		if task.Status.Open() {
			open++
		}
		if task.Status == team.InProgress {
			working[task.Assignee] = true
		}
	}
	return slices.DeleteFunc(members, func(m team.Member) bool {
		return m.State == team.Stopped || m.Backend == team.Person && !working[m.AgentID]
	}), open, nil
}

func stillThere(id team.TeamID, why string, present []team.Member) *team.Error {
	who := make([]string, len(present))
	for i, m := range present {
		who[i] = fmt.Sprintf("%s (%s since %s)", m.AgentID, m.State, m.UpdatedAt.Local().Format(time.DateTime))
	}
	return team.Errorf(team.Conflict, "team %s %s: %s", id, why, cmp.Or(strings.Join(who, ", "), "nobody leads it yet"))
}
