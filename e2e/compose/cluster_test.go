//go:build compose

package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/demo"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// The life of one cluster. Each step builds on those before it.
func TestCluster(t *testing.T) {
	p := newProject(t, "life")
	begun := time.Now()
	var kept inventory
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"up without a model", p.testNoModel},
		{"up with the rehearsal", func(t *testing.T) {
			p.env = append(p.env, withModel(t)...)
			p.run(t, append([]string{"up", "-d"}, services...)...)
			p.healthy(t, services...)
			p.awaitTargets(t, 3)
			p.fill(t)
		}},
		{"containers", p.testContainers},
		{"the API", p.testAPI},
		{"the demo's job", func(t *testing.T) { p.job(t, nil) }},
		{"scale to 5", func(t *testing.T) { p.scale(t, 5) }},
		{"a teammate is killed", func(t *testing.T) { p.job(t, p.kill); p.awaitTargets(t, 4) }},
		{"nats is restarted", func(t *testing.T) { p.job(t, p.restart) }},
		{"the leader is restarted", func(t *testing.T) {
			p.run(t, "restart", "leader")
			p.healthy(t, "leader")
			p.awaitTargets(t, 4)
			p.testAPI(t)
		}},
		{"scale to 2", func(t *testing.T) { p.scale(t, 2) }},
		{"metrics", func(t *testing.T) { p.testMetrics(t, begun) }},
		{"down", func(t *testing.T) {
			kept = p.inventory(t)
			p.down(t)
			if left := p.left(t, "container", "network"); left != "" {
				t.Errorf("down leaves %s", left)
			}
		}},
		{"up again", func(t *testing.T) {
			p.run(t, append([]string{"up", "-d"}, services...)...)
			p.healthy(t, services...)
			if now := p.inventory(t); kept.tasks == "" || kept.conversations == 0 || now != kept {
				t.Errorf("the team is %+v, before it was %+v", now, kept)
			}
			p.awaitTargets(t, 3)
		}},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// testNoModel starts the cluster without any setting of a model.
func (p *project) testNoModel(t *testing.T) {
	begun := time.Now()
	without := slices.DeleteFunc(slices.Clone(services), func(s string) bool { return s == "rehearsal" })
	p.run(t, append([]string{"up", "-d"}, without...)...)
	p.healthy(t, without...)
	figure("up, until every service is healthy", "%.1f s", time.Since(begun).Seconds())
	p.awaitTargets(t, 3)
	for _, line := range strings.Split(docker(t, append([]string{"stats", "--no-stream", "--format", "{{.Name}}: {{.MemUsage}}"}, p.all(t)...)...), "\n") {
		figure("memory, idle", "%s", strings.TrimPrefix(line, p.name))
	}

	resp, err := http.Get(p.leader + "/readyz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the leader's /readyz: %v, %v", resp, err)
	}
	resp.Body.Close()
	for _, args := range [][]string{{"doctor"}, {"run", "anything"}} {
		var stderr bytes.Buffer
		cmd := p.teamctl(args...)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != team.ExitCode(team.InvalidArgument) ||
			!strings.Contains(stderr.String(), "no model is configured") || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("teamctl %s without a model: %v, stderr: %s", args[0], err, stderr.String())
		}
	}
	if out := p.run(t, "logs", "--no-color", "leader"); !strings.Contains(out, "no model is configured") {
		t.Errorf("the leader's log does not say that no model is configured:\n%s", out)
	}
}

// all returns the ids of all containers.
func (p *project) all(t *testing.T) (ids []string) {
	t.Helper()
	for _, service := range services {
		ids = append(ids, p.containers(t, service)...)
	}
	return ids
}

// ours is the beginning of the names of the images that are built.
const ours = "localhost/agentteam/"

