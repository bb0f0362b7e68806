package worktree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// source opens the folders that it is told, and confines nothing.
type source struct{}

func (source) Open(_ context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	ws, err := workspace.Open(w.Tree.Dir, command.Plain{}, o)
	if err != nil {
		return nil, nil, err
	}
	return ws, func() { ws.Close() }, nil
}

// rig is a team on the line, whose workspace is a repository with one file of 20 lines.
type rig struct {
	*testing.T
	storage *broker.Storage
	record  team.Team
	user    string
	dir     string // of the lines of this host
	board   *board.Board
	source  workspace.Source
	level   worktree.Level
	may     worktree.May
	toStore worktree.Bound
	notify  worktree.Notify
	peers   worktree.Peers
	begin   workspace.Begin
}

func setUp(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, storage: brokertest.Team(t, "red"), user: t.TempDir(), dir: t.TempDir(), record: team.Team{ID: "red", LeaseSeconds: 10}, source: source{}}
	r.sh(r.user, "seq 20 > numbers.txt; git init -q; git add -A; git commit -qm first")
	r.board = board.New(r.storage.Bucket, board.Options{Withdraw: mergequeue.New(r.storage).Withdraw})
	r.begins()
	return r
}

func (r *rig) decide() (team.GoalBranch, error) {
	return worktree.Decide(r.Context(), r.record, r.user, func(ctx context.Context) (*mergequeue.Site, error) {
		return mergequeue.At(ctx, r.dir, r.storage, r.record)
	})
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) sh(dir, script string) string {
	r.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// mate is one incarnation of a member.
type mate struct {
	*rig
	hand *board.ClaimSlot
	line *worktree.Workspaces
	at   *workspace.Current
	w    team.Member
}

func (r *rig) mate(name team.AgentID, incarnation uint64) *mate {
	r.Helper()
	m := &mate{rig: r, w: team.Member{AgentID: name, Role: "coder", Incarnation: incarnation}}
	m.hand = board.NewClaimSlot(r.Context(), r.board, m.w.Holder())
	m.line = worktree.New(worktree.Options{Process: string(name), Team: r.storage, Record: func() team.Team { return r.record }, Member: m.w, Slot: m.hand, Source: r.source, Level: r.level, May: r.may, ToStore: r.toStore, Notify: r.notify, Peers: r.peers, Dir: r.dir})
	m.hand.OthersEnd(m.line.Merging)
	m.hand.Unfinished(m.line.Unfinished)
	m.at = workspace.Follow(m.line, func() workspace.Work {
		w := workspace.Work{Team: r.record, Member: m.w, Head: string(m.line.Head())}
		if w.Task, _ = m.hand.Task(); w.Task.ID != "" {
			w.Head = ""
		}
		return w
	}, workspace.Options{Begin: r.begin})
	r.Cleanup(m.at.Close)
	return m
}

// merges has the member take part in the queue until the test ends.
func (m *mate) merges() {
	ctx, cancel := context.WithCancel(m.Context())
	done := make(chan error, 1)
	go func() { done <- m.line.Run(ctx) }()
	m.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(m, "the member's part in the queue ends", done); err != nil {
			m.Error(err)
		}
	})
}

// add creates a task and returns its id.
func (r *rig) add(title, check string) team.TaskID {
	r.Helper()
	all, err := r.board.Create(r.Context(), team.UserAgent, team.NewTask{Title: title, Check: check})
	r.must(err)
	return all[0].ID
}

// does claims a task and runs a command in its tree.
func (m *mate) does(id team.TaskID, script string) team.Task {
	m.Helper()
	t, err := m.hand.Claim(m.Context(), id)
	m.must(err)
	m.runs(script)
	return t
}

func (m *mate) runs(script string) string {
	m.Helper()
	ws, done, err := m.at.Use(m.Context())
	m.must(err)
	defer done()
	return m.sh(ws.Dir(), script)
}

