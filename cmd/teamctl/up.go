package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentteam/pkg/cluster/local"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

const defaultStandbys = 3

const maxPort = 65535

// clusterRecord is the output of up and down for programs.
type clusterRecord struct {
	Status string `json:"status"` // up or down
	NATS   string `json:"nats"`   // address of the server
	HTTP   string `json:"http"`   // base URL of the leader's pages
	API    string `json:"api"`    // base URL of the leader's HTTP API
	PID    int    `json:"pid"`    // of the process that runs the cluster, or ran it
	Log    string `json:"log,omitempty"`
}

// printCluster prints the record for programs; people get line on stderr.
func (a *app) printCluster(r clusterRecord, line string) error {
	return a.print(r, []string{r.NATS}, func() { fmt.Fprintln(a.err, line) })
}

// recordOf returns what is known of this folder's cluster.
func recordOf(status string, pid int) clusterRecord {
	r := clusterRecord{Status: status, PID: pid}
	if c, _, err := config.FindCluster("."); err == nil {
		r.NATS, r.HTTP, r.API = c.NATS, c.HTTP, c.API
	}
	return r
}

func (a *app) upCmd() *cobra.Command {
	var standbys, port, report int
	var background bool
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster on this machine: NATS, leader, standbys", Args: atMost(0),
		Long: "up runs a NATS server in this process, and a leader and standby teammates as its children, until Ctrl-C or SIGTERM.\n" +
			"Commands run in this folder or below find the cluster by .agentteam/cluster.json. It needs no model.",
	}
	f := cmd.Flags()
	f.IntVarP(&standbys, "standbys", "n", defaultStandbys, "number of standby teammates")
	f.BoolVarP(&background, "detach", "d", false, "run in the background; end with: teamctl down")
	f.IntVar(&port, "port", 0, "port of the NATS server on 127.0.0.1; 0 is a free one")
	f.String("http", "", "host:port of the leader's pages; port 0 is a free one")
	f.String("api", "", "host:port of the leader's HTTP API; port 0 is a free one (default 127.0.0.1:0)")
	f.Bool("insecure", false, "serve the API beyond this machine without TLS")
	f.String("data", "", "folder of the NATS server's data (default .agentteam/data)")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"data": aFolder})
	a.ownFlags(cmd)
	f.IntVar(&report, "report", 0, "")
	_ = f.MarkHidden("report") // of the background process: the file descriptor of its startup
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if standbys < 0 {
			return team.Errorf(team.InvalidArgument, "-n %d: the number of standbys cannot be negative", standbys)
		}
		if port < 0 || port > maxPort {
			return team.Errorf(team.InvalidArgument, "--port %d is no port", port).WithHint("give one of 1 to %d, or leave it out for a free one", maxPort)
		}
		cfg, err := a.settings()
		if err != nil {
			return err
		}
		if err := cfg.CheckWindows(); err != nil {
			return err
		}
		if report == 0 {
			if is, err := a.upAlready(f); is {
				return err
			}
			if cfg.Workspace != "" { // else it may be that goals name theirs
				if err := execenv.CheckFolder(cfg.Workspace); err != nil {
					return err
				}
			}
			if err := a.apart(cmd.Context(), cfg); err != nil {
				return err
			}
			if len(cfg.Aliases()) == 0 {
				a.note("no model is configured here, so that the agents of this cluster cannot think: set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, and start it again")
			}
		}
		if background {
			return a.upDetached(cmd)
		}
		return a.upUntilEnded(cfg, standbys, port, report)
	}
	return cmd
}

// upUntilEnded runs a cluster until the command's context ends. With report it is the process of up -d, which
// reports its startup to that file descriptor instead of printing it.
func (a *app) upUntilEnded(cfg config.Config, standbys, port, report int) error {
	send := func(startup) {}
	if report > 0 {
		syscall.CloseOnExec(report)
		pipe := os.NewFile(uintptr(report), "report")
		send = func(s startup) { _ = writeJSON(pipe, s); pipe.Close() }
	}
	ctx, cancel := a.cmd.Context(), func() {}
	if report == 0 { // else the process that started this one keeps the time
		ctx, cancel = a.deadline(ctx)
	}
	over := a.waitsFor("the leader and the standbys to answer")
	c, err := a.startCluster(ctx, cfg, local.Options{Dir: ".", DataDir: cfg.DataDir, Standbys: standbys, Port: port, Output: a.notes.Writer}) // its processes write to stderr themselves
	over()
	cancel()
	if err = a.ended(ctx, err); err != nil {
		f := failureOf(err)
		send(startup{Error: &f})
		return err
	}
	defer c.Stop()
	if report > 0 {
		send(startup{NATS: c.URL()}) // whose process prints it
	} else {
		r := recordOf("up", os.Getpid())
		if err := a.printCluster(r, fmt.Sprintf("cluster is up: NATS at %s, API at %s (its page: teamctl web), a leader and %d standbys; Ctrl-C ends it", c.URL(), r.API, standbys)); err != nil {
			return err
		}
	}
	<-a.cmd.Context().Done()
	fmt.Fprintln(a.err, "stopping the cluster")
	return nil
}

