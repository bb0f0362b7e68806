package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// bin is the folder with the three programs, built once for all scripts.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if bin, err = os.MkdirTemp("", "teamctl-test-*"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(bin)
		build := exec.Command("go", "build", "-trimpath", "-o", bin+"/", "agentteam/cmd/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// TestScripts runs teamctl as people and programs do. Besides testscript's own
// commands a script has those below, and three conditions. long: as testenv.Long. default-server: some server
// listens where one is looked for if none was named. confined: that sandbox works here.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("BIN", bin)
			e.Setenv("TZ", "UTC")
			config, err := os.MkdirTemp("", "teamctl-test-config-*") // no team works in the folder that holds it
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(config) })
			e.Setenv("XDG_CONFIG_HOME", config)
			e.Values[pidsKey{}] = new([]int)
			down := exec.Command(filepath.Join(bin, "teamctl"), "down")
			down.Dir, down.Env = e.WorkDir, e.Vars
			e.Defer(func() { _ = down.Run() }) // also where the script failed; mostly there is nothing left to end
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "confined":
				_, err := sandbox.Find(t.Context(), team.Confined)
				return err == nil, nil
			case "long":
				return testenv.All(), nil
			case "default-server":
			default:
				return false, fmt.Errorf("there is no condition %q", cond)
			}
			conn, err := net.Dial("tcp", "127.0.0.1:4222")
			if err == nil {
				conn.Close()
			}
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":        exits,
			"until":        until,
			"normal":       normal,
			"text":         text,
			"no-jetstream": noJetStream,
			"remember":     remember,
			"gone":         gone,
			"log-in":       logIn,
			"beats":        beats,
		},
	})
}

// exits CODE COMMAND ARG... runs the command, which must end with that status.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// until PATTERN COMMAND ARG... runs the command again and again until its stdout
// matches.
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(brokertest.Longest)
	for {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			ts.Fatalf("stdout never matched %s; the last:\n%s", pattern, ts.ReadFile("stdout"))
		}
	}
}

var changing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b\d+[smhd] +`), "AGE"},
}

// normal writes stdout to the file normal, with what differs between two runs
// replaced by a word.
func normal(ts *testscript.TestScript, _ bool, _ []string) {
	s := ts.ReadFile("stdout")
	for _, c := range changing {
		s = c.pattern.ReplaceAllStringFunc(s, func(found string) string {
			return fmt.Sprintf("%-*s", len(found), c.word) // columns stay where they are
		})
	}
	ts.Check(os.WriteFile(ts.MkAbs("normal"), []byte(s), 0o644))
}

// text FILE BYTES writes a text of that length in several scripts.
func text(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	const piece = "任务 🚀 für "
	s := strings.Repeat(piece, n/len(piece))
	s += strings.Repeat("x", n-len(s))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(s), 0o644))
}

// no-jetstream sets URL and PORT to those of a NATS server that has no JetStream.
func noJetStream(ts *testscript.TestScript, _ bool, _ []string) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	ts.Check(err)
	srv.Start()
	ts.Defer(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		ts.Fatalf("nats-server is not ready")
	}
	u, err := url.Parse(srv.ClientURL())
	ts.Check(err)
	ts.Setenv("URL", srv.ClientURL())
	ts.Setenv("PORT", u.Port())
}

type pidsKey struct{}

// remember notes the process ids in stdout, an object with pid or pids, for gone.
// PID is the last of them.
func remember(ts *testscript.TestScript, _ bool, _ []string) {
	var told struct {
		PID  int
		PIDs []int
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &told))
	if told.PID != 0 {
		told.PIDs = append(told.PIDs, told.PID)
	}
	if len(told.PIDs) == 0 {
		ts.Fatalf("stdout tells of no process")
	}
	pids := ts.Value(pidsKey{}).(*[]int)
	*pids = append(*pids, told.PIDs...)
	ts.Setenv("PID", strconv.Itoa(told.PIDs[len(told.PIDs)-1]))
}

// gone waits until no process of those noted is left.
func gone(ts *testscript.TestScript, _ bool, _ []string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(brokertest.Longest)
	for _, pid := range *ts.Value(pidsKey{}).(*[]int) {
		for syscall.Kill(pid, 0) == nil {
			select {
			case <-tick.C:
			case <-limit:
				ts.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// logIn opens the address that a file holds as a browser does: it is shown the page, and
// may ask from then on; nobody else gets in by the same address.
func logIn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: log-in FILE")
	}
	address := strings.TrimSpace(ts.ReadFile(args[0]))
	get := func(c *http.Client, address string) (int, string) {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		ts.Check(err)
		req.Header.Set("Accept", "text/html")
		res, err := c.Do(req)
		ts.Check(err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		ts.Check(err)
		return res.StatusCode, string(body)
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	browser := &http.Client{Jar: jar}
	if status, body := get(browser, address); status != http.StatusOK || !strings.Contains(body, "/assets/page.js") {
		ts.Fatalf("%s is answered %d, %s", address, status, body)
	}
	at, err := url.Parse(address)
	ts.Check(err)
	list := at.ResolveReference(&url.URL{Path: "/team/sessions", RawQuery: "user_id=ann"}).String()
	if status, body := get(browser, list); status != http.StatusOK {
		ts.Fatalf("%s is answered %d, %s", list, status, body)
	}
	for _, refused := range []string{address, list} {
		if status, body := get(&http.Client{}, refused); status != http.StatusUnauthorized {
			ts.Fatalf("%s is answered %d, %s", refused, status, body)
		}
	}
}

// beats NAME ROLE joins the team default of the cluster in the folder, and beats as one that
// is idle until the script ends. It answers nothing.
func beats(ts *testscript.TestScript, _ bool, args []string) {
	var cluster struct{ NATS string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(".agentteam/cluster.json")), &cluster))
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := broker.Connect(ctx, broker.Options{URL: cluster.NATS, Name: "silent"})
	ts.Check(err)
	bt, err := conn.Open(ctx, team.DefaultTeam)
	ts.Check(err)
	m := team.Member{AgentID: team.AgentID(args[0]), Role: args[1], State: team.Joined, Backend: team.Pool, Incarnation: 1, PID: 1}
	_, err = roster.New(bt).Put(ctx, m)
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := uint64(1); ; n++ {
			beat, err := json.Marshal(team.Heartbeat{AgentID: m.AgentID, Incarnation: 1, N: n, State: team.Idle})
			if err == nil {
				_ = conn.NATS().Publish(subject.Heartbeat(bt.ID, m.AgentID), beat)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(roster.Interval):
			}
		}
	}()
	ts.Defer(func() {
		cancel()
		<-done
		conn.Close()
	})
}
