package gitrepo_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// forge makes bundles that no honest git would.
type forge struct {
	t   testing.TB
	dir string // of a repository
}

func forgery(t testing.TB, r *rig) forge {
	t.Helper()
	f := forge{t, filepath.Join(t.TempDir(), "forge")}
	sh(t, r.user, "git clone -q . "+f.dir)
	return f
}

// object stores bytes as they are.
func (f forge) object(kind, content string) string {
	f.t.Helper()
	raw := fmt.Sprintf("%s %d\x00%s", kind, len(content), content)
	hash := fmt.Sprintf("%x", sha1.Sum([]byte(raw)))
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(raw)) // a buffer takes all
	z.Close()
	write(f.t, filepath.Join(f.dir, ".git", "objects", hash[:2], hash[2:]), b.String())
	return hash
}

func (f forge) blob(content string) string { return f.object("blob", content) }

// tree is a tree of entries "mode name hash".
func (f forge) tree(entries ...string) string {
	f.t.Helper()
	var b strings.Builder
	for _, e := range entries {
		mode, rest, _ := strings.Cut(e, " ")
		i := strings.LastIndex(rest, " ")
		raw, err := hex.DecodeString(rest[i+1:])
		if err != nil {
			f.t.Fatal(err)
		}
		b.WriteString(mode + " " + rest[:i] + "\x00" + string(raw))
	}
	return f.object("tree", b.String())
}

// bundle is a bundle of a commit of that tree on HEAD.
func (f forge) bundle(tree string) []byte {
	f.t.Helper()
	return f.raw("c=$(git commit-tree -m x -p HEAD " + tree + "); git update-ref refs/heads/agentteam/bundle $c; git bundle create -q b HEAD..refs/heads/agentteam/bundle")
}

func (f forge) raw(script string) []byte {
	f.t.Helper()
	sh(f.t, f.dir, script)
	b, err := os.ReadFile(filepath.Join(f.dir, "b"))
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// Nothing of a hostile bundle lands, in the repository or beside it.
func TestHostileBundles(t *testing.T) {
	r := setUp(t)
	r.begin(gitrepo.Limits{Bundle: 1 << 20, Objects: 500, Unpacked: 4 << 20, Files: 300})
	f := forgery(t, r)
	x := f.blob("x\n")
	link := func(target string) string { return "120000 link " + f.blob(target) }
	file := func(name string) string { return f.tree("100644 " + name + " " + x) }
	sub := func(dir, name string) string { return f.tree("40000 " + dir + " " + file(name)) }
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("100644 f%06d %s", i, x))
		}
		return f.tree(all...)
	}
	deep := file("f")
	for range 300 {
		deep = f.tree("40000 d " + deep)
	}
	bomb := many(10)
	for range 10 {
		var all []string
		for i := range 10 {
			all = append(all, fmt.Sprintf("40000 d%d %s", i, bomb))
		}
		bomb = f.tree(all...)
	}
	big := f.blob(strings.Repeat("0", 3<<20))
	head := string(r.head())
	for name, tt := range map[string]struct {
		tree string
		code team.Code
		word string
	}{
		"a .git":              {sub(".git", "config"), team.InvalidArgument, "hasDotgit"},
		"a .GIT":              {sub(".GIT", "config"), team.InvalidArgument, "hasDotgit"},
		"git~1":               {sub("git~1", "config"), team.InvalidArgument, "hasDotgit"},
		"a .git for macOS":    {sub(".g\u200cit", "config"), team.InvalidArgument, "hasDotgit"},
		"a .git for Windows":  {file(`a\.git\config`), team.InvalidArgument, ""},
		"..":                  {sub("..", "x"), team.InvalidArgument, "hasDotdot"},
		".":                   {sub(".", "x"), team.InvalidArgument, "hasDot"},
		"a path in a name":    {file("../../x"), team.InvalidArgument, "fullPathname"},
		"an absolute path":    {file("/etc/x"), team.InvalidArgument, "fullPathname"},
		"no name":             {file(""), team.InvalidArgument, ""},
		"a name twice":        {f.tree("100644 a "+x, "100644 a "+x), team.InvalidArgument, "duplicateEntries"},
		"a control character": {file("a\x1b[2Jb"), team.InvalidArgument, "do not show"},
		"a line end":          {file("a\nb"), team.InvalidArgument, "do not show"},
		"turned writing":      {file("a\u202etxt.exe"), team.InvalidArgument, "do not show"},
		"no UTF-8":            {file("a\xff"), team.InvalidArgument, "not UTF-8"},
		"an absolute link":    {f.tree(link("/etc/passwd")), team.InvalidArgument, "leads out"},
		"a link up":           {f.tree(link("../x")), team.InvalidArgument, "leads out"},
		"a link by a link":    {f.tree(link("a/b/../../../x")), team.InvalidArgument, "goes up again"},
		"a link into .git":    {f.tree(link(".git/config")), team.InvalidArgument, ".git"},
		"a long link":         {f.tree(link(strings.Repeat("a/", 3000))), team.InvalidArgument, "too long"},
		"a submodule":         {f.tree("160000 mod " + head), team.InvalidArgument, "mod is a separate git repository"},
		"its source":          {f.tree("100644 .gitmodules " + f.blob("[submodule \"a\"]\n\tpath = a\n\turl = https://example.org/a\n")), team.InvalidArgument, ".gitmodules"},
		"a source that runs":  {f.tree("100644 .gitmodules " + f.blob("[submodule \"a\"]\n\tpath = a\n\turl = -u./x\n")), team.InvalidArgument, ""},
		"case":                {f.tree("100644 A "+x, "120000 a "+f.blob("sub")), team.InvalidArgument, "by case only"},
		"case of a folder":    {f.tree("40000 A "+file("x"), "40000 a "+file("y")), team.InvalidArgument, "by case only"},
		"too deep":            {deep, team.InvalidArgument, "too long"},
		"many files":          {many(301), team.BudgetExceeded, "at most 300"},
		"a bomb of trees":     {bomb, team.BudgetExceeded, ""},
		"a bomb of bytes":     {f.tree("100644 a "+big, "100644 b "+f.blob(strings.Repeat("1", 3<<20))), team.BudgetExceeded, "unpacked"},
		"one file twice":      {f.tree("100644 a "+big, "100644 b "+big), team.BudgetExceeded, "bytes"},
		"no such file":        {f.tree("100644 a 1234567890123456789012345678901234567890"), team.InvalidArgument, ""},
	} {
		t.Run(name, func(t *testing.T) {
			defer unchanged(t, r)()
			f := forge{t, f.dir}
			var b []byte
			if name == "no such file" || name == "no name" { // git does not pack these by itself
				b = f.raw("c=$(git commit-tree -m x -p HEAD " + tt.tree + "); { printf '# v2 git bundle\\n-%s\\n%s refs/heads/agentteam/bundle\\n\\n' $(git rev-parse HEAD) $c; printf '%s\\n' $c " + tt.tree + " | git pack-objects -q --stdout; } >b")
			} else {
				b = f.bundle(tt.tree)
			}
			_, err := r.Import(r.ctx, b, r.head())
			refuses(t, err, tt.code, tt.word)
		})
	}
}

