package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// stopGrace is the extra time after the members' own: for the forced stop, and its answer.
const stopGrace = 15 * time.Second

func (a *app) stopCmd() *cobra.Command {
	var force bool
	var f client.StopOptions
	cmd := &cobra.Command{
		Use: "stop [NAME...]", Short: "Stop members, or the whole team",
		Long: "stop asks the members to leave. One with work may refuse: that is a conflict, with its reason, and it stays. Whoever has\n" +
			"not answered after --timeout is stopped by force. Tasks that they hold go back to the board. With --drain the members are\n" +
			"not asked, but end their tasks, take no other and leave; stop waits for that, and they do so also after --timeout.\n" +
			"Without a name stop ends the team's goal as stopped and stops every member; nobody is asked, and seats give their tasks back.",
		ValidArgsFunction: completePresent,
	}
	cmd.Flags().BoolVar(&force, "force", false, "do not ask")
	cmd.Flags().BoolVar(&f.Drain, "drain", false, "let them end their tasks first")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "why, for the members to read")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := parseAll(args, a.member)
		if err != nil {
			return err
		}
		switch {
		case force && f.Drain:
			return team.Errorf(team.InvalidArgument, "--force and --drain exclude each other")
		case len(names) == 0 && (f.Drain || f.Reason != ""):
			return team.Errorf(team.InvalidArgument, "--drain and --reason are for members: give their names")
		}
		ctx, wait, cancel := a.stopping(cmd.Context())
		if f.Wait = wait; f.Drain {
			cancel()
			ctx, cancel = a.bounded(cmd.Context())
		}
		defer cancel()
		if force {
			f.Wait = 0
		}
		defer a.waitsFor("the members to leave; one in the middle of a command ends that first")()
		return a.connectedIn(ctx, func(ctx context.Context, c *client.Client, cfg config.Config) error {
			t, err := c.Open(ctx, cfg.Team)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return a.stopTeam(ctx, t, f.Wait)
			}
			return a.stopMembers(ctx, t, names, f)
		})
	}
	return cmd
}

// stopping limits a command that stops members: they have wait to leave by themselves.
func (a *app) stopping(ctx context.Context) (_ context.Context, wait time.Duration, _ context.CancelFunc) {
	wait = cmp.Or(a.timeout, defaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, wait+stopGrace, errTimeout)
	return ctx, wait, cancel
}

func (a *app) stopTeam(ctx context.Context, t *client.Team, wait time.Duration) error {
	before, err := t.Record(ctx)
	if err == nil {
		err = t.StopTeam(ctx, wait)
	}
	if err != nil {
		return err
	}
	status, text := before.Status, fmt.Sprintf("team %s is %s already; no member of it is left", t.ID(), before.Status)
	if status == team.Active {
		status, text = team.TeamStopped, fmt.Sprintf("team %s is stopped", t.ID())
	}
	return a.printLine(map[string]any{"team": t.ID(), "status": status}, string(t.ID()), text)
}

// stopMembers stops the members concurrently, so that a slow one does not use up the others' time.
func (a *app) stopMembers(ctx context.Context, t *client.Team, names []team.AgentID, f client.StopOptions) error {
	for _, name := range names { // a name that is wrong changes nothing
		if _, err := t.Members().Get(ctx, name); err != nil {
			return err
		}
	}
	errs, forced := make([]error, len(names)), make([]bool, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			asked, answered := context.WithCancel(ctx)
			defer answered()
			wg.Go(func() { a.printStopping(asked, t, name, f) })
			forced[i], errs[i] = t.Members().Stop(ctx, name, f)
			if errors.Is(errs[i], client.ErrDrains) && ctx.Err() != nil {
				errs[i] = drainsOn(a.ended(ctx, errs[i]), name)
			}
		})
	}
	wg.Wait()
	var stopped []client.Agent
	var said []string
	for i, name := range names {
		if errs[i] != nil {
			continue
		}
		var m client.Agent
		if m, errs[i] = t.Members().Get(ctx, name); errs[i] != nil {
			continue
		}
		stopped, said = append(stopped, m), append(said, stoppedLine(m.AgentID.At(t.ID()), forced[i], f.Wait))
	}
	err := printAll(a, stopped, nameOfAgent, func() { a.say(said...) })
	return errors.Join(append([]error{err}, errs...)...)
}

// stoppedLine describes how a member was stopped.
func stoppedLine(name string, forced bool, wait time.Duration) string {
	switch {
	case forced && wait > 0:
		return fmt.Sprintf("%s is stopped by force: it gave no answer within %v", name, wait)
	case forced:
		return name + " is stopped by force"
	}
	return name + " is stopped"
}

// drainsOn returns the error of a command that no longer waits for a draining member.
func drainsOn(err error, name team.AgentID) error {
	var o *over
	if !errors.As(err, &o) {
		return err
	}
	return &over{fmt.Sprintf("%s: %s has not left yet; it takes no other task, and leaves once it has none", o.text, name), o.hint, o.cause, o.why}
}

// sayStopping is how long a stop may take before the command prints what it waits for.
const sayStopping = time.Second

// printStopping prints what a stopping member is doing, unless ctx ends soon.
func (a *app) printStopping(ctx context.Context, t *client.Team, name team.AgentID, f client.StopOptions) {
	if !shutdown.Sleep(ctx, sayStopping) {
		return
	}
	if m, err := t.Members().Get(ctx, name); err == nil && m.HasProcess() && (f.Wait > 0 || f.Drain) {
		a.note(stoppingLine(t.ID(), m, f))
	}
}

// stoppingLine describes what the stop of m waits for, and for how long at most.
func stoppingLine(id team.TeamID, m client.Agent, f client.StopOptions) string {
	then, until := "answers when that has ended", fmt.Sprintf("; without an answer it is stopped by force %v after it was asked", f.Wait)
	if f.Drain {
		then, until = "leaves when it has no task", ""
	}
	what := "its process does not answer"
	m.Drains = false // which this line is about
	switch at := doing(client.WorkOf(m)); {
	case m.State == team.Lost, m.State == team.Unknown:
	case at != "":
		what = "it is at " + at
		if m.Task != "" {
			what += " (" + string(m.Task) + ")"
		}
		what += " and " + then
	case m.Task != "":
		what = "it has " + string(m.Task) + " and " + then
	default:
		what = "it is leaving"
	}
	return fmt.Sprintf("waiting for %s: %s%s", m.AgentID.At(id), what, until)
}
