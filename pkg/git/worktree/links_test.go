package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
)

// linked is a team whose members see what git ignores of the user's folder, at a level of the sandbox.
func linked(t *testing.T, level team.Sandbox) *rig {
	t.Helper()
	_, err := sandbox.Find(t.Context(), level)
	testenv.Need(t, err)
	r := setUp(t)
	r.sh(r.user, "mkdir -p node_modules/dep; echo dep > node_modules/dep/index; echo TEST=1 > .env.test; printf 'node_modules\n.env.test\n' > .gitignore; git add -A; git commit -qm ignore")
	source := execenv.New(execenv.Options{Dir: r.user, Sandbox: level, Cache: t.TempDir()})
	r.source, r.level = source, source.Level
	r.record.Policy = team.Policy{Links: []string{"node_modules", ".env.test"}}
	r.begins()
	return r
}

// commands runs a command in the member's sandbox, and returns what it prints.
func (m *mate) commands(script string) string {
	m.Helper()
	ws, done, err := m.at.Use(m.Context())
	m.must(err)
	defer done()
	var out strings.Builder
	_, err = ws.Commands().Run(m.Context(), command.Command{Args: []string{"bash", "-c", script}, Dir: ws.Dir(), Output: &out})
	m.must(err)
	return strings.TrimSpace(out.String())
}

// Builds find what worktree_links names, in the task's tree and on the merged files; nothing that a
// member does there gets to the user's folder.
func TestLinks(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := linked(t, level)
			one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
			one.merges()
			const check = "cat node_modules/dep/index .env.test && touch made-by-the-check"
			a, err := one.hand.Claim(t.Context(), r.add("Three", check))
			r.must(err)
			b, err := two.hand.Claim(t.Context(), r.add("Seventeen", check))
			r.must(err)
			if got := one.commands("cat node_modules/dep/index .env.test; git status --porcelain"); got != "dep\nTEST=1" {
				t.Errorf("the member sees %q", got)
			}
			one.commands(`sed -i 's/^3$/three/' numbers.txt; echo bad >> node_modules/dep/index; echo bad > node_modules/new; rm -rf node_modules; rm -f .env.test
				mv node_modules gone; chmod -R 777 node_modules; ln -sfn / node_modules; echo bad > .env.test; git add -fA . && git commit -qm all`)
			two.commands("sed -i 's/^17$/seventeen/' numbers.txt")

			set, err := tool.NewSet(nil, two.at.Tools()...)
			r.must(err)
			call := func(name, args string) tool.Result {
				return set.Run(t.Context(), tool.Call{ID: "1", Name: name, Arguments: args})
			}
			for _, path := range []string{"node_modules/dep/index", ".env.test"} {
				if got := call("read_file", fmt.Sprintf(`{"path":%q}`, path)); got.Code != "" {
					t.Errorf("read_file %s: %s", path, got.Content)
				}
			}
			if got := call("read_file", `{"path":"node_modules/../../../../x"}`); got.Code == "" {
				t.Errorf("out of the tree: %s", got.Content)
			}
			if level == team.Bubblewrap {
				for _, path := range []string{"node_modules/dep/index", "node_modules/new/file", ".env.test", "./node_modules/x"} {
					if got := call("write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, path)); got.Code != team.PermissionDenied || !strings.Contains(got.Content, "for reading") {
						t.Errorf("write_file %s: %s", path, got.Content)
					}
				}
			} else if got := call("write_file", `{"path":"node_modules/dep/new","content":"x"}`); got.Code != "" {
				t.Errorf("a copy cannot be written: %s", got.Content)
			}
			for m, task := range map[*mate]team.Task{one: a, two: b} {
				if done, err := m.completes(task); m == two && err != nil || done.Status != team.Completed && m == two {
					t.Errorf("%s is %s: %v", task.ID, done.Status, err)
				}
			}
			if got := r.sh(r.user, "cat node_modules/dep/index .env.test; find node_modules .env.test | sort | tr '\\n' ' '; git status --porcelain"); got != "dep\nTEST=1\n.env.test node_modules node_modules/dep node_modules/dep/index" {
				t.Errorf("the user's folder has %q", got)
			}
		})
	}
}

