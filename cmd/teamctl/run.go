package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/cluster/local"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/team"
	"agentteam/pkg/view/screen"
)

func (a *app) runCmd() *cobra.Command {
	var keep, cancel bool
	var p runRequest
	cmd := &cobra.Command{
		Use: "run {GOAL | --resume}", Short: "Set a team a goal, watch it work, and get the answer",
		Long: "run sets the team a goal and streams what every agent says and does, until the leader ends it.\n" +
			"Inside tmux it splits the window until the goal has ended: each teammate has a pane; not so with --teammate-mode in-process.\n" +
			"Without a cluster in this folder and without --server it starts one for its own duration.\n" +
			"With --resume it goes on with the goal that the team is at work on, wherever that was left, and streams it.\n" +
			"A team that is at work takes no second goal (conflict), unless --add mails the text to its leader.\n" +
			"Open tasks that an earlier goal has left are kept or cancelled, as asked on a terminal; else they are kept.\n" +
			"Where tasks have trees it ends with what they have changed and the command that takes it over, which --land does:\n" +
			"of a goal that has finished; if the checkout has changes or other commits since, it exits 1 and says what to do. Without --land, branch_hook gets the branch.",
		Args: func(cmd *cobra.Command, args []string) error {
			if p.resume {
				return atMost(0)(cmd, args)
			}
			return exactly(1, "GOAL, or --resume")(cmd, args)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.detach, "detach", false, "set the goal and return")
	f.BoolVar(&p.resume, "resume", false, "continue the goal that is under way")
	f.BoolVar(&p.add, "add", false, "to a team at work, mail the text to its leader")
	f.BoolVar(&keep, "keep", false, "keep the open tasks of earlier goals")
	f.BoolVar(&cancel, "cancel", false, "cancel the open tasks of earlier goals")
	f.BoolVar(&p.changes, "with-changes", false, "begin with the uncommitted changes of the workspace")
	f.BoolVar(&p.anyway, "anyway", false, "let a team continue here that was saved to continue elsewhere")
	f.BoolVar(&p.land, "land", false, "bring your checkout forward to the work of a goal that has finished")
	p.view.flags(cmd)
	f.BoolVar(&p.top, "top", false, "watch it on the screen of teamctl top; on leaving that the answer is printed")
	teammateModeFlag(cmd)
	f.String("workspace", "", "folder that the team works in (default: this one)")
	f.StringArrayVar((*[]string)(&p.reads), "read", nil, "folder beside the workspace that the members may read; may be repeated")
	a.ownFlags(cmd)
	f.StringArrayVar(&p.budgets, "budget", nil, "limit of the goal, such as 5 (US dollars) or 5usd,2Mtok,400turns,90m, or none; may be repeated")
	f.StringVar(&p.isolation, "isolation", "", isolationUsage)
	completeFlags(cmd, map[string]cobra.CompletionFunc{"workspace": aFolder, "read": aFolder, "isolation": fixed(team.Isolation("").Values()...)})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := p.check(keep, cancel)
		if err == nil {
			err = p.takeGoal(args)
		}
		if err == nil && p.top {
			err = a.screenable()
		}
		if err != nil {
			return err
		}
		p.since = time.Now()
		limited := a.bounded
		if p.detach {
			limited = a.deadline
		}
		ctx, cancel := limited(cmd.Context())
		defer cancel()
		return p.left(a.ended(ctx, a.goal(ctx, &p)))
	}
	return cmd
}

// runRequest is a goal to set and follow, or to resume. With attach it describes the view.
type runRequest struct {
	goal, workspace     string
	reads               readDirs // beside the workspace
	detach, add, resume bool
	anyway              bool // also a team that was saved
	changes, land       bool // begin with the uncommitted ones; end in the checkout
	top                 bool // watch it on a screen
	isolation           string
	budgets             []string
	budget              *team.Budget // of the goal; nil: none was named
	old                 oldTasks
	view                view
	own                 bool           // the cluster ends with the command
	cluster             *local.Cluster // if it is the command's own
	turn                *turn          // of setting the goal; nil: no other run waits
	since               time.Time      // when the command began
	started             string         // what is said of the cluster that this command has started; "" = none
	set                 bool           // the goal is the team's, or was before
	epilogue            string         // a line that comes after the summary; "" = none
}

