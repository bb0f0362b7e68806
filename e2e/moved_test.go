package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A folder that is moved while its goal rests takes the goal with it. If it is not known
// where the goal's folder is now, that is said by whatever shows the team, and the goal goes
// on where it is told to. The leader is not put on and taken off meanwhile.
func TestRunResumedInMovedFolder(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	c := &cluster{t: t, dir: filepath.Join(above, "f")}
	c.env = append(environ(), "OPENAI_MODEL=rehearsal", "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+rehearse(t, loneScript))
	leave := func() {
		t.Helper()
		run := c.follow("run", "wait for me")
		until(t, "the run shows its leader at work", func() bool { return strings.Contains(run.out.String(), "sleep 100") })
		if err := run.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := wait(t, run.Cmd); code != 130 {
			t.Fatalf("interrupted: exit status %d, %s", code, run.errs.String())
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(above, from), filepath.Join(above, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	leave()
	move("f", "g")
	old := c.dir
	c.dir = filepath.Join(above, "g")
	want := "the folder " + old + " is gone; team default goes on in " + c.dir
	if code, out, errs := exit(t, c.command("run", "--resume")); code != 0 || !strings.Contains(out, "\nwaited\n") || !strings.Contains(errs, want) {
		t.Fatalf("resumed where the folder is now: exit status %d\n%s\n%s", code, out, errs)
	} else if strings.Contains(out+errs, "is lost") || strings.Contains(out+errs, "no such folder") {
		t.Errorf("its leader looked for the old folder first:\n%s\n%s", out, errs)
	}

	if err := os.Mkdir(filepath.Join(c.dir, "part"), 0o755); err != nil {
		t.Fatal(err)
	}
	old, c.dir = filepath.Join(c.dir, "part"), filepath.Join(c.dir, "part")
	leave() // it has a cluster of its own, and its data there
	move("g", "h")
	c.dir = filepath.Join(above, "h", "part")
	want = "team default works in " + old + ", and there is no such folder (if it was moved: teamctl run --resume --workspace DIR)"
	if code, out, errs := exit(t, c.command("run", "--resume")); code != 3 || !strings.Contains(errs, want) {
		t.Errorf("resumed where a folder above was moved: exit status %d\n%s\n%s", code, out, errs)
	}

	c.ok("up", "-d", "-n", "0")
	t.Cleanup(func() { c.ok("down") })
	const why = "there is no such folder"
	until(t, "status says what is missing", func() bool {
		_, _, errs := exit(t, c.command("status"))
		return strings.Contains(errs, "leader@default is lost: workspace "+old+": "+why)
	})
	attached := c.follow("attach")
	until(t, "attach says what is missing", func() bool {
		return strings.Contains(attached.errs.String(), "leader@default is lost: workspace "+old+": "+why)
	})
	if err := attached.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, attached.Cmd); code != 130 {
		t.Errorf("attach interrupted: exit status %d, %s", code, attached.errs.String())
	}
	if out := c.ok("doctor", "-o", "json"); !strings.Contains(out, "leader@default is lost: workspace "+old) {
		t.Errorf("doctor does not say what is missing:\n%s", out)
	}
	until(t, "a second try", func() bool {
		log, _ := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
		return strings.Count(string(log), "term ended") > 1
	})
	events := strings.Split(c.ok("events", "--type", "MEMBER_JOINED,MEMBER_LOST", "--agent", "leader", "-o", "jsonl"), "\n")
	lost := 0
	for i, e := range events {
		if strings.Contains(e, why) {
			lost++
		} else if lost > 0 && e != "" {
			t.Errorf("event %d after the loss: %s", i, e)
		}
	}
	if lost != 1 {
		t.Errorf("the loss is told %d times:\n%s", lost, strings.Join(events, "\n"))
	}
	for _, args := range [][]string{{"run", "--resume"}, {"run", "--add", "more"}} {
		want := "there is no folder " + filepath.Join(above, "typo") + " to work in"
		if code, _, errs := exit(t, c.command(append(args, "--workspace", filepath.Join(above, "typo"))...)); code != 3 || !strings.Contains(errs, want) {
			t.Errorf("%s in a folder that is not there: exit status %d, %s", args, code, errs)
		}
	}
	if code, out, errs := exit(t, c.command("run", "--resume", "--workspace", ".")); code != 0 || !strings.Contains(out, "\nwaited\n") {
		t.Errorf("resumed in another folder: exit status %d\n%s\n%s", code, out, errs)
	}
}
