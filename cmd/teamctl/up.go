package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/config"
	"agentteam/pkg/local"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

const defaultStandbys = 3

func (a *app) upCmd() *cobra.Command {
	var standbys, port int
	var background bool
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster on this machine: NATS, a leader and standby teammates", Args: cobra.NoArgs,
		Long: "up runs a NATS server in this process, and a leader and standby teammates as its children, until Ctrl-C or SIGTERM.\n" +
			"Commands run in this folder or below find the cluster by .agentteam/cluster.json. It needs no model.",
	}
	f := cmd.Flags()
	f.IntVarP(&standbys, "standbys", "n", defaultStandbys, "number of standby teammates")
	f.BoolVarP(&background, "detach", "d", false, "run in the background; end with: teamctl down")
	f.IntVar(&port, "port", 0, "port of the NATS server on 127.0.0.1; 0 is a free one")
	f.String("http", "", "host:port of the leader's pages; port 0 is a free one")
	f.String("data", "", "folder of the NATS server's data (default .agentteam/data)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if standbys < 0 {
			return team.Errorf(team.InvalidArgument, "-n %d: the number of standbys cannot be negative", standbys)
		}
		if background {
			return a.upDetached(cmd.Context())
		}
		cfg, err := a.settings()
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		c, err := a.startCluster(ctx, cfg, ".", cfg.DataDir, standbys, port, a.err, nil)
		if err != nil {
			return err
		}
		defer c.Stop()
		fmt.Fprintf(a.err, "cluster is up: NATS at %s, a leader and %d standbys; Ctrl-C ends it\n", c.URL(), standbys)
		<-ctx.Done()
		fmt.Fprintln(a.err, "stopping the cluster")
		return nil
	}
	return cmd
}

// startCluster starts a cluster that is known by dir, or unknown if dir is "".
func (a *app) startCluster(ctx context.Context, cfg config.Config, dir, data string, standbys, port int, output io.Writer, env []string) (*local.Cluster, error) {
	log, err := telemetry.NewLogger(output, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return nil, err
	}
	return local.Start(ctx, local.Options{Dir: dir, DataDir: data, Port: port, HTTP: cfg.HTTP, Standbys: standbys, Env: env, Output: output, Logger: log})
}

// upDetached starts `teamctl up` again as a process of its own, and returns once
// the cluster answers or that process has said why not.
func (a *app) upDetached(ctx context.Context) error {
	if running, pid := local.Running("."); running {
		return team.Errorf(team.InvalidState, "a cluster runs here already (pid %d)", pid).WithHint("use it, or end it: teamctl down")
	}
	if err := os.MkdirAll(".agentteam", 0o755); err != nil {
		return team.Errorf(team.InvalidState, "%w", err).WithHint("go to a folder that can be written")
	}
	logPath, err := filepath.Abs(filepath.Join(".agentteam", "up.log"))
	if err != nil {
		return err
	}
	log, err := os.Create(logPath)
	if err != nil {
		return team.Errorf(team.InvalidState, "%w", err).WithHint("go to a folder that can be written")
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, withoutDetach(os.Args[1:])...)
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	ctx, cancel := a.deadline(ctx)
	defer cancel()
	for {
		cl, _, ferr := config.FindCluster(".")
		if ferr == nil && cl.HTTP != "" && len(cl.PIDs) > 0 && cl.PIDs[0] == child.Process.Pid {
			fmt.Fprintf(a.err, "cluster is up in the background: NATS at %s, pid %d, log %s; end it with: teamctl down\n", cl.NATS, child.Process.Pid, logPath)
			return nil
		}
		select {
		case err := <-ended:
			return endedEarly(err, logPath)
		case <-ctx.Done():
			return team.Errorf(team.Unavailable, "the cluster did not come up in time: %w", context.Cause(ctx)).WithHint("look into %s", logPath)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// endedEarly passes on what the background process said last, with its exit code.
func endedEarly(err error, logPath string) error {
	data, _ := os.ReadFile(logPath) // what cannot be read is not quoted
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	last := strings.TrimPrefix(lines[len(lines)-1], "teamctl: ")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return team.Errorf(team.InvalidState, "%s", last)
	}
	return team.Errorf(team.Unavailable, "the cluster ended at once: %s", last).WithHint("look into %s", logPath)
}

func withoutDetach(args []string) []string {
	var out []string
	for _, arg := range args {
		if arg != "-d" && arg != "--detach" && arg != "--detach=true" {
			out = append(out, arg)
		}
	}
	return out
}

func (a *app) downCmd() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the cluster that was started in this folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			running, pid := local.Running(".")
			if !running {
				return team.Errorf(team.NotFound, "no cluster runs in this folder").WithHint("teamctl up starts one; run down where up was run")
			}
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Signal(syscall.SIGTERM)
			}
			if err != nil {
				return team.Errorf(team.InvalidState, "end process %d: %w", pid, err)
			}
			ctx, cancel := a.deadline(cmd.Context())
			defer cancel()
			for {
				if local.Ended(".", pid) {
					fmt.Fprintln(a.err, "the cluster has ended")
					return nil
				}
				select {
				case <-ctx.Done():
					return fmt.Errorf("process %d has not ended: %w", pid, context.Cause(ctx))
				case <-time.After(50 * time.Millisecond):
				}
			}
		},
	}
}
