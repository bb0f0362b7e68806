package gitrepo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// manyFiles makes a user's repository of n files and a line for it.
func manyFiles(b *testing.B, n int) *rig {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "project")
	for i := range n {
		write(b, fmt.Sprintf("%s/d%d/s%d/f%d.txt", dir, i/500, i%25, i), fmt.Sprintf("file %d\n%s", i, numbers))
	}
	sh(b, dir, "git init -q && git add -A && git commit -qm first")
	r := &rig{t: b, ctx: b.Context(), user: dir}
	r.begin(gitrepo.Limits{})
	return r
}

// A tree of 50,000 files beside what git makes of them.
func BenchmarkTree(b *testing.B) {
	r := manyFiles(b, 50_000)
	b.Run("git worktree add", func(b *testing.B) {
		for i := range b.N {
			dir := fmt.Sprintf("%s/wt%d", b.TempDir(), i)
			sh(b, r.user, "git worktree add -q --detach "+dir)
			b.StopTimer()
			sh(b, r.user, "git worktree remove -f "+dir)
			b.StartTimer()
		}
	})
	b.Run("Tree", func(b *testing.B) {
		for i := range b.N {
			tr, err := r.Tree(b.Context(), gitrepo.Plan{Name: fmt.Sprintf("t-%03d", i), At: r.c.Head, Member: "coder-1", From: r.c})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := tr.Remove(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	tr := r.tree("work")
	b.Run("Commit and Import", func(b *testing.B) {
		for i := range b.N {
			if err := os.WriteFile(tr.Dir+"/d0/s0/f0.txt", fmt.Appendf(nil, "%d %p", i, b), 0o600); err != nil {
				b.Fatal(err)
			}
			if _, err := r.Import(b.Context(), r.bundle(tr, "T-001"), tr.Base); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What one task costs the queue, on a line of a repository with 1,000 files.
func BenchmarkTask(b *testing.B) {
	r := manyFiles(b, 1000)
	bundles := make([][]byte, b.N)
	for i := range bundles {
		tr := r.tree("work")
		write(b, fmt.Sprintf("%s/new/f%d", tr.Dir, i), fmt.Sprint(i))
		bundles[i] = r.bundle(tr, "T-001")
		if err := tr.Remove(); err != nil {
			b.Fatal(err)
		}
	}
	base := r.head()
	b.ResetTimer()
	for i := range bundles {
		h, err := r.Import(b.Context(), bundles[i], base)
		if err != nil {
			b.Fatal(err)
		}
		r.take(team.TaskID(fmt.Sprintf("T-%03d", i+1)), h)
	}
}