// unchanged returns a check that the repository has what it has now, and nothing is left beside it.
func unchanged(t testing.TB, r *rig) func() {
	t.Helper()
	const all = "cd line.git && find . -type f | sort | xargs sha256sum; find ../tmp ../.."
	before := sh(t, r.dir, all)
	return func() {
		t.Helper()
		if after := sh(t, r.dir, all); after != before {
			t.Errorf("something was left:\n%s\nbefore:\n%s", after, before)
		}
	}
}

func TestDamagedBundles(t *testing.T) {
	r := setUp(t)
	tr := r.tree("t-001")
	sh(t, tr.Dir, "sed -i s/^3$/three/ numbers.txt; head -c 3000 /dev/urandom | base64 >data")
	good := r.bundle(tr, "T-001")
	head := r.head()
	defer unchanged(t, r)()
	step := max(1, len(good)/60)
	for n := 0; n < len(good); n += step {
		_, err := r.Import(r.ctx, good[:n], head)
		refuses(t, err, team.InvalidArgument, "bundle is refused")
	}
	_, err := r.Import(r.ctx, good[:len(good)-1], head)
	refuses(t, err, team.InvalidArgument, "cut short")
	for n := bytes.Index(good, []byte("PACK")); n < len(good); n += step { // before it is a comment
		bad := bytes.Clone(good)
		bad[n] ^= 0x10
		if _, err := r.Import(r.ctx, bad, head); err == nil {
			t.Errorf("a bundle with byte %d changed is taken", n)
		}
	}
	_, err = r.Import(r.ctx, append(bytes.Clone(good), 'x'), head)
	refuses(t, err, team.InvalidArgument, "follows")
}