// check returns an error for flags that conflict, and records what to do with old tasks.
func (p *runRequest) check(keep, cancel bool) error {
	if p.budgets != nil {
		limit, _, err := team.ParseBudget(p.budgets...)
		if err != nil {
			return err
		}
		p.budget = &limit
	}
	switch {
	case p.budget != nil && p.add:
		return team.Errorf(team.InvalidArgument, "--budget is of a goal that is set or resumed: it goes not with --add")
	case keep && cancel:
		return team.Errorf(team.InvalidArgument, "--keep and --cancel exclude each other")
	case p.top && (p.detach || p.view.quiet || p.view.Full):
		return team.Errorf(team.InvalidArgument, "--top is a screen: it goes with none of --detach, --quiet and --verbose")
	case p.land && (p.detach || p.changes):
		return team.Errorf(team.InvalidArgument, "--land goes with neither --detach nor --with-changes: it takes the end of the goal, and a checkout without changes")
	case p.resume && (p.detach || p.add || keep || cancel || p.changes || p.isolation != "" || len(p.reads) > 0):
		return team.Errorf(team.InvalidArgument, "--resume sets no goal: it takes none of --detach, --add, --keep, --cancel, --with-changes, --isolation and --read")
	case keep:
		p.old = keepOld
	case cancel:
		p.old = cancelOld
	}
	return nil
}

// takeGoal reads the goal from the command line, unless one is resumed.
func (p *runRequest) takeGoal(args []string) error {
	if p.resume {
		return nil
	}
	if p.goal = args[0]; strings.TrimSpace(p.goal) == "" {
		return team.Errorf(team.InvalidArgument, "the goal is empty")
	}
	return team.Message{Type: team.MsgUser, Content: p.goal}.Validate() // as which it reaches the leader
}

// left returns the error of a command that was stopped before its goal was set, and explains that; other
// errors unchanged.
func (p *runRequest) left(err error) error {
	ended := (*over)(nil)
	if !p.set && errors.As(err, &ended) {
		return &over{ended.text + " before the goal was set; nothing was begun", ended.hint, ended.cause, ended.why}
	}
	return err
}

// goal sets the goal in the existing cluster, or in its own one.
func (a *app) goal(ctx context.Context, p *runRequest) error {
	cfg, end, err := a.cluster(ctx, p)
	defer func() {
		p.turn.end()
		end()
	}()
	if err != nil {
		return err
	}
	if err := p.chooseWorkspace(cfg); err != nil {
		return err
	}
	return a.pursue(ctx, cfg, p)
}

// chooseWorkspace finds the team's workspace. Error: NotFound if it certainly does not exist.
func (p *runRequest) chooseWorkspace(cfg config.Config) (err error) {
	if p.workspace, err = workspaceOf(cfg); err != nil || !onThisMachine(cfg, p) {
		return err
	}
	if is, err := os.Stat(p.workspace); err != nil || !is.IsDir() {
		return team.Errorf(team.NotFound, "there is no folder %s to work in", p.workspace).WithHint("make it, or name another with --workspace")
	}
	if p.resume { // its own folder is checked where it is led
		return nil
	}
	return execenv.CheckFolder(p.workspace)
}

// pursue sets the goal and follows it to its end.
func (a *app) pursue(ctx context.Context, cfg config.Config, p *runRequest) error {
	if p.land || onThisMachine(cfg, p) {
		defer a.printMade(p.workspace, execenv.ExecutableSettings(p.workspace)) // what is there before the goal
	}
	if onThisMachine(cfg, p) {
		for _, l := range projectcontext.Untaken(p.workspace) {
			a.notice(l)
		}
	}
	return a.linked(ctx, cfg, func(ctx context.Context, c *client.Client) error {
		t, g, err := a.begin(ctx, c, cfg, p)
		if err != nil || p.detach {
			return err
		}
		ctx, done := p.whileLed(ctx, t)
		defer done()
		ctx, within := a.whileWithin(ctx, t, p)
		defer within()
		record, werr := a.followGoal(ctx, c, t, g, cfg, p)
		if cause := context.Cause(ctx); team.CodeOf(cause) == team.InvalidState || team.CodeOf(cause) == team.BudgetExceeded {
			return cause // whatever else this has ended
		}
		if werr != nil {
			werr = a.stays(ctx, c, cfg, p, werr)
		}
		return a.finish(ctx, c, t, g, record, werr, cfg, p)
	})
}

