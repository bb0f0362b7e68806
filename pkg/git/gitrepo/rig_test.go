package gitrepo_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// TestMain gives git a home of its own, with the settings of a user.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "line-home-")
	if err != nil {
		panic(err)
	}
	settings := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Unsetenv("XDG_CONFIG_HOME")
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// sh runs a script of the user in dir and returns what it prints.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, &stderr)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rig is a user's repository and the line made from it.
type rig struct {
	*gitrepo.Repo
	t    testing.TB
	ctx  context.Context
	user string // the user's folder
	dir  string // of the line
	c    gitrepo.Checkout
}

// numbers is a file with a number on each line.
const numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"

// userRepo makes the user's repository.
func userRepo(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	write(t, dir+"/numbers.txt", numbers)
	write(t, dir+"/sub/inner.txt", "inner\n")
	write(t, dir+"/.gitignore", "*.log\nnode_modules\n")
	sh(t, dir, "git init -q && git add -A && git commit -qm first")
	return dir
}

func setUp(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	r.begin(gitrepo.Limits{})
	return r
}

// begin opens a line for the user's repository as it is.
func (r *rig) begin(l gitrepo.Limits) {
	r.t.Helper()
	var err error
	r.dir = filepath.Join(r.t.TempDir(), "line")
	if r.Repo, err = gitrepo.Open(r.ctx, r.dir, "red", l); err != nil {
		r.t.Fatal(err)
	}
	r.look()
	r.must(r.Fetch(r.ctx, r.c))
	r.must(r.Move(r.ctx, "", r.c.Head))
}

func (r *rig) look() {
	r.t.Helper()
	var err error
	if r.c, err = gitrepo.Inspect(r.ctx, r.user); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) head() gitrepo.Hash {
	r.t.Helper()
	h, err := r.Head(r.ctx)
	r.must(err)
	return h
}

// tree makes a tree at the line's head.
func (r *rig) tree(name string) *gitrepo.Tree {
	r.t.Helper()
	tr, err := r.Tree(r.ctx, gitrepo.Plan{Name: name, At: r.head(), Member: "coder-1", From: r.c})
	r.must(err)
	r.t.Cleanup(func() { tr.Close() })
	return tr
}

func message(task team.TaskID) gitrepo.Message {
	return gitrepo.Message{Subject: "Work on " + string(task), Agent: "coder-1", Task: task, Time: time.Unix(1_800_000_000, 0)}
}

// bundle commits a tree and returns the bundle.
func (r *rig) bundle(tr *gitrepo.Tree, task team.TaskID) []byte {
	r.t.Helper()
	b, _, err := tr.Commit(r.ctx, command.Plain{}, message(task))
	r.must(err)
	return b
}

// work does what a task does, up to the line: script runs in a tree.
func (r *rig) work(task team.TaskID, script string) gitrepo.Hash {
	r.t.Helper()
	tr := r.tree(strings.ToLower(string(task)))
	sh(r.t, tr.Dir, script)
	c, err := r.Import(r.ctx, r.bundle(tr, task), tr.Base)
	r.must(err)
	r.must(tr.Remove())
	return r.take(task, c)
}

// take merges an imported commit, without conflicts, and moves the line.
func (r *rig) take(task team.TaskID, c gitrepo.Hash) gitrepo.Hash {
	r.t.Helper()
	head := r.head()
	m, err := r.Merge(r.ctx, head, c)
	r.must(err)
	if len(m.Conflicts) > 0 {
		r.t.Fatalf("%s: conflicts %+v", task, m.Conflicts)
	}
	next, err := r.Commit(r.ctx, m.Tree, message(task), head)
	r.must(err)
	r.must(r.Move(r.ctx, head, next))
	return next
}

// at returns a file of a commit.
func (r *rig) at(h gitrepo.Hash, name string) string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "export")
	r.must(r.Export(r.ctx, h, dir))
	return read(r.t, filepath.Join(dir, name))
}

// refuses checks an error's code and that it has these words.
func refuses(t testing.TB, err error, code team.Code, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s %q", code, words)
	}
	if got := codeOf(err); got != code {
		t.Errorf("code %q, want %q: %v", got, code, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) && !strings.Contains(team.ModelHintOf(err), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}
