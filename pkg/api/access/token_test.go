package access

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/team"
)

func TestReadToken(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	for name, tt := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // of the token, or a part of the error and its hint
	}{
		"a token":               {token + "\n", 0o600, token},
		"for reading only":      {token, 0o400, token},
		"Windows' ends of line": {token + "\r\n", 0o600, token},
		"its first line":        {token + "\nnotes\n", 0o600, token},
		"the longest":           {strings.Repeat("a", mostToken) + "\n", 0o600, strings.Repeat("a", mostToken)},
		"readable for a group":  {token, 0o640, "chmod 600"},
		"readable for all":      {token, 0o644, "wider than 0600"},
		"writable for others":   {token, 0o602, "0602"},
		"a program":             {token, 0o700, "0700"},
		"an empty first line":   {"\n" + token + "\n", 0o600, "holds no token"},
		"empty":                 {"", 0o600, "openssl rand -hex 32"},
		"too short":             {token[:31], 0o600, "holds no token"},
		"too long":              {strings.Repeat("a", mostToken+1), 0o600, "holds no token"},
		"with blanks":           {token + " " + token, 0o600, "holds no token"},
		"with signs of control": {token + "\x00" + token, 0o600, "holds no token"},
		"letters of no header":  {token + "é" + token, 0o600, "holds no token"},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(tt.content), tt.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tt.mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		got, err := ReadToken(path)
		if string(got) == tt.want && err == nil {
			continue
		}
		if err == nil || team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error()+team.HintOf(err), tt.want) {
			t.Errorf("%s: %s, %v (%s); want %q", name, string(got), err, team.HintOf(err), tt.want)
		} else if strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v tells the token", name, err)
		}
	}
}

func TestReadTokenOfNoFile(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if got, err := ReadToken(path); team.CodeOf(err) != team.InvalidArgument || got != "" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A link is followed, as the secrets of containers are links. One that leads nowhere is not
// written through.
func TestTokenFileThatIsALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if got, err := Token(link); team.CodeOf(err) != team.InvalidArgument || got != "" {
		t.Errorf("a link to nothing: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was made at the end of the link")
	}
	want, err := Token(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Token(link); err != nil || got != want {
		t.Errorf("a link: %v", err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Token(link); team.CodeOf(err) != team.InvalidArgument {
		t.Errorf("a link to a file for all: %v", err)
	}
}

// Many processes make the file at once, and all have the same token. It stays.
func TestTokenIsMade(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	var wg sync.WaitGroup
	tokens := make([]string, 20)
	for i := range tokens {
		wg.Go(func() {
			token, err := Token(path)
			if err != nil {
				t.Error(err)
			}
			tokens[i] = string(token)
		})
	}
	wg.Wait()
	for _, token := range tokens {
		if token != tokens[0] || len(token) != 64 {
			t.Errorf("a token of %d characters; the same as the first: %v", len(token), token == tokens[0])
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files are left", len(files))
	}
	if _, err := Token(filepath.Join(dir, "none", "token")); team.CodeOf(err) != team.InvalidState {
		t.Errorf("in a folder that is not there: %v", err)
	}
}
