package execenv_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/execenv"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// rig is a workspace with what members must not touch.
type rig struct {
	*testing.T
	dir    string
	level  team.Sandbox // of the operator
	source *execenv.Source
	record team.Team
}

func newRig(t *testing.T, operator team.Sandbox) *rig {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	for name, text := range map[string]string{
		".git/config": "[core]\n", ".agentteam/api.token": "token-of-the-api", "team.yaml": "sandbox: auto\n", "main.go": "package main\n",
	} {
		put(t, filepath.Join(dir, name), text)
	}
	put(t, filepath.Join(base, "outside"), "outside")
	t.Setenv("HOME", filepath.Join(base, "user"))
	put(t, filepath.Join(base, "user", ".ssh", "id"), "key")
	r := &rig{t, dir, operator, execenv.New(execenv.Options{Sandbox: operator, Settings: filepath.Join(dir, "team.yaml"), Cache: base}), team.Team{
		ID: "crew", Workspace: dir, CreatedAt: time.Unix(1, 0), Roles: map[string]team.Role{"coder": {Name: "coder"}},
	}}
	if operator == team.Confined { // which hides nothing inside of the workspace, and keeps a repository at a price
		if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, ".agentteam"), filepath.Join(base, "cluster")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(base, "cluster"), filepath.Join(dir, ".agentteam")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.source.Sandbox(t.Context(), r.record, "coder")
	if errors.Is(err, team.Unavailable) {
		testenv.Need(t, err)
	}
	return r
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) open(agent team.AgentID) (*workspace.Workspace, error) {
	ws, release, err := r.source.Open(r.Context(), workspace.Work{Team: r.record, Member: team.Member{AgentID: agent, Role: "coder"}}, workspace.Options{})
	if err == nil {
		r.Cleanup(release)
	}
	return ws, err
}

// run returns what a command of coder-1 writes.
func (r *rig) run(line string) string {
	r.Helper()
	ws, err := r.open("coder-1")
	if err != nil {
		r.Fatal(err)
	}
	output, _, err := ws.Check(r.Context(), line)
	if err != nil {
		r.Fatal(err)
	}
	return strings.TrimSpace(output)
}

func TestCommandsAreConfined(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t, level)
			if got := r.run("echo made > new.txt && cat main.go && git --version > /dev/null && echo $HOME"); !strings.HasPrefix(got, "package main\n") || !strings.HasSuffix(got, "/coder-1") {
				t.Errorf("work: %s", got)
			}
			for _, try := range []string{
				"cat .agentteam/api.token", "cat ../cluster/api.token", "cat ../outside", "cat ../user/.ssh/id", "ls ../homes/*/coder-2",
				"exec 3<>/dev/tcp/127.0.0.1/4222 && echo token-of-the-api",
			} {
				if got := r.run(try + " 2>&1"); strings.Contains(got, "token-of-the-api") || strings.Contains(got, "outside\n") || strings.HasSuffix(got, "key") {
					t.Errorf("%s: %s", try, got)
				}
			}
			for _, try := range []string{"curl -sS http://example.com", "git ls-remote https://example.com/x.git", `python3 -c 'import urllib.request as r; r.urlopen("http://example.com")'`} {
				for _, end := range []string{"", "; true"} {
					if got := r.run(try + " 2>&1" + end); !strings.Contains(got, `a person can allow hosts by "network" of the role or the team`) {
						t.Errorf("%s%s says nothing of the setting: %s", try, end, got)
					}
				}
			}
			if got := r.run("touch /usr/planted 2>&1 || echo so be it"); !strings.Contains(got, `what a person has named by "paths"`) || !strings.Contains(got, "so be it") {
				t.Errorf("a refusal in a command that succeeds is not explained: %s", got)
			}
			listen := `python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print("listens")'`
			if got := r.run(listen + " 2>&1 || true"); strings.Contains(got, "listens") == strings.Contains(got, "commands make no socket") {
				t.Errorf("a listener on loopback: %s", got)
			}
			if got := r.run("mkdir .agentteam 2>&1 && echo done"); strings.HasSuffix(got, "done") {
				t.Error(got)
			}
		})
	}
}