// followGoal shows the work on the goal until its end, as a stream or on a screen.
func (a *app) followGoal(ctx context.Context, c *client.Client, t *client.Team, g *client.Goal, cfg config.Config, p *runRequest) (team.Team, error) {
	defer a.printTroubles(ctx, c, t, p.own)()
	if p.top {
		leave := screen.Leave{Ask: "the goal is under way; leave it to the team?"}
		if p.own {
			leave = screen.Leave{Ask: "leave, which ends this cluster and keeps the goal?", Ends: true}
		}
		return a.watchScreen(ctx, c, t, g, leave)
	}
	if !p.resume {
		p.view.panes = a.panesFor(cfg, t.ID())
	}
	return a.watch(ctx, t, g, p.view, g.After())
}

// begin sets the goal, or finds the one to resume, and prints how to return to it.
func (a *app) begin(ctx context.Context, c *client.Client, cfg config.Config, p *runRequest) (t *client.Team, g *client.Goal, err error) {
	procs, err := c.Processes(ctx)
	if err != nil {
		return nil, nil, err
	}
	if procs.Model == control.NoModel {
		return nil, nil, team.Errorf(team.InvalidArgument, "no model is configured in the cluster's leader process").
			WithHint("set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, where leader and teammates are started")
	}
	if p.anyway {
		if err := a.anyway(ctx, c, cfg.Team); err != nil {
			return nil, nil, err
		}
	}
	if p.resume {
		if t, err = c.Open(ctx, cfg.Team); err == nil {
			g, err = p.resumed(ctx, t)
		}
		if err == nil && !p.own {
			err = a.findFolder(ctx, t, g.Record(), cfg, p)
		}
	} else if t, err = a.makeTeam(ctx, cfg, p.workspace, func(ctx context.Context, n client.NewTeam) (*client.Team, error) {
		n.WithChanges = p.changes
		return c.Make(ctx, n)
	}); err == nil {
		err = p.reads.allow(ctx, t)
	}
	if err == nil {
		err = a.showPolicy(ctx, t, procs, cfg, p)
	}
	if p.started != "" {
		a.notice(p.started)
	}
	if err == nil && !p.resume {
		g, err = a.setGoal(ctx, t, cfg, p, procs.Model)
	}
	if err != nil {
		return nil, nil, err
	}
	p.set = true
	if p.resume {
		p.turn.end()
	} else {
		p.turn.set(goalSet{PID: os.Getpid(), Team: t.ID(), Goal: p.goal})
	}
	if p.detach {
		return t, g, a.printLine(map[string]any{"team": t.ID(), "status": team.Active}, string(t.ID()),
			fmt.Sprintf("team %s works on it; watch with: %s, or on its page: teamctl web", t.ID(), a.command("attach", t.ID())))
	}
	switch again := a.command("run --resume", t.ID()); {
	case p.epilogue != "": // of a cluster that is thrown away
	case p.own:
		a.note("Ctrl-C ends this cluster and keeps the goal; to go on then: " + again)
	default:
		a.note("Ctrl-C leaves the team at work; to come back then: " + again)
	}
	return t, g, nil
}

// resumed returns the goal to resume, with the budget that the command names.
func (p *runRequest) resumed(ctx context.Context, t *client.Team) (*client.Goal, error) {
	g, err := t.Goals().Resume(ctx, p.since)
	if err == nil && p.budget != nil {
		err = t.SetBudget(ctx, team.BudgetOf{}, *p.budget)
	}
	return g, err
}