// upAlready reports whether a cluster that matches the flags runs in this folder, and prints it.
func (a *app) upAlready(flags *pflag.FlagSet) (is bool, err error) {
	running, pid := local.Running(".")
	if !running || flags.Changed("insecure") || flags.Changed("data") {
		return false, nil
	}
	cl, _, err := config.FindCluster(".")
	if err != nil {
		return false, nil
	}
	for flag, has := range map[string]string{"port": cl.NATS, "http": cl.HTTP, "api": cl.API} {
		if flags.Changed(flag) && !servedAt(has, flags.Lookup(flag).Value.String()) {
			return false, nil
		}
	}
	if flags.Changed("standbys") {
		a.note("the number of its standbys stays as it is; another: teamctl down, and then up -n N")
	}
	r := recordOf("up", pid)
	return true, a.printCluster(r, fmt.Sprintf("the cluster is up already: NATS at %s, API at %s (its page: teamctl web), pid %d; end it with: teamctl down", r.NATS, r.API, r.PID))
}

// servedAt reports whether a URL has the address in a flag: a port, or a host with a port; 0 is any.
func servedAt(has, asked string) bool {
	u, err := url.Parse(has)
	if err != nil {
		return false
	}
	host, port, err := net.SplitHostPort(asked)
	if err != nil {
		host, port = "", asked
	}
	return (host == "" || host == u.Hostname()) && (port == "0" || port == u.Port())
}

// startup is sent by a cluster's background process to its parent: the cluster's address, or why there is
// none.
type startup struct {
	NATS  string   `json:"nats,omitempty"`
	Error *failure `json:"error,omitempty"`
}

// startCluster starts a cluster with addresses and logging from the settings.
func (a *app) startCluster(ctx context.Context, cfg config.Config, o local.Options) (_ *local.Cluster, err error) {
	if o.Logger, err = telemetry.NewLogger(o.Output, cfg.LogLevel, cfg.LogFormat); err != nil {
		return nil, err
	}
	folder := o.DataDir
	if o.Dir != "" {
		folder = filepath.Join(o.Dir, team.ClusterDir)
	}
	if o.API, err = ownAPI(cfg.API, folder); err != nil {
		return nil, err
	}
	o.HTTP, o.Env = cfg.HTTP, append(o.Env, "AGENTTEAM_SANDBOX="+string(cfg.Sandbox)) // a flag of this command is theirs, too
	return local.Start(ctx, o)
}

// apart protects this folder's cluster data: only this user can access it, not commands that run here, and
// not git.
func (a *app) apart(ctx context.Context, cfg config.Config) error {
	if err := config.CheckClusterDir("."); err != nil {
		return err
	}
	found, err := sandbox.Find(ctx, cfg.Sandbox)
	if err == nil && found.Level() == team.Confined { // where none works no command runs; the processes report why
		if err := local.Apart("."); err != nil {
			return err
		}
	}
	// A folder ignores itself. A symbolic link cannot.
	if info, err := os.Lstat(team.ClusterDir); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	if err := gitrepo.Exclude(ctx, ".", team.ClusterDir); err != nil {
		a.note(fmt.Sprintf("git shows the link %s as a new file: %s", team.ClusterDir, team.Line(err)))
	}
	return nil
}

// ownFlags adds the flags for starting this folder's cluster to cmd.
func (a *app) ownFlags(cmd *cobra.Command) {
	a.trustFlag(cmd)
	cmd.Flags().String("sandbox", "", "how commands are confined: auto, bubblewrap, the weaker confined, or none (default auto)")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"sandbox": fixed(team.Sandbox("").Values()...)})
}

// ownAPI returns the API of a cluster on this machine. Unless others are named its tokens are in this folder,
// where they are created once.
func ownAPI(api config.API, folder string) (config.API, error) {
	if api.TokenFile != "" {
		return api, nil
	}
	folder, err := filepath.Abs(folder)
	if err == nil {
		err = config.MakeClusterDir(folder)
	}
	if err != nil {
		return api, team.Errorf(team.InvalidState, "%w", err).WithHint("go to a folder that can be written")
	}
	api.TokenFile = filepath.Join(folder, "api.token")
	api.ReadTokenFile = cmp.Or(api.ReadTokenFile, filepath.Join(folder, "api.read.token"))
	return api, nil
}

