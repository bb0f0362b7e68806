package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// loneScript has a leader that makes a task, gives it up and ends the goal, all by
// itself; a goal that says "wait" it leaves as it is, until it is led anew.
const loneScript = `
agents:
  - match: {role: leader}
    rules:
      - name: wait
        since: '<mail from="user"[^>]*>\nwait'
        steps:
          - calls:
              - {tool: bash, args: {command: exec sleep 100}}
          - calls:
              - {tool: finish_team, args: {summary: waited}}
      - name: go
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: create_task, args: {title: nothing}}
          - calls:
              - {tool: update_task, args: {task_id: '{{index (result "go" 0) "id"}}', status: cancelled, reason: no need}}
          - calls:
              - {tool: finish_team, args: {summary: done}}
`

// exit runs a command and returns its exit status and what it printed.
func exit(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return wait(t, cmd), out.String(), errs.String()
}

// printed is what a command has printed so far.
type printed struct {
	mu   sync.Mutex
	text []byte
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text, b...)
	return len(b), nil
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.text)
}

// wait waits for the end of a command, whose time is bounded, and returns its exit status. It may be called on any goroutine.
func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Error(err)
		return -1
	}
	return 0
}

// A run that is interrupted, or whose time is over, says so and that its goal goes
// on; it does not claim an end that the goal did not have. Meanwhile the team takes no
// second goal, but mail to its leader.
func TestRunLeftEarly(t *testing.T) {
	t.Parallel()
	c := up(t, loneScript, 0)
	conn := c.connect()
	for _, format := range []string{"table", "json"} {
		newTeam(t, conn, team.TeamID("left-"+format))
		cmd := c.command("run", "--team", "left-"+format, "-o", format, "wait for me")
		var out, errs printed
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "the run shows its leader at work", func() bool { return strings.Contains(out.String()+errs.String(), "sleep 100") })
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		code := wait(t, cmd)
		if want := "interrupted; the team goes on with the goal: teamctl run --resume --team left-" + format + " shows it, teamctl stop --team left-" + format + " ends it"; code != 130 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit status %d, stderr %q; want 130 and %q", format, code, errs.String(), want)
		}
		if format == "table" && (strings.Contains(out.String(), "tasks completed") || strings.Contains("\n"+out.String(), "\n\n")) {
			t.Errorf("an interrupted run prints\n%s", out.String())
		}
		if format == "json" && (!strings.Contains(out.String(), `"status":"stopped"`) || !strings.Contains(errs.String(), `"code":"interrupted"`)) {
			t.Errorf("an interrupted run prints %s and %s", out.String(), errs.String())
		}
	}
	code, out, errs := exit(t, c.command("run", "--timeout", "8s", "-o", "json", "wait for me"))
	if code != 124 || !strings.Contains(out, `"status":"timed_out"`) || !strings.Contains(errs, `"code":"timed_out"`) ||
		!strings.Contains(errs, "the team goes on with the goal: teamctl run --resume shows it, teamctl stop ends it") || strings.Contains(errs, "deadline") {
		t.Errorf("a run past its time: exit status %d\n%s\n%s", code, out, errs)
	}

	code, out, errs = exit(t, c.command("run", "something else"))
	if code != 4 || out != "" || !strings.Contains(errs, `team default is at work on another goal: "wait for me" (follow that one: teamctl run --resume; `) {
		t.Errorf("a second goal: exit status %d\n%s\n%s", code, out, errs)
	}
	if mail := c.ok("events", "--type", "MAIL_SENT", "--agent", "user"); strings.Contains(mail, "something else") {
		t.Errorf("the goal that was refused was mailed:\n%s", mail)
	}
	code, out, errs = exit(t, c.command("run", "--add", "--timeout", "8s", "something else"))
	if mail := c.ok("events", "--type", "MAIL_SENT", "--agent", "user"); code != 124 || !strings.Contains(errs, "team default is at work; the text was mailed to its leader") || !strings.Contains(mail, "something else") {
		t.Errorf("a text for the goal under way: exit status %d\n%s\n%s\n%s", code, out, errs, mail)
	}
}

