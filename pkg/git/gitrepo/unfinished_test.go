package gitrepo_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// saved stores what is changed in a tree in the repository.
func (r *rig) saved(tr *gitrepo.Tree, into *gitrepo.Repo) (gitrepo.Unfinished, []string) {
	r.t.Helper()
	b, out, err := tr.Save(r.ctx, command.Plain{}, message("T-001"))
	r.must(err)
	u, err := into.ImportUnfinished(r.ctx, b, tr.Base)
	r.must(err)
	return u, out
}

// What a member has changed is in the tree of the next holder on another host as it was: new, changed, removed and
// ignored files, none of them committed and what was ignored still ignored. The line has moved meanwhile.
func TestUnfinished(t *testing.T) {
	r := setUp(t)
	sh(t, r.user, "echo /private >>.git/info/exclude; git rm -q --cached sub/inner.txt; git add sub/inner.txt")
	r.look()
	tr := r.tree("t-001")
	sh(t, tr.Dir, `sed -i s/^3$/three/ numbers.txt; rm sub/inner.txt; mkdir new; echo new >'new/a b'; chmod +x 'new/a b'
		echo log >x.log; mkdir -p node_modules/m; echo m >node_modules/m/m.js; ln -s /usr/bin/env node_modules/env; echo secret >private
		echo staged >staged; git add staged; git commit -qm mine; git add -f x.log`)
	other, err := gitrepo.Open(r.ctx, filepath.Join(t.TempDir(), "elsewhere"), "red", gitrepo.Limits{})
	r.must(err)
	r.must(other.Fetch(r.ctx, r.c))
	r.must(other.Move(r.ctx, "", r.c.Head))
	u, out := r.saved(tr, other)
	if len(out) > 0 || u.Files == u.Whole {
		t.Errorf("%+v, left out %q", u, out)
	}
	head := r.work("T-002", "sed -i s/^17$/seventeen/ numbers.txt")
	r.must(other.Fetch(r.ctx, r.c))
	b, err := os.Create(filepath.Join(t.TempDir(), "bundle"))
	r.must(err)
	r.must(r.Bundle(r.ctx, b, r.c.Head, head))
	_, err = b.Seek(0, 0)
	r.must(err)
	_, err = other.Receive(r.ctx, b)
	r.must(err)
	r.must(other.Move(r.ctx, r.c.Head, head))
	next, err := other.Tree(r.ctx, gitrepo.Plan{Name: "t-001", At: head, Member: "coder-2", Work: u, Branches: map[string]gitrepo.Hash{"returned/T-001/1": u.Files}})
	r.must(err)
	defer next.Close()
	want := ` M numbers.txt
 D sub/inner.txt
?? new/
?? staged
!! node_modules/
!! private
!! x.log`
	if got := sh(t, next.Dir, "git status --porcelain --ignored"); got != want {
		t.Errorf("the next holder sees\n%s", got)
	}
	if got := sh(t, next.Dir, "sed -n '3p;17p' numbers.txt; cat 'new/a b' x.log node_modules/m/m.js private staged; readlink node_modules/env; test -x 'new/a b'; git diff --name-only HEAD~1 returned/T-001/1 | tr '\\n' ' '"); got !=
		"three\nseventeen\nnew\nlog\nm\nsecret\nstaged\n/usr/bin/env\nnew/a b numbers.txt staged sub/inner.txt " {
		t.Errorf("the next holder has\n%s", got)
	}
	work, _, err := next.Commit(r.ctx, command.Plain{}, message("T-001"))
	r.must(err)
	c, err := other.Import(r.ctx, work, next.Base)
	r.must(err)
	files, err := other.Files(r.ctx, head, c)
	r.must(err)
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	if got := strings.Join(names, " "); got != "new/a b numbers.txt staged sub/inner.txt" {
		t.Errorf("it commits %s", got)
	}
}

