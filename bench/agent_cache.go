package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/model/tokens"
)

// cachedShareGoal is how many in 100 tokens of a goal's requests an endpoint should find in its cache.
const cachedShareGoal = 92

// prefixCache stands before an endpoint and counts as one does that caches prompts by their beginning: of each request the
// tokens that stood at the beginning of any earlier one, in steps of cacheStep and not fewer than leastCached.
type prefixCache struct {
	to string

	mu           sync.Mutex
	seen         [][]byte
	sent, cached int
}

// As OpenAI counts (platform.openai.com/docs/guides/prompt-caching).
const (
	leastCached = 1024
	cacheStep   = 128
)

func (c *prefixCache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has left
	}
	if r.Method == http.MethodPost {
		c.count(body)
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, c.to+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	req.Header = r.Header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // what is cut the caller sees
}

// count takes in a request. A prompt is tools, system message and messages, in this order.
func (c *prefixCache) count(body []byte) {
	var req struct{ Tools, Messages json.RawMessage }
	if json.Unmarshal(body, &req) != nil {
		return
	}
	prompt := append(req.Tools, req.Messages...)
	c.mu.Lock()
	defer c.mu.Unlock()
	common := 0
	for _, was := range c.seen {
		n := 0
		for n < min(len(was), len(prompt)) && was[n] == prompt[n] {
			n++
		}
		common = max(common, n)
	}
	c.seen = append(c.seen, prompt)
	c.sent += tokens.Count(string(prompt))
	if n := tokens.Count(string(prompt[:common])) / cacheStep * cacheStep; n >= leastCached {
		c.cached += n
	}
}

// The goal of which cachedShare asks: as long as the tasks of people's goals are.
const (
	goalMembers = 3
	goalTasks   = 9
	goalReads   = 20 // files that are read for a task, one a turn
)

// readers is the script of that goal.
func readers() string {
	var b strings.Builder
	b.WriteString(`agents:
- match: {role: leader}
  rules:
  - name: plan
    since: '<mail from="user"'
    steps:
    - calls:
`)
	for range goalMembers {
		b.WriteString("      - {tool: spawn_teammate, args: {role: coder}}\n")
	}
	b.WriteString("      - tool: create_tasks\n        args:\n          tasks:\n")
	for i := range goalTasks {
		fmt.Fprintf(&b, "          - {key: part%[1]d, title: Read part %[1]d, description: Read all the files and tell what stands in them.}\n", i)
	}
	b.WriteString(`  - name: finish
    since: '\[All Idle\]'
    steps:
    - calls: [{tool: finish_team, args: {summary: all is read}}]
  - {name: wait, say: I wait.}
- match: {role: coder}
  rules:
  - name: read
    since: '<task id="(?P<id>[^"]+)"'
    steps:
`)
	for i := range goalReads {
		fmt.Fprintf(&b, "    - calls: [{tool: read_file, args: {path: %q}}]\n", pieceFile(i))
	}
	b.WriteString(`    - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: read}}]
  - {name: wait, say: I wait.}
`)
	return b.String()
}

func pieceFile(i int) string { return fmt.Sprintf("%d.txt", i) }

// cachedShare is how much of a goal's requests, over leader and members, an endpoint finds in its cache.
func cachedShare(ctx context.Context, b *agentRig, _ agentScale) ([]figure, error) {
	progress("cache: a goal of %d tasks, %d members", goalTasks, goalMembers)
	dir, err := os.MkdirTemp(b.rig.dir, "goal-*")
	if err != nil {
		return nil, err
	}
	for i := range goalReads {
		text := strings.Repeat(fmt.Sprintf("%04d is what this line is about, and the next one.\n", i), pieceBytes/50)
		if err := os.WriteFile(filepath.Join(dir, pieceFile(i)), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	script, err := rehearsal.Parse("readers", []byte(readers()))
	if err != nil {
		return nil, err
	}
	endpoint, err := rehearsal.Listen("127.0.0.1:0", script, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	playing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- endpoint.Run(playing) }()
	defer func() { stop(); <-ended }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	cache := &prefixCache{to: strings.TrimSuffix(endpoint.URL(), "/v1")}
	srv := &http.Server{Handler: cache}
	go func() { _ = srv.Serve(l) }() // until it is closed
	defer srv.Close()
	bin, err := filepath.Abs(filepath.Join(b.rig.bin, "teamctl"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, "run", "Read all the files.")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL=http://"+l.Addr().String()+"/v1", "OPENAI_MODEL=rehearsal", "OPENAI_API_KEY=none", "AGENTTEAM_ISOLATION=shared")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("teamctl run: %w\n%s", err, out)
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	progress("cache: %d requests, %d tokens", len(cache.seen), cache.sent)
	return []figure{measured("cached_share", 100*float64(cache.cached)/float64(cache.sent), "%").atLeast(cachedShareGoal)}, nil
}
