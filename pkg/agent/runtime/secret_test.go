package runtime

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/model"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// keeping is the level at which this program is a member's process, if it is started once more.
const keeping = "MEMBERSHIP_TEST_LEVEL"

func TestMain(m *testing.M) {
	if level := os.Getenv(keeping); level != "" {
		keep(team.Sandbox(level), os.Args[1])
		return
	}
	os.Exit(m.Run())
}

// pries is a model that looks for secrets by all tools, once, and prints what it is told.
type pries struct {
	calls []model.ToolCall
	done  context.CancelFunc
}

func (p *pries) Complete(_ context.Context, r model.Request, _ func(string)) (model.Reply, error) {
	must(r.Ready())
	reply := model.Reply{Message: model.Message{Role: "assistant", ToolCalls: p.calls}}
	if p.calls = nil; reply.Message.ToolCalls == nil {
		for _, m := range r.Messages {
			fmt.Println(m.Role + ": " + m.Content)
		}
		reply.Message.Content = "found nothing"
		p.done()
	}
	return reply, nil
}

func (p *pries) Limits(string) model.Limits { return model.Limits{} }

func (p *pries) Meant(name string) (string, string) { return name, "" }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// lookups are calls that look for a secret. What only a sandbox keeps a command from comes last.
func lookups(confined bool) (calls []model.ToolCall) {
	commands := []string{"env", "set", "export -p", "cat /proc/self/environ", "cat notes", "find . -type f -name '[!.]*' -exec cat {} +"}
	if confined {
		commands = append(commands, "cat /proc/$PPID/environ /proc/[0-9]*/environ", "cat /proc/[0-9]*/cmdline", "cat .agentteam/token .agentteam/*", "find / -maxdepth 4 -name token -exec cat {} + 2>/dev/null", "cat ~/.* /run/* /tmp/*")
	}
	add := func(tool string, args map[string]any) {
		data, err := json.Marshal(args)
		must(err)
		calls = append(calls, model.ToolCall{ID: fmt.Sprint("pries-", len(calls)), Name: tool, Arguments: string(data)})
	}
	for _, c := range commands {
		add("bash", map[string]any{"command": c})
	}
	for _, path := range []string{".agentteam/token", "./x/../.agentteam/token", "link/token", "/proc/self/environ", "/proc/self/cwd/.agentteam/token", ".agentteam"} {
		add("read_file", map[string]any{"path": path})
		add("grep", map[string]any{"pattern": "canary", "path": path})
	}
	add("grep", map[string]any{"pattern": "canary"})
	add("glob", map[string]any{"pattern": "**/token"})
	add("read_mail", map[string]any{})
	add("list_teammates", map[string]any{})
	return calls
}

// keep is a member's process: its environment holds what its commands must not see.
func keep(level team.Sandbox, dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := broker.Connect(ctx, broker.Options{URL: os.Getenv("NATS_URL")})
	must(err)
	defer conn.Close()
	bt, err := conn.Open(ctx, "t")
	must(err)
	me, err := roster.New(bt).Get(ctx, "coder-1")
	must(err)
	found, err := sandbox.Find(ctx, level)
	must(err)
	work := filepath.Join(dir, "work")
	runner, err := found.Runner(sandbox.Box{Dir: work, Home: filepath.Join(dir, "home"), Hidden: []string{filepath.Join(work, ".agentteam")}})
	must(err)
	var plain bytes.Buffer
	_, err = command.Plain{}.Run(ctx, command.Command{Args: []string{"cat", fmt.Sprintf("/proc/%d/environ", os.Getpid())}, Dir: dir, Output: &plain})
	must(err)
	fmt.Println("without a sandbox it is seen:", strings.Contains(plain.String(), os.Getenv("OPENAI_API_KEY")))

	reg := prometheus.NewRegistry()
	running, end := context.WithCancel(ctx)
	must(Run(running, Options{Process: "p", Team: bt, Record: team.Team{ID: "t", LeaseSeconds: 60}, Member: me, Role: team.Role{Name: "coder"},
		Model: &pries{lookups(level != team.Unconfined), end}, ModelChanged: func() <-chan struct{} { return nil }, Workspaces: workspace.Shared{Dir: work, Runner: runner},
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: reg}))
	families, err := reg.Gather()
	must(err)
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(os.Stdout, f)
		must(err)
	}
}

