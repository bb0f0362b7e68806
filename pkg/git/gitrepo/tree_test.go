package gitrepo_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

func TestTree(t *testing.T) {
	r := setUp(t)
	sh(t, r.user, "mkdir -p sub/deep; echo '/private' >>.git/info/exclude")
	r.user += "/sub/deep"
	r.look()
	tr := r.tree("t-001")
	if tr.Dir != filepath.Join(tr.Root, "sub", "deep") || tr.Base != r.head() {
		t.Errorf("%+v", tr)
	}
	if got := sh(t, tr.Dir, "git status --porcelain; git branch --show-current; cat ../inner.txt; touch ../../private; git status --porcelain"); got != "work/t-001\ninner" {
		t.Errorf("the member sees %q", got)
	}
	_, err := r.Tree(r.ctx, gitrepo.Plan{Name: "t-001", At: r.head(), Member: "coder-1"})
	refuses(t, err, team.Busy, "another process")
	sh(t, tr.Dir, "echo mine >mine")
	r.must(tr.Close())
	r.work("T-002", "echo x >x") // the line moves on
	again := r.tree("t-001")
	if again.Base != r.c.Head || read(t, again.Dir+"/mine") != "mine\n" {
		t.Errorf("opened again: %+v", again)
	}
	r.must(again.Remove())
	if left := sh(t, r.dir, "ls trees"); left != "" {
		t.Errorf("left: %q", left)
	}
	for _, name := range []string{"", "..", "a/b", ".x", "x.json", "x.lock", "A"} {
		_, err := r.Tree(r.ctx, gitrepo.Plan{Name: name, At: r.head(), Member: "coder-1"})
		refuses(t, err, team.InvalidArgument, "no name")
	}
}

// A file that is written within the second in which git has noted it, and keeps its length, has
// changed.
func TestSameSecond(t *testing.T) {
	r := setUp(t)
	past := time.Now().Add(-time.Hour) // so that copies of the index are younger
	same := func(file, index string) {
		t.Helper()
		r.must(os.Chtimes(file, past, past))
		sh(t, filepath.Dir(file), "git config core.checkStat minimal; git update-index --refresh")
		write(t, file, strings.Replace(numbers, "3", "x", 1))
		for _, name := range []string{file, index} {
			r.must(os.Chtimes(name, past, past))
		}
	}
	tr := r.tree("t-001")
	same(tr.Dir+"/numbers.txt", tr.Root+"/.git/index")
	if b := r.bundle(tr, "T-001"); b == nil {
		t.Error("the member's change was missed")
	}
	same(r.user+"/numbers.txt", r.user+"/.git/index")
	if names, err := r.Changes(r.ctx, r.c); err != nil || len(names) != 1 {
		t.Errorf("the user's change was missed: %q %v", names, err)
	}
}