// setGoal sets the goal. Error: Conflict if the team works on another goal, and the text is not to be sent to
// its leader.
func (a *app) setGoal(ctx context.Context, t *client.Team, cfg config.Config, p *runRequest, leads string) (*client.Goal, error) {
	if err := a.chooseBudget(cfg, p, leads); err != nil {
		return nil, err
	}
	record, err := t.Record(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case !record.AtWork():
		if err = a.printChanges(ctx, t, record, cfg, p); err == nil {
			err = a.settleOld(ctx, t, record, p.old)
		}
		if i := team.Isolation(p.isolation); err == nil && i != "" && i != record.Policy.Isolation {
			_, err = t.Choose(ctx, team.Choices{Isolation: &i})
		}
	case !p.add:
		err = a.atWork(record, p, "")
	}
	if err != nil {
		return nil, err
	}
	g, _, err := t.Goals().Set(ctx, client.NewGoal{Text: p.goal, Workspace: p.workspace, Add: true, WithChanges: p.changes, Budgets: p.budgetsOf(cfg)})
	if err != nil {
		return nil, err
	}
	if !g.Started() {
		a.notice(fmt.Sprintf("team %s is at work; the text was mailed to its leader", t.ID()))
		if !p.add { // another command was first, a moment ago
			return nil, team.Errorf(team.Conflict, "another goal was set to team %s at the same moment", t.ID()).WithHint("follow that one: %s", a.command("run --resume", t.ID()))
		}
	}
	return g, nil
}

// chooseBudget decides on the budget of the goal to set, and prints the default. Error: InvalidArgument for a limit of the
// cost that cannot be kept.
func (a *app) chooseBudget(cfg config.Config, p *runRequest, leads string) error {
	if p.budget == nil && cfg.Budgets.Goal == (team.Budget{}) {
		if p.budget = client.DefaultBudget(leads); p.budget != nil {
			a.note("budget of the goal: 20 dollars, or 10 million tokens where prices are unknown; --budget sets another, or none")
		}
		return nil
	}
	if limit := p.budgetsOf(cfg).Goal; p.own && limit.Cost > 0 {
		if names := cfg.Unpriced(); len(names) > 0 {
			return team.Errorf(team.InvalidArgument, "the price of the model alias %s is not known, and the budget limits the cost", names[0]).
				WithHint("set prices for %s under models in team.yaml, or assume_price; or limit the tokens: --budget 2Mtok", names[0])
		}
	}
	return nil
}

// budgetsOf returns the budgets of the goal to set: those of the settings, with the one that the command names.
func (p *runRequest) budgetsOf(cfg config.Config) team.Budgets {
	b := cfg.Budgets
	if p.budget != nil {
		b = b.With(team.BudgetOf{}, *p.budget)
	}
	return b
}

// atWork returns the error for a second goal. who adds who set the first one, if known.
func (a *app) atWork(record team.Team, p *runRequest, who string) error {
	stop := a.command("stop", record.ID)
	if p.own {
		stop = "teamctl up -d, then " + stop
	}
	return team.Errorf(team.Conflict, "team %s is at work on another goal%s: %q", record.ID, who, team.Clean(team.OneLine(record.Goal), 80)).
		WithHint("follow that one: %s; mail this text to its leader: --add; end it: %s", a.command("run --resume", record.ID), stop)
}

// command returns a teamctl command line for the same team and server.
func (a *app) command(words string, id team.TeamID) string {
	line := "teamctl " + words
	if id != team.DefaultTeam {
		line += " --team " + string(id)
	}
	if f := a.cmd.Flags().Lookup("server"); f != nil && f.Changed {
		server := f.Value.String()
		if strings.Contains(server, "@") { // which may hold a password
			server = "..."
		}
		line += " --server " + server
	}
	return line
}

// watch streams the team's events from the position after until the goal has ended, the time limit passes or
// the command is interrupted.
func (a *app) watch(ctx context.Context, t *client.Team, g *client.Goal, v view, after client.Cursor) (team.Team, error) {
	show, hide, err := a.show(ctx, t, g, v, after)
	if err != nil {
		return team.Team{}, a.ended(ctx, err)
	}
	record, err := g.FollowToEnd(ctx, func(ctx context.Context, on bool, belongs func(time.Time) bool) error {
		return t.Feed(ctx, client.FeedOptions{After: after, Follow: on}, func(e client.Entry) error {
			if after = e.Cursor; !belongs(e.Time) {
				return nil
			}
			return show(e)
		})
	})
	return record, a.ended(ctx, closed(err, hide))
}

