package toolchain_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// jobs are what members do all day. Each is a script of bash, which is to end well and to print
// want.
var jobs = []struct {
	name, tool string
	script     string
	want       string
}{
	{"a Go module with a dependency", "go", `
mkdir m && cd m
printf 'module example.com/m\n\ngo %s\n\nrequire golang.org/x/sync %s\n' "$(go env GOVERSION | sed s/go//)" "$SYNC" >go.mod
printf '%s\n' "$SUMS" >go.sum
cat >m.go <<'END'
package m

import "golang.org/x/sync/errgroup"

func Two() (n int) {
	var g errgroup.Group
	g.Go(func() error { n = 2; return nil })
	_ = g.Wait()
	return n
}
END
cat >m_test.go <<'END'
package m

import "testing"

func TestTwo(t *testing.T) {
	if Two() != 2 {
		t.Fatal("not two")
	}
}
END
go build ./... && go test -vet=off ./... && rm go.sum && go mod tidy && go mod verify && go build ./... && test ! -e "$HOME/go"
`, "all modules verified"},
	{"a script of python", "python3", `
cat >s.py <<'END'
import hashlib, json, os, sqlite3, ssl, subprocess, tempfile, threading, unittest
with tempfile.TemporaryDirectory() as d:
    db = sqlite3.connect(os.path.join(d, "x.db"))
    db.execute("create table t (n)")
    print(json.dumps({"n": hashlib.sha256(b"x").hexdigest()[:4], "out": subprocess.check_output(["echo", "hi"], text=True)}))
END
python3 s.py
`, `{"n": "2d71", "out": "hi\n"}`},
	{"a script of node", "node", `
cat >s.js <<'END'
const {execSync} = require("child_process"), crypto = require("crypto");
Promise.all([1, 2].map(async n => n)).then(all => console.log(all.length, crypto.randomBytes(4).length, execSync("echo hi").toString().trim()));
END
node s.js
`, "2 4 hi"},
	{"make", "make", `
printf 'all: a b\n\t@cat a b\na:\n\t@echo one >$@\nb: a\n\t@sed s/one/two/ a >$@\ninstall: all\n\t@install -m 755 a out/a\n' >Makefile
mkdir out && make -s -j2 && make -s install && test -x out/a && echo installed
`, "one\ntwo\none\ntwo\ninstalled"},
	{"a C program", "cc", `
printf '#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n' >x.c && cc -o x x.c && ./x
`, "made"},
	{"git", "git", `
git init -q repo && cd repo && echo one >a && git status --short && git add a && git commit -qm first
git worktree add -q ../tree -b side && cd ../tree && echo two >>a && git commit -qam second && git log --format='%s by %an <%ae>'
git stash list && git diff HEAD~1 --stat | tail -1 && cd ../repo && git merge -q side && git status --short && git clone -q . ../clone && git -C ../clone log --oneline | wc -l
`, "second by Ann <ann@example.com>\nfirst by Ann <ann@example.com>\n 1 file changed, 1 insertion(+)\n2"},
	{"a pipeline", "awk", `
seq 1 100 | awk '$1 % 2 { s += $1 } END { print s }'
printf 'b\na\nb\n' | sort | uniq -c | sort -rn | sed 's/^ *//' | head -1
find . -name '*.none' -print0 | xargs -0 -r ls; echo x | tee t | grep -c x; diff t <(echo x) && tar czf t.tgz t && gzip -l t.tgz >/dev/null && mktemp >/dev/null && echo "${TMPDIR:-/tmp}" >/dev/null && date +%Y | grep -Eq '^20' && echo done
`, "2500\n2 b\n1\ndone"},
}

// Members work with the tools of the host, in homes of their own. Here nothing but their
// environment is another; the dependency comes from the cache of modules, since GOPROXY is off.
func TestJobs(t *testing.T) {
	runJobs(t, func(*testing.T, string, toolchain.Member, toolchain.Grant) command.Runner { return command.Plain{} })
}

// runJobs runs all jobs by what runner makes for each: the folder, and what its member has.
func runJobs(t *testing.T, runner func(*testing.T, string, toolchain.Member, toolchain.Grant) command.Runner) {
	for _, job := range jobs {
		t.Run(job.name, func(t *testing.T) {
			t.Parallel()
			testenv.Program(t, job.tool)
			dir := t.TempDir()
			m := toolchain.Member{Home: filepath.Join(t.TempDir(), "home"), Cache: filepath.Join(t.TempDir(), "builds"), Writable: []string{dir}}
			host := toolchain.This()
			host.Env = func(name string) (string, bool) {
				switch name {
				case "GIT_AUTHOR_NAME":
					return "Ann", true
				case "GIT_AUTHOR_EMAIL":
					return "ann@example.com", true
				}
				return os.LookupEnv(name)
			}
			g, err := toolchain.Of(host, m, nil)
			if err == nil {
				err = g.Populate()
			}
			if err != nil {
				t.Fatal(err)
			}
			run := runner(t, dir, m, g)
			env := append(g.Env, "HOME="+m.Home)
			if job.tool == "go" {
				env = append(env, moduleEnv(t)...)
			}
			var out bytes.Buffer
			exit, err := run.Run(t.Context(), command.Command{
				Args: []string{"bash", "-euo", "pipefail", "-c", job.script}, Dir: dir, Env: env, Output: &out, Limit: 10 * time.Minute,
			})
			if err != nil || exit.Code != 0 || !strings.Contains(out.String(), job.want) {
				t.Errorf("%+v, %v, want output with %q, got:\n%s", exit, err, job.want, &out)
			}
		})
	}
}

// moduleEnv returns the version of a dependency of this module, which the cache holds, and the sums
// of all.
func moduleEnv(t *testing.T) []string {
	t.Helper()
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "golang.org/x/sync").Output()
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	text, err := os.ReadFile("../../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "golang.org/x/sync "+strings.TrimSpace(string(version))) {
			sums = append(sums, strings.TrimSpace(line))
		}
	}
	return []string{"SYNC=" + strings.TrimSpace(string(version)), "SUMS=" + strings.Join(sums, "\n")}
}
