//go:build compose

package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// project is one cluster, with a name and ports of its own.
type project struct {
	name   string
	env    []string // settings, as .env would hold them
	nats   string   // URL on this machine
	leader string
	api    string
	prom   string

	kept bool // the engine keeps the network, see down
}

// withModel returns the lines of .env.example for the rehearsal.
func withModel(t *testing.T) (env []string) {
	t.Helper()
	text, err := os.ReadFile("../../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, found := strings.Cut(string(text), "\n#COMPOSE_PROFILES=rehearsal\n")
	for line := range strings.Lines(lines) {
		setting, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		env = append(env, setting)
	}
	if !found || len(env) == 0 {
		t.Fatal(".env.example has no lines for the rehearsal")
	}
	return env
}

// newProject takes a name and ports. When the test ends the project is removed, and
// nothing of it may be left.
func newProject(t *testing.T, name string) *project {
	t.Helper()
	p := &project{name: fmt.Sprintf("agentteam-%s-%d", name, port(t))}
	nats, leader, api, prom := port(t), port(t), port(t), port(t)
	p.env = []string{fmt.Sprint("NATS_PORT=", nats), fmt.Sprint("LEADER_PORT=", leader), fmt.Sprint("API_PORT=", api), fmt.Sprint("PROMETHEUS_PORT=", prom)}
	p.nats = fmt.Sprint("nats://127.0.0.1:", nats)
	p.leader, p.api, p.prom = fmt.Sprint("http://127.0.0.1:", leader), fmt.Sprint("http://127.0.0.1:", api), fmt.Sprint("http://127.0.0.1:", prom)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := p.compose(nil, "logs", "--no-color", "--tail=200").CombinedOutput()
			t.Logf("logs of the containers:\n%s", out)
		}
		p.down(t, "-v", "--remove-orphans", "-t", "10")
		if left := p.left(t, "container", "network", "volume"); left != "" {
			t.Errorf("down -v leaves %s", left)
		}
	})
	return p
}

// port returns a free port of 127.0.0.1. Somebody else may take it meanwhile, which
// is unlikely.
func port(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func (p *project) compose(env []string, args ...string) *exec.Cmd {
	return composed(append(p.env, env...), append([]string{"-p", p.name}, args...)...)
}

// run runs docker compose on the project.
func (p *project) run(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, p.compose(nil, args...))
}

// down takes the project down. An engine may count endpoints in a network that has no containers any more; then it
// keeps the network until it is started again, which is no fault of the project.
func (p *project) down(t *testing.T, args ...string) {
	t.Helper()
	out, err := p.compose(nil, append([]string{"down"}, args...)...).CombinedOutput()
	if err == nil {
		return
	}
	p.kept = bytes.Contains(out, []byte("has active endpoints")) &&
		docker(t, "network", "inspect", "-f", "{{len .Containers}}", p.name+"_default") == "0"
	if !p.kept {
		t.Errorf("down: %v\n%s", err, out)
		return
	}
	t.Logf("the engine keeps a network without containers:\n%s", out)
	if slices.Contains(args, "-v") { // compose has ended before its volumes
		for _, volume := range strings.Fields(docker(t, "volume", "ls", "-q", "--filter", "label=com.docker.compose.project="+p.name)) {
			docker(t, "volume", "rm", volume)
		}
	}
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, command("docker", args...))
}

// output runs cmd, which must succeed, and returns what it prints, trimmed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// teamctl prepares teamctl on this machine.
func (p *project) teamctl(args ...string) *exec.Cmd {
	cmd := command(teamctl, args...)
	// Short, since the test waits for it to run out.
	cmd.Env = append(cmd.Env, "AGENTTEAM_SERVER="+p.nats, "AGENTTEAM_LEASE=5s")
	return cmd
}

// team opens the default team.
func (p *project) team(t *testing.T) *client.Team {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Options{URL: p.nats})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	tm, err := c.Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// containers returns the ids of the containers that a service has, running or not.
func (p *project) containers(t *testing.T, service string) []string {
	t.Helper()
	return strings.Fields(docker(t, "ps", "-aq", "--no-trunc",
		"--filter", "label=com.docker.compose.project="+p.name, "--filter", "label=com.docker.compose.service="+service))
}

// left names what the engine still has of the project.
func (p *project) left(t *testing.T, kinds ...string) string {
	t.Helper()
	var left []string
	for _, kind := range kinds {
		if kind == "network" && p.kept {
			continue
		}
		args := []string{kind, "ls", "-q", "--filter", "label=com.docker.compose.project=" + p.name}
		if kind == "container" {
			args = append(args, "-a")
		}
		for _, id := range strings.Fields(docker(t, args...)) {
			left = append(left, kind+" "+id)
		}
	}
	return strings.Join(left, ", ")
}

// container is what docker inspect says of one.
type container struct {
	ID, Name string
	Config   struct {
		Hostname, User, Image string
		Labels                map[string]string
	}
	State struct {
		Status    string
		Health    *struct{ Status string }
		StartedAt time.Time
	}
	RestartCount int
	HostConfig   struct {
		ReadonlyRootfs       bool
		CapDrop, SecurityOpt []string
		Memory               int64
		PidsLimit            *int64
		PortBindings         map[string][]struct{ HostIp string }
	}
}

func inspect(t *testing.T, ids ...string) (all []container) {
	t.Helper()
	if len(ids) == 0 {
		return nil
	}
	if err := json.Unmarshal([]byte(docker(t, append([]string{"inspect"}, ids...)...)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// running returns the containers of a service that run.
func (p *project) running(t *testing.T, service string) []container {
	t.Helper()
	return slices.DeleteFunc(inspect(t, p.containers(t, service)...), func(c container) bool { return c.State.Status != "running" })
}

// healthy waits until these services run and pass their health checks, which all have
// but the rehearsal.
func (p *project) healthy(t *testing.T, services ...string) {
	t.Helper()
	until(t, "healthy", func(context.Context) string {
		for _, service := range services {
			all := inspect(t, p.containers(t, service)...)
			if len(all) == 0 {
				return service + " has no container"
			}
			for _, c := range all {
				passes := c.State.Health != nil && c.State.Health.Status == "healthy"
				if c.State.Status != "running" || !passes && service != "rehearsal" {
					return fmt.Sprintf("%s is %s, %+v", c.Name, c.State.Status, c.State.Health)
				}
			}
		}
		return ""
	})
}
