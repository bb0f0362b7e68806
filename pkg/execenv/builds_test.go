package execenv_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/execenv"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/workspace"
)

// everything returns what is below a folder: names, modes and contents. At level Confined times can be changed.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(filepath.Join(dir, name)) // of a folder there is none
		fmt.Fprintln(&b, name, info.Mode(), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// as returns what a command of a member in a team writes, in a folder.
func (r *rig) as(agent team.AgentID, record team.Team, line string) string {
	r.Helper()
	ws, release, err := r.source.Open(r.Context(), workspace.Work{Team: record, Member: team.Member{AgentID: agent, Role: "coder"}}, workspace.Options{})
	if err != nil {
		r.Fatal(err)
	}
	defer release()
	output, _, err := ws.Check(r.Context(), line)
	if err != nil {
		r.Fatal(err)
	}
	return strings.TrimSpace(output)
}

// others returns a team on the same repository, and one on another.
func (r *rig) others() (later, elsewhere team.Team) {
	later, elsewhere = r.record, r.record
	later.ID, elsewhere.ID = "later", "elsewhere"
	elsewhere.Workspace = filepath.Join(filepath.Dir(r.dir), "other")
	put(r.T, filepath.Join(elsewhere.Workspace, "main.go"), "package main\n")
	return later, elsewhere
}

// What a member writes into caches of builds is there for all of its repository, and reaches neither the user's own nor
// those of another repository.
func TestBuildsStayInTheRepository(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		for _, network := range []team.Network{nil, {"example.org"}} {
			if level == team.Confined && network != nil { // which has none
				continue
			}
			t.Run(fmt.Sprint(level, network), func(t *testing.T) {
				r := newRig(t, level)
				r.record.Policy.Network = network
				user := filepath.Join(filepath.Dir(r.dir), "user")
				for _, name := range []string{".cache/go-build/00/x-d", ".cache/ccache/0/xR", ".cache/pip/http-v2/x", ".cache/pip/wheels/x", ".npm/_cacache/x", ".cargo/registry/cache/x", ".cargo/git/x", "go/pkg/mod/x"} {
					put(t, filepath.Join(user, name), "the user's")
				}
				before := everything(t, user)
				later, elsewhere := r.others()
				places := []string{"$GOCACHE", "$CCACHE_DIR", "~/.cache/pip/wheels"}
				if network != nil {
					places = append(places, "$(go env GOMODCACHE)", "~/.npm/_cacache", "~/.cargo/registry", "~/.cargo/git", "~/.cache/pip/http-v2")
				}
				write, read := "", ""
				for i, at := range places {
					write += fmt.Sprintf("echo 'planted%d;' > %s/planted; ", i, at)
					read += fmt.Sprintf("cat %s/planted; ", at)
				}
				for _, own := range []string{".cache/go-build", ".cache/ccache", ".cache/pip/wheels", ".npm/_cacache", ".cargo/registry", "go/pkg/mod"} {
					write += fmt.Sprintf("echo evil > %[1]s/planted; echo evil > %[1]s/00/x-d; rm -rf %[1]s; touch %[1]s/x; ", filepath.Join(user, own))
				}
				for _, at := range []string{"~/.npm/_cacache", "~/.cargo/registry", "~/.cargo/git", "~/.cache/pip/http-v2", "$(go env GOMODCACHE)"} {
					write += fmt.Sprintf("rm -rf %[1]s/x; echo evil >> %[1]s/x; ", at)
				}
				r.as("coder-1", r.record, write)
				for _, where := range []struct {
					agent  team.AgentID
					record team.Team
					sees   bool
				}{{"coder-1", r.record, true}, {"coder-2", r.record, true}, {"coder-1", later, true}, {"coder-1", elsewhere, false}} {
					got := strings.Count(r.as(where.agent, where.record, read), ";")
					if want := map[bool]int{true: len(places)}[where.sees]; got != want {
						t.Errorf("%s of %s sees %d of %d places, want %d", where.agent, where.record.ID, got, len(places), want)
					}
				}
				if after := everything(t, user); after != before {
					t.Errorf("what is the user's has changed from\n%s\nto\n%s", before, after)
				}
			})
		}
	}
}

