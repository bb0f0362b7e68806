package toolchain

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The home of a member shows what is granted, at each start what is granted then, and keeps what
// the member has put there.
func TestFurnish(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "homes", "coder-1")
	g := Grant{home: home, links: map[string]string{".cargo/registry": "/host/registry", ".config/gh": "/host/gh"}}
	read := func(name string) string {
		target, err := os.Readlink(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	for range 2 { // the second changes nothing
		if err := g.Populate(); err != nil {
			t.Fatal(err)
		}
		if got := read(".cargo/registry") + read(".config/gh"); got != "/host/registry/host/gh" {
			t.Error(got)
		}
	}
	// No network then, and no gh; the member has made a cache itself.
	if err := os.MkdirAll(filepath.Join(home, ".npm/_cacache/own"), 0o700); err != nil {
		t.Fatal(err)
	}
	g.links = map[string]string{".cargo/registry": "/other", ".npm/_cacache": "/host/npm"}
	if err := g.Populate(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(home, ".config/gh")); !os.IsNotExist(err) {
		t.Errorf("a link that is granted no longer: %v", err)
	}
	if _, err := os.Stat(filepath.Join(home, ".npm/_cacache/own")); err != nil || read(".cargo/registry") != "/other" {
		t.Errorf("%v, registry at %s", err, read(".cargo/registry"))
	}
	if err := (Grant{home: "relative"}).Populate(); err == nil {
		t.Error("a relative home is furnished")
	}
}

// What a member plants in its home leads Populate nowhere else, and does not hold it up.
func TestFurnishAPlantedHome(t *testing.T) {
	t.Parallel()
	outside, home := t.TempDir(), t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(home, ".cargo")); err != nil {
		t.Fatal(err)
	}
	g := Grant{home: home, links: map[string]string{".cargo/registry": "/host/registry", ".npm/_cacache": "/host/npm"}}
	file := filepath.Join(home, gitFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func() error{
		"a link":   func() error { return os.Symlink(victim, file) },
		"a pipe":   func() error { return syscall.Mkfifo(file, 0o600) },
		"a folder": func() error { return os.MkdirAll(filepath.Join(file, "x"), 0o700) },
	} {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if err := g.Populate(); err == nil || !strings.Contains(err.Error(), ".cargo/registry") {
			t.Errorf("%s: the link out of the home is not told: %v", name, err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "safe") {
			t.Errorf("%s: git's settings: %v %q", name, err, text)
		}
		if _, err := os.Readlink(filepath.Join(home, ".npm/_cacache")); err != nil {
			t.Errorf("%s: the others are not made: %v", name, err)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside of the home: %v, %v", left, err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "untouched" {
		t.Errorf("written through a link: %q, %v", text, err)
	}
}

// git reads the file as it is meant, however the user is called; what a repository or the member
// says holds against it.
func TestGitSettings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Ann", `Ann "the \ man"`, "Ann; #x", "Änn 🚀"} {
		h := machine("/home/ann/.gitconfig = [user]⏎name = weaker", "HOME=/home/ann", "GIT_AUTHOR_NAME="+name)
		home := t.TempDir()
		g := tools(t, h, Member{Home: home})
		if err := g.Populate(); err != nil {
			t.Fatal(err)
		}
		ask := func(args ...string) string {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = home, append(g.Env, "HOME="+home, "PATH="+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %q: %v: %s", args, err, out)
			}
			return strings.TrimSuffix(string(out), "\n")
		}
		if got := ask("config", "user.name"); got != name {
			t.Errorf("git reads %q, want %q", got, name)
		}
		if got := ask("config", "user.email"); got != "agentteam@localhost" {
			t.Errorf("the address is %q", got)
		}
		ask("config", "--global", "user.name", "own")
		if err := g.Populate(); err != nil {
			t.Fatal(err)
		}
		if got := ask("config", "user.name"); got != "own" {
			t.Errorf("the member set its own name, git reads %q", got)
		}
	}
	g := tools(t, machine("/home/ann/.config/git/config = [user]⏎email = ann@example.com", "HOME=/home/ann"), member)
	if g.git.email != "ann@example.com" {
		t.Errorf("the address is %q", g.git.email)
	}
}
