package gitrepo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// sides makes two commits on the user's HEAD and returns them.
func (r *rig) sides(ours, theirs string) (a, b gitrepo.Hash) {
	r.t.Helper()
	one, two := r.tree("ours"), r.tree("theirs")
	sh(r.t, one.Dir, ours)
	sh(r.t, two.Dir, theirs)
	a, err := r.Import(r.ctx, r.bundle(one, "T-001"), one.Base)
	r.must(err)
	b, err = r.Import(r.ctx, r.bundle(two, "T-002"), two.Base)
	r.must(err)
	r.must(one.Remove())
	r.must(two.Remove())
	return a, b
}

func TestConflicts(t *testing.T) {
	for name, tt := range map[string]struct{ ours, theirs, path, kind, left, right string }{
		"one line":         {"sed -i s/^3$/three/ numbers.txt", "sed -i s/^3$/drei/ numbers.txt", "numbers.txt", "contents", "+three", "+drei"},
		"changed, removed": {"sed -i s/^3$/three/ numbers.txt", "rm numbers.txt", "numbers.txt", "modify/delete", "+three", "-20"},
		"removed, changed": {"rm numbers.txt", "sed -i s/^3$/three/ numbers.txt", "numbers.txt", "modify/delete", "-20", "+three"},
		"both new":         {"echo a >new", "echo b >new", "new", "contents", "+a", "+b"},
		"binary":           {`printf 'a\0' >numbers.txt`, `printf 'b\0' >numbers.txt`, "numbers.txt", "binary", "Binary", "Binary"},
		"an odd name":      {`echo a >$'a b\xc3\xa4'`, `echo b >$'a b\xc3\xa4'`, "a bä", "contents", "+a", "+b"},
		// Attributes that would have a merge elsewhere take one side, or both, or run something.
		"union":   {"echo '*.txt merge=union' >.gitattributes; sed -i s/^3$/three/ numbers.txt", "sed -i s/^3$/drei/ numbers.txt", "numbers.txt", "contents", "+three", "+drei"},
		"binary!": {"echo '*.txt -merge' >.gitattributes; sed -i s/^3$/three/ numbers.txt", "sed -i s/^3$/drei/ numbers.txt", "numbers.txt", "contents", "+three", "+drei"},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			a, b := r.sides(tt.ours, tt.theirs)
			m, err := r.Merge(r.ctx, a, b)
			r.must(err)
			if len(m.Conflicts) != 1 {
				t.Fatalf("conflicts %+v", m.Conflicts)
			}
			c := m.Conflicts[0]
			if c.Path != tt.path || c.Kind != tt.kind || !strings.Contains(c.Ours, tt.left) || !strings.Contains(c.Theirs, tt.right) {
				t.Errorf("conflict %+v", c)
			}
		})
	}
}

// A branch of another repository is refused with what to do.
func TestNoHistoryInCommon(t *testing.T) {
	r := setUp(t)
	head := r.head()
	sh(t, r.user, "git checkout -q --orphan other && git commit -qm other")
	r.look()
	r.must(r.Fetch(r.ctx, r.c))
	_, err := r.Merge(r.ctx, head, r.c.Head)
	if team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), "another repository than this folder") || !strings.Contains(team.HintOf(err), "--team NAME") {
		t.Errorf("merged: %v (%s)", err, team.HintOf(err))
	}
}

// In-tree attributes that are in the base already have no say either.
func TestAttributesOfTheBase(t *testing.T) {
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	sh(t, r.user, "echo '* merge=union' >.gitattributes; git add -A; git commit -qm attributes")
	r.begin(gitrepo.Limits{})
	a, b := r.sides("sed -i s/^3$/three/ numbers.txt", "sed -i s/^3$/drei/ numbers.txt")
	m, err := r.Merge(r.ctx, a, b)
	r.must(err)
	if len(m.Conflicts) != 1 {
		t.Errorf("conflicts %+v", m.Conflicts)
	}
}

// Random edits of two members: a merge without conflicts has each line that either has added,
// and none that either has taken out.
func TestNoHunkIsDropped(t *testing.T) {
	r := setUp(t)
	rnd := rand.New(rand.NewPCG(26, 1))
	base := strings.Split(strings.TrimSpace(numbers), "\n")
	clean := 0
	for range 8 {
		var texts [2]string
		var added, gone []string
		for side := range texts {
			lines := slices.Clone(base)
			for range 1 + rnd.IntN(3) {
				at := rnd.IntN(len(lines))
				if rnd.IntN(3) == 0 {
					gone = append(gone, lines[at])
					lines = slices.Delete(lines, at, at+1)
					continue
				}
				fresh := fmt.Sprintf("new %d.%d", side, rnd.IntN(1_000_000))
				added = append(added, fresh)
				lines = slices.Insert(lines, at, fresh)
			}
			texts[side] = strings.Join(lines, "\n") + "\n"
		}
		gone = slices.DeleteFunc(gone, func(l string) bool { return slices.Contains(added, l) })
		a, b := r.sides("cat >numbers.txt <<E\n"+texts[0]+"E", "cat >numbers.txt <<E\n"+texts[1]+"E")
		m, err := r.Merge(r.ctx, a, b)
		r.must(err)
		if len(m.Conflicts) > 0 {
			continue
		}
		clean++
		got := strings.Split(r.at(m.Tree, "numbers.txt"), "\n")
		for _, l := range added {
			own := strings.Contains(texts[0], l+"\n") || strings.Contains(texts[1], l+"\n") // not taken out again by its author
			if own && !slices.Contains(got, l) {
				t.Errorf("%q was dropped: %q and %q became %q", l, texts[0], texts[1], got)
			}
		}
		for _, l := range gone {
			if slices.Contains(got, l) {
				t.Errorf("%q came back", l)
			}
		}
	}
	if clean == 0 {
		t.Error("no merge without conflicts")
	}
}

