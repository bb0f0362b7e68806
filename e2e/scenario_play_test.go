package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// scenario is a goal of a team, from a repository that has AGENTS.md and roles for Claude Code.
type scenario struct {
	roles  map[string]string // files below .claude/agents, by their names without .md
	files  string            // a shell script that makes the rest of the repository
	script string            // of the endpoint, in the native dialect, see inDialect
	killed team.AgentID      // whose process is killed while its first subagent waits for the model
	build  string            // what it builds in the background meanwhile
	judge  func(t *testing.T, s played)
}

// played is a scenario that has been played by one team.
type played struct {
	result
	tm   *client.Team
	tap  *tap
	line string // the folder in which the line's head is checked out
}

// play plays a scenario in a team of each dialect, which begin the same way and come to the same end.
func (s scenario) play(t *testing.T) {
	t.Parallel()
	for _, dialect := range []team.Dialect{team.Native, team.Claude} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			tap := tapped(t, rehearse(t, inDialect(t, dialect, s.script)), team.DefaultTeam, string(s.killed)+".a")
			cache := t.TempDir()
			c := folder(t, tap.url, "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+cache)
			repository(t, c.dir, s.files)
			token := fmt.Sprintf("0.%d", time.Now().UnixNano())
			write(t, filepath.Join(c.dir, "killed"), s.build)
			write(t, filepath.Join(c.dir, "token"), token)
			for name, text := range s.roles {
				write(t, filepath.Join(c.dir, ".claude", "agents", name+".md"), text)
			}
			git(t, c.dir, "add", "-A")
			git(t, c.dir, "commit", "-qm", "roles")
			c.upWith(6)
			c.ok("teams", "add", string(team.DefaultTeam), "--dialect", string(dialect))
			done := c.begin("Do what the scenario asks for")

			p := played{tap: tap, line: t.TempDir()}
			select {
			case <-tap.holds:
			case <-time.After(limit):
				t.Fatalf("%s starts no subagent:\n%s", s.killed, c.ok("agents", "transcript", string(s.killed)))
			}
			var err error
			if p.tm, err = c.connect().Open(t.Context(), team.DefaultTeam); err != nil {
				t.Fatal(err)
			}
			owner, err := p.tm.Members().Get(t.Context(), s.killed)
			if err != nil {
				t.Fatal(err)
			}
			build := 0
			until(t, "its build runs", func() bool {
				build = processWith(token)
				return build != 0
			})
			if err := syscall.Kill(owner.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			gone(t, build)
			tap.release()

			if p.result = done.end(t); p.Status != "finished" {
				t.Fatalf("the goal is %s: %s%s", p.Status, p.Summary, c.ok("tasks", "-o", "wide"))
			}
			repo := lineOf(t, cache)
			git(t, p.line, "--git-dir="+repo, "--work-tree="+p.line, "checkout", "-q", "-f", "agentteam/default", "--", ".")
			log := git(t, repo, "log", "--format=%(trailers:key=Task,valueonly,separator=%x2C)", "agentteam/default")
			for _, task := range p.Tasks {
				if n := strings.Count("\n"+log+"\n", "\n"+string(task.ID)+"\n"); task.Status != team.Completed || n > 1 {
					t.Errorf("%s is %s, and %d times in the line", task.ID, task.Status, n)
				}
				for _, d := range p.of(task.Dependencies) {
					if task.ClaimedAt.Before(*d.CompletedAt) {
						t.Errorf("%s was begun at %v, before its dependency %s was completed", task.ID, task.ClaimedAt, d.ID)
					}
				}
			}
			again, err := p.tm.Members().Get(t.Context(), s.killed)
			if err != nil || again.Incarnation <= owner.Incarnation {
				t.Errorf("%s is of incarnation %d, %v", s.killed, again.Incarnation, err)
			}
			s.judge(t, p)
			for _, name := range tap.agents() {
				if !strings.Contains(tap.last(name), "RULE-OF-THE-HOUSE") {
					t.Errorf("%s was not given AGENTS.md", name)
				}
			}
		})
	}
}

// processWith is the process with that argument, in whatever namespace it is; 0 = there is none.
func processWith(argument string) (pid int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file) // of one that has ended there is nothing
		if slices.Contains(strings.Split(string(line), "\x00"), argument) {
			pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return pid
}

// of are the tasks of these ids.
func (p played) of(ids []team.TaskID) (found []team.TaskView) {
	for _, task := range p.Tasks {
		if slices.Contains(ids, task.ID) {
			found = append(found, task)
		}
	}
	return found
}