// A bundle is one commit on the base that the caller names.
func TestForeignBundles(t *testing.T) {
	r := setUp(t)
	head := r.head()
	f := forgery(t, r)
	const one = "echo a >a; git add a; git commit -qm a; "
	for name, tt := range map[string]struct{ script, word string }{
		"two commits":      {one + "git commit -q --allow-empty -m b; git update-ref refs/heads/agentteam/bundle HEAD; git bundle create -q b HEAD~2..refs/heads/agentteam/bundle", "not one commit"},
		"no base":          {one + "git update-ref refs/heads/agentteam/bundle HEAD; git bundle create -q b refs/heads/agentteam/bundle", "not made on"},
		"another ref":      {one + "git bundle create -q b HEAD~1..HEAD", "names"},
		"refs of the host": {one + "git update-ref refs/heads/agentteam/red HEAD; git bundle create -q b HEAD~1..refs/heads/agentteam/red", "names"},
		"a tag":            {one + "git tag -m x x; git update-ref refs/heads/agentteam/bundle HEAD; { printf '# v2 git bundle\\n-%s\\n%s refs/heads/agentteam/bundle\\n\\n' $(git rev-parse HEAD~1) $(git rev-parse x); printf '%s\\n' x ^HEAD~1 | git pack-objects -q --revs --stdout; } >b", "refused"},
		"a capability":     {one + "git update-ref refs/heads/agentteam/bundle HEAD; git bundle create -q --version=3 a.b HEAD~1..refs/heads/agentteam/bundle; sed -i 1a@filter=blob:none a.b; mv a.b b", "header"},
		"no bundle":        {"echo PACK >b", "no bundle"},
		"nothing":          {": >b", "cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			sh(t, f.dir, "git reset -q --hard "+string(head)+"; rm -f b a")
			b := forge{t, f.dir}.raw(tt.script)
			_, err := r.Import(r.ctx, b, head)
			refuses(t, err, team.InvalidArgument, tt.word)
		})
	}
	t.Run("a base that is not in the line", func(t *testing.T) {
		sh(t, f.dir, "git reset -q --hard "+string(head)+"; git commit -q --allow-empty -m b")
		b := f.bundle("HEAD^{tree}")
		_, err := r.Import(r.ctx, b, gitrepo.Hash(sh(t, f.dir, "git rev-parse HEAD")))
		refuses(t, err, team.Conflict, "not in the line")
	})
}

// What is the user's own is not judged: a link that leads out, a name of another encoding.
func TestUsersOddFiles(t *testing.T) {
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	sh(t, r.user, "ln -s /etc/hostname out; printf x >$'caf\\xe9'; printf x >README; printf x >readme; git add -A; git commit -qm odd")
	r.begin(gitrepo.Limits{})
	head := r.work("T-001", "echo x >x; rm README")
	if got := r.at(head, "readme"); got != "x" {
		t.Errorf("readme is %q", got)
	}
}

func FuzzImport(f *testing.F) {
	r := setUp(f)
	tr := r.tree("t-001")
	sh(f, tr.Dir, "sed -i s/^3$/three/ numbers.txt")
	f.Add(r.bundle(tr, "T-001"))
	head := r.head()
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := r.Import(t.Context(), b, head); err == nil {
			if ok, err := r.Has(t.Context(), h); !ok || err != nil {
				t.Errorf("taken and not there: %v", err)
			}
		}
	})
}

// A host without room is no fault of the work.
func TestNoRoom(t *testing.T) {
	r := setUp(t)
	tr := r.tree("t-001")
	sh(t, tr.Dir, "echo 1 >one")
	b := r.bundle(tr, "T-001")
	git, err := exec.LookPath("git")
	r.must(err)
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, of := range []string{"index-pack", "ls-tree", "diff-tree"} {
		for how, word := range map[string]string{
			"echo 'fatal: write error: No space left on device' >&2; exit 128": "No space",
			"echo 'fatal: Out of memory, malloc failed' >&2; exit 128":         "Out of memory",
			"kill -KILL $$": "killed",
			"kill -TERM $$": "terminated",
		} {
			write(t, bin+"/git", "#!/bin/bash\n[[ $* != *"+of+"* ]] || { "+how+"; }\nexec "+git+` "$@"`)
			r.must(os.Chmod(bin+"/git", 0o755))
			if _, err := r.Import(r.ctx, b, tr.Base); err == nil || codeOf(err) != "" || !strings.Contains(err.Error(), word) {
				t.Errorf("git %s: error %v with code %q, want %s", of, err, codeOf(err), word)
			}
		}
	}
}
