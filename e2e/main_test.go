// Package e2e tests agentteam as its users run it: the three programs as real
// processes over a real NATS server, with only the model's words from a script.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// bin is the folder of the three programs, built once.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "agentteam-e2e-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		args := append([]string{"build", "-o", dir + "/"}, raceFlag...)
		build := exec.Command("go", append(args, "../cmd/...")...)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		bin = dir
		config, err := os.MkdirTemp("", "agentteam-e2e-config-*")
		if err == nil {
			defer os.RemoveAll(config)
			err = os.Setenv("XDG_CONFIG_HOME", config)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// Under nohup SIGHUP is ignored, which commands inherit; one that is listened for is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		return m.Run()
	}())
}

// limit bounds every wait: generous, since CI machines are slow and shared.
const limit = brokertest.Longest

// cluster is a folder with `teamctl up -d` in it, its model a rehearsal endpoint.
type cluster struct {
	t   *testing.T
	dir string
	env []string

	limit time.Duration // of a command; 0: limit
}

// up starts an endpoint that plays script ("" = the demo's) and a cluster with
// this many standbys; both end with the test, and then nothing may be left.
func up(t *testing.T, script string, standbys int) *cluster {
	t.Helper()
	return upAt(t, rehearse(t, script), standbys)
}

// confined are the settings of a test that looks for commands by the process numbers that they
// tell: a namespace has others.
func confined(t *testing.T) []string {
	return []string{"AGENTTEAM_SANDBOX=confined", "XDG_STATE_HOME=" + t.TempDir()}
}

// upAt is up with an endpoint that is there already, and more settings.
func upAt(t *testing.T, url string, standbys int, env ...string) *cluster {
	t.Helper()
	c := folder(t, url, append([]string{"AGENTTEAM_LEASE=5s"}, env...)...)
	c.upWith(standbys)
	return c
}

// upWith starts the cluster, which ends with the test.
func (c *cluster) upWith(standbys int) {
	t := c.t
	t.Helper()
	c.ok("up", "-d", "-n", fmt.Sprint(standbys))
	t.Cleanup(func() {
		pids := c.pids()
		if t.Failed() { // what each process was at
			for _, pid := range pids[1:] {
				_ = syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
		c.ok("down")
		for _, pid := range pids {
			gone(t, pid)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
			t.Logf("log of the cluster:\n%s", log)
		}
	})
}

// folder returns a cluster that is not started: a folder, and settings with the model at url.
func folder(t *testing.T, url string, env ...string) *cluster {
	t.Helper()
	base := append(environ(), "OPENAI_MODEL=rehearsal", "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+url)
	return &cluster{t: t, dir: t.TempDir(), env: append(base, env...)}
}

// environ is this process's environment without settings of agentteam.
func environ() []string {
	// The race detector has each process rest for a second at its end.
	env := []string{"GORACE=atexit_sleep_ms=0"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AGENTTEAM_") && !strings.HasPrefix(kv, "OPENAI_") && !strings.HasPrefix(kv, "NATS_") {
			env = append(env, kv)
		}
	}
	return env
}

// rehearse starts `teamctl rehearse` and returns the base URL that it prints.
func rehearse(t *testing.T, script string) string {
	t.Helper()
	args := []string{"rehearse"}
	if script != "" {
		file := filepath.Join(t.TempDir(), "script.yaml")
		if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	cmd := exec.Command(filepath.Join(bin, "teamctl"), args...)
	var stderr printed
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = ends(t, cmd)
		if t.Failed() {
			t.Logf("rehearsal endpoint:\n%s", stderr.String())
		}
	})
	var url string
	read := make(chan error, 1)
	go func() {
		_, err := fmt.Fscanln(out, &url)
		read <- err
	}()
	if err := brokertest.Receive(t, "the endpoint prints its address", read); err != nil {
		t.Fatalf("the endpoint prints no address: %v\n%s", err, stderr.String())
	}
	return url
}

// ends waits for the end of a command, such as one that was asked to stop, and returns how it ended. One that
// does not end is killed, with what it was at in its stderr. It may be called on any goroutine.
func ends(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	late := time.AfterFunc(limit, func() {
		t.Errorf("waited %v in vain: %s ends", limit, cmd)
		_ = cmd.Process.Signal(syscall.SIGQUIT)
	})
	defer late.Stop()
	killed := time.AfterFunc(limit+limit/4, func() { _ = cmd.Process.Kill() })
	defer killed.Stop()
	return cmd.Wait()
}

// command prepares a call of teamctl in the cluster's folder.
func (c *cluster) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(c.limit, limit))
	c.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "teamctl"), args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.WaitDelay = limit // for what it has started and left behind, which may hold its output open
	return cmd
}

