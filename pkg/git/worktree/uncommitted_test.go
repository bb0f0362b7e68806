package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// notices has a member note what it is notified of, the newest last.
func (r *rig) notices() *[]string {
	var all []string
	r.notify = func(_ context.Context, _ team.AgentID, _, text string) error {
		all = append(all, text)
		return nil
	}
	return &all
}

var picked = regexp.MustCompile("`(git cherry-pick --no-commit [0-9a-f]{40})`")

// What commands change without a task is not in the line. Before it goes out of the member's sight, since
// the line moves, it claims a task, or it leaves, it is kept and the member is notified; the command in
// the notice brings it into the tree of a task.
func TestChangedWithoutTask(t *testing.T) {
	for name, gone := range map[string]func(*rig, *mate){
		"the line moves": func(r *rig, m *mate) {
			other := r.mate("coder-2", 1)
			other.merges()
			merged, err := other.completes(other.does(r.add("Seventeen", ""), "sed -i 's/^17$/seventeen/' numbers.txt"))
			r.must(err)
			r.until(func() bool { return string(m.line.Head()) == merged.Commit })
			m.runs("true")
		},
		"it claims a task": func(r *rig, m *mate) {
			_, err := m.hand.Claim(t.Context(), r.add("Other", ""))
			r.must(err)
			m.runs("true")
			_, err = m.hand.GiveBack(t.Context(), "T-001", team.GiveBack{Freed: team.Freed{Reason: "only to look"}})
			r.must(err)
		},
		"its goal ends": func(r *rig, m *mate) { m.line.Uncommitted(t.Context()) },
		"it leaves": func(r *rig, m *mate) {
			m.line.Uncommitted(t.Context())
			m.at.Close()
			r.must(m.line.Leave(t.Context(), true))
		},
		"it is lost, and another process follows": func(r *rig, m *mate) { follows(r, m, team.Lost) },
		"it is brought back":                      func(r *rig, m *mate) { follows(r, m, team.Created) },
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			notices := r.notices()
			m := r.mate("leader", 1)
			m.merges()
			m.bash("sed -i 's/^3$/three/' numbers.txt; echo new > new.txt")
			if len(*notices) > 0 {
				t.Fatalf("too early: %q", *notices)
			}
			gone(r, m)
			at := len(*notices)
			m.line.Uncommitted(t.Context()) // there is nothing more
			if at != 1 || len(*notices) != 1 || !strings.Contains((*notices)[0], "without a task: new.txt, numbers.txt.") {
				t.Fatalf("notices: %q", *notices)
			}
			if got := m.runs("sed -n 3p numbers.txt; ls"); got != "3\nnumbers.txt" {
				t.Errorf("without a task it sees %q", got)
			}
			host, err := os.Hostname()
			r.must(err)
			if pins := r.pins(r.dir); !strings.Contains(pins, "refs/agentteam/pins/unmerged/leader/") || !strings.Contains((*notices)[0], "on host "+host+" as commit "+strings.Fields(pins)[0][:10]) {
				t.Errorf("pinned is %q; the notice: %s", pins, (*notices)[0])
			}
			r.sh(r.user, "git fetch -q "+r.dir+"/*/line.git 'refs/agentteam/pins/unmerged/*:refs/heads/unmerged/*'") // as operations.md has it
			if got := r.sh(r.user, "git show $(git branch --list --format='%(refname)' 'unmerged/leader/*'):new.txt; git branch -D -q $(git branch --list 'unmerged/*')"); got != "new" {
				t.Errorf("a person fetches %q", got)
			}
			pick := picked.FindStringSubmatch((*notices)[0])
			if pick == nil {
				t.Fatalf("no command in %q", (*notices)[0])
			}
			_, err = m.completes(m.does(r.add("Mine", ""), pick[1]))
			r.must(err)
			if got := m.runs("sed -n 3p numbers.txt; ls"); got != "three\nnew.txt\nnumbers.txt" {
				t.Errorf("the line has %q", got)
			}
		})
	}
}