// That a context ends while a level is tried shows nothing of the level: the next caller has it.
func TestEndedContextIsNoFinding(t *testing.T) {
	levels(t, func(r *rig) {
		ended, end := context.WithCancel(r.Context())
		end()
		for _, operator := range []team.Sandbox{r.level, team.SandboxAuto} {
			r.record.Policy.Sandbox = r.level
			source := execenv.New(execenv.Options{Sandbox: operator})
			if found, err := source.Sandbox(ended, r.record, "coder"); !errors.Is(err, context.Canceled) || !errors.Is(err, team.Unavailable) {
				r.Errorf("under %s, in a context that has ended: %v, %v", operator, found, err)
			}
			if found, err := source.Sandbox(r.Context(), r.record, "coder"); err != nil || found.Level() != r.level && operator == r.level {
				r.Errorf("under %s, after it: %v, %v", operator, found, err)
			}
		}
	})
}

// Each member has a home of its own, which a later incarnation finds again.
func TestHomes(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	r.run("echo kept > ~/note")
	if got := r.run("cat ~/note"); got != "kept" {
		t.Errorf("the home of an earlier incarnation: %s", got)
	}
	ws, err := r.open("coder-2")
	if err != nil {
		t.Fatal(err)
	}
	if output, passed, err := ws.Check(t.Context(), "cat ~/note ~/../coder-1/note"); passed || err != nil || strings.Contains(output, "kept") {
		t.Errorf("the home of another member: %s, %v", output, err)
	}
}

// Temporary files are there for the commands of an open workspace, and gone when it is opened
// again, also those in folders that may not be written.
func TestTemporaryFiles(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	open := func() (ws *workspace.Workspace, release func()) {
		ws, release, err := r.source.Open(t.Context(), workspace.Work{Team: r.record, Member: team.Member{AgentID: "coder-1", Role: "coder"}}, workspace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return ws, release
	}
	there := func(ws *workspace.Workspace) bool {
		_, passed, err := ws.Check(t.Context(), `test -e "$HOME.tmp/sub/file" || test -e "$TMPDIR/sub/file"`)
		if err != nil {
			t.Fatal(err)
		}
		return passed
	}
	first, release := open()
	if output, passed, err := first.Check(t.Context(), `mkdir "$TMPDIR/sub" && echo x > "$TMPDIR/sub/file" && chmod 555 "$TMPDIR/sub"`); !passed || err != nil {
		t.Fatal(output, err)
	}
	second, releaseSecond := open()
	if !there(first) || !there(second) {
		t.Error("the temporary files went while their workspace is open")
	}
	release()
	releaseSecond()
	third, release := open()
	defer release()
	if there(third) {
		t.Error("temporary files are left of a workspace that is closed")
	}
}

// With a team go its homes, and those of no other.
func TestForget(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	r.run(`mkdir -p ~/go/mod && echo x > ~/go/mod/file && chmod 555 ~/go/mod && ln -s "$PWD" ~/link`)
	other := *r
	other.record.CreatedAt = time.Unix(2, 0)
	other.run("echo kept > ~/note")
	r.source.Forget(r.record)
	if homes, err := filepath.Glob(filepath.Join(filepath.Dir(r.dir), "homes", "crew-*")); len(homes) != 1 || err != nil {
		t.Errorf("%q, %v", homes, err)
	}
	if got := other.run("cat ~/note"); got != "kept" {
		t.Errorf("the home in another team: %s", got)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "main.go")); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
	r.source.Forget(r.record)    // again
	r.source.Forget(team.Team{}) // of none
}

// What the machine cannot give is refused when the workspace is opened, with what to do.
func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		operator team.Sandbox
		hands    team.Policy
		code     team.Code
		want     string
	}{
		"network":     {team.Confined, team.Policy{Network: team.Network{"example.org"}}, team.Unavailable, "wants the network example.org"},
		"credentials": {team.SandboxAuto, team.Policy{Credentials: []string{"gh"}}, team.InvalidArgument, `credentials "gh" are not there`},
		"read":        {team.SandboxAuto, team.Policy{Paths: team.Paths{Read: []string{"/none/there"}}}, team.InvalidArgument, "paths.read names /none/there"},
		"write":       {team.SandboxAuto, team.Policy{Paths: team.Paths{Write: []string{"~/none"}}}, team.InvalidArgument, "paths.write names"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tt.operator)
			t.Setenv("GH_TOKEN", "")
			t.Setenv("GITHUB_TOKEN", "")
			r.record.Policy = tt.hands
			if _, err := r.open("coder-1"); !errors.Is(err, tt.code) || !strings.Contains(err.Error(), tt.want) || team.HintOf(err) == "" {
				t.Errorf("%v (%s)", err, team.HintOf(err))
			}
		})
	}
}

