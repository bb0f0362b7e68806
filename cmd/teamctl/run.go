package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/broker/embedded"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/control"
	"agentteam/pkg/local"
	"agentteam/pkg/team"
)

func (a *app) runCmd() *cobra.Command {
	var detach bool
	cmd := &cobra.Command{
		Use: "run GOAL", Short: "Set a team a goal, watch it work, and get the answer", Args: exactly(1, "GOAL"),
		Long: "run sets the team a goal and streams what every agent says and does, until the leader ends it.\n" +
			"Without a cluster in this folder and without --server it starts one for its own duration.\n" +
			"A team that is at work gets the text as mail to its leader.",
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "set the goal and return")
	cmd.Flags().String("workspace", "", "folder that the team works in (default: this one)")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"workspace": aFolder})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if strings.TrimSpace(args[0]) == "" {
			return team.Errorf(team.InvalidArgument, "the goal is empty")
		}
		if err := (team.Message{Type: team.MsgUser, Content: args[0]}).Validate(); err != nil { // as which it reaches the leader
			return err
		}
		limited := a.bounded
		if detach {
			limited = a.deadline
		}
		ctx, cancel := limited(cmd.Context())
		defer cancel()
		return a.ended(ctx, a.goal(ctx, args[0], detach))
	}
	return cmd
}

// goal sets the goal in the cluster that is there, or in one of its own.
func (a *app) goal(ctx context.Context, text string, detach bool) error {
	cfg, err := a.settings()
	if err != nil {
		return err
	}
	known, err := clusterKnown(cfg)
	if err != nil {
		return err
	}
	if !known {
		if detach {
			return team.Errorf(team.Unavailable, "no cluster runs here that could go on with the goal").WithHint("start one in the background: teamctl up -d")
		}
		if err := cfg.CheckModel(); err != nil {
			return err
		}
		for _, err := range cfg.Lacking() {
			fmt.Fprintln(a.err, team.Line(err))
		}
		stop, server, err := a.ownCluster(ctx, cfg)
		if err != nil {
			return err
		}
		defer stop()
		cfg.Server = server
	}
	workspace, err := workspaceOf(cfg)
	if err != nil {
		return err
	}
	return a.pursue(ctx, cfg, text, workspace, detach, nil)
}

// clusterKnown reports whether a server was named, or a cluster of this folder is
// alive; the file of one that was killed names nothing. One that is not up yet is an
// error (unavailable).
func clusterKnown(cfg config.Config) (bool, error) {
	if !cfg.ServerKnown() {
		return false, nil
	}
	for _, o := range cfg.Origins() {
		if o.Name != "server" || !strings.HasSuffix(o.Origin, "cluster.json") {
			continue
		}
		running, pid := local.Running(".")
		if cl, _, err := config.FindCluster("."); running && err == nil && cl.HTTP == "" {
			return true, team.Errorf(team.Unavailable, "the cluster of this folder is just being started (pid %d)", pid).WithHint("try again when it is up")
		}
		return running, nil
	}
	return true, nil
}

// ownCluster starts a cluster in this folder for the length of the command.
func (a *app) ownCluster(ctx context.Context, cfg config.Config) (stop func(), server string, err error) {
	log, err := openLog("run.log")
	if err != nil {
		return nil, "", err
	}
	c, err := a.startCluster(ctx, cfg, ".", cfg.DataDir, defaultStandbys, 0, log, nil)
	if err != nil {
		log.Close()
		if errors.Is(err, embedded.ErrInUse) {
			err = team.Errorf(team.InvalidState, "%w", err).WithHint("it may be another run, whose cluster ends with it; for several start one that stays: teamctl up -d")
		}
		return nil, "", err
	}
	fmt.Fprintf(a.err, "started a cluster for this run; its log is %s\n", log.Name())
	return func() { c.Stop(); log.Close() }, c.URL(), nil
}

