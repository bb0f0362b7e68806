package worktree_test

import (
	"strings"
	"testing"

	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// held runs a command of the member as its tool does, in the box with the rules.
func (m *mate) held(script string) string {
	m.Helper()
	ws, done, err := m.at.Use(m.Context())
	m.must(err)
	defer done()
	out, _, err := ws.Check(m.Context(), script+"\n")
	m.must(err)
	return strings.TrimSpace(out)
}

// A tracked file that a rule denies to read or to edit never appears as changed or deleted: not in the tree of a member, not in the commit
// of its task, not in the line. At the weaker level the box holds no rules, and hides nothing either.
func TestHeldFilesAreNoChange(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) { heldFiles(t, level) })
	}
}

func heldFiles(t *testing.T, level team.Sandbox) {
	_, err := sandbox.Find(t.Context(), level)
	testenv.Need(t, err)
	r := setUp(t)
	r.sh(r.user, "mkdir -p secrets vendor; echo KEY=c4n4ry > .env; echo c4n4ry > secrets/key; echo x > vendor/x; git add -A; git commit -qm more")
	r.record.Policy.Permissions = team.Permissions{Deny: []string{"Read(.env)", "Read(secrets/**)", "Edit(vendor/**)"}}
	r.record.Branch, r.record.Goal, r.record.GoalNumber = nil, "", 0
	decided, err := r.decide()
	r.must(err)
	r.record.Branch, r.record.Goal, r.record.GoalNumber = &decided, "count", 1
	r.source = execenv.New(execenv.Options{Dir: r.user, Sandbox: level, Cache: t.TempDir()})

	m := r.mate("coder-1", 1)
	m.merges()
	a, err := m.hand.Claim(t.Context(), r.add("Three", ""))
	r.must(err)
	tries := "rm -rf .env secrets vendor 2>/dev/null; (echo x >> vendor/x) 2>/dev/null; "
	if level == team.Confined { // where the text of a call is judged, and refused
		tries = ""
	} else if got := m.held("git status --porcelain 2>&1; cat .env secrets/key 2>&1"); strings.Contains(got, "c4n4ry") || !strings.HasPrefix(got, "cat: ") {
		t.Errorf("a fresh tree: %s", got)
	}
	got := m.held("sed -i 's/^3$/three/' numbers.txt; " + tries + "git -c core.fileMode=false commit -qam mine 2>&1; git add -A 2>&1; git commit -qm all 2>&1; git show --stat --format= HEAD; git status --porcelain; git diff HEAD~1 --stat")
	if strings.Contains(got, ".env") || strings.Contains(got, "secrets/key |") || strings.Contains(got, "vendor/x |") || !strings.Contains(got, "numbers.txt | 2 +-") {
		t.Errorf("what the member commits: %s", got)
	}
	done, err := m.completes(a)
	r.must(err)
	first := done.Commit
	if got := m.held("git diff --stat HEAD; git status --porcelain"); got != "" {
		t.Errorf("the tree at the head of the line: %s", got)
	}
	b, err := m.hand.Claim(t.Context(), r.add("Seven", ""))
	r.must(err)
	m.held("sed -i 's/^7$/seven/' numbers.txt; git stash; git stash pop; git checkout -q -- .")
	m.held("sed -i 's/^7$/seven/' numbers.txt")
	done, err = m.completes(b)
	r.must(err)
	for _, commit := range []string{first, done.Commit} {
		if got := m.runs("git show --stat --format= " + commit); !strings.HasPrefix(strings.TrimSpace(got), "numbers.txt | 2 +-") || strings.Count(got, "|") != 1 {
			t.Errorf("the line has in %s: %s", commit, got)
		}
	}
}
