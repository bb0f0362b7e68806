package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/role"
	"agentteam/pkg/team"
)

// app is one invocation of teamctl: where it prints, and the flags that every
// command takes.
type app struct {
	out, err io.Writer
	output   string        // --output
	timeout  time.Duration // --timeout; 0 = the command's own default
	cmd      *cobra.Command
}

func newApp(out, err io.Writer) *app { return &app{out: out, err: err} }

// The formats of --output.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
	asJSONL = "jsonl"
	asName  = "name"
)

// defaultTimeout bounds every command that answers and ends; those that follow
// (run, demo, up, events --follow) have no limit unless --timeout gives one.
const defaultTimeout = 30 * time.Second

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "teamctl", Short: "Teams of LLM agents as real processes over NATS",
		Long:          "teamctl starts clusters, sets goals to teams of agents, shows what goes on, and works on their boards.",
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.cmd = cmd
			switch a.output {
			case asTable, asWide, asJSON, asYAML, asJSONL, asName:
				return nil
			}
			bad := a.output
			a.output = asTable
			return team.Errorf(team.InvalidArgument, "--output %q is not known", bad).WithHint("use table, wide, json, yaml, jsonl or name")
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return team.Errorf(team.InvalidArgument, "%w", err) })
	f := root.PersistentFlags()
	f.String("server", "", "address of the NATS server (default: AGENTTEAM_SERVER, NATS_URL, the cluster of this folder, nats://127.0.0.1:4222)")
	f.String("team", "", `the team (default "default")`)
	f.StringVarP(&a.output, "output", "o", asTable, "table, wide, json, yaml, jsonl or name")
	f.DurationVar(&a.timeout, "timeout", 0, "give up after this time (default 30s; none for commands that follow)")
	root.AddCommand(
		a.upCmd(), a.downCmd(), a.runCmd(), a.demoCmd(), a.rehearseCmd(),
	)
	root.AddCommand(a.moreCmds()...)
	return root
}

// settings loads the settings with this command's flags.
func (a *app) settings() (config.Config, error) {
	return config.Load(config.Sources{Flags: config.FlagsOf(a.cmd.Flags().Lookup), Env: os.LookupEnv})
}

// deadline gives the command its time limit.
func (a *app) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := a.timeout
	if limit == 0 {
		limit = defaultTimeout
	}
	return context.WithTimeoutCause(ctx, limit, errTimeout)
}

var errTimeout = fmt.Errorf("the time limit (--timeout) has passed: %w", context.DeadlineExceeded)

// connect connects to the cluster. The caller closes the client.
func (a *app) connect(ctx context.Context) (*client.Client, config.Config, error) {
	cfg, err := a.settings()
	if err != nil {
		return nil, cfg, err
	}
	c, err := client.Connect(ctx, cfg.Server)
	return c, cfg, err
}

// withTeam runs f on the team that the command names, within the command's time
// limit. A team that is not there is an error (not_found).
func (a *app) withTeam(f func(ctx context.Context, t *client.Team) error) error {
	ctx, cancel := a.deadline(a.cmd.Context())
	defer cancel()
	return a.inTeam(ctx, f)
}

// inTeam is withTeam under a context of the caller's.
func (a *app) inTeam(ctx context.Context, f func(ctx context.Context, t *client.Team) error) error {
	c, cfg, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	t, err := c.Open(ctx, cfg.Team)
	if err != nil {
		return err
	}
	return f(ctx, t)
}

// makeTeam makes the team that the command names, or opens it.
func makeTeam(ctx context.Context, c *client.Client, cfg config.Config, workspace string) (*client.Team, error) {
	roles, err := role.Load(".")
	if err != nil {
		return nil, err
	}
	return c.Make(ctx, client.NewTeam{ID: cfg.Team, Roles: roles, Lease: cfg.Lease, Workspace: workspace})
}

// printError writes an error to stderr: one line for people, one object for
// programs.
func (a *app) printError(err error) {
	var quiet *exitError
	if errors.As(err, &quiet) {
		return // the command has said it all
	}
	if a.output == asJSON || a.output == asJSONL {
		code := team.CodeOf(err)
		if code == "" {
			code = "failed"
		}
		_ = writeJSON(a.err, map[string]any{"error": map[string]any{"code": code, "message": oneLine(err.Error()), "hint": team.HintOf(err)}})
		return
	}
	fmt.Fprintln(a.err, "teamctl:", team.Line(err))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// exitError ends teamctl with the exit status of its cause, whose text the command
// has printed already.
type exitError struct{ cause error }

func (e *exitError) Error() string { return e.cause.Error() }
func (e *exitError) Unwrap() error { return e.cause }
