package permission_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// canaries is a workspace with a file that must not be read, a folder that must not change, and a
// git that records its calls.
type canaries struct{ root, dir, bin, log string }

func newCanaries(t testing.TB) canaries {
	t.Helper()
	root := t.TempDir()
	c := canaries{root, root + "/ws", root + "/bin", root + "/log"}
	for _, dir := range []string{c.bin, c.dir + "/src/secret/empty", c.dir + "/other/secret", c.dir + "/sub/inner"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"bin/git": "#!/bin/sh\necho \"$@\" >> '" + c.log + "'\n",
		"ws/.env": "KEY=1\n", "ws/src/secret/key": "key\n", "ws/src/main.go": "package main\n", "ws/other/secret/key": "other\n",
		"ws/a.txt": "a,b\nb\n", "ws/sub/b.txt": "b\n", "ws/lib.sh": "echo lib\n", "ws/script.py": "print(1)\n", "log": "",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"linked": "src", "linksecret": "src/secret", "link.ln": ".env", "linkdir": ".", "sub/inner/up": "../.."} {
		if err := os.Symlink(to, filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// secret is all that is in the folder that must not change.
func (c canaries) secret(t testing.TB) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(c.dir+"/src/secret", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(name)
			fmt.Fprintf(h, "%s %q\n", name, text)
		} else if err == nil {
			fmt.Fprintln(h, name)
		}
		return err
	})
	return fmt.Sprintf("%x %v", h.Sum(nil), err)
}

// run runs a line in bash and returns its forbidden effects.
func (c canaries) run(t testing.TB, line string) (effects []string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err) // no command of a member runs without it
	}
	opened, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(opened)
	if _, err := unix.InotifyAddWatch(opened, c.dir+"/.env", unix.IN_ACCESS|unix.IN_OPEN|unix.IN_MOVE_SELF|unix.IN_DELETE_SELF); err != nil {
		t.Fatal(err)
	}
	before := c.secret(t)
	var out strings.Builder
	if _, err := (command.Plain{}).Run(context.Background(), command.Command{Args: []string{bash, "-c", line}, Dir: c.dir,
		Env: []string{"PATH=" + c.bin + ":" + os.Getenv("PATH"), "HOME=" + c.root + "/home"}, Output: &out, Limit: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if n, _ := unix.Read(opened, make([]byte, 4096)); n > 0 {
		effects = append(effects, ".env was opened, moved or removed")
	}
	if c.secret(t) != before {
		effects = append(effects, "src/secret has changed")
	}
	calls, err := os.ReadFile(c.log)
	if err != nil || strings.Contains("\n"+string(calls), "\npush") {
		effects = append(effects, fmt.Sprintf("git ran as %q (%v)", calls, err))
	}
	return effects
}

// Lines of all forms that bash has: whatever is allowed has no effect that a rule is there to stop.
func TestLines(t *testing.T) {
	testenv.Long(t)
	r := rules(t, team.Permissions{Deny: []string{"Bash(git push:*)", "Read(.env)", "Edit(src/secret/**)"}})
	text, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen, c := 0, newCanaries(t)
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		want, line, _ := strings.Cut(l, " ")
		if want == "#" {
			continue
		}
		seen++
		line = marks.Replace(strings.TrimSpace(line))
		v := permission.Judge(r, "", team.Bubblewrap, bash(t, line), c.dir)
		if (v.Decision == permission.Allow) != (want == "allow") {
			t.Errorf("%q is %s, want %s (%s: %s)", line, v.Decision, want, v.Rule, v.Why)
		}
		if again := permission.Judge(r, "", team.Bubblewrap, bash(t, line), c.dir); again != v {
			t.Errorf("%q is %+v, and then %+v", line, v, again)
		}
		if v.Decision != permission.Allow {
			if v.Why == "" || v.Rule == "" {
				t.Errorf("%q is %s, and no rule and reason is named: %+v", line, v.Decision, v)
			}
			continue
		}
		if effects := newCanaries(t).run(t, line); len(effects) > 0 {
			t.Errorf("%q is allowed, and %s", line, strings.Join(effects, "; "))
		}
	}
	if seen < 300 {
		t.Errorf("%d lines, want at least 300", seen)
	}
}

