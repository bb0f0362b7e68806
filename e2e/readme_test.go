package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// notRun are the commands of the pages that TestReadme leaves out, and why.
var notRun = map[string]string{
	"make demo":                     "builds the programs; package demo tests the survey, and .ci/run this line",
	"make test":                     "is what runs this test",
	"export OPENAI_API_KEY=...":     "a value of the reader's own",
	"export OPENAI_MODEL=...":       "a value of the reader's own",
	"export AGENTTEAM_WINDOW=32768": "a value of the reader's own",
	"export OPENAI_BASE_URL=http://127.0.0.1:11434/v1": "a server of the reader's own",
}

// follows are the commands of the pages that end when they are interrupted.
var follows = []string{"teamctl events --follow", "teamctl tasks -w"}

// readmeScript has a leader that does the one task of the first goal by itself, is long
// at the second, and ends that of README's own example at once.
const readmeScript = `
agents:
  - match: {role: leader}
    rules:
      - name: first
        since: '<mail from="user"[^>]*>\nfirst goal'
        unless: second goal
        steps:
          - calls:
              - {tool: create_task, args: {title: The first task}}
          - calls:
              - {tool: claim_task, args: {task_id: '{{index (result "first" 0) "id"}}'}}
          - calls:
              - {tool: update_task, args: {task_id: '{{index (result "first" 0) "id"}}', status: completed, result_summary: done}}
          - calls:
              - {tool: finish_team, args: {summary: done}}
      - name: second
        since: '<mail from="user"[^>]*>\nsecond goal'
        steps:
          - calls:
              - {tool: bash, args: {command: exec sleep 100}}
      - name: parser
        since: '<mail from="user"[^>]*>\nfind out why'
        steps:
          - calls:
              - {tool: finish_team, args: {summary: done}}
      - name: idle
        say: "Nothing to do."
`

// reader types the commands of the pages in a folder.
type reader struct {
	t    *testing.T
	dir  string
	home string // which cannot be a workspace
	env  []string
}

func newReader(t *testing.T, env ...string) *reader {
	r := &reader{t: t, dir: t.TempDir(), home: t.TempDir()}
	// Programs with the race detector would rest for a second at each end.
	r.env = append(environ(), "GORACE=atexit_sleep_ms=0", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+r.home)
	r.env = append(r.env, env...)
	return r
}

func (r *reader) command(line string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	r.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.WaitDelay = limit
	return cmd
}

// types runs the commands one after another; each must succeed.
func (r *reader) types(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		if out, err := r.command(line).CombinedOutput(); err != nil {
			r.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

// follows starts a command that goes on until it is interrupted, and interrupts it once
// it has printed a line.
func (r *reader) follows(line string) {
	r.t.Helper()
	cmd := r.command("exec " + line)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		r.t.Errorf("%s prints nothing: %v\n%s", line, err, &stderr)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
}

// commands returns the blocks of commands of README.md and docs/usage.md, without comments.
func commands(t *testing.T) (blocks [][]string) {
	t.Helper()
	var text []byte
	for _, page := range []string{"../README.md", "../docs/usage.md"} {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, data...), '\n')
	}
	command := regexp.MustCompile(`^    ((?:teamctl|make|export|docker|cp|cd|mkdir|source) .*)$`)
	comment := regexp.MustCompile(`\s+# .*$`)
	var block []string
	for line := range strings.SplitSeq(string(text)+"\n", "\n") {
		m := command.FindStringSubmatch(line)
		switch {
		case m != nil:
			block = append(block, comment.ReplaceAllString(m[1], ""))
		case line == "" && block != nil:
			blocks, block = append(blocks, block), nil
		}
	}
	return blocks
}