// streamTo returns where the stream is printed: with a format for programs, stdout is only for the result.
func (a *app) streamTo() io.Writer {
	if a.output == asTable || a.output == asWide {
		return a.out
	}
	return a.notes.Writer
}

// finish prints the result, and returns the command's error for the goal's end.
func (a *app) finish(ctx context.Context, c *client.Client, t *client.Team, g *client.Goal, record team.Team, werr error, cfg config.Config, p *runRequest) error {
	o := outcome{Team: t.ID(), Status: string(record.Status), Summary: record.Summary, Reason: record.Reason, quiet: p.view.quiet, Elapsed: g.Elapsed(record).Seconds()}
	o.priced = slices.ContainsFunc(cfg.Aliases(), func(m config.Alias) bool { return m.Prices != nil })
	switch {
	case errors.Is(werr, context.DeadlineExceeded):
		o.Status = timedOut
	case errors.Is(werr, context.Canceled):
		// The run was stopped, though not the goal.
		o.Status, o.interrupted = string(team.TeamStopped), true
	case werr != nil:
		return werr
	case record.Status == team.Active: // another goal has taken its place
		o.Status = string(team.TeamStopped)
	}
	if werr != nil && c.Ready(ctx) != nil { // there is nothing to be asked
		return werr
	}
	// The command's context may be over; the result is printed all the same.
	whole := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(whole, 5*time.Second)
	defer cancel()
	var err, aerr, uerr, landed error
	o.Tasks, err = t.Board().Tasks(ctx)
	o.Agents, aerr = t.Members().List(ctx, true)
	if errors.Join(err, aerr) == nil { // NATS is there
		o.Usage, uerr = sumUp(g)
	}
	if err := errors.Join(err, aerr, uerr); err != nil && werr == nil {
		return err
	}
	o.count(g, record)
	o.End = o.inWords()
	if werr == nil && record.Status != team.Active {
		o.Branch, landed = a.endBranch(whole, t, record, cfg, p)
	}
	if err := a.printOutcome(o, p.epilogue); err != nil {
		return err
	}
	return cmp.Or(werr, o.err(), landed, a.endHook(o.Branch, record, cfg, p))
}

// sumTime limits the reading of a goal's journals: about 20,000 records take a second.
const sumTime = 30 * time.Second

func sumUp(g *client.Goal) (client.Usage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sumTime)
	defer cancel()
	return g.Usage(ctx)
}

// stays adds to the error that ended a command what happens to its goal, and how to continue it.
func (a *app) stays(ctx context.Context, c *client.Client, cfg config.Config, p *runRequest, err error) error {
	again, stop := a.command("run --resume", cfg.Team), a.command("stop", cfg.Team)
	if ended := context.Cause(ctx); errors.Is(ended, errClusterEnded) {
		return team.Errorf(team.Unavailable, "%w; the goal is kept", ended).WithHint("to go on, in %s: %s, or teamctl up -d", folderOf(cfg.ClusterFile()), again)
	}
	told := (*over)(nil)
	if !errors.As(err, &told) || p.epilogue != "" {
		return err
	}
	what, hint := "the team goes on with the goal: "+again+" shows it, "+stop+" ends it", again+" shows it, "+stop+" ends it"
	switch {
	case p.own:
		hint = "to go on: " + again + ", or in the background: teamctl up -d"
		what = "its cluster has ended, and the goal is kept; " + hint
	case c.Ready(ctx) != nil && cfg.ClusterFile() != "":
		hint = "to go on, in " + folderOf(cfg.ClusterFile()) + ": teamctl up -d"
		what = "its cluster is gone, and the goal is kept; " + hint
	case c.Ready(ctx) != nil:
		what = "NATS is away, and the goal is kept; once it is back " + hint
	}
	return &over{told.text + "; " + what, hint, told, ""}
}