// pursue sets the goal and follows it to its end. epilogue, if not nil, prints
// what comes after the summary.
func (a *app) pursue(ctx context.Context, cfg config.Config, goal, workspace string, detach bool, epilogue func(io.Writer)) error {
	c, err := client.Connect(ctx, client.Options{URL: cfg.Server, Replicas: cfg.Replicas})
	if err != nil {
		return err
	}
	defer c.Close()
	procs, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	if procs.Model == control.NoModel {
		return team.Errorf(team.InvalidArgument, "no model is configured in the cluster's leader process").
			WithHint("set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, where leader and teammates are started")
	}
	t, err := a.makeTeam(ctx, c, cfg, workspace, "")
	if err != nil {
		return err
	}
	g, err := t.StartGoal(ctx, goal, workspace)
	if err != nil {
		return err
	}
	if !g.Started() {
		fmt.Fprintf(a.err, "team %s is at work; the text was mailed to its leader\n", t.ID())
	}
	if detach {
		return a.print(map[string]any{"team": t.ID(), "status": team.Active}, nil, []string{string(t.ID())}, func(w io.Writer, _ bool) error {
			_, err := fmt.Fprintf(w, "team %s works on it; watch with: teamctl events --follow --team %s\n", t.ID(), t.ID())
			return err
		})
	}
	record, werr := a.watch(ctx, t, g)
	priced := slices.ContainsFunc(cfg.Aliases(), func(m config.Alias) bool { return m.Prices != nil })
	return a.conclude(t, g, record, werr, priced, epilogue)
}

// watch streams the team's events until the goal has ended, the time limit passes
// or the command is interrupted.
func (a *app) watch(ctx context.Context, t *client.Team, g *client.Goal) (team.Team, error) {
	lines := newStream(a.streamTo(), func() map[team.AgentID]string { return t.Colours(ctx) })
	show := func(e client.Entry) { lines.show(e.Event) }
	if a.output == asJSONL {
		show = func(e client.Entry) { _ = writeJSON(a.out, e) }
	}
	eg, watching := errgroup.WithContext(ctx)
	following, stop := context.WithCancel(watching)
	eg.Go(func() error {
		return g.Follow(following, func(e client.Entry) error { show(e); return nil })
	})
	var record team.Team
	eg.Go(func() error {
		defer func() { time.AfterFunc(linger, stop) }()
		var err error
		record, err = g.Wait(watching)
		return err
	})
	err := eg.Wait()
	stop()
	return record, a.ended(ctx, err)
}

// linger lets the last events of a goal arrive.
const linger = 300 * time.Millisecond

// streamTo is where the stream goes: with a format for programs, stdout is for the
// result alone.
func (a *app) streamTo() io.Writer {
	if a.output == asTable || a.output == asWide {
		return a.out
	}
	return a.err
}

// conclude prints the result and turns the goal's end into the command's. priced is
// whether the settings hold prices.
func (a *app) conclude(t *client.Team, g *client.Goal, record team.Team, werr error, priced bool, epilogue func(io.Writer)) error {
	o := outcome{Team: t.ID(), Status: string(record.Status), Summary: record.Summary, priced: priced, Elapsed: g.Elapsed().Seconds()}
	switch {
	case errors.Is(werr, errTimeout):
		o.Status, werr = timedOut, stays(werr, t.ID())
	case errors.Is(werr, errInterrupted):
		// The run was stopped, though not the goal.
		o.Status, o.interrupted, werr = string(team.TeamStopped), true, stays(werr, t.ID())
	case werr != nil:
		return werr
	case record.Status == team.Active: // another goal has taken its place
		o.Status = string(team.TeamStopped)
	}
	// The command's context may be over; the result is printed all the same.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var err, aerr, uerr error
	o.Tasks, err = t.Tasks(ctx)
	o.Agents, aerr = t.Agents(ctx, true)
	if errors.Join(err, aerr) == nil { // NATS is there
		o.Usage, uerr = sumUp(g)
	}
	if err := errors.Join(err, aerr, uerr); err != nil && werr == nil {
		return err
	}
	o.count(g)
	if err := a.printOutcome(o, epilogue); err != nil {
		return err
	}
	switch {
	case werr != nil:
		return werr
	case o.Status != string(team.TeamFinished):
		return team.Errorf(team.InvalidState, "the goal ended as %s", o.Status)
	}
	return nil
}

// sumTime bounds the reading of a goal's journals: some 20,000 records take a second.
const sumTime = 30 * time.Second

func sumUp(g *client.Goal) (client.Usage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sumTime)
	defer cancel()
	return g.Usage(ctx)
}

// stays adds to the error that ended a command what becomes of its goal.
func stays(err error, id team.TeamID) error {
	stop := "teamctl stop"
	if id != team.DefaultTeam {
		stop += " --team " + string(id)
	}
	return &over{err.Error() + "; the goal stays active: " + stop + " ends it", stop + " ends it", err}
}