// Every command of README.md and docs/usage.md works as it is written there, but for those
// that notRun gives a reason for.
func TestReadme(t *testing.T) {
	blocks := map[string][]string{}
	left := map[string]bool{}
	for _, block := range commands(t) {
		var lines []string
		for _, line := range block {
			if notRun[line] != "" {
				left[line] = true
			} else {
				lines = append(lines, line)
			}
		}
		if lines != nil {
			blocks[lines[0]] = lines
		}
	}
	for line := range notRun {
		if !left[line] {
			t.Errorf("notRun gives a reason for %q, which no page has", line)
		}
	}
	take := func(first string) []string {
		lines := blocks[first]
		if lines == nil {
			t.Fatalf("no page has a block that begins with %q", first)
		}
		delete(blocks, first)
		return lines
	}
	key := take(`make build && export PATH="$PWD/bin:$PATH"`)
	keep := take("teamctl up -d")
	board := take("teamctl tasks add -f release.yaml")
	rehearsed := take(`export PATH="$PWD/bin:$PATH" OPENAI_BASE_URL=http://127.0.0.1:8099/v1 OPENAI_MODEL=rehearsal`)
	for first := range blocks {
		t.Errorf("a block of commands is not tried, beginning with %q", first)
	}
	for name, lines := range map[string][]string{"with a key": key, "without a key": append([]string{"make demo"}, rehearsed...)} {
		if len(lines) != 4 {
			t.Errorf("the quick start %s has %d lines, not 4", name, len(lines))
		}
	}
	t.Run("key", func(t *testing.T) {
		t.Parallel()
		r := newReader(t, "OPENAI_BASE_URL="+rehearse(t, readmeScript))
		r.makes(filepath.Join(r.home, "my-project"))
		r.types(strings.Replace(strings.Join(key, "\n"), "make build", "true", 1)) // what is built is in PATH
	})
	t.Run("keep", func(t *testing.T) {
		t.Parallel()
		r := newReader(t, "OPENAI_MODEL=rehearsal", "OPENAI_BASE_URL="+rehearse(t, readmeScript))
		t.Cleanup(func() { _ = r.command("teamctl down").Run() }) // if it failed half-way
		r.tries(keep)
		r.types("teamctl up -d -n 0")
		r.board(board)
		r.types("teamctl down")
	})
	t.Run("rehearsed", func(t *testing.T) {
		t.Parallel()
		readmeRehearsal(t, rehearsed)
	})
}

// tries types the commands, and follows those that do not end.
func (r *reader) tries(lines []string) {
	r.t.Helper()
	for _, line := range lines {
		if slices.Contains(follows, line) {
			r.follows(line)
		} else {
			r.types(line)
		}
	}
}

// board tries the commands of a board on which T-001 is completed. The one that waits
// goes on until the others are through, and the rest of the plan is done.
func (r *reader) board(lines []string) {
	r.t.Helper()
	r.write("release.yaml", plan(r.t))
	r.write("Makefile", "test:\n\t@true\n") // the plan's check
	var waiter *exec.Cmd
	var out bytes.Buffer
	for _, line := range lines {
		if !strings.HasPrefix(line, "teamctl tasks wait ") {
			r.tries([]string{line})
			continue
		}
		waiter = r.command(line)
		waiter.Stdout = &out
		if err := waiter.Start(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.types(
		"teamctl tasks update 3 --status completed --as bob --summary done",
		"teamctl tasks claim 4 --as alice",
		"teamctl tasks update 4 --status completed --as alice --summary done",
	)
	if waiter == nil {
		r.t.Fatal("docs/usage.md waits for no task")
	}
	if err := waiter.Wait(); err != nil || !strings.HasSuffix(out.String(), "released\n") {
		r.t.Errorf("waiting ended with %v and\n%s", err, &out)
	}
}

func (r *reader) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) makes(dir string) {
	r.t.Helper()
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.dir, dir)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// plan is the example of docs/plans.md.
func plan(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/plans.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "    # release.yaml\n")
	example, _, ok := strings.Cut(rest, "\n\n")
	if !ok {
		t.Fatal("docs/plans.md has no release.yaml")
	}
	return strings.ReplaceAll(strings.TrimPrefix(example, "    "), "\n    ", "\n") + "\n"
}

// readmeRehearsal runs the block as one script, at a free address and in a folder of its
// own in place of those that are written there.
func readmeRehearsal(t *testing.T, lines []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	r := newReader(t)
	r.makes("tree")
	r.write("tree/main.go", "package main // TODO: all\n")
	r.dir = filepath.Join(r.dir, "tree")
	script := strings.NewReplacer("127.0.0.1:8099", address, "/tmp/try", t.TempDir()).Replace(strings.Join(lines, "\n"))
	var out bytes.Buffer
	cmd := r.command("trap 'kill %1' EXIT\n" + script)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "Files: 1 ") {
		t.Errorf("the survey ended with %v and\n%s", err, &out)
	}
}