// A run that had a cluster of its own is interrupted: it says how to go on, that works,
// and the goal is led to its end.
func TestRunResumed(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, loneScript))
	if code, _, errs := exit(t, c.command("run", "--resume")); code != 3 || !strings.Contains(errs, "no team has worked in this folder") {
		t.Errorf("resumed before there is anything: exit status %d, %s", code, errs)
	}
	run := c.follow("run", "wait for me")
	until(t, "the run shows its leader at work", func() bool { return strings.Contains(run.out.String(), "sleep 100") })
	if errs := run.errs.String(); !strings.Contains(errs, "its page: teamctl web") || status(strings.TrimSpace(c.ok("web", "--no-open"))) == 0 {
		t.Errorf("the page of the run's cluster is not there, or not named: %s", errs)
	}
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	const advice = "its cluster has ended, and the goal is kept; to go on: teamctl run --resume, or in the background: teamctl up -d"
	if code := wait(t, run.Cmd); code != 130 || !strings.Contains(run.errs.String(), advice) || !strings.Contains(run.errs.String(), "to go on then: teamctl run --resume") {
		t.Errorf("interrupted: exit status %d, %s", code, run.errs.String())
	}
	code, out, errs := exit(t, c.command("run", "--resume"))
	if code != 0 || !strings.Contains(out, "\nwaited\n") || !strings.Contains(out, "finished: 0 of 0 tasks completed, 2 model calls") {
		t.Errorf("resumed: exit status %d\n%s\n%s", code, out, errs)
	}
	if code, _, errs = exit(t, c.command("run", "--resume")); code != 1 || !strings.Contains(errs, "no goal under way; the last one is over: finished") {
		t.Errorf("resumed after the end: exit status %d, %s", code, errs)
	}
}

// Tasks that an earlier goal has left are asked about on a terminal, else kept, and that
// is said; or it is as the flags say.
func TestTasksOfEarlierGoals(t *testing.T) {
	t.Parallel()
	c := up(t, loneScript, 0)
	leave := func(title string) (id string) {
		t.Helper()
		id = strings.TrimSpace(c.ok("tasks", "add", "--title", title, "--role", "tester", "-o", "name"))
		c.ok("run", "--detach", "--keep", "wait")
		c.ok("stop", "--force")
		return id
	}
	leave("left open")
	for _, tt := range []struct {
		keys, status string
		code         int
	}{{"\x03", "pending", 130}, {"what?\nc\n", "cancelled", 0}} {
		cmd := c.command("run", "go")
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 40})
		if err != nil {
			t.Fatal(err)
		}
		var said printed
		read := make(chan struct{})
		go func() { defer close(read); _, _ = io.Copy(&said, terminal) }()                 // ends with the command
		words := func() string { return strings.Join(strings.Fields(said.String()), " ") } // the terminal breaks lines
		until(t, "the run asks", func() bool { return strings.Contains(words(), "or cancel them? [K/c]") })
		if _, err := terminal.WriteString(tt.keys); err != nil {
			t.Fatal(err)
		}
		code := wait(t, cmd)
		brokertest.Receive(t, "the terminal is left", read)
		terminal.Close()
		if status := c.ok("tasks", "get", "T-001", "-o", "json"); code != tt.code || !strings.Contains(status, `"status":"`+tt.status+`"`) ||
			!strings.Contains(words(), "1 open task of earlier goals: T-001") || (code == 130) != strings.Contains(words(), "interrupted before the goal was set") {
			t.Errorf("%q typed: exit status %d, %s\n%s", tt.keys, code, said.String(), status)
		}
	}
	c.ok("tasks", "cancel", "--all")
	again := leave("left again")
	for _, tt := range []struct{ flag, want string }{
		{"", "1 open task of earlier goals is kept: " + again + "; the team works on them too (teamctl tasks cancel --all "},
		{"--cancel", "1 open task of earlier goals is cancelled: " + again + "\n"},
	} {
		args := []string{"run", "--detach", "wait"}
		if tt.flag != "" {
			args = append(args, tt.flag)
		}
		if code, _, errs := exit(t, c.command(args...)); code != 0 || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit status %d, %s", args, code, errs)
		}
		c.ok("stop", "--force")
	}
}

// The last line of a run is about its own goal, not about all that the team has
// ever done; with -o name it is the team's name.
func TestRunPrints(t *testing.T) {
	t.Parallel()
	c := up(t, loneScript, 0)
	for range 2 {
		// Nobody has told the price of the scripted endpoint's tokens.
		last := regexp.MustCompile(`\ndone\n\nfinished: 0 of 1 tasks (?:of this goal )?completed, \d+ model calls?, ~?\d+ tokens \(in \d+, .*out \d+.*\), [\d.]+ s\n$`)
		if out := c.ok("run", "go"); !last.MatchString(out) {
			t.Errorf("run prints\n%s", out)
		}
	}
	if out := c.ok("run", "-o", "name", "go"); out != "default\n" {
		t.Errorf("run -o name prints %q", out)
	}
	if r := c.begin("go").end(t); len(r.Tasks) != 4 {
		t.Errorf("the board has %d tasks, want 4", len(r.Tasks))
	}
}