// testContainers looks how the containers are confined, and what is in the images.
func (p *project) testContainers(t *testing.T) {
	published := map[string]string{"nats": "4222/tcp", "leader": "8080/tcp 8090/tcp", "prometheus": "9090/tcp"}
	for _, service := range services {
		for _, c := range inspect(t, p.containers(t, service)...) {
			h := c.HostConfig
			if !h.ReadonlyRootfs || !slices.Contains(h.CapDrop, "ALL") || !slices.Contains(h.SecurityOpt, "no-new-privileges:true") ||
				h.Memory == 0 || h.PidsLimit == nil || *h.PidsLimit == 0 {
				t.Errorf("%s is not confined: %+v", c.Name, h)
			}
			if strings.HasPrefix(c.Config.Image, ours) && c.Config.User != "65532:65532" {
				t.Errorf("%s runs as user %q", c.Name, c.Config.User)
			}
			var ports []string
			for port, at := range h.PortBindings {
				ports = append(ports, port)
				for _, b := range at {
					if b.HostIp != "127.0.0.1" {
						t.Errorf("%s publishes %s on %q", c.Name, port, b.HostIp)
					}
				}
			}
			slices.Sort(ports)
			if got := strings.Join(ports, " "); got != published[service] {
				t.Errorf("%s publishes %q, want %q", c.Name, got, published[service])
			}
		}
	}
	script := `touch /x 2>/dev/null && exit 1; set -e; test $(id -u) = 65532; printf '#!/bin/sh\n' >/tmp/x; chmod +x /tmp/x; /tmp/x
		touch /workspace/x; rm /workspace/x; cd /tmp; git init -q repo; for p in bash find grep sed awk git; do command -v $p; done`
	for _, service := range []string{"leader", "teammate"} {
		p.run(t, "exec", "-T", service, "bash", "-c", script)
	}

	for _, image := range []string{"leader", "teammate", "rehearsal"} {
		var size int64
		if _, err := fmt.Sscan(docker(t, "image", "inspect", "--format", "{{.Size}}", ours+image), &size); err != nil {
			t.Fatal(err)
		}
		figure("size of the image "+image, "%.1f MB", float64(size)/1e6)
	}
	// teamctl as a container, without the program on this machine.
	if out := p.run(t, "run", "--rm", "-T", "teamctl", "status", "-o", "json"); !strings.Contains(out, `"standbys"`) {
		t.Errorf("teamctl in a container: %s", out)
	}
}

// testAPI logs a browser in, as docs/operations.md tells, with the token that the leader has
// made. Teammates, who run what a model says, do not have it.
func (p *project) testAPI(t *testing.T) {
	address := p.run(t, "run", "--rm", "-T", "teamctl", "web", "--url", p.api, "-o", "name")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for _, at := range []string{address, p.api + "/team/sessions?user_id=ann"} {
		resp, err := browser.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %s", at, resp.Status)
		}
	}
	for _, c := range p.running(t, "teammate") {
		docker(t, "exec", c.ID, "test", "!", "-e", "/tokens")
	}
}

// source is the tree in the workspace that the team surveys: large enough for a
// survey to take seconds, so that there is a middle of a task.
const source = "/workspace/src"

// fill puts Go's own source into the workspace, as docs/operations.md tells.
func (p *project) fill(t *testing.T) {
	t.Helper()
	pack := exec.Command("tar", "-c", "-C", filepath.Dir(goroot(t)+"/src"), "src")
	unpack := p.compose(nil, "exec", "-T", "teammate", "tar", "-x", "--no-same-owner", "-C", "/workspace")
	var err error
	if unpack.Stdin, err = pack.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := pack.Start(); err != nil {
		t.Fatal(err)
	}
	output(t, unpack)
	if err := pack.Wait(); err != nil {
		t.Fatal(err)
	}
}

func goroot(t *testing.T) string {
	t.Helper()
	return output(t, exec.Command("go", "env", "GOROOT"))
}

