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
		Long: "repair lists the records of the team that cannot be read, and what would repair each. With KEYs, or --all, it repairs them:\n" +
			"of a record of the bucket the newest copy that can be read is put back; a record of a journal (log.NAME) is set aside,\n" +
			"kept in the team's object store, and a note tells the agent. Nobody has to be stopped for it. What a newer version of\n" +
			"agentteam has written is repaired only by its KEY.",
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
					keys = repairable(found)
				}
				done, err := a.repair(ctx, t, keys)
				return errors.Join(a.printDamage(done), err)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "repair all that can be repaired")
	return cmd
}

// repairable returns the keys of the damage that --all repairs, and also of damage that nothing repairs, so
// that it is reported. The team's own record comes first: others are checked against it.
func repairable(found []repair.Damage) (keys []string) {
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
		repaired, err := t.Repair(ctx, key, agent.Takes)
		switch {
		case err != nil && first == nil:
			first = err
		case err != nil:
			a.note(team.Line(err))
		case len(repaired) == 0:
			a.note(key + " can be read: nothing is to be done")
		}
		if err == nil {
			done = append(done, repaired...)
		}
	}
	if len(keys) == 0 {
		a.note("nothing is to be repaired in team " + string(t.ID()))
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