// On a terminal a run keeps to its width, with colours and how things stand below, and leaves
// nothing of that behind; with NO_COLOR it is without colours.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	c := up(t, loneScript, 0)
	last := regexp.MustCompile(`\ndone\n\nfinished: 0 of 1 tasks`)
	below := regexp.MustCompile(`0/[01] done\x1b\[m.* · \d+s`) // with tokens, once it is drawn again
	coloured := regexp.MustCompile(`\x1b\[3[1-6]m`)
	for _, width := range []uint16{40, 80, 200} {
		for _, plain := range []bool{false, true} {
			cmd := c.command("run", "go and do that which takes more words than a narrow terminal has room for in one line of it")
			cmd.Env = append(slices.Clone(c.env), "TERM=xterm-256color")
			if plain {
				cmd.Env = append(cmd.Env, "NO_COLOR=1")
			}
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: width})
			if err != nil {
				t.Fatal(err)
			}
			var shown printed
			_, _ = io.Copy(&shown, terminal) // ends with the command
			terminal.Close()
			if code := wait(t, cmd); code != 0 {
				t.Fatalf("exit status %d:\n%s", code, shown.String())
			}
			all := shown.String()
			if coloured.MatchString(all) == plain {
				t.Errorf("at %d columns, NO_COLOR %v:\n%q", width, plain, all)
			}
			if !below.MatchString(all) {
				t.Errorf("at %d columns it is not shown how things stand:\n%q", width, all)
			}
			text := strings.ReplaceAll(ansi.Strip(all), "\r\n", "\n")
			if !last.MatchString(text) {
				t.Errorf("at %d columns the run ends with\n%s", width, text)
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
				if n := ansi.StringWidth(line); n > int(width) && strings.Contains(line, "leader") {
					t.Errorf("at %d columns a line takes %d cells: %q", width, n, line)
				}
			}
		}
	}
}

// The limit of --timeout covers the start of a cluster, and what was started is
// ended then.
func TestRunTimeCoversStart(t *testing.T) {
	t.Parallel()
	c := folder(t, "http://127.0.0.1:1/v1")
	code, out, errs := exit(t, c.command("run", "--timeout", "10ms", "a goal"))
	if code != 124 || out != "" || !strings.Contains(errs, "teamctl: the time limit (--timeout) has passed before the goal was set; nothing was begun\n") {
		t.Errorf("exit status %d\n%s\n%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".agentteam", "cluster.json")); !os.IsNotExist(err) {
		t.Errorf("a cluster file is left: %v", err)
	}
}

// Of runs in one folder that all start at once without a cluster, one sets its goal. The
// others say that another has, and end alike.
func TestRunsTogether(t *testing.T) {
	t.Parallel()
	url := rehearse(t, panesScript)
	for range 3 {
		c := folder(t, url)
		runs := make([]*follower, 4)
		codes := make(chan int, len(runs))
		for i := range runs {
			runs[i] = c.follow("run", "-o", "name", "go")
			go func() { codes <- wait(t, runs[i].Cmd) }()
		}
		for range len(runs) - 1 {
			if code := <-codes; code != 4 {
				t.Errorf("one of those that come too late ends with %d", code)
			}
		}
		if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if code := <-codes; code != 0 {
			t.Errorf("the one that sets its goal ends with %d", code)
		}
		late := 0
		for _, r := range runs {
			if strings.Contains(r.errs.String(), `team default is at work on another goal`) && strings.Contains(r.errs.String(), `: "go" (follow that one: teamctl run --resume`) {
				late++
			}
		}
		if late != len(runs)-1 || t.Failed() {
			for _, r := range runs {
				t.Errorf("a run prints\n%s\n%s", r.out.String(), r.errs.String())
			}
		}
	}
}

// A run waits for the cluster that another command is starting, however early it comes.
func TestRunWaitsForItsCluster(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, loneScript))
	up := c.follow("up", "-n", "2")
	until(t, "status succeeds", func() bool {
		code, _, _ := exit(t, c.command("status"))
		return code == 0
	})
	if code, out, errs := exit(t, c.command("run", "--detach", "wait for me")); code != 0 {
		t.Errorf("as soon as status succeeds: exit status %d\n%s\n%s", code, out, errs)
	}
	if code, out, errs := exit(t, c.command("down")); code != 0 {
		t.Errorf("down: exit status %d\n%s\n%s", code, out, errs)
	}
	if code := wait(t, up.Cmd); code != 0 {
		t.Errorf("up: exit status %d\n%s", code, up.errs.String())
	}
}

