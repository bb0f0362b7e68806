package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// survey are the arguments of a run that surveys a tree beside the workspace.
func survey(dir string) []string {
	return []string{"--read", dir, "Survey the source tree at " + dir + "\nWrite SURVEY.md: files and lines per language and in all, the largest files and functions, every open TODO, and packages without tests."}
}

// tree makes a small source tree.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "源 代码 🌱")
	for name, text := range map[string]string{
		"main.go":       "package main\n\n// TODO: 写得更好 🚀\nfunc main() {\n\tprintln(1)\n}\n",
		"lib/a.go":      "package lib\n\nfunc A() {\n}\n",
		"lib/a_test.go": "package lib\n",
		"x.py":          "def f():\n    return 1\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newTeam makes a team as `teamctl run` would, with a short lease.
// shortLease is the lease of teams whose tests do not ask for another.
const shortLease = 5 * time.Second

func newTeam(t *testing.T, c *client.Client, id team.TeamID) *client.Team {
	t.Helper()
	return newTeamWith(t, c, id, shortLease)
}

func newTeamWith(t *testing.T, c *client.Client, id team.TeamID, lease time.Duration) *client.Team {
	t.Helper()
	roles, err := role.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tm, err := c.Make(t.Context(), client.NewTeam{ID: id, Roles: roles.All, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// feed records what happens in a team, and lets a test wait for it.
type feed struct {
	t       *testing.T
	entries chan client.Entry
	seen    []client.Entry
}

func follow(t *testing.T, tm *client.Team) *feed {
	t.Helper()
	f := &feed{t: t, entries: make(chan client.Entry, 10_000)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- tm.Feed(ctx, client.FeedOptions{Follow: true}, func(e client.Entry) error { f.entries <- e; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(t, "the feed ends", done); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return f
}

// next returns the next entry that fits.
func (f *feed) next(what string, fits func(client.Entry) bool) client.Entry {
	f.t.Helper()
	var found client.Entry
	until(f.t, what, func() bool {
		for {
			select {
			case e := <-f.entries:
				f.seen = append(f.seen, e)
				if fits(e) {
					found = e
					return true
				}
			default:
				return false
			}
		}
	})
	return found
}

// One teammate is killed in the middle of its task. Its task comes back, the work
// is done once, and the survey is right. A second goal goes to the same team.
func TestSurveySurvivesKill(t *testing.T) {
	t.Parallel()
	c := up(t, "", 3)
	src := tree(t)
	conn := c.connect()
	tm := newTeam(t, conn, team.DefaultTeam) // before the goal, so that it can be watched from the start
	f := follow(t, tm)

	done := c.begin(survey(src)...)
	claimed := f.next("somebody measures", func(e client.Entry) bool {
		return e.Event.Event.Type == "TASK_CLAIMED" && strings.Contains(string(e.Event.Event.Value), "Measure")
	})
	victim := claimed.AgentID
	agent, err := tm.Members().Get(t.Context(), victim)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agent.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.next("the task comes back", func(e client.Entry) bool {
		return e.Event.Event.Type == "TASK_RELEASED" && strings.Contains(string(e.Event.Event.Value), "Measure")
	})

	r := done.end(t)
	if r.Status != "finished" || !strings.Contains(r.Summary, "SURVEY.md") {
		t.Errorf("run ended as %s: %s", r.Status, r.Summary)
	}
	completed := 0
	for _, v := range r.Tasks {
		if v.Status == team.Completed {
			completed++
		}
	}
	if completed != 4 {
		t.Errorf("%d tasks completed, want 4", completed)
	}
	written, err := os.ReadFile(filepath.Join(c.dir, "SURVEY.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Files: 4", "写得更好 🚀", "main.go", "x.py"} {
		if !bytes.Contains(written, []byte(want)) {
			t.Errorf("SURVEY.md lacks %q:\n%s", want, written)
		}
	}
	if r.Usage.ModelCalls == 0 || r.Usage.TotalTokens == 0 || r.Elapsed <= 0 || len(r.Agents) != 4 {
		t.Errorf("usage %+v, %d agents, %v s", r.Usage, len(r.Agents), r.Elapsed)
	}
	completions := map[string]int{}
	for _, e := range f.seen {
		if e.Event.Event.Type == "TASK_COMPLETED" {
			completions[string(e.Event.Event.Value)]++
		}
	}
	for v, n := range completions {
		if n > 1 {
			t.Errorf("completed %d times: %s", n, v)
		}
	}

	t.Logf("first goal, with a kill: %.1f s", r.Elapsed)
	second := c.begin(survey(filepath.Join(src, "lib"))...).end(t)
	if second.Status != "finished" || !strings.Contains(second.Summary, "Files: 2") {
		t.Errorf("second goal ended as %s: %s", second.Status, second.Summary)
	}
}
