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
	"github.com/spf13/pflag"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool/workspace"
)

// app is one invocation of teamctl: its output, and the global flags.
type app struct {
	out, err io.Writer
	notes    *notes        // what err is
	output   format        // --output
	timeout  time.Duration // --timeout; 0 = the command's own default
	brief    bool          // the command asks once, and waits for no server that has gone away
	awaited  string        // what the command may wait for; default: an answer
	arrived  func()        // called when it has come; nil: nothing is awaited
	cmd      *cobra.Command

	// head is called before the command shows the folder's stored data, with a line about that, and the reason
	// why the cluster is not asked; nil: the command needs the cluster. See [readsStored].
	head func(line string, cause error)

	trusts, asksForTrust bool // --trust; whether the command asks about files that wait for trust
}

func newApp(out, err io.Writer) *app {
	n := &notes{Writer: err}
	return &app{out: out, err: n, notes: n, output: asTable}
}

// defaultTimeout limits every command that answers and ends, and the start of a cluster; those that follow
// (run, demo, events --follow) have no limit without --timeout.
const defaultTimeout = 30 * time.Second

func (a *app) root() *cobra.Command {
	root := group(&cobra.Command{
		Use: "teamctl", Short: "Teams of LLM agents as real processes over NATS",
		Long: "teamctl starts clusters, sets goals to teams of agents, shows what happens, and works on their boards.\n\n" +
			"Exit status: 0 ok, 1 failed, 2 usage or a setting missing, 3 not found, 4 conflict, blocked or busy,\n" +
			"5 unavailable, 6 not permitted, 124 timed out, 130 interrupted.",
		Version:       telemetry.Version(),
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begins(cmd) },
	})
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	f := root.PersistentFlags()
	f.String("server", "", "address of the NATS server (default: AGENTTEAM_SERVER, NATS_URL, the cluster of this folder, nats://127.0.0.1:4222)")
	f.String("team", "", `the team (default "default")`)
	f.VarP(choice[format]{&a.output, "output", formats}, "output", "o", "table, wide, json, yaml, jsonl or name")
	f.DurationVar(&a.timeout, "timeout", 0, "give up after this time (default 30s; no limit for run, attach, top, chat, demo, save, load, export, tasks wait, and what follows by -f or -w)")
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Set a goal and follow it", []*cobra.Command{makesTeam(a.runCmd()), a.attachCmd(), readsStored(a, a.diffCmd()), readsStored(a, a.landCmd()), a.topCmd(), a.statusCmd(), readsStored(a, a.goalsCmd()), a.eventsCmd(), a.auditCmd(), readsStored(a, a.costCmd()), a.budgetCmd(), a.stopCmd()}},
		{"Talk with the team", []*cobra.Command{a.answerCmd(), a.chatCmd(), a.sendCmd(), a.broadcastCmd(), readsStored(a, a.inboxCmd()), a.messagesCmd(), a.approvalsCmd()}},
		{"Look after the team", []*cobra.Command{a.tasksCmd(), a.agentsCmd(), makesTeam(a.spawnCmd()), a.rolesCmd(), a.skillsCmd(), a.teamsCmd(), a.saveCmd(), a.loadCmd(), a.exportCmd(), a.trustCmd()}},
		{"Run a cluster", []*cobra.Command{a.upCmd(), a.downCmd(), a.doctorCmd(), a.repairCmd(), a.webCmd()}},
		{"Try it out", []*cobra.Command{a.initCmd(), a.demoCmd(), a.rehearseCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(a.configCmd(), a.versionCmd())
	completeFlags(root, map[string]cobra.CompletionFunc{"output": fixed(formats...), "team": completeTeams})
	refuseEmpty(root)
	addExamples(root)
	a.adoptDefaults(root)
	usage := strings.Replace(root.UsageTemplate(), `Use "{{.CommandPath}} [command] --help" for more information about a command.`, "More: {{.CommandPath}} COMMAND --help", 1)
	if width := widthOf(a.out); width > 0 {
		usage = strings.ReplaceAll(usage, ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", width))
		wrapHelp(root, width)
	}
	root.SetUsageTemplate(usage)
	return root
}

// begins prepares a for the command that was called.
func (a *app) begins(cmd *cobra.Command) error {
	a.cmd = cmd
	if goesOn(cmd) {
		cmd.SetContext(whileRead(cmd.Context()))
	}
	if a.timeout < 0 {
		return team.Errorf(team.InvalidArgument, "--timeout %v: a time limit cannot be negative", a.timeout)
	}
	return nil
}

// adoptDefaults adds cobra's own commands, completion and help, with our errors.
func (a *app) adoptDefaults(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			group(cmd)
			for _, shell := range cmd.Commands() {
				if shell.Name() == "bash" {
					a.aloneInBash(shell)
				}
			}
		case "help":
			cmd.Run, cmd.RunE = nil, help
		}
	}
}