// bash runs a command as the member does, by its tool.
func (m *mate) bash(script string) {
	m.Helper()
	set, err := tool.NewSet(nil, m.at.Tools()...)
	m.must(err)
	args, err := json.Marshal(map[string]string{"command": script})
	m.must(err)
	if got := set.Run(m.Context(), tool.Call{ID: "1", Name: "bash", Arguments: string(args)}); got.IsError {
		m.Fatal(got.Content)
	}
}

func (m *mate) completes(t team.Task) (team.Task, error) {
	ctx, cancel := context.WithTimeout(m.Context(), brokertest.Longest)
	defer cancel()
	return m.line.Complete(ctx, t, team.Done{Summary: "done as told"})
}

// What two members do at the same time is in the line, once each, and in the tree of who holds no
// task; the user's files are as they were.
func TestComplete(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	a := one.does(r.add("Three", "grep -qx three numbers.txt"), "sed -i 's/^3$/three/' numbers.txt")
	b := two.does(r.add("Seventeen", ""), "sed -i 's/^17$/seventeen/' numbers.txt; echo new > new.txt")
	for m, task := range map[*mate]team.Task{one: a, two: b} {
		done, err := m.completes(task)
		r.must(err)
		if done.Status != team.Completed || len(done.Commit) != 40 {
			t.Errorf("it is %s, commit %q", done.Status, done.Commit)
		}
		if held, ok := m.hand.Task(); ok {
			t.Errorf("the hand still holds %s", held.ID)
		}
	}
	if got := one.runs("cat numbers.txt new.txt | tr '\\n' ' '"); got != "1 2 three 4 5 6 7 8 9 10 11 12 13 14 15 16 seventeen 18 19 20 new" {
		t.Errorf("without a task the member sees %s", got)
	}
	if got := r.sh(r.user, "git status --porcelain; git log --oneline | wc -l; cat numbers.txt | head -3 | tail -1"); got != "1\n3" {
		t.Errorf("the user's checkout: %s", got)
	}
	for _, m := range []*mate{one, two} {
		m.at.Close()
		r.must(m.line.Leave(r.Context(), false))
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "*", "trees", "*")); err != nil || len(left) > 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// A task that has changed nothing is completed without the queue.
func TestCompleteNothing(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1) // nobody merges
	done, err := m.completes(m.does(r.add("Look", ""), "true"))
	if err != nil || done.Status != team.Completed || done.Commit != "" {
		t.Errorf("it is %s, commit %q, %v", done.Status, done.Commit, err)
	}
}

// What git cannot store, or no task may bring in, is refused before it is submitted: its holder still has the task and its files, and nothing waits.
func TestRefusedBeforeTheQueue(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		code   team.Code
	}{
		"a repository without a commit": {"git init -q nested", team.InvalidState},
		"a repository":                  {"git init -q nested; git -C nested -c user.name=x -c user.email=x commit -q --allow-empty -m x", team.InvalidArgument},
		"a link out of the tree":        {"ln -s /etc/passwd nested", team.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setUp(t)
			m := r.mate("coder-1", 1)
			m.merges()
			task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt; "+tt.script)
			_, err := m.completes(task)
			if !errors.Is(err, tt.code) || !strings.Contains(err.Error(), "nested") || strings.Contains(team.Line(err), "\n") {
				t.Errorf("it is refused with %v", err)
			}
			if waiting, err := mergequeue.New(r.storage).Waiting(t.Context()); err != nil || len(waiting) > 0 || len(r.stored()) > 0 {
				t.Errorf("there wait %+v, stored are %q, %v", waiting, r.stored(), err)
			}
			if held, ok := m.hand.Task(); !ok || held.Epoch != task.Epoch {
				t.Errorf("it holds %q under epoch %d", held.ID, held.Epoch)
			}
			m.bash("rm -rf nested")
			done, err := m.completes(task)
			if err != nil || done.Status != team.Completed || done.Commit == "" {
				t.Errorf("without that it is %s, %v", done.Status, err)
			}
		})
	}
}