// No tool shows what a member's process knows to the model, and nothing that is stored, logged or
// measured has it: the key of the model, the token of the API, the password in the address of NATS.
func TestSecretsAreKept(t *testing.T) {
	t.Parallel()
	for _, level := range []team.Sandbox{team.Unconfined, team.Confined, team.Bubblewrap} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			_, err := sandbox.Find(t.Context(), level)
			testenv.Need(t, err)
			secrets(t, level)
		})
	}
}

func secrets(t *testing.T, level team.Sandbox) {
	url := brokertest.Server(t)
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	members := roster.New(bt)
	if _, err = members.Put(t.Context(), team.Member{AgentID: "coder-1", Role: "coder", Backend: team.Exec, State: team.Joined, Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mailbox.New(bt, mailbox.Options{Members: members}).Send(t.Context(), team.Message{Type: team.MsgUser, From: team.UserAgent, To: "coder-1", Content: "Look around."}); err != nil {
		t.Fatal(err)
	}
	canary := rand.Text()
	dir := t.TempDir()
	store := filepath.Join(dir, "cluster") // where commands of a member do not get
	for _, step := range []error{
		os.MkdirAll(filepath.Join(dir, "work"), 0o755), os.MkdirAll(store, 0o700), os.WriteFile(filepath.Join(store, "token"), []byte("canary-"+canary), 0o600),
		os.Symlink(store, filepath.Join(dir, "work", ".agentteam")), os.Symlink(".agentteam", filepath.Join(dir, "work", "link")),
		os.WriteFile(filepath.Join(dir, "work", "notes"), []byte("canary birds"), 0o644),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var output, log bytes.Buffer
	process := exec.CommandContext(t.Context(), self, dir)
	process.Stdout, process.Stderr, process.WaitDelay = &output, &log, time.Minute
	process.Env = append(command.Environ(os.Environ()), keeping+"="+string(level), "OPENAI_API_KEY=canary-"+canary, "AGENTTEAM_API_TOKEN=canary-"+canary,
		"NATS_URL="+strings.Replace(url, "://", "://user:canary-"+canary+"@", 1), "LC_CANARY=canary-"+canary)
	if err := process.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output.String(), log.String())
	}
	if !strings.Contains(output.String(), "without a sandbox it is seen: true") || !strings.Contains(output.String(), "canary birds") || !strings.Contains(output.String(), "agentteam_tool") {
		t.Errorf("the process has not looked around:\n%s", output.String())
	}
	entries, err := audit.Read(t.Context(), bt, audit.Query{})
	if err != nil || len(entries) != len(lookups(level != team.Unconfined)) {
		t.Errorf("the audit has %d calls, %v", len(entries), err)
	}
	told, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"results and metrics": output.String(), "log": log.String(), "audit": string(told), "storage": allStored(t, bt)} {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s: ...%s", where, text[max(0, i-300):i+len(canary)])
		}
	}
}

// allStored is all that the team has stored.
func allStored(t *testing.T, bt *broker.Storage) string {
	t.Helper()
	var b strings.Builder
	for _, s := range []*broker.Stream{bt.Messages, bt.Events, bt.Logs, bt.Bucket.Stream} {
		if err := s.Read(t.Context(), 1, func(m broker.Msg) error { b.Write(m.Data); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	names, err := bt.Files.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := bt.Files.Open(t.Context(), name)
		if err == nil {
			_, err = io.Copy(&b, f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