// What cannot be linked is told before a goal begins.
func TestLinksRefused(t *testing.T) {
	r := setUp(t)
	for name, want := range map[string]string{"numbers.txt": "git does not ignore numbers.txt", "/etc": "no path in the workspace", "a/../b": "no path in the workspace", ".git/hooks": "no path in the workspace", "gone": "no such file"} {
		r.record.Policy.Links = []string{name}
		if _, err := r.decide(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.record.Policy.Links = nil
	r.record.Roles = map[string]team.Role{"tester": {Name: "tester", Policy: team.Policy{Links: []string{"gone"}}}}
	if _, err := r.decide(); !errors.Is(err, team.NotFound) {
		t.Errorf("of a role: %v", err)
	}
}

// A copy has no link back into the user's checkout, neither by a whole path nor through a folder outside.
func TestCopiedLinksStayInside(t *testing.T) {
	r := linked(t, team.Confined)
	outside := t.TempDir()
	r.sh(r.user, fmt.Sprintf("ln -s %[1]s %[2]s/back; cd node_modules; ln -s %[1]s/numbers.txt up; ln -s %[1]s/node_modules/dep own; ln -s ../numbers.txt near; ln -s %[2]s/back/numbers.txt round; ln -s /etc/hostname far", r.user, outside))
	m := r.mate("coder-1", 1)
	m.merges()
	task, err := m.hand.Claim(t.Context(), r.add("Three", "true"))
	r.must(err)
	for name, want := range map[string]string{"up": "../numbers.txt", "own": "dep", "near": "../numbers.txt", "round": "../numbers.txt", "far": "/etc/hostname"} {
		if got := m.commands("readlink node_modules/" + name); got != want {
			t.Errorf("%s leads to %q, want %q", name, got, want)
		}
	}
	m.commands("for f in up near round; do echo $f >> node_modules/$f; done")
	done, err := m.completes(task)
	if err != nil || done.Status != team.Completed {
		t.Errorf("it is %s: %v", done.Status, err)
	}
	if got := r.sh(r.user, "git status --porcelain"); got != "" {
		t.Errorf("the user's folder is changed: %s", got)
	}
}

// A commit may have a file where the folder of a link would be: the link is left out, and the work merged.
func TestLinkInTheWay(t *testing.T) {
	r := linked(t, team.Confined)
	r.sh(r.user, "mkdir web; mv node_modules web; git commit -qm web --allow-empty")
	r.record.Policy.Links = []string{"web/node_modules"}
	m := r.mate("coder-1", 1)
	m.merges()
	for _, script := range []string{"rm -rf web; echo file > web", "rm -f web; mkdir other; touch other/x; ln -s other web"} {
		task, err := m.hand.Claim(t.Context(), r.add(script, "test -e web"))
		r.must(err)
		m.commands(script)
		if done, err := m.completes(task); err != nil || done.Status != team.Completed {
			t.Errorf("%s: it is %s: %v", script, done.Status, err)
		}
	}
}

// What is too large to be copied keeps a goal from beginning where it would be copied.
func TestLinksTooLarge(t *testing.T) {
	r := linked(t, team.Confined)
	r.sh(r.user, "truncate -s 600M node_modules/large")
	for level, refused := range map[team.Sandbox]bool{team.Confined: true, team.Unconfined: true, team.Bubblewrap: false, "": false} {
		r.record.Policy.Sandbox, r.record.Branch = level, nil
		if _, err := r.decide(); errors.Is(err, team.BudgetExceeded) != refused || !refused && err != nil {
			t.Errorf("%q: %v", level, err)
		}
	}
}

// Where the level turns out to need copies only once trees are made, those links are left out that together with
// the ones before are too large: a tree without them is better than none.
func TestLinksTooLargeTogether(t *testing.T) {
	r := linked(t, team.Confined)
	r.sh(r.user, "truncate -s 300M node_modules/large; mkdir cache; truncate -s 300M cache/large; printf 'cache\n' >> .gitignore")
	r.record.Policy.Links = []string{"node_modules", "cache", ".env.test"}
	if _, names, mounted := worktree.LinksOf(t.Context(), r.source, slog.New(slog.NewTextHandler(t.Output(), nil)), r.record, "coder"); mounted || !slices.Equal(names, []string{"node_modules", ".env.test"}) {
		t.Errorf("a tree gets %v, mounted: %v", names, mounted)
	}
}

// A machine without the folder merges nothing whose check needs what is there.
func TestLinksElsewhere(t *testing.T) {
	r := linked(t, team.Confined)
	here := r.mate("coder-1", 1)
	task, err := here.hand.Claim(t.Context(), r.add("Three", "cat .env.test"))
	r.must(err)
	here.commands("sed -i 's/^3$/three/' numbers.txt")

	there := *r
	there.dir = t.TempDir()
	away := execenv.New(execenv.Options{Dir: t.TempDir(), Sandbox: team.Confined, Cache: t.TempDir()})
	there.source, there.level = away, away.Level
	far := there.mate("coder-2", 1)
	far.merges()
	other, err := far.hand.Claim(t.Context(), r.add("Seventeen", "true"))
	r.must(err)
	if got := far.commands("ls -A; sed -i 's/^17$/seventeen/' numbers.txt"); strings.Contains(got, ".env.test") {
		t.Errorf("the other machine has %q", got)
	}
	result := make(chan error, 1)
	go func() {
		done, err := here.completes(task)
		if err == nil && done.Status != team.Completed {
			err = fmt.Errorf("it is %s", done.Status)
		}
		result <- err
	}()
	r.until(func() bool {
		merging, err := here.line.Merging(t.Context(), task)
		return err == nil && merging
	})
	if done, err := far.completes(other); err != nil || done.Status != team.Completed {
		t.Errorf("it is %s: %v", done.Status, err)
	}
	r.until(func() bool { // the entry of a completed task goes last
		waiting, err := mergequeue.New(r.storage).Waiting(t.Context())
		return err == nil && len(waiting) == 1 && waiting[0].Task == task.ID
	})
	here.merges()
	r.must(brokertest.Receive(t, "the task is completed", result))
	if _, err := os.Stat(filepath.Join(r.user, ".env.test")); err != nil {
		t.Error(err)
	}
}

// Where a machine lacks what the check of an earlier task uses, the check's failure is not the fault of the work that is to be
// merged: it is merged, and the leader is notified.
func TestEarlierCheckWithoutLinks(t *testing.T) {
	r := linked(t, team.Confined)
	here := r.mate("coder-1", 1)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- here.line.Run(ctx) }()
	task, err := here.hand.Claim(t.Context(), r.add("Three", "cat .env.test"))
	r.must(err)
	here.commands("sed -i 's/^3$/three/' numbers.txt")
	_, err = here.completes(task)
	stop()
	r.must(errors.Join(err, brokertest.Receive(t, "the queue ends", over)))

	there := *r
	there.dir = t.TempDir()
	away := execenv.New(execenv.Options{Dir: t.TempDir(), Sandbox: team.Confined, Cache: t.TempDir()})
	there.source, there.level = away, away.Level
	notices := there.notices()
	far := there.mate("coder-2", 1)
	far.merges()
	other, err := far.hand.Claim(t.Context(), r.add("Seventeen", ""))
	r.must(err)
	far.commands("sed -i 's/^17$/seventeen/' numbers.txt")
	if done, err := far.completes(other); err != nil || done.Status != team.Completed {
		t.Errorf("it is %s: %v", done.Status, err)
	}
	if len(*notices) != 1 || !strings.Contains((*notices)[0], "merged without the check of T-001 (Three)") || !strings.Contains((*notices)[0], "it fails without node_modules, .env.test (worktree_links)") {
		t.Errorf("notices: %q", *notices)
	}
}
