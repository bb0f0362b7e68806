package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentteam/pkg/cluster/local"
	"agentteam/pkg/config"
	"agentteam/pkg/demo"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/team"
)

func (a *app) demoCmd() *cobra.Command {
	return &cobra.Command{
		Use: "demo [DIR]", Short: "See a team survey the source tree DIR, without a model", Args: atMost(1),
		Long: "demo starts a cluster and a scripted model endpoint of its own, and sets a team the goal of surveying DIR (default: this folder).\n" +
			"Processes, tasks, messages, commands and files are real; only the agents' words come from a script.\n" +
			"The team works in " + demo.Folder + "/ in this folder, which is replaced on each run; DIR is only read.\n" +
			"Its settings are of the environment: team.yaml and role files of this folder do not count.",
		ValidArgsFunction: first(aFolder),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			return a.ended(ctx, a.demo(ctx, dir))
		},
	}
}

// withoutSettings changes to the folder dir, and makes it one without settings and role files: the script
// needs such a team. Its empty settings file hides those of the folders above.
func withoutSettings(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "team.yaml"), nil, 0o600); err != nil {
		return err
	}
	return os.Chdir(dir)
}

func (a *app) demo(ctx context.Context, dir string) error {
	tree, err := demo.Tree(dir)
	if err != nil {
		return err
	}
	workspace, err := demo.Workspace(".")
	if err != nil {
		return err
	}
	data, err := os.MkdirTemp("", "agentteam-demo-*")
	if err != nil {
		return team.Errorf(team.InvalidState, "%w", err)
	}
	defer os.RemoveAll(data)
	log, err := os.Create(filepath.Join(workspace, "cluster.log"))
	if err != nil {
		return team.Errorf(team.InvalidState, "%w", err)
	}
	defer log.Close()
	if err := withoutSettings(data); err != nil {
		return team.Errorf(team.InvalidState, "%w", err)
	}

	endpoint, stop, err := startRehearsal(ctx, "demo", demo.Script, "127.0.0.1:0", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return err
	}
	defer stop()
	cfg, err := config.Load(sources(a.cmd)) // what waits for trust is no concern of the demo
	if err != nil {
		return err
	}
	cfg.HTTP, cfg.API = "127.0.0.1:0", config.API{}
	if _, err := (readDirs{tree}).add(&cfg.Policy); err != nil {
		return err
	}
	cfg.Policy.Isolation = team.Shared                 // the demo's folder is no part of a repository
	cfg.Policy.PermissionMode = team.BypassPermissions // the demo's script contains all calls
	if _, err := sandbox.Find(ctx, cfg.Sandbox); err != nil && cfg.Sandbox == team.SandboxAuto {
		a.notice(team.Line(err))
		a.notice("the commands of the demo stand in its script, so that they run without a sandbox; those of models are refused here")
		cfg.Sandbox, cfg.Policy.Sandbox = team.Unconfined, team.Unconfined
	}
	cluster, err := a.startCluster(ctx, cfg, local.Options{DataDir: data, Standbys: defaultStandbys, Output: log, Env: []string{
		"OPENAI_BASE_URL=" + endpoint, "OPENAI_MODEL=rehearsal", "OPENAI_API_KEY=rehearsal", "AGENTTEAM_WORKSPACE=" + workspace,
	}})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	cfg.Server = cluster.URL()
	fmt.Fprintf(a.err, "a team surveys %s; it works in %s\n", tree, workspace)
	// The goal ends with its cluster, whose data is thrown away.
	return a.pursue(ctx, cfg, &runRequest{goal: demo.Goal(tree), workspace: workspace, own: true, cluster: cluster, epilogue: "the survey: " + filepath.Join(workspace, demo.Result)})
}

// startRehearsal plays a script on addr until stop is called, and returns the base
// URL of the endpoint.
func startRehearsal(ctx context.Context, name string, script []byte, addr string, log *slog.Logger) (url string, stop func(), err error) {
	s, err := rehearsal.Parse(name, script)
	if err != nil {
		return "", nil, err
	}
	srv, err := rehearsal.Listen(addr, s, log)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Run(ctx); err != nil {
			log.Error("rehearsal endpoint", "err", err)
		}
	}()
	return srv.URL(), func() { cancel(); <-done }, nil
}