// Nothing is stored of a tree without changes, nor of one that has the user's files only.
func TestNothingUnfinished(t *testing.T) {
	r := setUp(t)
	sh(t, r.user, "mkdir node_modules; echo m >node_modules/m")
	tr, err := r.Tree(r.ctx, gitrepo.Plan{Name: "t-001", At: r.head(), Member: "coder-1", From: r.c, Links: []string{"node_modules"}})
	r.must(err)
	defer tr.Close()
	sh(t, tr.Dir, "touch numbers.txt; test -f node_modules/m")
	if b, out, err := tr.Save(r.ctx, command.Plain{}, message("T-001")); err != nil || b != nil || out != nil {
		t.Errorf("%d bytes, %q, %v", len(b), out, err)
	}
}

// What is too large, or cannot be in a commit, is left out by name, the smallest files first; the others are stored.
func TestUnfinishedTooLarge(t *testing.T) {
	r := setUp(t)
	r.begin(gitrepo.Limits{Bundle: 200_000, Files: 50})
	tr := r.tree("t-001")
	sh(t, tr.Dir, `head -c 150000 /dev/urandom >large.bin; head -c 90000 /dev/urandom >numbers.txt; echo a >a; touch 'b\c'
		git init -q own; touch own/x; mkdir -p node_modules/of; seq 60 | xargs -I{} touch node_modules/of/{}; echo x >x.log; head -c 140000 /dev/urandom >y.log; printf z >"$(printf 'z\n.log')"
		mkdir dist; echo /dist /build >.gitignore; printf '/dist\n/build\n*.log\nnode_modules\n' >.gitignore; git init -q dist/own; mkdir build; echo b >build/b`)
	u, out := r.saved(tr, r.Repo)
	want := []string{"large.bin (147 KiB)", `b\c (no commit may have its name, or one in it)`, "own/ (a separate git repository)",
		"node_modules/ (0 KiB in 60 files)", "y.log (137 KiB)", `z .log (no commit may have its name, or one in it)`, "dist/ (a git repository is in it)"}
	slices.Sort(want)
	slices.Sort(out)
	if !slices.Equal(out, want) {
		t.Errorf("left out\n%q, want\n%q", out, want)
	}
	if got := sh(t, r.dir, "git --git-dir=line.git diff --name-only "+string(r.head())+" "+string(u.Whole)+" | tr '\\n' ' '"); got != ".gitignore a build/b numbers.txt x.log " {
		t.Errorf("stored is %s", got)
	}
}

// A tree becomes that of the member's next hold with all that is in it, and one in conflict has git's markers: both
// are changes of the head, and a commit that still has markers is found.
func TestOnto(t *testing.T) {
	r := setUp(t)
	old := r.tree("t-001.coder-1.a")
	sh(t, old.Dir, "sed -i s/^3$/mine/ numbers.txt; echo log >x.log; echo new >new")
	r.must(old.Keep(7))
	r.must(old.Close())
	head := r.work("T-002", "sed -i s/^3$/theirs/ numbers.txt")
	if epoch, ok := r.EpochOf("t-001.coder-1.a"); !ok || epoch != 7 {
		t.Errorf("epoch %d, %v", epoch, ok)
	}
	tr, err := r.Tree(r.ctx, gitrepo.Plan{Name: "t-001.coder-1.b", At: head, Member: "coder-1", From: r.c, Continues: "t-001.coder-1.a", Epoch: 9})
	r.must(err)
	defer tr.Close()
	if names, _ := r.Trees(); !slices.Equal(names, []string{"t-001.coder-1.b"}) || !tr.Begun || tr.Base == head || read(t, tr.Dir+"/x.log") != "log\n" {
		t.Errorf("there are %q, %+v", names, tr)
	}
	work, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
	r.must(err)
	m, err := r.Merge(r.ctx, head, work)
	r.must(err)
	sh(t, tr.Dir, "echo late >late")
	if moved, err := tr.Onto(r.ctx, command.Plain{}, work, m.Tree, head); moved || err != nil {
		t.Errorf("it moved a tree that has changed since: %v", err)
	}
	sh(t, tr.Dir, "rm late")
	moved, err := tr.Onto(r.ctx, command.Plain{}, work, m.Tree, head)
	r.must(err)
	if got := sh(t, tr.Dir, "git status --porcelain --ignored; grep -c '^[<=>]' numbers.txt; git rev-parse HEAD"); !moved || tr.Base != head || got != " M numbers.txt\n?? new\n!! x.log\n3\n"+string(head) {
		t.Errorf("%v, %s", moved, got)
	}
	c, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
	r.must(err)
	if marked, err := r.Marked(r.ctx, head, c); err != nil || !slices.Equal(marked, []string{"numbers.txt"}) {
		t.Errorf("marked are %q, %v", marked, err)
	}
	sh(t, tr.Dir, "sed -i '/^[<=>]/d' numbers.txt; printf '<<<<<<< HEAD\\n' >new")
	c, err = r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
	r.must(err)
	if marked, err := r.Marked(r.ctx, head, c); err != nil || len(marked) > 0 {
		t.Errorf("marked are %q, %v", marked, err)
	}
}