// job has the team survey the source, from this machine, and meanwhile does what
// disturb does; nil does nothing. The job must finish all the same.
func (p *project) job(t *testing.T, disturb func(*testing.T)) {
	begun := time.Now()
	var stdout, stderr bytes.Buffer
	cmd := p.teamctl("run", "-o", "json", "--timeout", "2m", demo.Goal(source))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	before := len(p.tasks(t))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if disturb != nil {
		until(t, "the team has tasks", func(context.Context) string {
			if len(p.tasks(t)) <= before {
				return "no new task"
			}
			return ""
		})
		disturb(t)
	}
	if err := <-ended; err != nil {
		t.Fatalf("teamctl run: %v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	var outcome struct {
		Status, Summary string
		Tasks           []team.TaskView
	}
	if err := json.Unmarshal(stdout.Bytes(), &outcome); err != nil {
		t.Fatalf("teamctl run -o json: %v\n%s", err, stdout.String())
	}
	t.Logf("%.1f s: %s", time.Since(begun).Seconds(), outcome.Summary)
	for _, task := range outcome.Tasks {
		if task.Status != team.Completed {
			t.Errorf("%s %q is %s", task.ID, task.Title, task.Status)
		}
	}
	survey := docker(t, "exec", p.running(t, "teammate")[0].ID, "cat", "/workspace/"+demo.Result)
	if !regexp.MustCompile(`(?m)^- Lines: [1-9][0-9]{5,}$`).MatchString(survey) {
		t.Errorf("the survey does not say how many lines there are:\n%s", survey)
	}
}

// tasks is the board of the default team; empty while there is none.
func (p *project) tasks(t *testing.T) []team.TaskView {
	t.Helper()
	var tasks []team.TaskView
	if err := json.Unmarshal([]byte(output(t, p.teamctl("tasks", "-o", "json"))), &tasks); err != nil {
		t.Fatal(err)
	}
	return tasks
}

// busy waits until a teammate is at work on a task.
func (p *project) busy(t *testing.T) (task team.TaskView) {
	t.Helper()
	until(t, "a teammate is at work", func(context.Context) string {
		for _, task = range p.tasks(t) {
			if task.Status == team.InProgress {
				return ""
			}
		}
		return "no task is in progress"
	})
	return task
}

// kill kills the container of a teammate that is at work. The engine does not start
// again what was killed by hand, so another has to finish the task.
func (p *project) kill(t *testing.T) {
	task := p.busy(t)
	agent, err := p.team(t).Members().Get(t.Context(), task.Assignee)
	if err != nil {
		t.Fatal(err)
	}
	docker(t, "kill", "--signal", "KILL", agent.Host) // a container's host name is the beginning of its id
	held, err := p.team(t).Board().Task(t.Context(), task.ID)
	if err != nil || held.Status != team.InProgress || held.Assignee != task.Assignee {
		t.Fatalf("the kill of %s came too late for the middle of its task: %+v, %v", task.Assignee, held.Task, err)
	}
	until(t, "the task of the dead is held anew", func(ctx context.Context) string {
		now, err := p.team(t).Board().Task(ctx, task.ID)
		if err != nil || now.Epoch <= held.Epoch {
			return fmt.Sprintf("%+v, %v", now.Task, err)
		}
		return ""
	})
}

// restart restarts the NATS server while a teammate is at work.
func (p *project) restart(t *testing.T) {
	task := p.busy(t)
	server := p.containers(t, "nats")[0]
	docker(t, "restart", server) // sooner there than docker compose
	p.healthy(t, "nats")
	up := inspect(t, server)[0].State.StartedAt

	nc, err := nats.Connect(p.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), subject.Bucket(team.DefaultTeam))
	if err != nil {
		t.Fatal(err)
	}
	// Whatever was stored last before the server went must say that the task was held,
	// by the server's own clock.
	copies, err := kv.History(t.Context(), subject.KeyTask(task.ID))
	if err != nil {
		t.Fatal(err)
	}
	var before team.Task
	for _, c := range copies {
		if c.Created().Before(up) {
			if err := json.Unmarshal(c.Value(), &before); err != nil {
				t.Fatal(err)
			}
		}
	}
	if before.Status != team.InProgress || before.Epoch != task.Epoch {
		t.Fatalf("the restart of NATS came too late for the middle of %s: %s was %s", task.Assignee, task.ID, before.Status)
	}
	now, err := p.team(t).Board().Task(t.Context(), task.ID)
	if err != nil || now.Status == team.Pending || now.Epoch != task.Epoch {
		t.Errorf("after the restart of NATS the task is %+v, %v", now.Task, err)
	}
}