// help is cobra's help, but an unknown command is an error.
func help(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err == nil {
		err = known(about, rest)
	}
	if err != nil {
		return err
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}

// run runs the command in args. Error: InvalidArgument for errors in args themselves.
func (a *app) run(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(args)
	// The format of errors must be known also where parsing stops before -o.
	peek := pflag.NewFlagSet("", pflag.ContinueOnError)
	peek.ParseErrorsAllowlist.UnknownFlags = true
	peek.SetOutput(io.Discard)
	peek.VarP(choice[format]{&a.output, "output", formats}, "output", "o", "")
	_ = peek.Parse(args) // the command will say what is wrong

	if len(args) > 0 && elsewhere[args[0]] != "" { // whatever flags that other program has
		return known(root, args[:1])
	}
	err := root.ExecuteContext(ctx)
	if err != nil && a.cmd == nil && team.CodeOf(err) == "" { // cobra refused it before a command began
		err = team.Errorf(team.InvalidArgument, "%w", err)
	}
	return err
}

// group makes cmd a parent of commands: without arguments it prints its help, unless it has its own function,
// and an unknown subcommand is an error.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = known
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return cmd
}

func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := team.Errorf(team.InvalidArgument, "there is no command %q", cmd.CommandPath()+" "+args[0])
	if use := elsewhere[args[0]]; use != "" && !cmd.HasParent() {
		return err.WithHint("use: %s", use)
	}
	cmd.SuggestionsMinimumDistance = min(max(len(args[0])/3, 1), 2) // of a short word nearly all others are near
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(like, " or "))
	}
	return err.WithHint("%s --help lists the commands", cmd.CommandPath())
}

// settings loads the settings with this command's flags, for a command that uses all of them; see
// [app.decided].
func (a *app) settings() (config.Config, error) { return a.decided(sources(a.cmd)) }

func sources(cmd *cobra.Command) config.Sources {
	return config.Sources{Flags: config.FlagsOf(cmd.Flags().Lookup), Env: os.LookupEnv}
}

// clientSettings loads the settings of a command that uses the cluster and no model: errors in team.yaml's
// models do not stop it.
func (a *app) clientSettings() (config.Config, error) {
	src := sources(a.cmd)
	src.Lenient = true
	cfg, err := a.decided(src, "server", "team", "data_dir")
	if out := cfg.LeftOut(); out != nil {
		fmt.Fprintf(a.err, "%s; the models of team.yaml are left out\n", printable(team.OneLine(out.Error())))
	}
	return cfg, err
}

// deadline applies the command's time limit.
func (a *app) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(a.timeout, defaultTimeout), errTimeout)
}

// bounded applies the requested time limit, if any, to a command that follows.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return a.deadline(ctx)
}

// over is the error of a command that was stopped by a time limit or an interrupt.
type over struct {
	text  string
	hint  string // for programs; people read --timeout in the text
	cause error  // context's, which decides the exit status
	why   string // what was not answered, if that is known
}

func (e *over) Error() string {
	if e.why != "" {
		return e.text + ": " + e.why
	}
	return e.text
}
func (e *over) Unwrap() error { return e.cause }

// The hints for such errors.
const (
	timedOut    = "timed_out"
	interrupted = "interrupted"
)

var (
	errTimeout     = &over{"the time limit (--timeout) has passed", "allow more time with --timeout", context.DeadlineExceeded, ""}
	errInterrupted = &over{"interrupted", "", context.Canceled, ""}
)

// ended returns err or, if that is only a consequence of ctx's end, why ctx ended. An error with a hint is
// never only that: a time limit mentions it.
func (a *app) ended(ctx context.Context, err error) error {
	switch told := (*over)(nil); {
	case err == nil, errors.As(err, &told), errors.Is(err, errUnwritten):
		return err
	case a.cmd.Context().Err() != nil:
		return errInterrupted
	case errors.Is(context.Cause(ctx), errTimeout) && team.CodeOf(err) == team.Unavailable && team.HintOf(err) != "":
		return &over{errTimeout.text, team.HintOf(err), errTimeout, team.OneLine(err.Error())}
	case errors.Is(context.Cause(ctx), errTimeout):
		return errTimeout
	}
	return err
}

