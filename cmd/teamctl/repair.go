package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentteam/pkg/agent"
	"agentteam/pkg/client"
	"agentteam/pkg/client/repair"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func (a *app) repairCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "repair [KEY...]", Short: "Put back records that cannot be read",
		Long: "repair lists the records of the team that cannot be read, and what would mend each. With KEYs, or --all, it mends them:\n" +
			"of a record of the bucket the newest copy that can be read is put back; a record of a journal (log.NAME) is set aside,\n" +
			"kept in the team's object store, and a note tells the agent. Nobody has to be stopped for it. What a newer version of\n" +
			"agentteam has written is mended only by its KEY.",
		RunE: func(_ *cobra.Command, keys []string) error {
			if all && len(keys) > 0 {
				return team.Errorf(team.InvalidArgument, "--all goes with no KEY")
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				found, err := t.Damaged(ctx, agent.Takes)
				if err != nil {
					return err
				}
				if !all && len(keys) == 0 {
					if len(found) == 0 {
						a.note("nothing is damaged in team " + string(t.ID()))
					}
					return a.printDamage(found)
				}
				if all {
					keys = mendable(found)
				}
				done, err := a.repair(ctx, t, keys)
				return errors.Join(a.printDamage(done), err)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "mend all that can be mended")
	return cmd
}

// mendable returns the keys of the damage that --all repairs, and also of damage that nothing repairs, so
// that it is reported. The team's own record comes first: others are checked against it.
func mendable(found []repair.Damage) (keys []string) {
	for _, first := range []bool{true, false} {
		for _, d := range found {
			if d.Remedy != repair.Newer && (d.Key == subject.KeyTeam) == first && (len(keys) == 0 || keys[len(keys)-1] != d.Key) {
				keys = append(keys, d.Key)
			}
		}
	}
	return keys
}

// repair repairs the damage with these keys, as far as possible. The error is the first one.
func (a *app) repair(ctx context.Context, t *client.Team, keys []string) (done []repair.Damage, first error) {
	for _, key := range keys {
		mended, err := t.Repair(ctx, key, agent.Takes)
		switch {
		case err != nil && first == nil:
			first = err
		case err != nil:
			a.note(team.Line(err))
		case len(mended) == 0:
			a.note(key + " can be read: nothing is to be done")
		}
		if err == nil {
			done = append(done, mended...)
		}
	}
	if len(keys) == 0 {
		a.note("nothing is to be mended in team " + string(t.ID()))
	}
	return done, first
}

func (a *app) printDamage(all []repair.Damage) error {
	return printList(a, all, func(d repair.Damage) string { return d.Key }, func() table {
		t := table{columns: []column{{head: "KEY"}, {head: "REVISION"}, {head: "REPAIR", cut: true}}}
		for _, d := range all {
			t.add(printable(d.Key), fmt.Sprint(d.Revision), printable(team.OneLine(d.Text())))
		}
		return t
	})
}
