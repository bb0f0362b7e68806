package permission_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// fuzzRules allow some commands of programs that are stubs. Those beside them must never start.
var fuzzRules = team.Permissions{
	Deny: []string{"Bash(git clean *)"},
	Allow: []string{"Bash(git status *)", "Bash(git log *)", "Bash(ls *)", "Bash(find *)", "Bash(sort *)", "Bash(sed *)", "Bash(tar *)", "Bash(awk *)",
		"Bash(cat)", "Bash(echo *)", "Bash(printf *)", "Bash(test *)", "Bash([ *)", "Bash(read *)", "Bash(cd *)", "Bash(set *)", "Bash(hash *)", "Bash(wait *)",
		"Bash(type *)", "Bash(kill *)", "Bash(a*)", "Bash(* status)"},
}

// stubs are all programs that bash can start here. They write down how they are called and do
// nothing; those in running run the rest of their words after that many.
var (
	stubs   = []string{"git", "ls", "find", "sort", "sed", "tar", "awk", "cat", "rm", "evil", "a", "abc", "xargs", "sudo", "sh", "python3", "less"}
	running = map[string]int{"env": 0, "timeout": 1, "nohup": 0, "nice": 0, "setsid": 0, "bash": -1}
)

// tokens are what lines are made of, with what has deceived parsers before.
var tokens = []string{" ", " ", " ", " ", "git", "git status", "git log", "git push", "git clean", "git clean", "clean", "ls", "rm", "evil", "a", "abc", "x", "cat", "echo", "find", "sort", "sed", "sh",
	"&&", "||", ";", "|", "&", "|&", "\n", "\t", "!", "(", ")", "{ ", "; }", "'", "\"", "\\", "\\\n", "`", "$", "$(", ")", "${", "}", "$'", "$\"", "$((", "))", "((", "<(", ">(",
	"<", ">", ">>", "<<", "<<-", "<<<", ">&", "&>", ">|", "2>&1", ">/dev/null", "</dev/null", "EOF", "\nEOF\n", "'EOF'", "# ", "#", " #'", "\r", "\x00", "\v", "\f", "\u00a0", "\u2028", "\x80",
	"*", "?", "[", "]", "[a-z]*", "{a,b}", "{git,push}", "~", "=", "x=1", "PATH=x ", "IFS=i", "$IFS", "$x", "\"$x\"", "${x:-evil}", "$0", "$_", "$*", "$@", "$RANDOM",
	"if ", " then ", " else ", " fi", "for i in 1 2; do ", "; done", "case x in ", "x) ", ";;", " esac", "[[ ", " ]]", "[ ", " ]", "time ", "time -p ", "-p ",
	"eval ", "exec ", "command ", "builtin ", "env ", "timeout 1 ", "nohup ", "nice ", "nice -5 ", "setsid ", "bash -c ", "sh -c ", "xargs ", "sudo ", "source ", ". ", "alias ", "trap ", "read ", "printf ",
	"set ", "export ", "declare ", "local ", "test ", "hash ", "type ", "wait ", "cd ", "let ", "true", "false", ":", "exit", "return", "break", "continue", "coproc ",
	"-c", "-e", "-exec", "-delete", "-o", "-v", "-n", "-i", "--", "-", "-x", "-O", "-C", "--pre", "{}", "+", "\\;", "1", "2", "EXIT", "-p ", "a[$(evil)]", "'a[$(evil)]'", "0<", "{fd}>"}

// allowedOnes are commands that fuzzRules allow, and joints what comes between two.
var (
	allowedOnes = []string{"git status", "git log", "ls", "find .", "sort x", "sed -n 1p x", "tar tf x", "awk 1 x", "cat", "echo a", "printf x", "test -f x", "[ x ]", "cd .", "abc", "true",
		"timeout 5 ls", "nice git status", "env ls", "nohup git log", "bash -c 'ls; git log'", "eval ls", "command ls", "exec ls", "builtin echo x", "setsid ls", "x=1", "git --no-pager status"}
	joints = []string{"; ", " && ", " || ", " | ", " & ", "\n", " |& ", ";;", "&", "|", " # ", " ; ! ", "; if ", "; then ", "; fi; ", "; for i in 1; do ", "; done; ", "; { ", "; }; ", "; ( ", " ) ; ", " <<EOF\n", "\nEOF\n"}
)

// lineOf makes a line of bytes: of the bytes themselves, of tokens, or of commands that are allowed
// with tokens among them.
func lineOf(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	var b strings.Builder
	switch data[0] % 3 {
	case 1:
		return string(data[1:])
	case 2:
		for _, c := range data[1:] {
			b.WriteString(tokens[int(c)%len(tokens)])
		}
	default:
		for i, c := range data[1:] {
			switch i % 4 {
			case 0:
				b.WriteString(allowedOnes[int(c)%len(allowedOnes)])
			case 1:
				if c%2 == 0 {
					b.WriteByte(' ')
				}
			case 2:
				if int(c) < len(tokens) {
					b.WriteString(tokens[c])
				}
			case 3:
				b.WriteString(joints[int(c)%len(joints)])
			}
		}
	}
	return b.String()
}