// What the user has built, or another member of the repository, no member builds again.
func TestGoBuildsOnce(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t, level)
			user := filepath.Join(filepath.Dir(r.dir), "user")
			later, elsewhere := r.others()
			for _, dir := range []string{r.dir, elsewhere.Workspace} {
				put(t, filepath.Join(dir, "go.mod"), "module example.com/m\n\ngo 1.24\n")
				put(t, filepath.Join(dir, "a", "a.go"), "package a\n\nfunc A() {}\n")
				put(t, filepath.Join(dir, "b", "b.go"), "package b\n\nfunc B() {}\n")
			}
			const build = "go build -trimpath -x ./%s 2>&1 | grep -c '/compile '"
			own := exec.Command("go", "build", "-trimpath", "./a")
			own.Dir, own.Env = r.dir, append(os.Environ(), "GOCACHE=", "GOFLAGS=")
			if out, err := own.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			before := everything(t, filepath.Join(user, ".cache", "go-build"))
			if !strings.Contains(before, "-d ") {
				t.Fatalf("the user has built nothing: %s", before)
			}
			for _, step := range []struct {
				agent  team.AgentID
				record team.Team
				what   string
				builds string
			}{
				{"coder-1", r.record, "a", "0"}, // by the user
				{"coder-1", r.record, "b", "1"},
				{"coder-2", r.record, "b", "0"},
				{"coder-1", later, "b", "0"},
				{"coder-1", elsewhere, "a", "0"}, // by the user: -trimpath has the folder not count
				{"coder-1", elsewhere, "b", "1"},
			} {
				if got := strings.Fields(r.as(step.agent, step.record, fmt.Sprintf(build, step.what)) + " nothing")[0]; got != step.builds {
					t.Errorf("%s of %s builds %s: %s compilations, want %s", step.agent, step.record.ID, step.what, got, step.builds)
				}
			}
			if after := everything(t, filepath.Join(user, ".cache", "go-build")); after != before {
				t.Error("the user's cache has changed")
			}
		})
	}
}

// TMPDIR is short enough for a unix socket with a long name, wherever the workspace and the homes are: at confined no socket can be made.
func TestShortTemporaryFolder(t *testing.T) {
	r := newRig(t, team.Bubblewrap)
	r.source = execenv.New(execenv.Options{Sandbox: r.level, Cache: filepath.Join(filepath.Dir(r.dir), strings.Repeat("long", 20))})
	testenv.Program(t, "python3")
	for _, dir := range []string{r.dir, r.outside(strings.Repeat("deeper", 20))} {
		put(t, filepath.Join(dir, "f"), "")
		r.record.Workspace = dir
		if got := r.run(`python3 -c 'import os, socket; s = socket.socket(socket.AF_UNIX); s.bind(os.environ["TMPDIR"] + "/" + "s" * 69); s.listen(); print("bound")'; rm "$TMPDIR"/s*`); got != "bound" {
			t.Errorf("a socket, in %s: %s", dir, got)
		}
	}
}

// Programs work with caches that are the repository's: what ccache has stored for one tree it finds in another, and cargo,
// npm and pip take the links for their own folders, with and without a network.
func TestProgramsOfCaches(t *testing.T) {
	if home, err := os.UserHomeDir(); err == nil { // before the rig has another
		t.Setenv("RUSTUP_HOME", cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup")))
	}
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t, level)
			run := func(tree string, network team.Network, line string) string {
				put(t, filepath.Join(tree, "x.c"), "#include \"y.h\"\nint main(void) { return Y; }\n")
				put(t, filepath.Join(tree, "y.h"), "#define Y 0\n")
				put(t, filepath.Join(tree, "Cargo.toml"), "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
				put(t, filepath.Join(tree, "src", "main.rs"), "fn main() { println!(\"made\"); }\n")
				put(t, filepath.Join(tree, "package.json"), `{"name": "x", "version": "0.1.0"}`)
				record := r.record
				record.Policy.Network = network
				ws, release, err := r.source.Open(t.Context(), workspace.Work{Team: record, Member: team.Member{AgentID: team.AgentID(filepath.Base(tree)), Role: "coder"},
					Tree: &workspace.Tree{Root: tree, Dir: tree}}, workspace.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				out, passed, err := ws.Check(t.Context(), line)
				if err != nil || !passed {
					t.Errorf("%s with the network %s: %v: %s", line, network, err, out)
				}
				return out
			}
			networks := []team.Network{nil}
			if level == team.Bubblewrap {
				networks = append(networks, team.Network{"example.org"})
			}
			for program, line := range map[string]string{
				"ccache": `ccache -z >/dev/null; ccache cc -g -c "$PWD/x.c" -o "$PWD/x.o" && ccache --print-stats | grep -E '^(direct|preprocessed)_cache_hit' | cut -f2 | sort -rn | head -1`,
				"cargo":  `cargo run -q && cargo generate-lockfile`,
				"npm":    `npm install --no-audit --no-fund`,
				"pip":    `pip --version && pip cache dir`,
			} {
				if _, err := exec.LookPath(program); err != nil {
					t.Log(err)
					continue
				}
				for i, network := range networks {
					first := run(r.outside(fmt.Sprintf("tree-a%d", i)), network, line)
					second := run(r.outside(fmt.Sprintf("tree-b%d", i)), network, line)
					if program == "ccache" && (i == 0 && !strings.HasPrefix(first, "0") || !strings.HasPrefix(second, "1")) {
						t.Errorf("ccache hits %q in the first tree, and %q in the second", first, second)
					}
				}
			}
		})
	}
}