// follows has another process follow that of m, while the record of m is in a state without a process.
func follows(r *rig, m *mate, state team.MemberState) {
	r.Helper()
	m.at.Close()
	_, err := roster.New(r.storage).Put(r.Context(), team.Member{AgentID: "leader", Backend: team.Exec, State: state, Incarnation: 1})
	r.must(err)
	r.sweeps()
	next := r.mate("leader", 2)
	next.runs("true")
	next.line.Uncommitted(r.Context())
	next.at.Close()
}

// sweeps has a process remove the trees of what is over.
func (r *rig) sweeps() {
	r.Helper()
	trees := r.sh(r.dir, "at=$(echo */trees); mkdir $at/t-009.coder-9.0; echo $at")
	r.mate("coder-2", 1).merges()
	r.until(func() bool {
		_, err := os.Stat(filepath.Join(r.dir, trees, "t-009.coder-9.0"))
		return err != nil
	})
}

// Who has run nothing, or has changed nothing, gets no notice.
func TestNothingChangedWithoutTask(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	m := r.mate("leader", 1)
	m.merges()
	m.bash("cat numbers.txt")
	for range 2 {
		_, err := m.completes(m.does(r.add("Three", ""), "date >> dates.txt"))
		r.must(err)
		m.bash("cat dates.txt")
	}
	if len(*notices) > 0 {
		t.Errorf("notices: %q", *notices)
	}
}

// What git cannot store is removed as before, and the notice says why it was not kept.
func TestNotKept(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	m := r.mate("leader", 1)
	m.bash("git init -q nested")
	m.line.Uncommitted(t.Context())
	if len(*notices) != 1 || !strings.Contains((*notices)[0], "could not be kept") || !strings.Contains((*notices)[0], "nested") {
		t.Errorf("notices: %q", *notices)
	}
	if got := m.runs("ls"); got != "numbers.txt" {
		t.Errorf("it sees %q", got)
	}
}

// What a member that leaves has changed is the leader's to know: the member reads no mail any more.
func TestLeaderIsNotified(t *testing.T) {
	r := setUp(t)
	r.record.Policies.Create = team.CreateLeader
	var to team.AgentID
	var notice string
	r.notify = func(_ context.Context, a team.AgentID, _, text string) error {
		to, notice = a, text
		return nil
	}
	m := r.mate("coder-1", 1)
	m.bash("echo new > new.txt")
	m.line.Uncommitted(t.Context())
	if to != team.Leader || !strings.Contains(notice, "coder-1 changed files without a task: new.txt.") || strings.Contains(notice, "our files") {
		t.Errorf("to %s: %s", to, notice)
	}
}

// What cannot be looked at now is no reason to remove it: the next opening keeps it.
func TestInterruptedAside(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	broken := new(atomic.Bool)
	r.source = interrupted{broken}
	m := r.mate("leader", 1)
	m.bash("echo new > new.txt")
	broken.Store(true)
	m.line.Uncommitted(t.Context())
	broken.Store(false)
	if len(*notices) > 0 {
		t.Fatalf("notices: %q", *notices)
	}
	if got := m.runs("ls"); got != "new.txt\nnumbers.txt" {
		t.Errorf("it sees %q", got)
	}
	m.line.Uncommitted(t.Context())
	if len(*notices) != 1 || !strings.Contains((*notices)[0], "without a task: new.txt.") {
		t.Errorf("notices: %q", *notices)
	}
}

// A process that is killed while it brings a tree forward leaves files of two commits there. The member has
// changed none of them.
func TestForwardIsCutOff(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	m, other := r.mate("coder-1", 1), r.mate("coder-2", 1)
	other.merges()
	m.runs("true")
	_, err := other.completes(other.does(r.add("Seventeen", ""), "sed -i 's/^17$/seventeen/' numbers.txt; touch new.txt"))
	r.must(err)
	m.at.Close()
	r.sh(r.dir, "cd */trees/at.coder-1.0; touch new.txt")
	if got := r.mate("coder-1", 2).runs("sed -n 17p numbers.txt; ls"); got != "seventeen\nnew.txt\nnumbers.txt" || len(*notices) > 0 {
		t.Errorf("it sees %q; notices: %q", got, *notices)
	}
}

