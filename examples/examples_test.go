// Package examples holds no code; its test runs the examples against a team.
package examples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/api"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/teamtest"
	"agentteam/pkg/teamtest/testenv"
)

// script has the leader put a task on the board, which nobody does, and end the goal.
const script = `
agents:
  - match: {role: leader}
    rules:
      - name: count
        since: '(?s)<mail from="user".*?count the files'
        steps:
          - say: "I <b>count</b> them."
            calls:
              - tool: create_task
                args: {title: "Count <again>"}
          - calls:
              - tool: update_task
                args: {task_id: '{{(result "count" 0).id}}', status: cancelled, reason: "no need"}
          - calls:
              - tool: finish_team
                args: {summary: "There are 7 files."}
      - name: idle
        say: "Nothing to do."
`

const token = "0123456789abcdef0123456789abcdef"

// serve starts a team's cluster with its API, and returns the API's address and the file of
// its token.
func serve(t *testing.T) (url, file string) {
	t.Helper()
	cluster := teamtest.Start(t, script)
	cluster.Leader()
	dir := t.TempDir()
	file = filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := api.Listen(api.Options{
		API: config.API{Addr: "127.0.0.1:0", TokenFile: file}, Client: cluster.Client, Workspace: dir,
		NewTeam: func() (client.NewTeam, error) {
			roles, err := role.Load(dir)
			return client.NewTeam{Roles: roles.All, Lease: teamtest.Lease, Workspace: dir}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := brokertest.Receive(t, "the server ends", done); err != nil {
			t.Error(err)
		}
	})
	return s.URL(), file
}

// run runs a program of this machine to its end, and returns what it printed.
func run(t *testing.T, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path := testenv.Program(t, name)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // long: only a hang is to end by it
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out, bad strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &bad
	err = cmd.Run()
	return out.String(), bad.String(), err
}

func TestPython(t *testing.T) {
	url, file := serve(t)
	python := func(args ...string) (stdout, stderr string, err error) {
		return run(t, "python3", append([]string{"team.py", "--url", url, "--token-file", file}, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		stdout, stderr, err := python(args...)
		if err != nil {
			t.Fatalf("team.py %q: %v\n%s%s", args, err, stdout, stderr)
		}
		return stdout
	}
	if got := must("task", "Write it down"); got != "T-001 is on the board: Write it down\n" {
		t.Errorf("task prints %q", got)
	}
	got := must("--session", "2", "goal", "count the files")
	for _, want := range []string{"user: to leader: count the files\n", "leader: I <b>count</b> them.\n", "leader: calls finish_team\n", "T-001 cancelled: Count <again>\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is there %d times in\n%s", want, strings.Count(got, want), got)
		}
	}
	if again := must("--session", "2", "follow"); again != got {
		t.Errorf("follow prints\n%s\nwant\n%s", again, got)
	}
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte(strings.Repeat("x", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ args, stderr string }{
		{"task| ", "team.py: 422: the title is empty\n"},
		{"--token-file|" + wrong + "|follow", "401: "},
		{"--token-file|team.py|follow", "team.py: team.py holds no token\n"},
		{"--token-file|nothing|follow", "team.py: [Errno 2]"},
		{"--url|http://127.0.0.1:1|follow", "team.py: the stream is lost: http://127.0.0.1:1 cannot be reached: "},
		{"goal", "say what the goal is"},
	} {
		var exit *exec.ExitError
		if _, stderr, err := python(strings.Split(bad.args, "|")...); !errors.As(err, &exit) || !strings.Contains(stderr, bad.stderr) || strings.Contains(stderr, "Traceback") {
			t.Errorf("team.py %s: %v\n%s", bad.args, err, stderr)
		}
	}
}

// TestPythonGoesOn: a stream that is lost, however that happens, is taken up where it was.
func TestPythonGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	envelope := func(n int) string {
		return fmt.Sprintf(`data: {"type":"team_event","envelope":{"agent_id":"leader","event":{"type":"USER_MESSAGE","content":"%d","to_agent_id":"leader"}}}`+"\n\n", n)
	}
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/team/tasks" {
			_, _ = io.WriteString(w, "[]")
			return
		}
		asked = append(asked, r.URL.Query().Get("after"))
		n := len(asked)
		if n == 2 {
			http.Error(w, "another process is coming", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, envelope(n))
		switch n {
		case 1:
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // the process is killed
		case 3:
			_, _ = io.WriteString(w, `data: {"type":"error","envelope":null,"error":"This process is stopping"}`+"\n\n")
		case 5:
			_, _ = io.WriteString(w, `data: {"type":"complete","envelope":null,"error":null}`+"\n\n")
		}
	}))
	defer srv.Close()
	stdout, stderr, err := run(t, "python3", "team.py", "--url", srv.URL, "--token-file", file, "follow")
	var want strings.Builder
	for _, n := range []int{1, 3, 4, 5} {
		fmt.Fprintf(&want, "user: to leader: %d\n", n)
	}
	if err != nil || stdout != want.String() {
		t.Errorf("it prints\n%s%s%v, want\n%s", stdout, stderr, err, want.String())
	}
	if got := strings.Join(asked, " "); got != "0 1 1 2 3" {
		t.Errorf("it asks for what is behind %s", got)
	}
}

func TestPage(t *testing.T) {
	url, _ := serve(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("page")); err != nil {
		t.Fatal(err)
	}
	// By which Node knows what browsers are told by the element that loads it.
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := run(t, "node", "testdata/browser.mjs", dir, url, token, "count the files")
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var got struct {
		Seen                   []string
		Live, Again, Tasks, To string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	seen := strings.Join(got.Seen, "\n")
	for i, want := range []string{"Nothing is under way.", "The team has ended its work.", "Nothing is under way.", "404: No active team", "401: "} {
		if len(got.Seen) <= i || !strings.HasPrefix(got.Seen[i], want) {
			t.Errorf("the page has told\n%s\nwant in line %d: %s", seen, i+1, want)
		}
	}
	for _, want := range []string{"leader (leader)", "count the files", "I <b>count</b> them.", "There are 7 files."} {
		if !strings.Contains(got.Live, want) {
			t.Errorf("%q is not in %q", want, got.Live)
		}
	}
	if got.Again != got.Live {
		t.Errorf("after a reload the page shows\n%s\nand did live\n%s", got.Again, got.Live)
	}
	if got.Tasks != "T-001cancelledCount <again>" || got.To != "leader" {
		t.Errorf("tasks are %q, receivers %q", got.Tasks, got.To)
	}
}

var (
	linked = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	ids    = regexp.MustCompile(`\$\("([a-z]+)"\)`)
)

// TestPageIsWhole: what the page loads is there, and what its script looks for.
func TestPageIsWhole(t *testing.T) {
	srv := httptest.NewServer(http.FileServerFS(os.DirFS("page")))
	defer srv.Close()
	html, err := os.ReadFile("page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(linked.FindAllStringSubmatch(string(html), -1), []string{"", "team.js"}) {
		resp, err := http.Get(srv.URL + "/" + m[1])
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", m[1], resp.Status)
		}
	}
	js, err := os.ReadFile("page/page.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ids.FindAllStringSubmatch(string(js), -1) {
		if !strings.Contains(string(html), `id="`+m[1]+`"`) {
			t.Errorf("page.js looks for %s, which index.html has not", m[1])
		}
	}
	if strings.Contains(string(js), "innerHTML") {
		t.Error("page.js sets HTML")
	}
}