// Work that conflicts is put back with both differences, which is an attempt only the third time.
func TestConflict(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "")
	for n := range 3 {
		mine := two.does(id, "sed -i '/^[<=>]/d; s/^3.*$/mine/' numbers.txt")
		theirs := one.does(r.add("Theirs", ""), "sed -i 's/^3.*$/3 theirs "+string(rune('a'+n))+"/' numbers.txt")
		_, err := one.completes(theirs)
		r.must(err)
		back, err := two.completes(mine)
		if !errors.Is(err, team.InvalidState) {
			t.Fatalf("it is %s: %v", back.Status, err)
		}
		for _, want := range []string{"conflicts with the line in numbers.txt", "+mine", "+3 theirs", "coder-1"} {
			if !strings.Contains(back.Reason, want) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in the reason, or not in the error:\n%s\n%v", want, back.Reason, err)
			}
		}
		attempts := 0
		if n == 2 {
			attempts = 1
		}
		if back.Status != team.Pending || back.Attempts != attempts || back.Unmerged != n+1 || !back.HasDeclined("coder-1") || back.Declined[len(back.Declined)-1].By != "coder-2" || back.ReservedFor != "" {
			t.Errorf("try %d: it is %s after %d attempts, unmerged %d, declined by %v", n+1, back.Status, back.Attempts, back.Unmerged, back.Declined)
		}
	}
}

// From the stored bundle on the holder's death does not free the task: its successor waits until
// a queue has completed it.
func TestHolderDies(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	ctx, kill := context.WithCancel(r.Context())
	submitted := make(chan error, 1)
	go func() {
		_, err := m.line.Complete(ctx, task, team.Done{Summary: "done"})
		submitted <- err
	}()
	r.until(func() bool {
		merging, err := m.line.Merging(r.Context(), task)
		return err == nil && merging
	})
	kill()
	if err := brokertest.Receive(t, "the call ends", submitted); !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ended with %v", err)
	}
	next := r.mate("coder-1", 2)
	r.must(next.hand.PutBack(r.Context(), "its journal cannot be read"))
	if t, err := r.board.Get(r.Context(), task.ID); err != nil || t.Status != team.InProgress || t.Epoch != task.Epoch {
		r.Errorf("with a journal that cannot be read it is %s under epoch %d, %v", t.Status, t.Epoch, err)
	}
	settled := make(chan error, 1)
	go func() { settled <- next.line.Settle(r.Context()) }()
	r.mate("coder-2", 1).merges()
	r.must(brokertest.Receive(r, "the successor has settled it", settled))
	if adopted, ok, err := next.hand.Adopt(r.Context(), ""); ok || err != nil {
		t.Errorf("adopted %s, %v", adopted.ID, err)
	}
	if done, err := r.board.Get(r.Context(), task.ID); err != nil || done.Status != team.Completed || done.Epoch != task.Epoch || done.Commit == "" {
		t.Errorf("it is %s under epoch %d, commit %q, %v", done.Status, done.Epoch, done.Commit, err)
	}
}