// The canaries show each of the effects.
func TestCanaries(t *testing.T) {
	for line, want := range map[string]string{"git push": "git ran", "cat .env": ".env was", "mv .env x": ".env was", "rm src/secret/key": "src/secret has", "mv src x": "src/secret has", "git status; cat a.txt": ""} {
		if got := strings.Join(newCanaries(t).run(t, line), "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Lines of every day under the rules of ordinary projects: at most five of a hundred ask.
func TestEveryday(t *testing.T) {
	text, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for name, p := range map[string]team.Permissions{
		"go":   {Deny: []string{"Bash(git push:*)", "Read(.env)", "Edit(go.sum)"}, Ask: []string{"Bash(rm:*)"}, Allow: []string{"Bash(go test:*)"}},
		"web":  {Deny: []string{"Bash(npm publish:*)", "Read(.env*)", "Read(*.pem)", "Edit(*.lock)"}, Ask: []string{"Bash(git push:*)", "Bash(docker run:*)"}},
		"ops":  {Deny: []string{"Bash(kubectl delete:*)", "Bash(terraform apply:*)", "Read(secrets/**)", "Edit(/migrations/**)"}, Ask: []string{"Bash(curl:*)"}},
		"keys": {Deny: []string{"Read(~/.ssh/**)", "Read(//etc/shadow)", "Bash(sudo:*)", "Edit(/vendor/)"}},
	} {
		r, asked := rules(t, p), 0
		c := newCanaries(t)
		if err := os.Mkdir(c.dir+"/.git", 0o755); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if v := permission.Judge(r, "", team.Bubblewrap, bash(t, marks.Replace(line)), c.dir); v.Decision != permission.Allow {
				t.Logf("%s: %s: %s (%s: %s)", name, v.Decision, line, v.Rule, v.Why)
				asked++
			}
		}
		if len(lines) < 100 || asked*20 > len(lines) {
			t.Errorf("%s: %d of %d lines ask, want at least 100 lines and at most 5%%", name, asked, len(lines))
		}
	}
}

// around are places in a line where a command may stand; %s is the command, %q the command as one word.
var around = []string{"%s", "true; %s", "false || %s", "! %s", "time -p %s", "(%s)", "{ %s; } 2>&1 | cat", "%s &", "if %s; then :; fi", "if true; then %s; fi", "while %s; do break; done", "until ! %s; do break; done",
	"for i in 1; do %s; done", "for ((i=0;i<1;i++)); do %s; done", "case x in x) %s;; esac", "f() { %s; }; f", "function g { %s; }; g", "x=$(%s)", "echo \"`%s`\"", "echo ${x:-$(%s)}", "[ \"$(%s)\" ]", "[[ -n $(%s) ]]",
	"echo $((1+$(%s)))", "a[$(%s)]=1", "cat <(%s)", "echo x > >(%s)", "cat <<< $(%s)", "cat <<E\n$(%s)\nE\n", "coproc { %s; }", "bash -c %q", "sh -euc %q", "eval %q", "trap %q EXIT", "bash <<< %q", "bash <<'E'\n%s\nE\n",
	"echo %q | sh", "source <(echo %q)", "sudo sh -c %q", "flock x -c %q", "su -c %q", "env bash -c %q", "xargs -I{} sh -c %q", "find . -maxdepth 0 -exec sh -c %q \\;", "timeout 5 bash -c %q", "nice nohup bash -c %q", "python3 -c %q", "git -c alias.x=!%q x",
	"echo %q > y.sh; bash y.sh", "echo %q > y.sh; chmod +x y.sh; ./y.sh", "PS4=%q; set -x; true", "make -f - <<< %q", "ssh localhost %q"}

// quoted is a text as one word of bash.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// A forbidden command is not allowed wherever it stands, also two places deep.
func TestForbiddenEverywhere(t *testing.T) {
	r := rules(t, team.Permissions{Deny: []string{"Bash(git push:*)", "Read(.env)", "Edit(src/secret/**)"}})
	c := newCanaries(t)
	put := func(place, line string) string {
		return strings.ReplaceAll(strings.ReplaceAll(place, "%q", quoted(line)), "%s", line)
	}
	for i, line := range []string{"git push", "cat .env", "rm -rf src", "cd src && touch secret/x", "x=.env; cat $x", "cp a.txt src/secret/key", "echo x > src/secret/key", "cat < .env", "mv src y", "git -C . push origin main"} {
		for n, outer := range around {
			for m, inner := range around {
				if m != 0 && (n+m+i)%4 != 0 { // a part of the pairs for each line
					continue
				}
				said := put(outer, put(inner, line))
				if v := permission.Judge(r, "", team.Bubblewrap, bash(t, said), c.dir); v.Decision == permission.Allow {
					t.Errorf("%q is allowed", said)
				}
			}
		}
	}
}

// Nor is a simple command behind two programs that run others, known or not.
func TestForbiddenBehindPrograms(t *testing.T) {
	testenv.Long(t)
	r := rules(t, team.Permissions{Deny: []string{"Bash(git push:*)", "Read(.env)", "Edit(src/secret/**)"}})
	c := newCanaries(t)
	before := []string{"", "sudo", "sudo -u me", "doas", "npx", "uv run", "npm exec --", "poetry run", "docker exec c", "env A=1", "env -i", "timeout 5", "timeout -k 1 5", "nice -n 3", "nohup", "time -p", "command", "exec", "strace -f", "xargs -n1", "stdbuf -oL",
		"setsid -w", "flock x", "unshare -r", "busybox", "chroot /", "systemd-run --wait", "mise exec node@20 --", "ionice -c3", "taskset 1", "xvfb-run", "faketime yesterday", "direnv exec .", "A=1", "LC_ALL=C", "bundle exec", "chronic", "watch -n1", "parallel"}
	for i, line := range []string{"git push", "git -C . push origin main", "cat .env", "rm -rf src", "mv src y", "cp a.txt src/secret/key", "tee src/secret/key", "sed -i s/k/x/ src/secret/key", "grep -r KEY .", "head -1 .env", "find src -delete", "dd of=src/secret/key"} {
		for n, outer := range before {
			for m, inner := range before {
				if m != 0 && (n+m+i)%11 != 0 { // a part of the pairs for each line
					continue
				}
				said := strings.TrimSpace(outer + " " + inner + " " + line)
				if v := permission.Judge(r, "", team.Bubblewrap, bash(t, said), c.dir); v.Decision == permission.Allow && !strings.Contains(inner, "A") {
					t.Errorf("%q is allowed", said)
				}
			}
		}
	}
}

// The judge never panics, and judges a line the same each time; that it is denied in the mode that asks nothing is no less than a doubt.
func FuzzJudge(f *testing.F) {
	for _, place := range around {
		f.Add([]byte("\x01" + place))
	}
	for i := range 200 {
		f.Add([]byte{byte(i), byte(i * 7), byte(i * 31), byte(i * 3), byte(i * 11), byte(i * 17)})
	}
	r := rules(f, team.Permissions{Deny: []string{"Bash(git push:*)", "Read(.env)", "Edit(src/secret/**)"}, Ask: []string{"Bash(rm *)", "Read(*.pem)"}, Allow: []string{"Bash(git *)", "Edit(out/**)"}})
	c := newCanaries(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		line := lineOf(data)
		v := permission.Judge(r, "", team.Unconfined, bash(t, line), c.dir)
		if again := permission.Judge(r, "", team.Unconfined, bash(t, line), c.dir); again != v {
			t.Errorf("%q: %+v, then %+v", line, v, again)
		}
		if bypass := permission.Judge(r, team.BypassPermissions, team.Unconfined, bash(t, line), c.dir); v.Doubt != (bypass.Decision == permission.Deny && v.Decision == permission.Ask) && v.Decision != permission.Deny {
			t.Errorf("%q: %+v, and %+v where nothing is asked", line, v, bypass)
		}
	})
}