// connected runs f with a connection to the cluster, within the command's time limit.
func (a *app) connected(f func(ctx context.Context, c *client.Client, cfg config.Config) error) error {
	ctx, cancel := a.deadline(a.cmd.Context())
	defer cancel()
	a.brief = true
	a.arrived = a.waitsFor(cmp.Or(a.awaited, "an answer of the cluster"))
	defer a.arrived()
	cfg, err := a.clientSettings()
	if err != nil {
		return err
	}
	return a.ended(ctx, ask(ctx, a, cfg, f))
}

// connectedIn is connected with the caller's context.
func (a *app) connectedIn(ctx context.Context, f func(ctx context.Context, c *client.Client, cfg config.Config) error) error {
	cfg, err := a.clientSettings()
	if err != nil {
		return err
	}
	return a.ended(ctx, a.linked(ctx, cfg, func(ctx context.Context, c *client.Client) error { return f(ctx, c, cfg) }))
}

// withTeam runs f on the command's team, within the command's time limit. Error: NotFound if the team does
// not exist.
func (a *app) withTeam(f func(ctx context.Context, t *client.Team) error) error {
	return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
		t, err := c.Open(ctx, cfg.Team)
		if err != nil {
			return err
		}
		return f(ctx, t)
	})
}

// readTeam is withTeam for commands that list: a default team that does not exist yet is empty, not an error;
// none prints that.
func (a *app) readTeam(none func() error, f func(ctx context.Context, t *client.Team) error) error {
	return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
		t, err := c.Open(ctx, cfg.Team)
		if errors.Is(err, team.NotFound) && cfg.Team == team.DefaultTeam {
			a.note(team.Line(err))
			return none()
		}
		if err != nil {
			return err
		}
		return f(ctx, t)
	})
}

// workspaceOf returns the workspace of a team created here.
func workspaceOf(cfg config.Config) (string, error) {
	return workspace.Shared{Dir: cfg.Workspace}.Folder(team.Team{})
}

// makeTeam calls make to create or open the command's team.
func (a *app) makeTeam(ctx context.Context, cfg config.Config, workspace string, make func(context.Context, client.NewTeam) (*client.Team, error)) (*client.Team, error) {
	if err := cfg.Decided("workspace", "sandbox"); err != nil {
		return nil, err
	}
	roles, err := a.loadRoles()
	if err != nil {
		return nil, err
	}
	t, err := make(ctx, newTeam(cfg, roles, workspace))
	if err != nil {
		return nil, err
	}
	a.printStale(ctx, t, roles)
	a.printWaiting(cfg, roles)
	return t, nil
}

// makesTeam marks a command that creates its team; it is an error where agent teams are disabled.
func makesTeam(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := config.TeamsAllowed(os.LookupEnv); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// newTeam returns the command's team as it is created if it does not exist.
func newTeam(cfg config.Config, roles role.Roles, workspace string) client.NewTeam {
	return client.NewTeam{ID: cfg.Team, Roles: roles.All, Lease: cfg.Lease, Stall: cfg.StallAfter, Policy: cfg.Policy, Choices: cfg.Choices, Workspace: workspace}
}

// printError writes an error to stderr: one line for people, one object for programs.
func (a *app) printError(err error) {
	if a.output == asJSON || a.output == asJSONL {
		_ = writeJSON(a.err, map[string]failure{"error": failureOf(err)})
		return
	}
	for _, err := range parts(err) {
		fmt.Fprintln(a.err, "teamctl:", team.Line(err))
	}
}

// parts returns the errors that err joins, or err alone. Each has its own hint.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	all := joined.Unwrap()
	if errors.Join(all...).Error() != err.Error() { // it only carries them
		return []error{err}
	}
	var each []error
	for _, e := range all {
		each = append(each, parts(e)...)
	}
	return each
}

// failure is an error for programs.
type failure struct {
	Code    team.Code `json:"code"`
	Hint    string    `json:"hint"`
	Message string    `json:"message"`
}

func failureOf(err error) failure {
	var messages, hints []string
	for _, e := range parts(err) {
		messages = append(messages, team.OneLine(e.Error()))
		if hint := team.HintOf(e); hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	f := failure{Code: team.CodeOf(err), Hint: strings.Join(hints, "; "), Message: strings.Join(messages, "; ")}
	if ended := (*over)(nil); f.Hint == "" && errors.As(err, &ended) {
		f.Hint = ended.hint
	}
	switch {
	case f.Code != "":
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = timedOut
	case errors.Is(err, context.Canceled):
		f.Code = interrupted
	default:
		f.Code = "failed"
	}
	return f
}
