package projectcontext

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// git runs a command of a repository that knows nothing of this machine's settings.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// bash runs the commands of a look at dir.
func bash(dir string) Run {
	return func(ctx context.Context, line string) (string, bool, error) {
		cmd := exec.CommandContext(ctx, "bash", "-c", line)
		cmd.Dir = dir
		out, err := cmd.Output()
		return string(out), err == nil, nil
	}
}

func TestGit(t *testing.T) {
	dir := t.TempDir()
	want := func(want string) {
		t.Helper()
		if got := Inspect(t.Context(), dir, bash(dir), nil).Git; got != want {
			t.Errorf("git is %q, want %q", got, want)
		}
	}
	want("")
	run(t, dir, "init", "-q", "-b", "main")
	want("branch main without commits, clean")
	write(t, dir+"/a b", "1")
	write(t, dir+"/b", "2")
	want("branch main without commits, 2 files changed or new")
	run(t, dir, "add", ".")
	run(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
	want("branch main, clean")
	run(t, dir, "mv", "b", "c")
	want("branch main, 1 file changed or new")
	run(t, dir, "checkout", "-q", "--detach")
	want("no branch, 1 file changed or new")
}

// The changed files stand with their lines, then the new ones; where nothing has changed there is nothing to state.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	want := func(want string) {
		t.Helper()
		if got := Changes(t.Context(), bash(dir)); got != want {
			t.Errorf("changed is %q, want %q", got, want)
		}
	}
	want("")
	run(t, dir, "init", "-q", "-b", "main")
	want("")
	write(t, dir+"/a b", "1\n")
	run(t, dir, "add", ".")
	run(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
	want("")
	write(t, dir+"/a b", "1\n2\n")
	write(t, dir+"/new", "1\n")
	want(" a b | 1 +\n 1 file changed, 1 insertion(+)\nnew (new)")
}

// A footprint changes with each file, in a repository and outside of one, and with nothing else.
func TestFootprint(t *testing.T) {
	plain, repository := t.TempDir(), t.TempDir()
	run(t, repository, "init", "-q", "-b", "main")
	run(t, repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one", "--allow-empty")
	for _, dir := range []string{plain, repository} {
		before := Footprint(t.Context(), bash(dir))
		for i, name := range []string{"a b", "new"} {
			if same := Footprint(t.Context(), bash(dir)); same != before || same == "" {
				t.Errorf("without a change %q became %q", before, same)
			}
			write(t, filepath.Join(dir, name), strings.Repeat("1\n", i+1))
			after := Footprint(t.Context(), bash(dir))
			if after == before {
				t.Errorf("%s: %q is the footprint with and without the file", name, after)
			}
			before = after
		}
	}
}

// A link may not bring a file from elsewhere before the model.
func TestProjectLeadsNowhere(t *testing.T) {
	top := t.TempDir()
	write(t, top+"/secret", "secret")
	write(t, top+"/repo/rules/agents.md", "rules")
	for to, want := range map[string]string{"rules/agents.md": "rules", "../secret": "", top + "/secret": ""} {
		link := top + "/repo/AGENTS.md"
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		if got := texts(Standing(top+"/repo", nil)); got != want {
			t.Errorf("a link to %s tells %q, want %q", to, got, want)
		}
	}
}

// texts are the texts of files.
func texts(files []File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Text)
	}
	return strings.Join(all, "|")
}

func TestProject(t *testing.T) {
	top := t.TempDir()
	repo := filepath.Join(top, "repo")
	deep := filepath.Join(repo, "a", "b")
	write(t, deep+"/x", "")
	want := func(file, text string, leftOut int) {
		t.Helper()
		p := Inspect(t.Context(), deep, bash(deep), nil)
		if file == "" {
			if len(p.Project) > 0 {
				t.Errorf("told %+v, want nothing", p.Project)
			}
			return
		}
		name, err := filepath.Rel(deep, file)
		if err != nil || len(p.Project) != 1 || p.Project[0].Name != name || p.Project[0].Text != text || p.Project[0].LeftOut != leftOut {
			t.Errorf("told %.200v, want %q, %d bytes, %d left out", p.Project, name, len(text), leftOut)
		}
	}
	want("", "", 0)
	write(t, top+"/AGENTS.md", "top")
	want(top+"/AGENTS.md", "top", 0)
	write(t, repo+"/.git", "gitdir: elsewhere") // the top of a repository
	want("", "", 0)
	write(t, repo+"/AGENTS.md", "repo \x1b[31mred\xff")
	want(repo+"/AGENTS.md", "repo [31mred\uFFFD", 0)
	if err := os.Mkdir(repo+"/a/AGENTS.md", 0o755); err != nil { // no file
		t.Fatal(err)
	}
	line := strings.Repeat("ä", 500) + "\n"
	write(t, deep+"/AGENTS.md", " \n")
	want(repo+"/AGENTS.md", "repo [31mred\uFFFD", 0)
	write(t, deep+"/AGENTS.md", strings.Repeat(line, 40))
	want(deep+"/AGENTS.md", strings.Repeat(line, 32), 8*len(line))
	write(t, deep+"/AGENTS.md", strings.Repeat("ä", MaxProject)) // one line: it is told as far as it goes
	want(deep+"/AGENTS.md", strings.Repeat("ä", MaxProject/2), MaxProject)
	write(t, deep+"/AGENTS.md", "x"+strings.Repeat("ä", MaxProject))
	want(deep+"/AGENTS.md", "x"+strings.Repeat("ä", MaxProject/2-1), MaxProject+2)
	if err := os.Chmod(deep, 0o777); err != nil {
		t.Fatal(err)
	}
	want("", "", 0)
}
