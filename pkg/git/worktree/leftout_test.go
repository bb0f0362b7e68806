package worktree_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// begins begins the first goal at the present HEAD of the user's repository.
func (r *rig) begins() {
	r.Helper()
	r.record.Branch, r.record.Goal, r.record.GoalNumber = nil, "", 0
	decided, err := r.decide()
	r.must(err)
	r.record.Branch, r.record.Goal, r.record.GoalNumber = &decided, "count", 1
}

// Files that git ignores, and those in a submodule, are in no commit: a task that has made only such files is refused once and
// then completed with their names; a task with other changes is completed with them. Caches and stored deliverables do not count.
func TestLeftOut(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		names  []string // in the result
		only   bool     // there is no other change
	}{
		"a folder":               {"mkdir dist; echo x > dist/index.html; echo x > dist/b.js", []string{"dist/ (1 KiB in 2 files)"}, true},
		"a file":                 {"echo KEY=1 > conf.local", []string{"conf.local (1 KiB)"}, true},
		"a submodule":            {"echo fixed > sub/s", []string{"sub/ (files of a submodule)"}, true},
		"a repository":           {"git init -q dist; echo x > dist/x", []string{"dist/ (a git repository is in it)"}, true},
		"beside a change":        {"echo x > new.txt; mkdir dist; echo x > dist/x; echo x > sub/x", []string{"dist/ (1 KiB)", "sub/ (files"}, false},
		"more than ten":          {"for n in 1 2 3 4 5 6 7 8 9 a b c; do echo $n > $n.local; done", []string{"1.local (1 KiB), 2.local", "and 2 more"}, true},
		"caches":                 {"mkdir -p lib/__pycache__ node_modules/m .cache; touch lib/__pycache__/a.pyc node_modules/m/m.js .cache/x main.o", nil, true},
		"forced into the commit": {"mkdir dist; echo x > dist/x; git add -f dist", nil, false},
		"a stored deliverable":   {"mkdir deliverables; echo x > deliverables/T-001-it.md", nil, true},
		"an artifact":            {"mkdir dist; echo x > dist/a.txt", nil, true},
		"an artifact, merged":    {"mkdir dist; echo x > dist/a.txt; echo x > new.txt", nil, false},
		"beside a deliverable":   {"mkdir deliverables; echo x > deliverables/T-001-it.md; echo y > deliverables/z", []string{"deliverables/ (1 KiB)"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setUp(t)
			r.sh(r.user, `git init -q ../lib; cd ../lib; git commit -q --allow-empty -m l; cd "$OLDPWD"; git -c protocol.file.allow=always submodule --quiet add ../lib sub
				printf 'dist\n*.local\n__pycache__\nnode_modules\n.cache\n*.o\ndeliverables\n' > .gitignore; git add -A; git commit -qm ignore`)
			r.begins()
			m := r.mate("coder-1", 1)
			m.merges()
			task := m.does(r.add("It", ""), tt.script)
			d := team.Done{Summary: "done as told"}
			if strings.Contains(name, "deliverable") {
				d.Digest = "sha256:0"
			}
			if strings.Contains(name, "artifact") {
				d.Artifacts = []team.Artifact{{Path: "dist/a.txt", Digest: "sha256:0", Bytes: 2}}
			}
			done, err := m.line.Complete(t.Context(), task, d)
			if tt.only && tt.names != nil {
				for _, want := range tt.names {
					if !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), want) || !strings.Contains(team.ModelHintOf(err), "git add -f") {
						t.Errorf("it is refused with %v (%s), want %q", err, team.ModelHintOf(err), want)
					}
				}
				done, err = m.line.Complete(t.Context(), task, d)
			}
			if err != nil || done.Status != team.Completed || (done.Commit == "") != tt.only {
				t.Fatalf("it is %s, commit %q, %v", done.Status, done.Commit, err)
			}
			if len(done.Artifacts) != len(d.Artifacts) {
				t.Errorf("its artifacts are %+v", done.Artifacts)
			}
			for _, want := range tt.names {
				if !strings.Contains(done.ResultSummary, want) {
					t.Errorf("the result is %q, want %q", done.ResultSummary, want)
				}
			}
			if tt.names == nil && done.ResultSummary != d.Summary {
				t.Errorf("the result is %q", done.ResultSummary)
			}
		})
	}
}

// New files after a refusal are refused again.
func TestLeftOutChanges(t *testing.T) {
	r := setUp(t)
	r.sh(r.user, "echo '*.local' > .gitignore; git add -A; git commit -qm ignore")
	r.begins()
	m := r.mate("coder-1", 1)
	task := m.does(r.add("It", ""), "echo 1 > a.local")
	for _, want := range []string{"a.local (1 KiB)", "a.local (1 KiB), b.local (1 KiB)"} {
		if _, err := m.completes(task); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), want) {
			t.Errorf("it is refused with %v, want %q", err, want)
		}
		m.runs("echo 2 > b.local")
	}
	if done, err := m.completes(task); err != nil || done.Status != team.Completed {
		t.Errorf("it is %s, %v", done.Status, err)
	}
}
