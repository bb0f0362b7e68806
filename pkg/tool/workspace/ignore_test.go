package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/teamtest/testenv"
)

// Lines of a .gitignore mean what git takes them to mean.
func TestIgnoresLikeGit(t *testing.T) {
	testenv.Program(t, "git")
	names := []string{"a", "a b", "b ", "#c", "!d", "{e}", "e", "x.log", "keep.log", "build/o", "src/build/o", "src/x.log", "src/top", "top", "docs/a/p", "docs/b/a/p", "docs/p", "all/x/y", "x1", "xa", `w\v`}
	for _, text := range []string{
		"*.log\n!keep.log", "build/", "/top", "docs/**/p", "all/**", "**/a", "a b ", `b\ `, `\#c`, `\!d`, "{e}", "x[0-9]", "x[!0-9]", "#c", "*\n!top", "docs/*/p", "/*\n!/src", "[", `w\\v`, "src/", "!a", "\n  \n", "docs", "build/o", "/",
	} {
		dir := t.TempDir()
		for _, name := range append(names, ".gitignore") {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git := func(args ...string) string {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		git("init", "-q")
		kept := map[string]bool{}
		for name := range strings.SplitSeq(git("ls-files", "-z", "--others", "--exclude-standard"), "\x00") {
			kept[name] = true
		}
		g := &ignored{}
		for line := range strings.Lines(text) {
			if p := parseIgnore(strings.TrimRight(line, "\n"), "."); p.glob != "" {
				g.patterns = append(g.patterns, p)
			}
		}
		for _, name := range names {
			got, parts := false, strings.Split(name, "/")
			for i := range parts { // as a walk comes to it
				got = got || g.match(strings.Join(parts[:i+1], "/"), i < len(parts)-1)
			}
			if got == kept[name] {
				t.Errorf("%q: %s is ignored: %v, and git disagrees", text, name, got)
			}
		}
	}
}