// tooWild are lines that are not run: those that may not end, may start ever more processes, or
// name a program by its path.
func tooWild(line string) bool {
	for _, s := range []string{"while", "until", "function", "select", "((", "..", "kill", "exec -"} {
		if strings.Contains(line, s) {
			return true
		}
	}
	wild := strings.Contains(strings.ReplaceAll(line, "/dev/null", ""), "/")
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return true
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		_, declares := n.(*syntax.FuncDecl)
		wild = wild || declares
		return true
	})
	return wild || len(line) > 400
}

// opens reports whether a line may write files.
func opens(line string) bool {
	return strings.ContainsAny(strings.NewReplacer(">/dev/null", "", "2>&1", "").Replace(line), ">~")
}

// machine is a folder with the stubs, and files with deceptive names.
type machine struct{ bash, bin, dir, log string }

func newMachine(t testing.TB) machine {
	t.Helper()
	bash := testenv.Program(t, "bash")
	root := t.TempDir()
	m := machine{bash, root + "/bin", root + "/ws", root + "/log"}
	for _, dir := range []string{m.bin, m.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const head = "#!%s\nprintf '%%s\\0' $# \"${0##*/}\" \"$@\" >> '%s'\n"
	for _, name := range stubs {
		write(filepath.Join(m.bin, name), fmt.Sprintf(head, bash, m.log))
	}
	for name, skip := range running {
		run := fmt.Sprintf("while [[ $1 == -* ]]; do shift; done; shift %d; [ $# = 0 ] || exec \"$@\"\n", max(skip, 0))
		if skip < 0 {
			run = fmt.Sprintf("exec %s \"$@\"\n", bash)
		}
		write(filepath.Join(m.bin, name), fmt.Sprintf(head, bash, m.log)+run)
	}
	for _, name := range []string{"-exec", "-delete", "--compress-program=evil", "-O", "evil", "push", "z z"} {
		write(filepath.Join(m.dir, name), "")
	}
	return m
}

// run runs a line as the tool bash does and returns how programs were called.
func (m machine) run(t testing.TB, line string) (calls [][]string) {
	t.Helper()
	if err := os.WriteFile(m.log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := `BASH_FUNC_command_not_found_handle%%=() { printf '%s\0' $(($#-1)) "$@" >> '` + m.log + `'; }`
	_, err := command.Plain{}.Run(context.Background(), command.Command{Args: []string{m.bash, "-c", line}, Dir: m.dir,
		Env: []string{"PATH=" + m.bin, missing, "x=evil", "HOME=" + m.dir}, Output: io.Discard, Limit: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(m.log)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(text), "\x00")
	for len(words) > 1 {
		n, err := strconv.Atoi(words[0])
		if err != nil || len(words) < n+2 {
			t.Fatalf("%q: the log is broken: %q", line, text)
		}
		calls, words = append(calls, words[1:n+2]), words[n+2:]
	}
	return calls
}

// found are lines by which parsers were deceived here.
var found = []string{`git --no-pager status\`}

// Each program that bash starts for a line that is allowed is one that a rule allows. No program
// starts that a rule denies, unless the line is asked for.
func FuzzAllowed(f *testing.F) {
	for _, e := range examples(f) {
		f.Add([]byte("\x01" + e.command))
	}
	for _, line := range found {
		f.Add([]byte("\x01" + line))
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same lines each time
	for i := range 600 {
		data := []byte{byte(i % 2 * 2)}
		for range 3 + random.IntN(14) {
			data = append(data, byte(random.UintN(256)))
		}
		f.Add(data)
	}
	m := newMachine(f)
	r := rules(f, fuzzRules)
	f.Fuzz(func(t *testing.T, data []byte) {
		line := lineOf(data)
		v := r.Decide(bash(t, line), m.dir)
		if v.Decision > permission.Allow || tooWild(line) || v.Decision == permission.None && opens(line) {
			return
		}
		for _, words := range m.run(t, line) {
			var said []string
			for _, w := range words {
				said = append(said, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
			}
			if words[0] == "bash" { // the stub that starts bash for -c, whose commands are in the log, too
				continue
			}
			started := r.Decide(bash(t, strings.Join(said, " ")), m.dir)
			if started.Decision == permission.Deny || v.Decision == permission.Allow && started.Decision != permission.Allow {
				t.Errorf("%q gets %s and starts %q, which gets %s: %s", line, v.Decision, words, started.Decision, started.Why)
			}
		}
	})
}
