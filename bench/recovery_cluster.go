package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// works is a model endpoint. Whoever asks for a teammate is told to go on with the task
// that it was given last: with a command that does not end, or at once with its completion
// if the task is called so. A leader only waits.
type works struct {
	url string
	srv *http.Server

	mu    sync.Mutex
	asked map[string]time.Time // by name: when it asked last at work on a task
}

// soonDone is the title of a task that is completed at once.
const soonDone = "quick"

var (
	asksAs  = regexp.MustCompile(`You are ([a-z0-9-]+), role`)
	itsTask = regexp.MustCompile(`task id=\\"(T-[0-9]+)\\"[^>]*>\\ntitle: (\w*)`)
)

func startWorks() (*works, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &works{url: "http://" + l.Addr().String() + "/v1", asked: map[string]time.Time{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", w.complete)
	w.srv = &http.Server{Handler: mux}
	go func() { _ = w.srv.Serve(l) }() // until close
	return w, nil
}

func (w *works) close() { w.srv.Close() }

// isGone reports whether an agent was told, after its task, that it has it no more.
func isGone(after []byte) bool {
	return bytes.Contains(after, []byte("you hold no task now")) || bytes.Contains(after, []byte("was taken from you"))
}

func (w *works) complete(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has left
	}
	body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte(`\u003c`), []byte("<")), []byte(`\u003e`), []byte(">"))
	rw.Header().Set("Content-Type", "text/event-stream")
	name := "leader"
	if m := asksAs.FindSubmatch(body); m != nil {
		name = string(m[1])
	}
	tasks := itsTask.FindAllSubmatchIndex(body, -1)
	if name == "leader" || tasks == nil || isGone(body[tasks[len(tasks)-1][0]:]) {
		_, _ = rw.Write(closing("I wait."))
		return
	}
	w.mu.Lock()
	w.asked[name] = time.Now()
	w.mu.Unlock()
	last := tasks[len(tasks)-1]
	id, title := string(body[last[2]:last[3]]), string(body[last[4]:last[5]])
	call := toolCall(0, fmt.Sprintf("call_%s_%d", id, time.Now().UnixNano()), "bash", `{"command":"exec sleep 100000"}`)
	if title == soonDone {
		call = toolCall(0, "call_end_"+id, "update_task", fmt.Sprintf(`{"task_id":%q,"status":"completed","result_summary":"done"}`, id))
	}
	_, _ = rw.Write(append(event(call, ""), end("tool_calls")...))
}

// since reports when all these members had asked again after a moment.
func (w *works) since(begun time.Time, names []team.AgentID) (last time.Time, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		at := w.asked[string(name)]
		if !at.After(begun) {
			return last, false
		}
		if at.After(last) {
			last = at
		}
	}
	return last, true
}

// folder is a folder with a cluster in it, as a person has one.
type folder struct {
	dir, bin string
	works    *works
}

// recoveryLease is the lease of the teams measured, in place of the 30 s of the default: a
// lost member is waited for that long.
const recoveryLease = 5 * time.Second

func (f *folder) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	bin, err := filepath.Abs(filepath.Join(f.bin, "teamctl"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = f.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AGENTTEAM_") && !strings.HasPrefix(kv, "OPENAI_") && !strings.HasPrefix(kv, "NATS_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+f.works.url, "OPENAI_MODEL=bench", "OPENAI_API_KEY=none", "AGENTTEAM_LEASE="+recoveryLease.String())
	return cmd, nil
}

// teamctl runs a command to its end.
func (f *folder) teamctl(ctx context.Context, args ...string) error {
	cmd, err := f.command(ctx, args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("teamctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (f *folder) up(ctx context.Context) error {
	return f.teamctl(ctx, "up", "-d", "-n", fmt.Sprint(recoveryMembers))
}

// cluster reads what the cluster in the folder has left there.
func (f *folder) cluster() (config.Cluster, error) {
	c, _, err := config.FindCluster(f.dir)
	return c, err
}

// gone waits until a process has ended.
func gone(ctx context.Context, pid int) error {
	return eventually(ctx, fmt.Sprintf("process %d has not ended", pid), func() (bool, error) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return syscall.Kill(pid, 0) != nil, nil
		}
		after := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
		return bytes.HasPrefix(after, []byte("Z")), nil // its parent has yet to take notice
	})
}

// eventually waits for what nobody announces, for a minute and a half at most.
func eventually(ctx context.Context, otherwise string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		ok, err := is()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s", otherwise)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