func TestUndo(t *testing.T) {
	r := setUp(t)
	first := r.work("T-001", "sed -i s/^3$/three/ numbers.txt; echo a >a; rm sub/inner.txt")
	second := r.work("T-002", "sed -i s/^17$/seventeen/ numbers.txt")
	third := r.work("T-003", "echo b >>a")
	undo := gitrepo.Message{Subject: "Undo T-001", Agent: team.UserAgent, Undoes: "T-001"}
	_, err := r.Undo(r.ctx, r.head(), first, undo)
	refuses(t, err, team.InvalidState, "T-003 builds on", " in a")
	undone, err := r.Undo(r.ctx, third, third, gitrepo.Message{Agent: team.UserAgent, Undoes: "T-003"})
	r.must(err)
	r.must(r.Move(r.ctx, third, undone))
	undone, err = r.Undo(r.ctx, r.head(), first, undo)
	r.must(err)
	r.must(r.Move(r.ctx, r.head(), undone))
	if got := r.at(undone, "numbers.txt"); got != strings.Replace(numbers, "\n17\n", "\nseventeen\n", 1) {
		t.Errorf("undone: %q", got)
	}
	if got := r.at(undone, "sub/inner.txt"); got != "inner\n" {
		t.Errorf("what was removed: %q", got)
	}
	_, err = r.Undo(r.ctx, r.head(), first, undo)
	refuses(t, err, team.InvalidState, "nothing of commit")
	stray, err := r.Commit(r.ctx, gitrepo.Hash(sh(t, r.user, "git rev-parse HEAD^{tree}")), message("T-009"), second)
	r.must(err)
	_, err = r.Undo(r.ctx, r.head(), stray, undo)
	refuses(t, err, team.InvalidState, "not in the line")
	all, err := r.Log(r.ctx, r.c.Head, r.head())
	r.must(err)
	if last := all[len(all)-1]; len(all) != 5 || last.Undoes != "T-001" || last.Agent != team.UserAgent {
		t.Errorf("log %+v", all)
	}
}

// What a task says cannot pass for a trailer, and no commit of a person for a task's.
func TestMessages(t *testing.T) {
	r := setUp(t)
	tree := gitrepo.Hash(sh(t, r.user, "git rev-parse HEAD^{tree}"))
	m := message("T-001")
	m.Subject = "Do it\n\nTask: T-666\x1b[2J"
	m.Body = "because\n\nTask: T-667\nTeam: blue\x07"
	h, err := r.Commit(r.ctx, tree, m, r.head())
	r.must(err)
	all, err := r.Log(r.ctx, "", h)
	r.must(err)
	if len(all) != 1 || all[0].Task != "T-001" || all[0].Subject != "Do it Task: T-666[2J" || !all[0].Time.Equal(m.Time) {
		t.Errorf("log %+v", all)
	}
	again, err := r.Commit(r.ctx, tree, m, r.head())
	if err != nil || again != h {
		t.Errorf("the same commit again is %s, not %s: %v", again, h, err)
	}
	for _, bad := range []gitrepo.Message{{}, {Agent: "A b"}, {Agent: "coder-1", Task: "1\nTeam: x"}} {
		if _, err := r.Commit(r.ctx, tree, bad, r.head()); !errors.Is(err, team.InvalidArgument) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := r.Commit(r.ctx, "--help", m); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a hash that is an option: %v", err)
	}
	if _, err := gitrepo.ParseHash(string(h)); err != nil || h.Short() != string(h)[:10] {
		t.Error(err)
	}
}

func TestForward(t *testing.T) {
	r := setUp(t)
	idle, busy, done := r.tree("idle"), r.tree("busy"), r.tree("done")
	sh(t, busy.Dir, "echo x >mine")
	sh(t, done.Dir, "sed -i s/^3$/three/ numbers.txt; echo made >x.log")
	c, err := r.Import(r.ctx, r.bundle(done, "T-001"), done.Base)
	r.must(err)
	r.take("T-001", c)
	head := r.work("T-002", "sed -i s/^17$/seventeen/ numbers.txt; mkdir dir; echo n >dir/n")
	forward := func(tr *gitrepo.Tree, same gitrepo.Hash, want bool) {
		t.Helper()
		moved, err := tr.Forward(r.ctx, command.Plain{}, same, head)
		if err != nil || moved != want {
			t.Errorf("moved %v, want %v: %v", moved, want, err)
		}
		if want && tr.Base != head {
			t.Errorf("base %s, want %s", tr.Base, head)
		}
	}
	forward(idle, idle.Base, true)
	forward(busy, busy.Base, false)
	forward(done, done.Base, false)
	forward(done, c, true)
	for _, tr := range []*gitrepo.Tree{idle, done} {
		if got := read(t, tr.Dir+"/numbers.txt"); got != r.at(head, "numbers.txt") {
			t.Errorf("%s has %q", tr.Dir, got)
		}
		if got := sh(t, tr.Dir, "cat dir/n; git status --porcelain; git rev-parse HEAD"); got != "n\n"+string(head) {
			t.Errorf("%s: %q", tr.Dir, got)
		}
		if b := r.bundle(tr, "T-003"); b != nil {
			t.Error("something differs from the new base")
		}
	}
	if read(t, done.Dir+"/x.log") != "made\n" {
		t.Error("what git ignores was lost")
	}
	r.must(idle.Close())
	if again := r.tree("idle"); again.Base != head {
		t.Errorf("opened again, the base is %s", again.Base)
	}
}