// file is a file of the line's head.
func (p played) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.line, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// sent counts the messages from one agent to another that contain text.
func (p played) sent(t *testing.T, from, to team.AgentID, text string) (n int) {
	t.Helper()
	all, err := p.tm.Mail().Inbox(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.From == from && strings.Contains(m.Content, text) {
			n++
		}
	}
	return n
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tap stands between a cluster and its model. It keeps the last request of each agent, and holds the
// first of one back.
type tap struct {
	url     string
	holds   chan struct{} // closed once that request has come
	release func()        // lets it pass, as does the end of the test

	mu   sync.Mutex
	seen map[string]string // by the agent's name
}

var introduced = regexp.MustCompile(`You are ([a-z0-9.-]+), role [a-z0-9-]+, in team ([a-z0-9-]+)\.`)

func tapped(t *testing.T, model string, of team.TeamID, agent string) *tap {
	t.Helper()
	at, err := url.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	base := at.Path
	at.Path = ""
	passes := make(chan struct{})
	tap := &tap{holds: make(chan struct{}), release: sync.OnceFunc(func() { close(passes) }), seen: map[string]string{}}
	held := sync.OnceFunc(func() { close(tap.holds); <-passes })
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // its sender has ended
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if who := introduced.FindSubmatch(body); who != nil && string(who[2]) == string(of) {
			tap.mu.Lock()
			tap.seen[string(who[1])] = string(body)
			tap.mu.Unlock()
			if strings.HasPrefix(string(who[1]), agent) {
				held()
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { tap.release(); s.Close() })
	tap.url = s.URL + base
	return tap
}

// agents are the names of those that have asked.
func (p *tap) agents() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.seen))
}

// last is the last request of an agent.
func (p *tap) last(agent string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[agent]
}

// inDialect is a script with the tools of a dialect. A rule with the key again is there twice: the
// second one is for a successor, begins with what again matches, and goes before the other.
func inDialect(t *testing.T, d team.Dialect, script string) string {
	t.Helper()
	var agents []map[string]any
	if err := yaml.Unmarshal([]byte(script), &agents); err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		var rules []any
		for _, r := range a["rules"].([]any) {
			rule := r.(map[string]any)
			if again, ok := rule["again"]; ok {
				delete(rule, "again")
				rule["unless"] = "Your process was restarted"
				name := rule["name"].(string)
				resumed := renamed(rule, `result "`+name+`"`, `result "`+name+`-again"`).(map[string]any)
				delete(resumed, "unless")
				resumed["name"], resumed["since"] = name+"-again", again
				rules = append(rules, resumed)
			}
			rules = append(rules, rule)
		}
		a["rules"] = rules
		if d == team.Claude {
			for _, r := range rules {
				inClaude(t, r.(map[string]any))
			}
		}
	}
	out, err := yaml.Marshal(map[string]any{"agents": agents})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// renamed is a copy of v in whose strings was is replaced by now.
func renamed(v any, was, now string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, was, now)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = renamed(v[i], was, now)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = renamed(v[k], was, now)
		}
		return out
	}
	return v
}

// claudes are the tools under the names of Claude Code, each with those of its arguments that differ.
var claudes = map[string]struct {
	name string
	args map[string]string
}{
	"bash":           {"Bash", nil},
	"read_file":      {"Read", map[string]string{"path": "file_path"}},
	"write_file":     {"Write", map[string]string{"path": "file_path"}},
	"grep":           {"Grep", nil},
	"create_tasks":   {"TeamFanout", map[string]string{"title": "subject", "assignee": "owner", "dependencies": "blockedBy"}},
	"update_task":    {"TaskUpdate", map[string]string{"task_id": "taskId"}},
	"get_task":       {"TaskGet", map[string]string{"task_id": "taskId"}},
	"send_message":   {"SendMessage", map[string]string{"content": "message"}},
	"spawn_teammate": {"Task", map[string]string{"role": "subagent_type", "team": "team_name"}},
	"subagent":       {"Agent", map[string]string{"type": "subagent_type"}},
	"task_output":    {"TaskOutput", nil},
	"finish_team":    {"TeamDelete", nil},
}

// inClaude gives the calls of a rule the names of Claude Code.
func inClaude(t *testing.T, rule map[string]any) {
	t.Helper()
	steps, _ := rule["steps"].([]any)
	for _, s := range steps {
		calls, _ := s.(map[string]any)["calls"].([]any)
		for _, c := range calls {
			call := c.(map[string]any)
			native := call["tool"].(string)
			to, ok := claudes[native]
			if !ok {
				t.Fatalf("no name for %s", native)
			}
			args := rekeyed(call["args"], to.args).(map[string]any)
			switch native {
			case "finish_team", "spawn_teammate":
				args["team_name"] = string(team.DefaultTeam)
			case "task_output":
				args["timeout"] = args["timeout"].(int) * 1000
			}
			call["tool"], call["args"] = to.name, args
		}
	}
}

// rekeyed is a copy of v with other keys.
func rekeyed(v any, keys map[string]string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = rekeyed(v[i], keys)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			key := k
			if to, ok := keys[k]; ok {
				key = to
			}
			out[key] = rekeyed(v[k], keys)
		}
		return out
	}
	return v
}
