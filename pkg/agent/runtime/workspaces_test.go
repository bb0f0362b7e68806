package runtime

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// trees is a source that gives each task a folder of its own, and a runner that notes where
// commands run.
type trees struct {
	dir string

	mu               sync.Mutex
	opened, released []team.TaskID
	ran              []string // names of folders
}

func (s *trees) Open(_ context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.dir, "tree-"+string(w.Task.ID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	ws, err := workspace.Open(dir, s, o)
	if err != nil {
		return nil, nil, err
	}
	s.opened = append(s.opened, w.Task.ID)
	return ws, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.released = append(s.released, w.Task.ID)
		ws.Close()
	}, nil
}

func (s *trees) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	s.mu.Lock()
	s.ran = append(s.ran, filepath.Base(c.Dir))
	s.mu.Unlock()
	return command.Plain{}.Run(ctx, c)
}

// A member that claims two tasks, one after the other, works in the folder of each: its file
// tools, its commands and the check. Both folders are released, the first one before the end.
func TestEachTaskHasItsFolder(t *testing.T) {
	s := &trees{dir: t.TempDir()}
	r := newRigIn(t, s.dir, s)
	work := func(title string) {
		t.Helper()
		tasks, err := r.board.Create(t.Context(), team.Leader, team.NewTask{Title: title, Check: "grep -q " + title + " notes && test $(cat where) = $(pwd)", DeliverableReq: true})
		if err != nil {
			t.Fatal(err)
		}
		task := tasks[0]
		r.assign(task.ID) // once the member has completed the one before
		r.model.next(t)
		r.model.calls("write_file", `{"path":"notes","content":"`+title+`"}`, "bash", `{"command":"pwd > where; mkdir -p deliverables; cp notes `+task.DeliverablePath+`"}`)
		r.model.next(t)
		r.model.calls("update_task", `{"task_id":"`+string(task.ID)+`","status":"completed","result_summary":"done"}`)
	}
	work("first")
	work("second")
	r.assign(r.add("third")[0])
	r.model.next(t) // its tree is looked at first
	for id, title := range map[team.TaskID]string{"T-001": "first", "T-002": "second"} {
		if task, err := r.board.Get(t.Context(), id); err != nil || task.Status != team.Completed || task.Digest == "" {
			t.Errorf("%s is %s, %v", id, task.Status, err)
		}
		dir := filepath.Join(s.dir, "tree-"+string(id))
		for name, want := range map[string]string{"notes": title, "where": dir + "\n"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s of %s is %q, want %q: %v", name, id, got, want, err)
			}
		}
	}

	want := []team.TaskID{"", "T-001", "T-002", "T-003"}
	s.mu.Lock()
	if !slices.Equal(s.opened, want) || !slices.Equal(s.released, want[:3]) {
		t.Errorf("opened %q, released %q at work", s.opened, s.released)
	}
	// The first is the look at the repository, if there is one.
	if want := []string{"tree-", "tree-T-001", "tree-T-001", "tree-T-002", "tree-T-002"}; !slices.Equal(s.ran, want) {
		t.Errorf("commands ran in %q, want %q", s.ran, want)
	}
	s.mu.Unlock()
	r.end()
	if !slices.Equal(s.released, want) {
		t.Errorf("released %q, want %q", s.released, want)
	}
}

// slow is a source that opens nothing until it may.
type slow struct {
	workspace.Source
	may chan struct{}
}

func (s slow) Open(ctx context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	select {
	case <-s.may:
		return s.Source.Open(ctx, w, o)
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// While its folder is made, which takes long for a large repository, a member beats and answers: who has spawned it waits for that.
func TestBeatsWhileItOpens(t *testing.T) {
	dir, may := t.TempDir(), make(chan struct{})
	r := newRigIn(t, dir, slow{workspace.Shared{Dir: dir, Runner: command.Plain{}}, may})
	beats := make(chan team.Heartbeat, 1)
	stop, err := roster.New(r.bt).Listen("coder-1", func(b team.Heartbeat) {
		select {
		case beats <- b:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if b := brokertest.Receive(t, "the member beats", beats); b.State != team.Running || b.Incarnation != 1 {
		t.Errorf("it beats %+v", b)
	}
	if _, err := control.Ping(t.Context(), r.bt, "coder-1", wait); err != nil {
		t.Error(err)
	}
	close(may)
	task := r.assign(r.add("Count")[0])
	if got := r.model.next(t); !strings.Contains(got, string(task.ID)) {
		t.Errorf("the model is asked\n%s", got)
	}
}
