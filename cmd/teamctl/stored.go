package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// errDown is in the error of a command whose folder has no running cluster.
var errDown = errors.New("is down")

// down marks err as [errDown], and keeps its text.
type down struct{ error }

func (d down) Unwrap() []error { return []error{d.error, errDown} }

// readsStored lets cmd show the folder's stored data while its cluster is down. Commands that follow events
// still need the cluster.
func readsStored(a *app, cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.head = func(line string, _ error) { a.notice(line) }
		return run(cmd, args)
	}
	return cmd
}

// asker is a function that asks a cluster.
type asker func(ctx context.Context, c *client.Client, cfg config.Config) error

// ask runs f with a connection to the settings' cluster or, if that is down and the command reads stored
// data, to a read-only server for that data. If a cluster starts meanwhile, it is used instead.
func ask(ctx context.Context, a *app, cfg config.Config, f asker) error {
	for began := time.Now(); ; {
		err := a.linked(ctx, cfg, func(ctx context.Context, c *client.Client) error { return f(ctx, c, cfg) })
		data := cfg.Store()
		if a.head == nil || data == "" || !away(cfg, err) {
			return err
		}
		r, rerr := embedded.Read(ctx, data)
		switch {
		case rerr == nil:
			defer r.Close()
			return askStored(ctx, a, cfg, r, err, f)
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(rerr, embedded.ErrInUse) || time.Since(began) > inUse:
			return team.Errorf(team.Unavailable, "the cluster of %s is down, and %w", keeper(data), rerr).
				WithHint("%s", cmp.Or(team.HintOf(rerr), goOn(cfg.Folder())))
		}
		if !shutdown.Sleep(ctx, pollAfter) { // its file will tell of it
			return ctx.Err()
		}
		if cfg, err = cfg.Reload(); err != nil {
			return err
		}
	}
}

// away reports whether err means that the folder's cluster is down, or its server does not answer while the
// cluster ends.
func away(cfg config.Config, err error) bool {
	ending := errors.Is(err, broker.ErrNoServer) || errors.Is(err, broker.ErrNoJetStream)
	return errors.Is(err, errDown) || ending && cfg.ClusterFile() != ""
}

// askStored runs f on a server of stored data; cause is why there is no cluster.
func askStored(ctx context.Context, a *app, cfg config.Config, r *embedded.Reader, cause error, f asker) error {
	c, err := client.Connect(ctx, optionsOf(cfg, r))
	if err != nil {
		return err
	}
	defer c.Close()
	a.head("the cluster of "+keeper(cfg.Store())+" is down; this is what it had stored at "+r.Stored().Local().Format(time.DateTime), cause)
	return f(ctx, c, cfg)
}

// keeper returns the folder whose cluster stores in this data folder, which may be elsewhere.
func keeper(data string) string {
	if dir := filepath.Dir(data); filepath.Base(dir) == ".agentteam" {
		return filepath.Dir(dir)
	}
	return data
}
