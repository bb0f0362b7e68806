//go:build compose

package compose

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
)

// What cannot work is said in one line: by docker compose where it is the engine's
// matter, else by the process, on the last line before it ends. The doctor, which has
// the same settings, says it too.
func TestBadInput(t *testing.T) {
	t.Run("port taken", func(t *testing.T) {
		t.Parallel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		p := newProject(t, "port")
		taken := fmt.Sprint(ln.Addr().(*net.TCPAddr).Port)
		out, err := p.compose([]string{"NATS_PORT=" + taken}, "up", "-d", "nats").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "127.0.0.1:"+taken) {
			t.Errorf("up with a port that is taken: %v\n%s", err, out)
		}
		fails(t, p.teamctl("--server", "nats://127.0.0.1:"+taken, "doctor"), team.Unavailable, "server: NATS is not to be reached at nats://127.0.0.1:"+taken)
	})

	t.Run("a server that is not there", func(t *testing.T) {
		t.Parallel()
		const why = "NATS is not to be reached at nats://nowhere.invalid:4222"
		ends(t, team.Unavailable, why, "-e", "AGENTTEAM_SERVER=nats://nowhere.invalid:4222", ours+"leader")
		ends(t, team.Unavailable, "server: "+why, "-e", "AGENTTEAM_SERVER=nats://nowhere.invalid:4222", doctor, "doctor")
		// In a cluster whose NATS is away the doctor is reached all the same.
		fails(t, newProject(t, "away").compose(nil, "run", "--rm", "-T", "teamctl", "doctor"), team.Unavailable,
			"server: NATS is not to be reached at nats://nats:4222")
	})

	t.Run("a server without JetStream", func(t *testing.T) {
		t.Parallel()
		image := output(t, command("sed", "-n", "s/^ *image: *nats:/nats:/p", "../../docker-compose.yml"))
		server := docker(t, "run", "-d", image, "nats-server")
		t.Cleanup(func() { docker(t, "rm", "-f", server) })
		there := []string{"--network", "container:" + server, "-e", "AGENTTEAM_SERVER=nats://127.0.0.1:4222"}
		ends(t, team.Unavailable, "has no JetStream", append(there, ours+"teammate")...)
		ends(t, team.Unavailable, "jetstream: the NATS server at nats://127.0.0.1:4222 has no JetStream", append(there, doctor, "doctor")...)
	})

	t.Run("a workspace that cannot be written", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		ends(t, team.InvalidState, "workspace /workspace is not writable", "-v", dir+":/workspace", ours+"leader")
		ends(t, team.InvalidState, "workspace: open /workspace/", "-v", dir+":/workspace", doctor, "doctor")
	})

	t.Run("a key that is refused", func(t *testing.T) {
		t.Parallel()
		const (
			key = "sk-not-for-other-eyes"
			why = "the model endpoint http://wrongkey:8000/v1 refuses the key (401)"
		)
		p := newProject(t, "key")
		p.env = append(p.env, "OPENAI_BASE_URL=http://wrongkey:8000/v1", "OPENAI_API_KEY="+key, "OPENAI_MODEL=any")
		p.run(t, "up", "-d", "leader")
		endpoint := docker(t, "run", "-d", "--network", p.name+"_default", "--network-alias", "wrongkey",
			"-v", wrongkey+":/wrongkey:ro", "--entrypoint", "/wrongkey", ours+"leader")
		t.Cleanup(func() { docker(t, "rm", "-f", endpoint) })
		p.healthy(t, "leader")

		// Nobody but the doctor asks the endpoint before there is something to do.
		checks, line := fails(t, p.compose(nil, "run", "--rm", "-T", "teamctl", "doctor"), team.InvalidArgument, "model: "+why)
		told, ended := fails(t, p.teamctl("run", "--timeout", "1m", "anything"), team.InvalidState, "the goal ended as failed")
		if !strings.Contains(ended, "the goal ended as failed: the leader's model refuses to answer: "+why) {
			t.Errorf("teamctl run does not say %q:\n%s", why, ended)
		}
		logs := p.run(t, "logs", "--no-color", "leader")
		if !strings.Contains(logs, why) { // at each try, of which there may be several
			t.Errorf("the leader's log does not say %q:\n%s", why, logs)
		}
		if all := checks + line + told + ended + logs; strings.Contains(all, key) {
			t.Errorf("the key is shown:\n%s", all)
		}
	})

	t.Run("a setting that is none", func(t *testing.T) {
		t.Parallel()
		const why = "setting lease, from env AGENTTEAM_LEASE"
		ends(t, team.InvalidArgument, why, "-e", "AGENTTEAM_LEASE=soon", ours+"teammate")
		ends(t, team.InvalidArgument, why, "-e", "AGENTTEAM_LEASE=soon", doctor, "doctor")
	})

	t.Run("a process that ends again and again", func(t *testing.T) {
		t.Parallel()
		p := newProject(t, "loop")
		p.env = append(p.env, "AGENTTEAM_LEASE=soon")
		p.run(t, "up", "-d", "leader")
		const restarts = 4
		until(t, "the engine has restarted the leader", func(context.Context) string {
			if n := inspect(t, p.containers(t, "leader")...)[0].RestartCount; n < restarts {
				return fmt.Sprintf("%d times", n)
			}
			return ""
		})
		// Each start says why in one line, and the engine's pauses double, from 100 ms.
		logs := p.run(t, "logs", "--no-color", "--timestamps", "leader")
		lines := regexp.MustCompile(`\| (\S+Z) (.*)`).FindAllStringSubmatch(logs, -1)
		if len(lines) < restarts {
			t.Errorf("%d lines after %d restarts:\n%s", len(lines), restarts, logs)
		}
		var last time.Time
		for i, line := range lines {
			said, err := time.Parse(time.RFC3339Nano, line[1])
			if pause := 50 * time.Millisecond << i; err != nil || i > 0 && said.Sub(last) < pause || !strings.Contains(line[2], `"soon"`) {
				t.Errorf("start %d: want the reason, %v after the one before: %v\n%s", i+1, pause, err, logs)
			}
			last = said
		}
	})
}

// doctor is the image of teamctl; that of the rehearsal is the same and is there.
const doctor = ours + "rehearsal"

// ends runs a container that must end with the exit code of code, saying why on its
// last line.
func ends(t *testing.T, code team.Code, why string, args ...string) {
	t.Helper()
	_, stderr := fails(t, command("docker", append([]string{"run", "--rm"}, args...)...), code, why)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if !strings.Contains(lines[len(lines)-1], why) {
		t.Errorf("want %q on the last line, got\n%s", why, stderr)
	}
}

// fails runs cmd, which must end with the exit code of code and say why in one line
// of stderr. It returns what cmd prints.
func fails(t *testing.T, cmd *exec.Cmd, code team.Code, why string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != team.ExitCode(code) || strings.Count(errs.String(), why) != 1 {
		t.Errorf("%s: want exit status %d and one line with %q, got %v\n%s%s", cmd, team.ExitCode(code), why, err, &out, &errs)
	}
	return out.String(), errs.String()
}