// upDetached starts `teamctl up` as a new process, and returns once that has reported that its cluster is up,
// or why not.
func (a *app) upDetached(cmd *cobra.Command) error {
	log, err := openLog("up.log")
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	child := exec.Command(self, inForeground(cmd.Flags())...)
	child.Stdout, child.Stderr, child.ExtraFiles = log, log, []*os.File{w} // the first one becomes descriptor 3
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	w.Close()
	if err != nil {
		return err
	}
	told := make(chan startup, 1)
	go func() {
		var s startup
		_ = json.NewDecoder(r).Decode(&s) // it may have ended without a word
		told <- s
	}()
	ctx, cancel := a.deadline(cmd.Context())
	defer cancel()
	defer a.waitsFor("the cluster to be up; its log is " + log.Name())()
	select {
	case s := <-told:
		if s.NATS != "" {
			r := recordOf("up", child.Process.Pid)
			r.Log = log.Name()
			return a.printCluster(r, fmt.Sprintf("cluster is up in the background: NATS at %s, API at %s (its page: teamctl web), pid %d, log %s; end it with: teamctl down", r.NATS, r.API, r.PID, r.Log))
		}
		if err := child.Wait(); s.Error == nil {
			return team.Errorf(team.Unavailable, "the cluster ended at once (%v)", err).WithHint("look into %s", log.Name())
		}
		return team.Errorf(s.Error.Code, "%s", s.Error.Message).WithHint("%s", s.Error.Hint)
	case <-ctx.Done():
		endChild(child)
		return a.ended(ctx, ctx.Err())
	}
}

// inForeground returns the arguments of `up` for its background process, with the same flags.
func inForeground(flags *pflag.FlagSet) []string {
	args := []string{"up", "--report=3"}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "detach" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// endChild ends a background process that is no longer needed, with its cluster.
func endChild(child *exec.Cmd) {
	_ = child.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(stopGrace, func() { _ = child.Process.Kill() })
	defer kill.Stop()
	_ = child.Wait() // it was asked to end
}

// openLog opens a log in the cluster's folder for appending: another command may write the same one.
func openLog(name string) (*os.File, error) {
	return openMade(filepath.Join(team.ClusterDir, name), os.O_APPEND|os.O_WRONLY)
}

// openMade opens a file in a cluster's folder, and creates both if missing.
func openMade(path string, flags int) (f *os.File, err error) {
	path, err = filepath.Abs(path)
	if err == nil {
		err = config.MakeClusterDir(filepath.Dir(path))
	}
	if err == nil {
		f, err = os.OpenFile(path, os.O_CREATE|flags, 0o644)
	}
	if err != nil {
		return nil, team.Errorf(team.InvalidState, "%w", err).WithHint("go to a folder that can be written")
	}
	return f, nil
}

func (a *app) downCmd() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the cluster that was started in this folder", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			running, pid := local.Running(".")
			if !running {
				return noneToEnd()
			}
			ended := recordOf("down", pid) // the file goes with the cluster
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Signal(syscall.SIGTERM)
			}
			if err != nil {
				return team.Errorf(team.InvalidState, "end process %d: %w", pid, err)
			}
			ctx, cancel := a.deadline(cmd.Context())
			defer cancel()
			defer a.waitsFor(fmt.Sprintf("the cluster of process %d to stop its members and end", pid))()
			for {
				if local.Ended(".", pid) {
					return a.printCluster(ended, "the cluster has ended")
				}
				if !shutdown.Sleep(ctx, 50*time.Millisecond) {
					return fmt.Errorf("process %d has not ended: %w", pid, a.ended(ctx, ctx.Err()))
				}
			}
		},
	}
}

// noneToEnd returns the error of a folder without a running cluster. It removes a killed cluster's file, so
// that nobody waits for its return.
func noneToEnd() error {
	cl, path, err := config.FindCluster(".")
	if err != nil && !errors.Is(err, team.NotFound) {
		return err
	}
	if err != nil || cl.Alive() {
		return team.Errorf(team.NotFound, "no cluster runs in this folder").WithHint("teamctl up starts one; run down where up was run")
	}
	if err := config.RemoveCluster(folderOf(path)); err != nil {
		return err
	}
	return team.Errorf(team.NotFound, "the cluster of %s had died already: its process %d is gone", folderOf(path), cl.Owner()).WithHint("its teams are kept; teamctl up starts it again")
}