// A tree whose making was cut off is made again, as is one that cannot be made at first.
func TestTreeCutOff(t *testing.T) {
	r := setUp(t)
	write(t, r.dir+"/tmp/tree-t-001/.git/config", "half")
	write(t, r.dir+"/trees/t-001/half", "half")
	tr := r.tree("t-001")
	if got := sh(t, tr.Dir, "git status --porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	_, err := r.Tree(r.ctx, gitrepo.Plan{Name: "t-002", At: "1234567890123456789012345678901234567890", Member: "coder-1"})
	if err == nil {
		t.Fatal("a tree of a commit that is not there")
	}
	if left := sh(t, r.dir, "ls tmp; ls -d trees/t-002 2>/dev/null || true"); left != "" {
		t.Errorf("left: %q", left)
	}
	r.tree("t-002")
}

func TestSweep(t *testing.T) {
	r := setUp(t)
	open, kept, stale := r.tree("open"), r.tree("kept"), r.tree("stale")
	r.must(kept.Close())
	sh(t, stale.Dir, "mkdir -p a/b; echo x >a/b/c; ln -s "+r.user+" out; chmod 0 a/b; chmod 0555 a .git/objects")
	r.must(stale.Close())
	write(t, r.dir+"/tmp/old/x", "x")
	write(t, r.dir+"/tmp/new/x", "x")
	past := time.Now().Add(-time.Hour)
	r.must(os.Chtimes(r.dir+"/tmp/old", past, past))
	removed, err := r.Sweep(func(name string) bool { return name == "kept" })
	r.must(err)
	if !slices.Equal(removed, []string{"stale"}) {
		t.Errorf("removed %q", removed)
	}
	if got := sh(t, r.dir, "ls -d trees/*/ tmp/*"); got != "tmp/new\ntrees/kept/\ntrees/open/" {
		t.Errorf("left %q", got)
	}
	if read(t, r.user+"/numbers.txt") != numbers || read(t, open.Dir+"/numbers.txt") != numbers {
		t.Error("too much was removed")
	}
}

// A git that was killed leaves the lock of a ref, and no git could write that ref again.
func TestStaleLocks(t *testing.T) {
	r := setUp(t)
	head := r.head()
	r.must(r.Pin(r.ctx, "of/one", head))
	past := time.Now().Add(-time.Hour)
	var locks []string
	for _, ref := range []string{"heads/" + r.Branch(), "agentteam/pins/of/one"} {
		lock := r.dir + "/line.git/refs/" + ref + ".lock"
		write(t, lock, "")
		r.must(os.Chtimes(lock, past, past))
		locks = append(locks, lock)
	}
	fresh := r.dir + "/line.git/packed-refs.lock"
	write(t, fresh, "")
	if err := r.Pin(r.ctx, "of/one", head); err == nil {
		t.Error("a lock keeps nobody out")
	}
	_, err := r.Sweep(func(string) bool { return true })
	r.must(err)
	for _, lock := range locks {
		if _, err := os.Stat(lock); err == nil {
			t.Errorf("%s is there", lock)
		}
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a lock that a git may have: %v", err)
	}
	r.must(os.Remove(fresh))
	r.must(r.Pin(r.ctx, "of/one", head))
}

func TestLinks(t *testing.T) {
	r := setUp(t)
	sh(t, r.user, "mkdir -p node_modules/.bin sub/node_modules; echo m >node_modules/m; ln -s ../m node_modules/.bin/m; mkfifo node_modules/pipe; echo l >'a b.log'; ln -s /etc node_modules/out")
	plan := gitrepo.Plan{Name: "copied", At: r.head(), Member: "coder-1", From: r.c, Links: []string{"node_modules", "a b.log"}}
	tr, err := r.Tree(r.ctx, plan)
	r.must(err)
	if got := sh(t, tr.Dir, "cat node_modules/.bin/m 'a b.log'; git status --porcelain --ignored=no; echo changed >>node_modules/m; ls node_modules"); got != "m\nl\nm\nout" {
		t.Errorf("copied: %q", got)
	}
	if len(tr.Mounts) != 0 || read(t, r.user+"/node_modules/m") != "m\n" {
		t.Errorf("the user's file was written, or is mounted: %+v", tr.Mounts)
	}
	plan.Name, plan.Mounted = "mounted", true
	tr, err = r.Tree(r.ctx, plan)
	r.must(err)
	if len(tr.Mounts) != 2 || tr.Mounts[tr.Dir+"/node_modules"] != r.user+"/node_modules" {
		t.Errorf("mounts %+v", tr.Mounts)
	}
	if got := sh(t, tr.Dir, "ls node_modules; cat 'a b.log'"); got != "" {
		t.Errorf("the places: %q", got)
	}
	sh(t, r.user, "ln -s /etc etc.log; ln -s .git git.log; mkdir sub/x.log; touch sub/x.log/tracked; git add -f sub/x.log")
	for name, word := range map[string]string{"numbers.txt": "does not ignore", "../x": "no path in the workspace", "/etc": "no path in the workspace", ".": "no path in the workspace", ".git": "no path in the workspace", "a/.GIT/b": "no path in the workspace",
		"etc.log": "out of the repository", "git.log": "into a .git", "gone": "no such", "sub/x.log": "does not ignore"} {
		plan.Name, plan.Links = "refused", []string{name}
		_, err = r.Tree(r.ctx, plan)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the line has where a link would be is its own, and stays.
func TestLinkOverCommitted(t *testing.T) {
	r := setUp(t)
	sh(t, r.user, "mkdir node_modules; echo m >node_modules/m")
	r.work("T-001", "mkdir node_modules; echo ours >node_modules/m; git add -f node_modules; sed -i /node_modules/d .gitignore")
	for _, mounted := range []bool{false, true} {
		tr, err := r.Tree(r.ctx, gitrepo.Plan{Name: fmt.Sprint("t-", mounted), At: r.head(), Member: "coder-1", From: r.c, Links: []string{"node_modules"}, Mounted: mounted})
		r.must(err)
		if got := sh(t, tr.Dir, "cat node_modules/m; git status --porcelain"); got != "ours" || len(tr.Mounts) > 0 {
			t.Errorf("mounted %v: %q, %v", mounted, got, tr.Mounts)
		}
	}
}

// Two hosts that share nothing but what they send each other.
func TestTwoHosts(t *testing.T) {
	for name, clone := range map[string]string{"whole": "", "shallow": "--depth=1"} {
		t.Run(name, func(t *testing.T) {
			here := setUp(t)
			sh(t, here.user, "echo 2 >second; git add -A; git commit -qm second; git clone -q "+clone+" file://$PWD ../clone")
			here.user = filepath.Join(filepath.Dir(here.user), "clone")
			here.begin(gitrepo.Limits{})
			there := &rig{t: t, ctx: t.Context(), dir: filepath.Join(t.TempDir(), "line")}
			var err error
			there.Repo, err = gitrepo.Open(t.Context(), there.dir, "red", gitrepo.Limits{})
			there.must(err)
			var b bytes.Buffer
			here.must(here.Bundle(here.ctx, &b, "", here.head()))
			cut := b.Bytes()[:b.Len()-30]
			_, err = there.Receive(there.ctx, bytes.NewReader(cut))
			refuses(t, err, team.InvalidArgument, "cut short")
			base, err := there.Receive(there.ctx, &b)
			there.must(err)
			there.must(there.Move(there.ctx, "", base))

			head := there.work("T-001", "sed -i s/^3$/three/ numbers.txt; git log >/dev/null")
			b.Reset()
			there.must(there.Bundle(there.ctx, &b, base, head))
			got, err := here.Receive(here.ctx, bytes.NewReader(b.Bytes()))
			here.must(err)
			here.must(here.Move(here.ctx, base, got))
			here.must(here.Land(here.ctx, here.c, got))
			if got := read(t, here.user+"/numbers.txt"); !strings.Contains(got, "three") {
				t.Errorf("landed %q", got)
			}
			sh(t, here.user, "ln -s /etc out; git add out; git commit -qm 'a link that no task may make'")
			here.look()
			here.must(here.Fetch(here.ctx, here.c))
			next, err := here.Next(here.ctx, here.c.Head, gitrepo.Message{Agent: team.UserAgent})
			here.must(err)
			var more bytes.Buffer
			here.must(here.Bundle(here.ctx, &more, got, next))
			got, err = there.Receive(there.ctx, &more)
			there.must(err)
			there.must(there.Move(there.ctx, head, got))
			fresh, err := gitrepo.Open(t.Context(), filepath.Join(t.TempDir(), "line"), "red", gitrepo.Limits{})
			here.must(err)
			_, err = fresh.Receive(t.Context(), bytes.NewReader(b.Bytes()))
			refuses(t, err, team.NotFound, "not here")
		})
	}
}

// Many imports are many packs, which are put together; all of it stays.
func TestTidy(t *testing.T) {
	r := setUp(t)
	stray := strings.Fields(sh(t, r.dir+"/line.git", `for i in {1..42}; do echo $i | git hash-object -w --stdin | tee -a ../all | git pack-objects -q objects/pack/pack >/dev/null
		done; git prune-packed; cat ../all; rm ../all`))
	tr := r.tree("t-001")
	sh(t, tr.Dir, "echo x >x")
	c, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
	r.must(err)
	packs, err := filepath.Glob(r.dir + "/line.git/objects/pack/*.pack")
	if err != nil || len(packs) > 5 {
		t.Errorf("%d packs: %v", len(packs), err)
	}
	for _, h := range append(stray, string(c)) { // no ref has any of them
		sh(t, r.dir+"/line.git", "git cat-file -e "+h)
	}
	sh(t, r.dir, "git --git-dir=line.git fsck --strict 2>&1")
}
