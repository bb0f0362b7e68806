package e2e

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentteam/pkg/teamtest/testenv"
)

// readers are the commands that need no cluster to show what is stored.
var readers = []string{
	"tasks", "tasks ls --status completed", "tasks get 2", "tasks history 1", "tasks graph", "inbox leader", "inbox", "cost --by task", "goals",
	"messages ls leader", "agents transcript coder-1", "diff", "diff 1 --stat",
}

// held is what a folder holds, but for its logs, and beside it the folder for temporary files, which has to be empty.
func held(t *testing.T, dir, tmp string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&text, "%s %v %v %x\n", path, info.Mode(), info.ModTime(), sha256.Sum256(data))
		return err
	})
	left, lerr := os.ReadDir(tmp)
	if err != nil || lerr != nil || len(left) > 0 {
		t.Errorf("%v, %v, temporary files are left: %v", err, lerr, left)
	}
	return text.String()
}

// While a cluster is down, whether it was ended or killed, the commands that read show the same as before, and nothing that is
// stored changes. The others end with 5.
func TestStoredBoard(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	tmp := t.TempDir()
	c := folder(t, rehearse(t, lineScript(2, 3, "")), "XDG_CACHE_HOME="+t.TempDir(), "TMPDIR="+tmp)
	repository(t, c.dir, "seq 1 20 | sed 's/^/line /' > shared.txt; echo .agentteam > .gitignore")
	at := filepath.Join(c.dir, ".agentteam")
	ends := map[string]func(pids []int) error{
		"ended":  func([]int) error { c.ok("down"); return nil },
		"killed": func(pids []int) error { return syscall.Kill(pids[0], syscall.SIGKILL) },
	}
	c.ok("up", "-d", "-n", "2")
	t.Cleanup(func() { _ = c.command("down").Run() })
	c.ok("run", "Do them")
	until(t, "the coders have left", func() bool { return !strings.Contains(c.ok("agents", "-o", "name"), "coder") })
	before := map[string]string{}
	for _, args := range readers {
		before[args] = c.ok(strings.Fields(args + " -o json")...)
	}
	if !strings.Contains(before["goals"], `"number":1,"goal":"Do them","status":"finished","end":"finished"`) || !strings.Contains(before["goals"], `"summary":"all in the line"`) ||
		!strings.Contains(before["goals"], `"elapsed_seconds":`) || !strings.Contains(before["goals"], `"usage":{"model_calls":`) {
		t.Errorf("goals: %s", before["goals"])
	}
	for how, end := range ends {
		pids := c.pids()
		if err := end(pids); err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			gone(t, pid)
		}
		stored := held(t, at, tmp)
		for _, args := range readers {
			code, out, errs := exit(t, c.command(strings.Fields(args+" -o json")...))
			if code != 0 || out != before[args] || !strings.HasPrefix(errs, "the cluster of "+c.dir+" is down; this is what it had stored at ") {
				t.Errorf("the cluster was %s: %s ends with %d, and shows\n%s\nwith\n%s\nIt showed\n%s", how, args, code, out, errs, before[args])
			}
		}
		code, out, errs := exit(t, c.command("status"))
		if code != 5 || !strings.HasPrefix(out, "the cluster of "+c.dir+" is down; ") || !strings.Contains(out, "default  finished  -        3 completed  Do them") || !strings.Contains(errs, "teamctl up -d") {
			t.Errorf("the cluster was %s: status ends with %d\n%s\n%s", how, code, out, errs)
		}
		if code, out, _ = exit(t, c.command("goals")); code != 0 || !regexp.MustCompile(`(?m)^1 +finished +.*\d+s +unknown +\S+ .* all in the line$`).MatchString(out) {
			t.Errorf("the cluster was %s: goals ends with %d\n%s", how, code, out)
		}
		for args, want := range map[string]int{"tasks --team other": 3, "tasks get 9": 3, "goals --team other": 3, "tasks -w": 5, "inbox -f": 5, "events": 5, "tasks add --title more": 5, "stop": 5, "goals --server nats://127.0.0.1:1": 5} {
			if code, out, errs := exit(t, c.command(strings.Fields(args)...)); code != want {
				t.Errorf("the cluster was %s: %s ends with %d, want %d\n%s\n%s", how, args, code, want, out, errs)
			}
		}
		if now := held(t, at, tmp); now != stored {
			t.Errorf("the cluster was %s: stored was\n%s\nand is\n%s", how, stored, now)
		}
		c.ok("up", "-d", "-n", "0")
	}
	for _, args := range readers { // and the next cluster has it all
		if out := c.ok(strings.Fields(args + " -o json")...); out != before[args] {
			t.Errorf("%s shows\n%s\nwant\n%s", args, out, before[args])
		}
	}
}

// A cluster that starts while others read starts as if they did not, and none of them misses anything, also while it
// starts and while it ends.
func TestStoredBoardAndUp(t *testing.T) {
	t.Parallel()
	c := folder(t, "http://127.0.0.1:1")
	c.ok("up", "-d", "-n", "0")
	t.Cleanup(func() { _ = c.command("down").Run() })
	c.ok("tasks", "add", "--title", "one")
	c.ok("down")
	ended := make(chan struct{})
	var reading sync.WaitGroup
	for range 3 {
		reading.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				cmd := c.command("tasks", "-o", "name")
				var errs strings.Builder
				cmd.Stderr = &errs
				if out, err := cmd.Output(); err != nil || string(out) != "T-001\n" {
					t.Errorf("a reader ends so: %v\n%s%s", err, out, errs.String())
					return
				}
			}
		})
	}
	for range 4 {
		c.ok("up", "-d", "-n", "0")
		c.ok("down")
	}
	close(ended)
	reading.Wait()
}

// Of a reader that is killed nothing is left, whether it copies the data or shows it: it cannot end before all it prints is read.
func TestStoredReaderIsKilled(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	c := folder(t, "http://127.0.0.1:1", "TMPDIR="+tmp)
	c.ok("up", "-d", "-n", "0")
	t.Cleanup(func() { _ = c.command("down").Run() })
	plan := "tasks:\n" + strings.Repeat("  - {title: large, description: "+strings.Repeat("a long text ", 300)+"}\n", 60)
	if err := os.WriteFile(filepath.Join(c.dir, "plan.yaml"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	c.ok("tasks", "add", "-f", "plan.yaml")
	c.ok("down")
	at := filepath.Join(c.dir, ".agentteam")
	stored := held(t, at, tmp)
	files := func() int {
		all, err := os.ReadDir(tmp)
		if err != nil {
			t.Error(err)
		}
		return len(all)
	}
	for what, waits := range map[string]bool{"it copies": false, "it shows": true} {
		cmd := c.command("tasks", "-o", "json")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if waits {
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		}
		until(t, what, func() bool { return files() > 0 })
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		until(t, "nothing of it is left after it was killed while "+what, func() bool { return files() == 0 })
	}
	if now := held(t, at, tmp); now != stored {
		t.Errorf("stored was\n%s\nand is\n%s", stored, now)
	}
	if out := c.ok("tasks", "-o", "name"); strings.Count(out, "T-0") != 60 {
		t.Errorf("the next reader shows %s", out)
	}
}
