package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// start runs one of the programs until the test ends, its log in dir.
func (c *cluster) start(program string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := c.launch(program, args...)
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := ends(c.t, cmd); err != nil {
			c.t.Errorf("%s after SIGTERM: %v", program, err)
		}
		if c.t.Failed() {
			log := cmd.Stderr.(*os.File).Name()
			data, _ := os.ReadFile(log)
			c.t.Logf("%s:\n%s", log, data)
		}
	})
	return cmd
}

// launch runs one of the programs, its log in dir; the test ends it.
func (c *cluster) launch(program string, args ...string) *exec.Cmd {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, "processes.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd
}

// The NATS server, not embedded but one of its own, is restarted in the middle of
// the work: every process finds back to it, and nothing is lost or done twice.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	data, port := t.TempDir(), brokertest.Port()
	srv, err := embedded.Start(embedded.Options{Dir: data, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown() })
	c := folder(t, rehearse(t, ""), "NATS_URL="+srv.URL())
	c.start("leader")
	for range 3 {
		c.start("teammate")
	}
	conn := dial(t, srv.URL())
	until(t, "leader and standbys answer", func() bool {
		s, err := conn.Processes(t.Context())
		return err == nil && len(s.Leaders) == 1 && len(s.Standbys) == 3
	})
	procs, err := conn.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(procs.Standbys[0].Metrics, "/metrics")
	ready, live := base+"/readyz", base+"/livez"
	if status(ready) != http.StatusOK || status(procs.Leaders[0].Metrics) != http.StatusOK {
		t.Error("the processes' pages do not answer")
	}
	tm := newTeam(t, conn, team.DefaultTeam)
	f := follow(t, tm)
	done := c.begin(survey(tree(t))...)
	for range 2 { // once while the surveys are under way, once after the first
		f.next("work goes on", func(e client.Entry) bool {
			return e.Event.Event.Type == "TASK_CLAIMED" || e.Event.Event.Type == "TASK_COMPLETED"
		})
		srv.Shutdown()
		until(t, "/readyz fails while NATS is away", func() bool { return status(ready) == http.StatusServiceUnavailable })
		if status(live) != http.StatusOK {
			t.Error("/livez fails while NATS is away")
		}
		next, err := embedded.Start(embedded.Options{Dir: data, Port: port})
		if err != nil {
			t.Fatal(err)
		}
		srv = next
	}
	r := done.end(t)
	if r.Status != "finished" || !strings.Contains(r.Summary, "Files: 4") {
		t.Errorf("run ended as %s: %s", r.Status, r.Summary)
	}
	for _, v := range r.Tasks {
		if v.Status != team.Completed || v.Attempts != 0 {
			t.Errorf("%s is %s after %d attempts", v.ID, v.Status, v.Attempts)
		}
	}
}

// status gets a page and returns its HTTP status, 0 if nobody answers.
func status(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