// ok runs teamctl, wants exit status 0 and returns stdout.
func (c *cluster) ok(args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("teamctl %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// result is the object that `run -o json` ends with.
type result struct {
	Team    string          `json:"team"`
	Status  string          `json:"status"`
	Summary string          `json:"summary"`
	Tasks   []team.TaskView `json:"tasks"`
	Agents  []client.Agent  `json:"agents"`
	Usage   client.Usage    `json:"usage"`
	Elapsed float64         `json:"elapsed_seconds"`
}

// run sets a goal and returns its end. It may be called on any goroutine: what is
// wrong is in the error.
func (c *cluster) run(args ...string) (r result, err error) {
	cmd := c.command(append([]string{"run", "-o", "json"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("teamctl run: %w\n%s%s", err, stdout.String(), stderr.String())
	}
	out := strings.TrimSpace(stdout.String())
	if err := json.Unmarshal([]byte(out[strings.LastIndexByte(out, '\n')+1:]), &r); err != nil {
		return r, fmt.Errorf("last line of run -o json: %w\n%s", err, out)
	}
	return r, nil
}

// running is a run under way.
type running chan func() (result, error)

// begin starts a run; end waits for it.
func (c *cluster) begin(args ...string) running {
	done := make(running, 1)
	go func() {
		r, err := c.run(args...)
		done <- func() (result, error) { return r, err }
	}()
	return done
}

func (r running) end(t *testing.T) result {
	t.Helper()
	res, err := (<-r)() // which its command's time bounds
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// connect opens the cluster for a look from this process.
func (c *cluster) connect() *client.Client {
	c.t.Helper()
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return dial(c.t, cl.NATS)
}

// dial connects to the server at url until the test ends.
func dial(t *testing.T, url string) *client.Client {
	t.Helper()
	conn, err := client.Connect(t.Context(), client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	brokertest.Bound(t, conn.Close, conn.Connection)
	return conn
}

// watched makes a team and returns it with its stores, beside the processes that use them.
func watched(t *testing.T, conn *client.Client, id team.TeamID, lease time.Duration) (*client.Team, *broker.Storage) {
	t.Helper()
	tm := newTeamWith(t, conn, id, lease)
	bt, err := brokertest.Connect(t, conn.Server()).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return tm, bt
}

func (c *cluster) pids() []int {
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return cl.PIDs
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	until(t, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
}

// alive reports whether pid runs; a zombie, whose parent has yet to take notice,
// does not.
func alive(pid int) bool {
	state, err := stateIn(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	return state != 'Z'
}

// stateIn is the state of a process or thread, from the file in which Linux tells it.
func stateIn(file string) (byte, error) {
	stat, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])[0], nil
}

// halt freezes a process that is not our child until the test ends, or it is told to go on, and
// returns once it stands: a signal takes a moment, in which it may do something.
func halt(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	until(t, fmt.Sprintf("process %d stands", pid), func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && !slices.ContainsFunc(threads, func(file string) bool {
			state, err := stateIn(file)
			return err == nil && state != 'T'
		})
	})
}

// until waits for a condition that nobody announces.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	brokertest.Until(t, what, ok)
}
