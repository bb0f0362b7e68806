//go:build compose

package compose

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// What cannot work is said in one line: by docker compose where it is the engine's
// matter, else by the process, on the last line before it ends.
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
	})

	t.Run("a server that is not there", func(t *testing.T) {
		t.Parallel()
		ends(t, team.Unavailable, "NATS is not to be reached at nats://nowhere.invalid:4222",
			"-e", "AGENTTEAM_SERVER=nats://nowhere.invalid:4222", "agentteam/leader")
	})

	t.Run("a server without JetStream", func(t *testing.T) {
		t.Parallel()
		image := output(t, command("sed", "-n", "s/^ *image: *nats:/nats:/p", "../../docker-compose.yml"))
		server := docker(t, "run", "-d", image, "nats-server")
		t.Cleanup(func() { docker(t, "rm", "-f", server) })
		ends(t, team.Unavailable, "has no JetStream", "--network", "container:"+server, "-e", "AGENTTEAM_SERVER=nats://127.0.0.1:4222", "agentteam/teammate")
	})

	t.Run("a workspace that cannot be written", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		ends(t, team.PermissionDenied, "workspace /workspace is not writable", "-v", dir+":/workspace", "agentteam/leader")
	})

	t.Run("a setting that is none", func(t *testing.T) {
		t.Parallel()
		ends(t, team.InvalidArgument, "setting lease, from env AGENTTEAM_LEASE", "-e", "AGENTTEAM_LEASE=soon", "agentteam/teammate")
	})
}

// ends runs a container that must end with the exit code of code, saying why on its
// last line.
func ends(t *testing.T, code team.Code, why string, args ...string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := command("docker", append([]string{"run", "--rm"}, args...)...)
	cmd.Stderr = &stderr
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if err == nil || cmd.ProcessState.ExitCode() != team.ExitCode(code) || !strings.Contains(lines[len(lines)-1], why) {
		t.Errorf("want exit status %d and a last line with %q, got %v\n%s", team.ExitCode(code), why, err, stderr.String())
	}
}