// Of several runs that begin at once in an empty folder one sets its goal, in the cluster that
// it starts. The others say so, and with which process: all exit with 4.
func TestRunsInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, loneScript))
	lock := filepath.Join(c.dir, ".agentteam", "run.lock")
	if err := os.Mkdir(filepath.Dir(lock), 0o755); err != nil {
		t.Fatal(err)
	}
	turn, err := os.Create(lock)
	if err == nil {
		err = syscall.Flock(int(turn.Fd()), syscall.LOCK_EX) // so that all have begun before one goes on
	}
	if err != nil {
		t.Fatal(err)
	}
	var runs []*follower
	for range 3 {
		r := c.follow("run", "wait for me")
		runs = append(runs, r)
		until(t, "a run waits for its turn", func() bool {
			files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.Process.Pid))
			return slices.ContainsFunc(files, func(file string) bool { to, _ := os.Readlink(file); return to == lock })
		})
	}
	turn.Close()
	var first *follower
	until(t, "a run shows its leader at work", func() bool {
		for _, r := range runs {
			if strings.Contains(r.out.String(), "sleep 100") {
				first = r
			}
		}
		return first != nil
	})
	for _, r := range runs {
		if r == first {
			continue
		}
		code, errs := wait(t, r.Cmd), r.errs.String()
		says := fmt.Sprintf("team default is at work on another goal, which process %d has just set", first.Process.Pid)
		if code != 4 || !strings.Contains(errs, says) || !strings.Contains(errs, "teamctl run --resume") {
			t.Errorf("another run: exit status %d, want 4 and %q\n%s", code, says, errs)
		}
	}
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, first.Cmd); code != 130 {
		t.Errorf("the run that set the goal: exit status %d\n%s", code, first.errs.String())
	}
}

// A run whose terminal is closed, or whose output nobody reads any more, stops its
// cluster as Ctrl-C does: no process stays, and the folder can be used at once.
func TestRunLosesItsTerminal(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(cmd *exec.Cmd, out *os.File) error{
		"closed":       func(cmd *exec.Cmd, _ *os.File) error { return cmd.Process.Signal(syscall.SIGHUP) },
		"head has it":  func(_ *exec.Cmd, out *os.File) error { return out.Close() },
		"asked to end": func(cmd *exec.Cmd, _ *os.File) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := folder(t, rehearse(t, loneScript))
			out, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close() // not before, by the garbage collector
			cmd := c.command("run", "wait for me")
			var errs printed
			cmd.Stdout, cmd.Stderr = w, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if _, err := out.Read(make([]byte, 1)); err != nil { // the first line, of several
				t.Fatal(err)
			}
			pids := c.pids()
			if err := lose(cmd, out); err != nil {
				t.Fatal(err)
			}
			code := wait(t, cmd)
			if told := strings.Contains(errs.String(), "interrupted"); code != 130 || told == (name == "head has it") {
				t.Errorf("exit status %d, stderr %q", code, errs.String())
			}
			for _, pid := range pids {
				gone(t, pid)
			}
			if _, err := os.Stat(filepath.Join(c.dir, ".agentteam", "cluster.json")); !os.IsNotExist(err) {
				t.Errorf("a cluster file is left: %v", err)
			}
		})
	}
}

// sleeperScript has teammates that work at a task for long.
const sleeperScript = `
agents:
  - match: {role: coder}
    rules:
      - name: slow
        since: 'title: slow'
        steps:
          - calls:
              - {tool: bash, args: {command: exec sleep 100}}
  - match: {role: leader}
    rules:
      - {name: rest, since: '.', say: I wait.}
`

// A cluster in the foreground whose output nobody reads any more, as that of up 2>&1 | head,
// stops as with Ctrl-C, although its leader and teammates write to the same pipe: they
// give their tasks back.
func TestUpLosesItsReader(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, sleeperScript))
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := c.command("up", "-n", "1")
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var said printed
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&said, out)
	}()
	until(t, "the cluster is up", func() bool { return strings.Contains(said.String(), "cluster is up") })
	pids := c.pids()
	c.ok("spawn", "coder")
	c.ok("tasks", "add", "--title", "slow")
	until(t, "the teammate is at its command", func() bool { return strings.Contains(c.ok("agents", "get", "coder-1", "-o", "json"), `"task":"T-001"`) })
	out.Close()
	brokertest.Receive(t, "nothing is read any more", read)
	wait(t, cmd)
	for _, pid := range pids {
		gone(t, pid)
	}
	c.ok("up", "-d", "-n", "0")
	defer c.ok("down")
	var task team.TaskView
	if err := json.Unmarshal([]byte(c.ok("tasks", "get", "1", "-o", "json")), &task); err != nil || task.Attempts != 0 {
		t.Errorf("the task is %+v, %v", task, err)
	}
	if past := c.ok("tasks", "history", "1"); !strings.Contains(past, "released") || strings.Contains(past, "watchdog") {
		t.Errorf("the task was not given back:\n%s", past)
	}
}

// A command that changes something does so whether or not anybody reads its answer.
func TestUnreadCommandIsCarriedOut(t *testing.T) {
	t.Parallel()
	c := up(t, "", 0)
	for range 5 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := c.command("tasks", "add", "--title", "one")
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		_ = cmd.Wait() // killed by the write, as any program is
	}
	if n := strings.Count(c.ok("tasks", "-o", "name"), "T-"); n != 5 {
		t.Errorf("%d tasks were added, want 5", n)
	}
}