func (p *project) scale(t *testing.T, n int) {
	p.run(t, "up", "-d", "--no-recreate", "--scale", fmt.Sprint("teammate=", n), "teammate")
	p.awaitTargets(t, n)
}

// silent are the panels that have nothing to show of one model without a price, and of a workspace that is no git
// repository, into which nothing is merged.
var silent = map[string]bool{"Cost": true, "Switches to a fallback": true,
	"Merged and returned": true, "Waiting to be merged": true, "Time of a merge": true}

// testMetrics asks Prometheus all that rules and dashboards ask it.
func (p *project) testMetrics(t *testing.T, begun time.Time) {
	ctx := t.Context()
	for name, expr := range p.rules(t) {
		if _, err := p.query(ctx, expr, begun); err != nil {
			t.Errorf("rule %s: %s: %v", name, expr, err)
		}
	}
	for _, board := range askedForAll(t) {
		for _, v := range board.Templating.List {
			if got, err := p.values(ctx, v, begun); err != nil || len(got) == 0 {
				t.Errorf("variable %s has no value: %v", v.Name, err)
			}
		}
		for _, panel := range board.Panels {
			samples := 0
			for _, target := range panel.Targets {
				got, err := p.query(ctx, target.Expr, begun)
				if err != nil {
					t.Errorf("panel %q: %s: %v", panel.Title, target.Expr, err)
				}
				samples += len(got)
			}
			if samples == 0 && !silent[panel.Title] {
				t.Errorf("panel %q has no sample: %v", panel.Title, panel.Targets)
			}
		}
	}
	for _, metric := range []string{
		`agentteam_members{state="running"}`, `agentteam_tasks{status="completed"}`, `agentteam_claims_total{result="ok"}`,
		`agentteam_messages_sent_total`, `agentteam_messages_received_total`, `agentteam_model_calls_total{outcome="ok"}`,
		`agentteam_model_tokens_total`, `agentteam_tool_calls_total{outcome="ok"}`, `agentteam_nats_reconnects_total`,
	} {
		if got, err := p.query(ctx, "max("+metric+") > 0", begun); err != nil || len(got) == 0 {
			t.Errorf("%s has not moved: %v, %v", metric, got, err)
		}
	}
	// Members were seen as what they were, under their names: some, for one lives for less than it takes
	// until Prometheus looks again.
	for _, l := range []string{`kind="leader"`, `kind="teammate", state="standby"`, `kind="teammate", state="joined", team="default", role=~"[a-z]+", agent_id=~"[a-z]+-[0-9]+"`,
		`kind="leader", state="joined", team="default", role="leader", agent_id="leader"`} {
		expr := `up{job="agentteam", ` + l + `} == 1`
		if got, err := p.query(ctx, expr, begun); err != nil || len(got) == 0 {
			t.Errorf("%s: %v, %v", expr, got, err)
		}
	}
	p.run(t, "exec", "-T", "prometheus", "promtool", "check", "config", "/etc/prometheus/prometheus.yml")
	rules, err := filepath.Abs("../../deploy/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	docker(t, "run", "--rm", "--tmpfs", "/scratch:mode=1777", "-e", "TMPDIR=/scratch", "-v", rules+":/rules:ro", "--entrypoint", "promtool", inspect(t, p.containers(t, "prometheus")...)[0].Config.Image,
		"test", "rules", "/rules/rules_test.yml")
}

// inventory is what a team must find again.
type inventory struct {
	tasks         string
	conversations uint64 // records of them
}

func (p *project) inventory(t *testing.T) (inv inventory) {
	t.Helper()
	for _, task := range p.tasks(t) {
		inv.tasks += fmt.Sprintf("%s %s %s %d\n", task.ID, task.Status, task.Title, task.Epoch)
	}
	nc, err := nats.Connect(p.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := subject.Logs(team.DefaultTeam)
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	inv.conversations = stream.CachedInfo().State.Msgs
	return inv
}