// interrupted is a source whose commands are ended while it is broken.
type interrupted struct{ broken *atomic.Bool }

func (i interrupted) Open(_ context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	ws, err := workspace.Open(w.Tree.Dir, i, o)
	if err != nil {
		return nil, nil, err
	}
	return ws, func() { ws.Close() }, nil
}

func (i interrupted) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	if i.broken.Load() {
		return command.Exit{Code: -1, How: "signal: killed"}, nil
	}
	return command.Plain{}.Run(ctx, c)
}

// A member that leaves, and whose tree cannot be looked at, leaves the tree as it is to a person.
func TestTreeIsKept(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	broken := new(atomic.Bool)
	r.source = interrupted{broken}
	m := r.mate("coder-1", 1)
	m.bash("echo new > new.txt")
	broken.Store(true)
	m.line.Uncommitted(t.Context())
	m.at.Close()
	r.must(m.line.Leave(t.Context(), true))
	if len(*notices) != 1 {
		t.Fatalf("notices: %q", *notices)
	}
	folder := regexp.MustCompile(`in (/\S+)\.$`).FindStringSubmatch((*notices)[0])
	if folder == nil {
		t.Fatalf("no folder in %q", (*notices)[0])
	}
	broken.Store(false)
	other := r.mate("coder-2", 1)
	other.runs("true")
	other.at.Close()
	r.must(other.line.Leave(t.Context(), true))
	if got := r.sh(folder[1], "cat new.txt"); got != "new" {
		t.Errorf("kept is %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "*", "trees", "*")); err != nil || len(left) > 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// A member whose process is to stop waits for no removal of trees; what it may have changed is kept before that.
func TestLeaveInHaste(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	m := r.mate("coder-1", 1)
	m.bash("echo new > new.txt")
	m.at.Close()
	removed := m.line.Removing() // as of a tree with many files
	defer removed()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	left := make(chan error, 1)
	go func() {
		err := m.line.Leave(ctx, true)
		m.line.Settled(ctx)
		left <- err
	}()
	select {
	case err := <-left:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it left with %v", err)
		}
	case <-time.After(brokertest.Longest):
		t.Fatal("it waits for the removal of a tree")
	}
	if kept, err := filepath.Glob(filepath.Join(r.dir, "*", "kept", "*", "new.txt")); err != nil || len(kept) != 1 || len(*notices) != 1 {
		t.Errorf("kept are %v, %v; notices: %q", kept, err, *notices)
	}
}

// A tree that cannot be kept is not removed either.
func TestTreeIsNotKept(t *testing.T) {
	r := setUp(t)
	broken := new(atomic.Bool)
	r.source = interrupted{broken}
	m := r.mate("coder-1", 1)
	m.bash("echo new > new.txt")
	broken.Store(true)
	m.line.Uncommitted(t.Context())
	m.at.Close()
	r.sh(r.dir, "touch $(echo */trees)/../kept")
	if err := m.line.Leave(t.Context(), true); err == nil {
		t.Error("there is nothing wrong")
	}
	if got := r.sh(r.dir, "cat */trees/at.coder-1.0/new.txt"); got != "new" {
		t.Errorf("its file is %q", got)
	}
}

// At a goal's end the trees of members that were killed go. One in which commands have run without a task,
// and that was not looked at since, is kept, and the leader is notified before: a process that is killed between the two leaves the
// tree to the next.
func TestTreeOfTheKilled(t *testing.T) {
	r := setUp(t)
	var to []team.AgentID
	var text string
	var before bool
	r.notify = func(_ context.Context, a team.AgentID, _, notice string) error {
		to, text = append(to, a), notice
		there, _ := filepath.Glob(filepath.Join(r.dir, "*", "*", "at.coder-1.*", "new.txt"))
		before = len(there) == 1 && strings.Contains(there[0], "/trees/")
		return nil
	}
	killed, idle, last := r.mate("coder-1", 1), r.mate("coder-2", 1), r.mate("coder-3", 1)
	killed.bash("echo new > new.txt")
	killed.at.Close()
	idle.bash("ls")
	idle.line.Uncommitted(t.Context())
	idle.at.Close()
	last.runs("true")
	last.at.Close()
	r.must(last.line.Leave(t.Context(), true))
	if len(to) != 1 || to[0] != team.Leader || !strings.Contains(text, "What coder-1 may have changed") || !before {
		t.Errorf("to %v, before it is moved: %v: %s", to, before, text)
	}
	if got := r.sh(r.dir, "ls */trees; cat */kept/at.coder-1.*/new.txt"); got != "new" {
		t.Errorf("there is %q", got)
	}
}

// Where git is interrupted each time that the line moves the member learns that it sees old files, once.
func TestInterruptedForLong(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	other := r.mate("coder-2", 1)
	other.merges()
	broken := new(atomic.Bool)
	r.source = interrupted{broken}
	m := r.mate("leader", 1)
	m.merges()
	m.bash("echo new > new.txt")
	for n := range 4 {
		broken.Store(false)
		merged, err := other.completes(other.does(r.add("More", ""), fmt.Sprintf("echo %d > more-%[1]d.txt", n)))
		r.must(err)
		r.until(func() bool { return string(m.line.Head()) == merged.Commit })
		broken.Store(true)
		m.runs("true")
		if want := min(1, n/2); len(*notices) != want {
			t.Fatalf("after %d times: %q", n+1, *notices)
		}
	}
	if !strings.Contains((*notices)[0], "not the newest") {
		t.Errorf("notices: %q", *notices)
	}
}

// A process that stops in order, and whose member has changed nothing, leaves nothing to be kept.
func TestGlance(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	same, changed, last := r.mate("coder-1", 1), r.mate("coder-2", 1), r.mate("coder-3", 1)
	same.bash("ls")
	changed.bash("echo new > new.txt")
	for _, m := range []*mate{same, changed, last} {
		m.runs("true")
		m.line.CheckHead(t.Context())
		m.at.Close()
	}
	r.must(last.line.Leave(t.Context(), true))
	if got := r.sh(r.dir, "ls */trees; ls -d */kept/* | grep -o 'at.coder-.'"); got != "at.coder-2" || len(*notices) != 1 {
		t.Errorf("kept are %q; notices: %q", got, *notices)
	}
}

// ending is a source whose workspaces run nothing once they are released.
type ending struct {
	ran func(ws *atomic.Bool) // before each command; the argument is another one for each workspace
}

// until runs commands until over is true.
type until struct {
	command.Plain
	ending
	over *atomic.Bool
}

func (u until) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	if u.over.Load() {
		return command.Exit{}, errors.New("the workspace was released")
	}
	if u.ran != nil {
		u.ran(u.over)
	}
	return u.Plain.Run(ctx, c)
}

func (e ending) Open(_ context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	over := new(atomic.Bool)
	ws, err := workspace.Open(w.Tree.Dir, until{ending: e, over: over}, o)
	if err != nil {
		return nil, nil, err
	}
	return ws, func() {
		over.Store(true)
		ws.Close()
	}, nil
}

// What is changed after an end that was refused is set aside too, in the workspace that is open then.
func TestChangedAfterAside(t *testing.T) {
	r := setUp(t)
	r.source = ending{}
	notices := r.notices()
	m := r.mate("leader", 1)
	for n, claims := range []bool{false, true} {
		m.bash(fmt.Sprintf("echo %d > new-%[1]d.txt", n))
		if claims {
			m.does(r.add("Mine", ""), "true")
		} else {
			m.line.Uncommitted(t.Context())
		}
		if len(*notices) != n+1 || !strings.Contains((*notices)[n], fmt.Sprintf("without a task: new-%d.txt.", n)) {
			t.Fatalf("notices: %q", *notices)
		}
	}
}

// While changes are set aside the line moves, and the tree is opened for that: it is brought forward by one
// call after the other.
func TestOpenedWhileAside(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	other := r.mate("coder-2", 1)
	other.merges()
	theirs := other.does(r.add("Theirs", ""), "echo theirs > theirs.txt")
	var (
		m       *mate
		mu      sync.Mutex
		order   []*atomic.Bool // the workspaces, as each runs a command
		leaving atomic.Bool
		opened  = make(chan error, 1)
	)
	r.source = ending{ran: func(ws *atomic.Bool) {
		mu.Lock()
		order = append(order, ws)
		mu.Unlock()
		if !leaving.CompareAndSwap(true, false) {
			return
		}
		_, err := other.completes(theirs)
		go func() {
			_, release, oerr := m.line.Open(t.Context(), workspace.Work{Team: r.record, Member: m.w}, workspace.Options{})
			if oerr == nil {
				release()
			}
			opened <- errors.Join(err, oerr)
		}()
	}}
	m = r.mate("leader", 1)
	m.bash("echo new > new.txt")
	leaving.Store(true)
	m.line.Uncommitted(t.Context())
	r.must(brokertest.Receive(t, "the tree is opened", opened))
	order = slices.Compact(order)
	if len(order) != 2 {
		t.Errorf("%d times another call went on in the tree", len(order)-1)
	}
	if len(*notices) != 1 || !strings.Contains((*notices)[0], "without a task: new.txt.") {
		t.Errorf("notices: %q", *notices)
	}
	if got := m.runs("ls"); got != "numbers.txt\ntheirs.txt" {
		t.Errorf("it sees %q", got)
	}
}

// A command in the background runs on while its member's files are looked at. What it changes after that is kept too, if
// the process is killed meanwhile.
func TestChangedAfterLook(t *testing.T) {
	r := setUp(t)
	notices := r.notices()
	ended := make(chan string, 1)
	r.begin = func(is team.Job, run func(context.Context, io.Writer) string) (team.Job, error) {
		go func() { ended <- run(t.Context(), io.Discard) }()
		return is, nil
	}
	coder, leader := r.mate("coder-1", 1), r.mate("leader", 1)
	coder.merges()
	leader.merges()
	set, err := tool.NewSet(nil, leader.at.Tools()...)
	r.must(err)
	if got := set.Run(t.Context(), tool.Call{Name: "bash", Arguments: `{"command":"until grep -q three numbers.txt; do sleep 0.02; done; echo late > late.txt; until test -e end.txt; do sleep 0.02; done","run_in_background":true}`}); got.IsError {
		t.Fatal(got.Content)
	}
	merged, err := coder.completes(coder.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt"))
	r.must(err)
	r.until(func() bool { return string(leader.line.Head()) == merged.Commit })
	leader.runs("until test -e late.txt; do sleep 0.02; done") // after the look

	killed := filepath.Join(t.TempDir(), "disk") // as the process would leave it
	r.sh(r.dir, "cp -a . "+killed)
	leader.runs("touch end.txt")
	brokertest.Receive(t, "the command in the background ends", ended)
	*notices, r.dir = nil, killed
	last := r.mate("coder-3", 1)
	last.runs("true")
	last.at.Close()
	r.must(last.line.Leave(t.Context(), true))
	if got := r.sh(killed, "cat */kept/at.leader.*/late.txt"); got != "late" || len(*notices) != 1 || !strings.Contains((*notices)[0], "What leader may have changed") {
		t.Errorf("kept is %q; notices: %q", got, *notices)
	}
}
