package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

func openInside(t *testing.T) *Workspace {
	t.Helper()
	w, err := Open(t.TempDir(), command.Plain{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// Between an edit's reading and writing another process may write the file.
func TestEditOfAFileThatChangesMeanwhile(t *testing.T) {
	w := openInside(t)
	path := filepath.Join(w.dir, "f")
	for name, meddle := range map[string]func() error{
		"written in place": func() error { return os.WriteFile(path, []byte("their longer text"), 0o644) },
		"replaced": func() error {
			return errors.Join(os.WriteFile(path+"2", []byte("mine"), 0o644), os.Rename(path+"2", path))
		},
		"made a folder": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
	} {
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("mine"), 0o644)); err != nil {
			t.Fatal(err)
		}
		_, seen, err := w.readWhole("f")
		if err := errors.Join(err, meddle()); err != nil {
			t.Fatal(err)
		}
		if err := w.replace("f", []byte("edited"), seen); err == nil || team.CodeOf(err) == team.Unavailable {
			t.Errorf("%s: replace: %v, want it refused", name, err)
		}
		entries, err := os.ReadDir(w.dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: left behind: %v, %v", name, entries, err)
		}
	}
}

// Also in the middle of a file that would take minutes to read.
func TestReadingEndsWithItsContext(t *testing.T) {
	w := openInside(t)
	if err := os.WriteFile(filepath.Join(w.dir, "f"), []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the agent is stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := w.read(ctx, readArgs{Path: "f"})
	if !errors.Is(err, cause) {
		t.Errorf("read_file: %v", err)
	}
	if _, err = w.grep(ctx, grepArgs{Pattern: "text", Path: "f"}); !errors.Is(err, cause) {
		t.Errorf("grep: %v", err)
	}
	if _, err = w.glob(ctx, globArgs{Pattern: "*"}); !errors.Is(err, cause) {
		t.Errorf("glob: %v", err)
	}
}

// What is required of a line is in every line that matches.
func TestRequired(t *testing.T) {
	lines := []string{"", "a", "needle 12", "NEEDLE 12", "abab", "x\xffy", "x\uFFFDy", "foo\r", "func main() {", "a.b", "日本語 text", "aaa"}
	for expression, want := range map[string]string{
		"needle [0-9]+": "needle ", "(?i)needle": "", "n(?:eedle|ail)": "n", "a|needle": "", "(needle)+ x": "needle", "x?needle": "needle",
		"(?:ab){2,3}": "ab", "(?:ab){0,3}c": "c", "(?:needle)*": "", "^foo$": "foo", `\bfunc\b \w+Handler`: "Handler", "a.b": "a", `a\.b`: "a.b",
		"x\uFFFDy": "", "本語": "本語", "(?i:k)elvin": "elvin", "[a]b": "ab", `\Qa+b\E`: "a+b", "(": "", "a{3}": "a", "": "",
	} {
		got := required(expression)
		if got != want {
			t.Errorf("%q requires %q, want %q", expression, got, want)
		}
		re, err := regexp.Compile(expression)
		if err != nil {
			continue
		}
		for _, line := range lines {
			if re.MatchString(line) && !strings.Contains(line, got) {
				t.Errorf("%q matches %q without %q", expression, line, got)
			}
		}
	}
}