// A holder that is killed after its bundle is stored and before that is in the queue has submitted nothing: its successor takes the task
// over, and its work is in the line once.
func TestHolderDiesBeforeItSubmits(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	if _, err := r.storage.Files.Put(t.Context(), subject.MergeBundle(task.ID, task.Epoch), strings.NewReader("bundle")); err != nil {
		t.Fatal(err)
	}
	m.at.Close()
	next := r.mate("coder-1", 2)
	next.merges()
	r.must(next.line.Settle(t.Context()))
	held, ok, err := next.hand.Adopt(t.Context(), task.ID)
	if !ok || err != nil || held.ID != task.ID || held.Epoch == task.Epoch {
		t.Fatalf("it takes over %s under epoch %d, %v", held.ID, held.Epoch, err)
	}
	next.runs("true") // its tree
	done, err := next.completes(held)
	if err != nil || done.Status != team.Completed || done.Commit == "" {
		t.Errorf("it is %s, commit %q, %v", done.Status, done.Commit, err)
	}
	if log := r.sh(r.dir, "git --git-dir */line.git log --format='%(trailers:key=Task,valueonly)' agentteam/red"); strings.Count(log, "T-001") != 1 {
		t.Errorf("the line has %s", log)
	}
	leader := r.mate("leader", 1)
	r.must(leader.line.Sweep(t.Context()))
	if stored := r.stored(); len(stored) > 0 {
		t.Errorf("there is still %q", stored)
	}
}

func (r *rig) until(ok func() bool) {
	r.Helper()
	brokertest.Until(r, "what this line waits for", ok)
}

// A call that is interrupted while the work waits to be merged can be repeated; what was written in
// between would be in no commit, so it is refused.
func TestInterruptedCompletion(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	set, err := tool.NewSet(nil, m.at.Tools()...)
	r.must(err)
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	ctx, interrupt := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := m.line.Complete(ctx, task, team.Done{Summary: "done"})
		result <- err
	}()
	r.until(func() bool {
		merging, err := m.line.Merging(t.Context(), task)
		return err == nil && merging
	})
	interrupt()
	if err := brokertest.Receive(t, "the call ends", result); !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ended with %v", err)
	}
	got := set.Run(t.Context(), tool.Call{ID: "1", Name: "write_file", Arguments: `{"path":"x.txt","content":"x"}`})
	if got.Code != team.InvalidState || !strings.Contains(got.Content, "wait to be merged") {
		t.Errorf("write_file: %s", got.Content)
	}
	got = set.Run(t.Context(), tool.Call{ID: "2", Name: "bash", Arguments: `{"command":"touch x.txt"}`})
	if got.Code != team.InvalidState || !strings.Contains(got.Content, "wait to be merged") {
		t.Errorf("bash: %s", got.Content)
	}
	m.merges()
	done, err := m.completes(task)
	if err != nil || done.Status != team.Completed {
		t.Errorf("it is %s, %v", done.Status, err)
	}
}

// Who withdraws the work and is killed before it puts the task back leaves no holder waiting.
func TestWithdrawnAndKilled(t *testing.T) {
	t.Parallel()
	r := setUp(t)
	m := r.mate("coder-1", 1)
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	result := make(chan error, 1)
	go func() {
		_, err := m.completes(task)
		result <- err
	}()
	r.until(func() bool {
		merging, err := m.line.Merging(t.Context(), task)
		return err == nil && merging
	})
	r.must(mergequeue.New(r.storage).Withdraw(t.Context(), task.ID, task.Epoch))
	if err := brokertest.Receive(t, "its holder hears of it", result); !errors.Is(err, team.Conflict) || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("its holder is told %v", err)
	}
	back, err := m.hand.GiveBack(t.Context(), task.ID, team.GiveBack{Freed: team.Freed{Reason: "withdrawn"}})
	if err != nil || back.Status != team.Pending {
		t.Errorf("given back it is %s, %v", back.Status, err)
	}
}

// Who releases or cancels a task takes its work out of the queue first.
func TestReleasedWhileItWaits(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	result := make(chan error, 1)
	go func() {
		_, err := m.completes(task)
		result <- err
	}()
	r.until(func() bool {
		merging, err := m.line.Merging(r.Context(), task)
		return err == nil && merging
	})
	_, err := r.board.Cancel(r.Context(), task.ID, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, "not wanted")
	r.must(err)
	if err := brokertest.Receive(t, "its holder hears of it", result); !errors.Is(err, team.Conflict) || !strings.Contains(err.Error(), "not wanted") {
		t.Errorf("its holder is told %v", err)
	}
	other := r.mate("coder-2", 1)
	other.merges()
	_, err = other.completes(other.does(r.add("Four", ""), "sed -i 's/^4$/four/' numbers.txt"))
	r.must(err)
	if got := other.runs("head -4 numbers.txt | tr '\\n' ' '"); got != "1 2 3 four" {
		t.Errorf("the line has %s", got)
	}
}

