//go:build compose

// Package compose tests docker-compose.yml and deploy/ as their users meet them:
// the images are built, the cluster is started by docker compose, the demo's job
// goes through it, and what Prometheus says of it is asked of Prometheus. "make
// test-compose" runs it; an engine is needed, a registry is not.
package compose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	teamctl  string   // the program on this machine
	wrongkey string   // a model endpoint, see there
	noEnv    string   // an empty file in the place of .env, whose settings are nothing for a test
	program  []string // how docker compose is called here
	figures  []string // printed at the end
)

// services are those that the tests start: all but Grafana, of which there is no
// stand-in.
var services = []string{"nats", "leader", "teammate", "prometheus", "rehearsal"}

func TestMain(m *testing.M) {
	begun := time.Now()
	os.Exit(func() int {
		bin, err := os.MkdirTemp("", "agentteam-compose-*")
		if err == nil {
			defer os.RemoveAll(bin)
			teamctl, wrongkey, noEnv = filepath.Join(bin, "teamctl"), filepath.Join(bin, "wrongkey"), filepath.Join(bin, "env")
			if err = os.WriteFile(noEnv, nil, 0o600); err == nil {
				err = prepare(bin)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() {
			figure("the whole test", "%.0f s", time.Since(begun).Seconds())
			for _, f := range figures {
				fmt.Println("figure:", f)
			}
		}()
		return m.Run()
	}())
}

// prepare builds the images, and the programs into bin.
func prepare(bin string) error {
	if err := command("docker", "info").Run(); err != nil {
		return fmt.Errorf("no container engine answers: docker info: %w", err)
	}
	program = []string{"docker", "compose"}
	if command("docker", "compose", "version").Run() != nil {
		program = []string{"docker-compose"}
		if err := command("docker-compose", "version").Run(); err != nil {
			return fmt.Errorf("neither docker compose nor docker-compose is here: %w", err)
		}
	}
	begun := time.Now()
	pull := composed(nil, "pull", "-q", "nats", "prometheus")
	if err := pull.Run(); err != nil {
		if err := shown(command("../../deploy/stand-ins.sh")); err != nil {
			return fmt.Errorf("no image can be pulled, and stand-ins cannot be made: %w", err)
		}
		figure("images that are pulled, made as stand-ins", "%.0f s", time.Since(begun).Seconds())
	}
	begun = time.Now()
	if out, err := composed(nil, "build", "leader", "teammate", "rehearsal").CombinedOutput(); err != nil {
		return fmt.Errorf("build the images: %w\n%s", err, out)
	}
	figure("docker compose build", "%.0f s", time.Since(begun).Seconds())
	build := command("go", "build", "-o", bin, "../../cmd/teamctl", "./wrongkey")
	build.Env = append(build.Env, "CGO_ENABLED=0") // wrongkey runs where there is no C library
	return shown(build)
}

func figure(name, format string, args ...any) {
	figures = append(figures, name+": "+fmt.Sprintf(format, args...))
}

func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = environ()
	return cmd
}

func composed(env []string, args ...string) *exec.Cmd {
	all := append(program[1:len(program):len(program)], "--project-directory", "../..", "--env-file", noEnv, "--profile", "rehearsal")
	cmd := command(program[0], append(all, args...)...)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func shown(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// environ is this process's environment without settings of the cluster.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		prefix, _, _ := strings.Cut(name, "_")
		switch prefix {
		case "AGENTTEAM", "OPENAI", "NATS", "LEADER", "TEAMMATE", "PROMETHEUS", "GRAFANA", "WORKSPACE", "COMPOSE", "VERSION", "GO":
		default:
			env = append(env, kv)
		}
	}
	return env
}

// limit bounds every wait: generous, since CI machines are slow and shared.
const limit = 90 * time.Second

// until calls ok until it returns "", and fails the test with what it said last if
// that takes too long.
func until(t *testing.T, what string, ok func(ctx context.Context) (missing string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begun := time.Now()
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		missing := ok(ctx)
		if missing == "" {
			t.Logf("%s: after %.1f s", what, time.Since(begun).Seconds())
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; at last: %s", what, limit, missing)
		case <-tick.C:
		}
	}
}
