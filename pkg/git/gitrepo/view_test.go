package gitrepo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A view is made once for all who look at a commit, and stays while one of them does.
func TestView(t *testing.T) {
	r := setUp(t)
	first := r.head()
	dir, release, err := r.View(r.ctx, first, "")
	r.must(err)
	if got := read(t, dir+"/sub/inner.txt"); got != "inner\n" {
		t.Errorf("it has %q", got)
	}
	if _, err := os.Lstat(dir + "/.git"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has a .git: %v", err)
	}
	made, err := os.Stat(dir)
	r.must(err)
	again, done, err := r.View(r.ctx, first, "sub")
	r.must(err)
	if is, err := os.Stat(filepath.Dir(again)); err != nil || !os.SameFile(made, is) || filepath.Base(again) != "sub" {
		t.Errorf("another view of the same commit is %s: %v", again, err)
	}
	done()

	second := r.work("T-001", "git rm -qr sub; echo two > two.txt")
	newer, done, err := r.View(r.ctx, second, "sub")
	r.must(err)
	if entries, err := os.ReadDir(newer); err != nil || len(entries) > 0 {
		t.Errorf("a folder that the commit lacks has %v, %v", entries, err)
	}
	done()
	if read(t, filepath.Dir(newer)+"/two.txt") != "two\n" || read(t, dir+"/sub/inner.txt") != "inner\n" {
		t.Error("the view that is still open has changed")
	}
	release()
	third := r.work("T-002", "rm -rf sub; ln -s nowhere/at/all sub")
	_, _, err = r.View(r.ctx, third, "sub")
	if err == nil {
		t.Error("a link that leads nowhere is a folder")
	}
	for _, old := range []string{dir, filepath.Dir(newer)} {
		if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, which is not open, is still there: %v", old, err)
		}
	}
}

// Of many that look at a new commit at the same time, one makes its files, and none sees half of them.
func TestViewTogether(t *testing.T) {
	r := setUp(t)
	at := r.work("T-001", "for i in $(seq 200); do echo $i > f$i; done")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, release, err := r.View(r.ctx, at, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 203 {
				t.Errorf("it has %d entries: %v", len(entries), err)
			}
		})
	}
	wg.Wait()
}