// A task is cancelled in the middle of its merge: its work stays out of the line.
func TestCancelledWhileItIsMerged(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	at := filepath.Join(t.TempDir(), "at")
	task := one.does(r.add("Three", "touch "+at+"; until test -f "+at+".go; do sleep 0.01; done"), "sed -i 's/^3$/three/' numbers.txt")
	two.merges()
	_, err := two.completes(two.does(r.add("Seventeen", ""), "sed -i 's/^17$/seventeen/' numbers.txt"))
	r.must(err) // so that the check of the other is run again
	result := make(chan error, 1)
	go func() {
		_, err := one.completes(task)
		result <- err
	}()
	r.until(func() bool { _, err := os.Stat(at); return err == nil })
	_, err = r.board.Cancel(t.Context(), task.ID, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, "not wanted")
	r.must(err)
	r.sh(r.dir, "touch "+at+".go")
	if err := brokertest.Receive(t, "its holder hears of it", result); !errors.Is(err, team.Conflict) {
		t.Errorf("its holder is told %v", err)
	}
	_, err = two.completes(two.does(r.add("Four", ""), "sed -i 's/^4$/four/' numbers.txt"))
	r.must(err)
	if got := two.runs("sed -n 3,4p numbers.txt"); got != "3\nfour" {
		t.Errorf("the line has %s", got)
	}
}

// Who holds no task is told to claim one before it writes, and sees the line as it is.
func TestWithoutTask(t *testing.T) {
	r := setUp(t)
	m := r.mate("leader", 1)
	set, err := tool.NewSet(nil, m.at.Tools()...)
	r.must(err)
	got := set.Run(t.Context(), tool.Call{ID: "1", Name: "write_file", Arguments: `{"path":"x.txt","content":"x"}`})
	if got.Code != team.InvalidState || !strings.Contains(got.Content, "claim a task, or create one for yourself") {
		t.Errorf("write_file: %s", got.Content)
	}
	if got := m.runs("head -1 numbers.txt; ls"); got != "1\nnumbers.txt" {
		t.Errorf("it sees %s", got)
	}
	r.record.Policies.Create = team.CreateLeader
	for name, want := range map[team.AgentID]string{team.Leader: "or create one", "coder-1": "ask the leader for one"} {
		set, err := tool.NewSet(nil, r.mate(name, 2).at.Tools()...)
		r.must(err)
		if got := set.Run(t.Context(), tool.Call{ID: "1", Name: "write_file", Arguments: `{"path":"x.txt","content":"x"}`}); !strings.Contains(got.Content, want) {
			t.Errorf("%s reads %s", name, got.Content)
		}
	}
}

