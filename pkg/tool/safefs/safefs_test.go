package safefs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/safefs"
)

// made is a folder that holds one of everything.
func made(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "a.md"), []byte("text"), 0o600),
		os.Mkdir(filepath.Join(dir, "d"), 0o700),
		syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600),
		os.Symlink("pipe.md", filepath.Join(dir, "link.md")),
		os.Symlink("/dev/tty", filepath.Join(dir, "device.md")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// None of these waits. If one did, the test would end by its time limit.
func TestNothingWaits(t *testing.T) {
	dir := made(t)
	root, err := safefs.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"pipe.md", "link.md", "pipe.md/x", "device.md", "none"} {
		if f, _, err := safefs.File(root, name); err == nil {
			t.Errorf("%s was opened: %v", name, f.Close())
		}
		if f, err := safefs.Dir(root, name); err == nil {
			t.Errorf("%s was opened as a folder: %v", name, f.Close())
		}
		if _, err := fs.ReadFile(safefs.FS(dir), name); err == nil {
			t.Errorf("%s was read", name)
		}
		if r, err := safefs.Root(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was opened as a root: %v", name, r.Close())
		}
	}
	if _, _, err := safefs.File(root, "pipe.md"); !errors.Is(err, team.InvalidArgument) || err.Error() != "pipe.md is a named pipe" {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := safefs.Root(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
}

// What is a file or a folder is opened as ever.
func TestOpen(t *testing.T) {
	dir := made(t)
	root, err := safefs.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, info, err := safefs.File(root, "a.md")
	if err != nil || info.Size() != 4 {
		t.Fatalf("%v, %v", info, err)
	}
	defer f.Close()
	if _, _, err := safefs.File(root, "d"); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a folder as a file: %v", err)
	}
	d, err := safefs.Dir(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if all, err := d.ReadDir(0); err != nil || len(all) != 5 {
		t.Errorf("%v, %v", all, err)
	}
	if data, err := fs.ReadFile(safefs.FS(dir), "a.md"); err != nil || string(data) != "text" {
		t.Errorf("%s, %v", data, err)
	}
	if all, err := fs.Glob(safefs.FS(dir), "*.md"); err != nil || len(all) != 4 {
		t.Errorf("%v, %v", all, err)
	}
}

// An entry of a folder is a file that lies there itself.
func TestEntry(t *testing.T) {
	dir := made(t)
	for _, err := range []error{
		os.Symlink("a.md", filepath.Join(dir, "soft.md")),
		os.WriteFile(filepath.Join(dir, "d", "b.md"), []byte("text"), 0o600),
		os.Symlink("d", filepath.Join(dir, "folder")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := safefs.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"soft.md", "pipe.md", "link.md", "device.md", "d", "folder", "none"} {
		if f, _, err := safefs.Entry(root, name); err == nil {
			t.Errorf("%s was opened: %v", name, f.Close())
		}
	}
	f, info, err := safefs.Entry(root, "a.md")
	if err != nil || info.Size() != 4 {
		t.Fatalf("%v, %v", info, err)
	}
	f.Close()
	// While it is opened again and again, another puts a link in its place.
	done := make(chan error)
	go func() {
		for range 300 {
			err := errors.Join(os.Symlink("d/b.md", filepath.Join(dir, "new")), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "c.md")),
				os.WriteFile(filepath.Join(dir, "new"), []byte("longer text"), 0o600), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "c.md")))
			if err != nil {
				done <- err
				return
			}
		}
		close(done)
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		if f, info, err := safefs.Entry(root, "c.md"); err == nil {
			if f.Close(); info.Size() != 11 {
				t.Errorf("it was opened by way of a link")
			}
		}
	}
}