// Where no sandbox works files can be read and written, and each command is refused.
func TestNoSandboxWorks(t *testing.T) {
	r := newRig(t, "chroot")
	ws, err := r.open("coder-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Check(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), `"chroot" is not a level`) {
		t.Errorf("a command: %v", err)
	}
}

// Where the sandbox was not found out, since the call was over, the next command looks again.
func TestSandboxIsFoundLater(t *testing.T) {
	r := newRig(t, team.Confined)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	anew := execenv.New(execenv.Options{Sandbox: team.Confined, Cache: t.TempDir()})
	ws, release, err := anew.Open(over, workspace.Work{Team: r.record, Member: team.Member{AgentID: "coder-1", Role: "coder"}}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, passed, err := ws.Check(t.Context(), "true"); err != nil || !passed {
		t.Errorf("a command: %v, %v", passed, err)
	}
}

// Nothing but the operator's setting leads to no sandbox, and a role may have a stronger one.
func TestLevel(t *testing.T) {
	for _, tt := range []struct{ operator, team, role, want team.Sandbox }{
		{team.Unconfined, "", "", team.Unconfined},
		{team.Confined, team.Unconfined, team.Unconfined, team.Confined},
		{team.Unconfined, team.Confined, "", team.Bubblewrap}, // at least
		{team.Unconfined, team.Unconfined, team.Bubblewrap, team.Bubblewrap},
		{team.Confined, team.SandboxAuto, team.Bubblewrap, team.Bubblewrap},
	} {
		r := newRig(t, tt.operator)
		r.record.Policy.Sandbox = tt.team
		r.record.Roles["coder"] = team.Role{Name: "coder", Policy: team.Policy{Sandbox: tt.role}}
		if got := r.source.Level(t.Context(), r.record, "coder"); got != tt.want {
			t.Errorf("operator %q, team %q, role %q: %q, want %q", tt.operator, tt.team, tt.role, got, tt.want)
		}
	}
	r := newRig(t, "") // auto
	r.record.Policy.Sandbox = team.Unconfined
	if got := r.source.Level(t.Context(), r.record, "coder"); got == team.Unconfined {
		t.Error("a team without a sandbox under an operator who wants one has none")
	}
}

// A file in place of .git leads to a repository only if that has made the worktree.
func TestLinkedWorktree(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	base := filepath.Dir(r.dir)
	repository := filepath.Join(base, "repository", ".git")
	admin := filepath.Join(repository, "worktrees", "work")
	put(t, filepath.Join(repository, "HEAD"), "ref: refs/heads/main\n")
	put(t, filepath.Join(admin, "gitdir"), filepath.Join(r.dir, ".git")+"\n")
	if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(r.dir, ".git"), "gitdir: "+admin+"\n")
	if got := r.run("cat " + repository + "/HEAD"); got != "ref: refs/heads/main" {
		t.Errorf("a worktree of the repository: %s", got)
	}
	put(t, filepath.Join(admin, "gitdir"), "/elsewhere/.git\n")
	if got := r.run("cat " + repository + "/HEAD"); got == "ref: refs/heads/main" {
		t.Errorf("a folder that only says so: %s", got)
	}
}