// What is to be merged is one commit; unfinished work is two at most, and links that lead out are in that only.
func TestUnfinishedIsNotMerged(t *testing.T) {
	r := setUp(t)
	tr := r.tree("t-001")
	sh(t, tr.Dir, "echo log >x.log; ln -s /etc/passwd link")
	b, _, err := tr.Save(r.ctx, command.Plain{}, message("T-001"))
	r.must(err)
	_, err = r.Import(r.ctx, b, tr.Base)
	refuses(t, err, team.InvalidArgument, "not one commit")
	sh(t, tr.Dir, "rm x.log")
	b, _, err = tr.Save(r.ctx, command.Plain{}, message("T-001"))
	r.must(err)
	_, err = r.Import(r.ctx, b, tr.Base)
	refuses(t, err, team.InvalidArgument, "link")
	if u, err := r.ImportUnfinished(r.ctx, b, tr.Base); err != nil || u.Files != u.Whole {
		t.Errorf("%+v, %v", u, err)
	}
}

// unprivileged runs commands without root's right to read all files.
type unprivileged struct{ command.Plain }

func (u unprivileged) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	if os.Geteuid() == 0 {
		c.Args = append([]string{"setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"}, c.Args...)
	}
	return u.Plain.Run(ctx, c)
}

// What cannot be read is left out by name, files of the line and ignored ones too; the others are stored.
func TestUnfinishedUnreadable(t *testing.T) {
	r := setUp(t)
	tr := r.tree("t-001")
	sh(t, tr.Dir, `printf 'cache\n*.log\n' >.gitignore; mkdir -p shut/in own cache/in; echo x >shut/in/x; echo s >own/secret; echo c >cache/in/c; echo l >x.log; echo l >y.log; echo a >a
		chmod 0 shut own/secret sub cache x.log`)
	defer sh(t, tr.Dir, "chmod 700 shut sub cache")
	b, out, err := tr.Save(r.ctx, unprivileged{}, message("T-001"))
	r.must(err)
	slices.Sort(out)
	if want := []string{"cache/ (it cannot be read)", "own/secret (it cannot be read)", "shut (it cannot be read)", "sub (it cannot be read)", "x.log (it cannot be read)"}; !slices.Equal(out, want) {
		t.Errorf("left out\n%q, want\n%q", out, want)
	}
	u, err := r.ImportUnfinished(r.ctx, b, tr.Base)
	r.must(err)
	if got := sh(t, r.dir, "git --git-dir=line.git diff --name-status "+string(r.head())+" "+string(u.Whole)+" | tr '\\n\\t' '  '"); got != "M .gitignore A a A y.log " {
		t.Errorf("stored is %s", got)
	}
}