// The workspace decides, unless the team wishes for one kind.
func TestDecide(t *testing.T) {
	const old, none = "echo git version 2.37.9", "" // in place of git
	for name, tt := range map[string]struct {
		script string
		wish   team.Isolation
		why    string // members share the workspace; "" = they do not
		fails  string
		git    *string
	}{
		"a repository":               {},
		"shared is wished for":       {wish: team.Shared, why: "isolation is set to shared"},
		"no repository":              {script: "rm -rf .git", why: "no git repository"},
		"no commit":                  {script: "rm -rf .git; git init -q", wish: team.IsolationAuto, why: "no commit"},
		"no git":                     {git: new(none), why: "there is no git here"},
		"an old git":                 {git: new(old), why: "git version 2.37.9 is too old"},
		"worktrees, no repository":   {script: "rm -rf .git", wish: team.Worktrees, fails: "is in no git repository"},
		"worktrees, no commit":       {script: "rm -rf .git; git init -q", wish: team.Worktrees, fails: "no commit"},
		"worktrees, no git":          {wish: team.Worktrees, git: new(none), fails: "there is no git here"},
		"worktrees, an old git":      {wish: team.Worktrees, git: new(old), fails: "git version 2.37.9 is too old"},
		"worktrees that can be made": {wish: team.Worktrees},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			before := r.sh(r.dir, "find . | sort")
			r.sh(r.user, tt.script+"\ntrue")
			r.record = team.Team{ID: "red", Policy: team.Policy{Isolation: tt.wish}}
			path := os.Getenv("PATH")
			if tt.git != nil {
				bin := t.TempDir()
				if *tt.git != none {
					r.must(os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n"+*tt.git+"\n"), 0o755))
				}
				t.Setenv("PATH", bin)
			}
			got, err := r.decide()
			t.Setenv("PATH", path)
			if (tt.why != "" || tt.fails != "") && r.sh(r.dir, "find . | sort") != before {
				t.Errorf("something was made: %s", r.sh(r.dir, "find . | sort"))
			}
			switch {
			case strings.Contains(got.Why, "\n") || err != nil && strings.Contains(team.Line(err), "\n"):
				t.Errorf("more than one line: %+v, %v", got, err)
			case tt.fails != "":
				if !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "isolation: worktree cannot be had in "+r.user+": ") || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v", err)
				}
			case err != nil:
				t.Error(err)
			case (tt.why == "") != (got.Why == "") || !strings.Contains(got.Why, tt.why) || got.Goal != 1:
				t.Errorf("decided %+v", got)
			}
		})
	}
}

// A next goal begins at the checkout's HEAD, with what was not landed; what does not go together
// with it is told before anything starts.
func TestNextGoal(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	m.merges()
	_, err := m.completes(m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt"))
	r.must(err)
	r.sh(r.user, "sed -i 's/^17$/seventeen/' numbers.txt; git commit -qam second")
	r.record.Goal = ""
	next, err := r.decide()
	if err != nil || next.Goal != 2 {
		t.Fatalf("decided %+v, %v", next, err)
	}
	r.record.Goal, r.record.GoalNumber, r.record.Branch = "more", 2, &next
	if got := r.mate("coder-2", 1).runs("grep e numbers.txt | tr '\\n' ' '"); got != "three seventeen" {
		t.Errorf("the next goal begins with %s", got)
	}
	r.sh(r.user, "sed -i 's/^3$/drei/' numbers.txt; git commit -qam third")
	r.record.Goal = ""
	if _, err := r.decide(); !errors.Is(err, team.Conflict) || !strings.Contains(err.Error(), "numbers.txt") {
		t.Errorf("a conflict with the checkout: %v", err)
	}
}

// A check that fails only on the merged files is an attempt from the third time on, too.
func TestCheckFailsOnMergedFiles(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "test $(cat mine.txt) = $(cat theirs.txt || echo none)")
	for n := range 3 {
		mine := two.does(id, "(cat theirs.txt || echo none) > mine.txt")
		_, err := one.completes(one.does(r.add("Theirs", ""), fmt.Sprintf("echo %d > theirs.txt", n)))
		r.must(err)
		back, err := two.completes(mine)
		attempts := 0
		if n == 2 {
			attempts = 1
		}
		if !errors.Is(err, team.InvalidState) || back.Status != team.Pending || back.Attempts != attempts || back.Unmerged != n+1 {
			t.Errorf("try %d: it is %s after %d attempts, unmerged %d: %v", n+1, back.Status, back.Attempts, back.Unmerged, err)
		}
		if !strings.Contains(back.Reason, "the check of "+string(id)+" (Mine) fails on the merged files") {
			t.Errorf("its reason is %q", back.Reason)
		}
	}
}