// The file tools keep what the commands cannot change, also what is not there yet.
func TestFileToolsKeep(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	ws, err := r.open("coder-1")
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(nil, ws.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for path, refused := range map[string]bool{
		".git/config": true, ".git/hooks/pre-commit": true, "below/.git/config": true, "team.yaml": true, "notes.txt": false, ".gitattributes": false,
	} {
		got := set.Run(t.Context(), tool.Call{ID: "1", Name: "write_file", Arguments: `{"path":"` + path + `","content":"x"}`})
		if got.IsError != refused {
			t.Errorf("%s: %s", path, got.Content)
		}
	}
}

// What a person takes away holds at the next call.
func TestHandsChange(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	dir := filepath.Join(filepath.Dir(r.dir), "beside")
	put(t, filepath.Join(dir, "f"), "beside")
	r.record.Policy.Paths.Read = []string{dir}
	at := workspace.Follow(r.source, func() workspace.Work {
		return workspace.Work{Team: r.record, Member: team.Member{AgentID: "coder-1", Role: "coder"}}
	}, workspace.Options{})
	defer at.Close()
	reads := func() bool {
		ws, done, err := at.Use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		output, _, err := ws.Check(t.Context(), "cat "+dir+"/f")
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(output, "beside")
	}
	if !reads() {
		t.Error("a folder that may be read is not")
	}
	r.record.Policy.Paths.Read = nil
	if reads() {
		t.Error("a folder that may not be read any more still is")
	}
}

// A workspace that is also named as a folder to read stays one in which members write.
func TestReadsItsOwnWorkspace(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	r.record.Policy.Paths.Read = []string{r.dir, filepath.Dir(r.dir)}
	ws, err := r.open("coder-1")
	if err != nil {
		t.Fatal(err)
	}
	if output, _, err := ws.Check(t.Context(), "echo written > f && cat f"); err != nil || !strings.HasPrefix(output, "written") {
		t.Errorf("a command in it: %q, %v", output, err)
	}
}

// What is not there is said before anything starts.
func TestCheck(t *testing.T) {
	r := newRig(t, team.SandboxAuto)
	for want, h := range map[string]team.Policy{
		"":                              {},
		"paths.read names /none/there":  {Paths: team.Paths{Read: []string{"/none/there"}}},
		`credentials "docker" are not`:  {Credentials: []string{"docker"}},
		"commands would write all of /": {Paths: team.Paths{Write: []string{filepath.Dir(filepath.Dir(r.dir))}}},
	} {
		if err := r.source.Check(t.Context(), h, r.dir); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	hosts := team.Policy{Network: team.Network{"example.org"}}
	err := newRig(t, team.Confined).source.Check(t.Context(), hosts, r.dir)
	if !errors.Is(err, team.Unavailable) || !strings.Contains(team.Line(err), `the team wants the network example.org, and commands have none in the weaker sandbox "confined" (install bubblewrap`) {
		t.Errorf("a network at confined: %v", err)
	}
	if err := newRig(t, team.Unconfined).source.Check(t.Context(), hosts, r.dir); err != nil {
		t.Errorf("a network without a sandbox: %v", err)
	}
}

// The data of a cluster may lie anywhere below the workspace, and where its process was started.
func TestClusterElsewhere(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t, level)
			for _, name := range []string{"some/where/api.token", "sub/.agentteam/api.token"} {
				put(t, filepath.Join(r.dir, name), "token-of-the-api")
			}
			t.Chdir(filepath.Join(r.dir, "sub"))
			base := filepath.Dir(r.dir)
			r.source = execenv.New(execenv.Options{Sandbox: level, Data: filepath.Join(r.dir, "some", "where"), Cache: base})
			ws, err := r.open("coder-1")
			if level == team.Confined { // which hides nothing inside of the workspace
				if err == nil || !strings.Contains(err.Error(), "cannot be hidden") {
					t.Errorf("it was opened: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			output, _, err := ws.Check(t.Context(), "cat some/where/api.token sub/.agentteam/api.token .agentteam/api.token; echo some/where/* sub/.agentteam/*")
			if err != nil || strings.Contains(output, "token-of-the-api") || !strings.HasSuffix(output, "some/where/* sub/.agentteam/*\n") {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// In a workspace below the top of a repository git works; files outside count as deleted or changed
// at worst.
func TestGitBelowRepository(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t, level)
			if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
				t.Fatal(err)
			}
			base := filepath.Dir(r.dir)
			git := exec.Command("sh", "-c", `printf '*\n!work\n!*.go\n!outside\n' > .gitignore && git init -q && git add work/main.go outside && git -c user.name=n -c user.email=e commit -qm first`)
			git.Dir, git.Env = base, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			ws, err := r.open("coder-1")
			if err != nil {
				t.Fatal(err)
			}
			output, passed, err := ws.Check(t.Context(), `set -e; echo x >> main.go; git --no-optional-locks status --porcelain; git diff --stat .; git log --format=%s`)
			if !passed || err != nil || !strings.Contains(output, " M main.go\n") && !strings.Contains(output, " M work/main.go\n") || !strings.Contains(output, "\nfirst\n") {
				t.Errorf("%v: %s", err, output)
			}
			if strings.Contains(output, "+outside") {
				t.Errorf("what is outside is shown: %s", output)
			}
		})
	}
}
