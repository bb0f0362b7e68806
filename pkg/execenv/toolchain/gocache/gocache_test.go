package gocache

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ask sends requests, each an object of JSON and maybe a body, and returns the answers but the first one.
func ask(t *testing.T, own, user string, requests ...string) ([]response, error) {
	t.Helper()
	var out bytes.Buffer
	err := serve(strings.NewReader(strings.Join(requests, "\n\n")+"\n"), &out, own, user)
	var all []response
	for d := json.NewDecoder(&out); d.More(); {
		var a response
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	if len(all) == 0 || all[0].ID != 0 || len(all[0].KnownCommands) != 3 {
		t.Fatalf("the first answer: %+v, %v", all, err)
	}
	return all[1:], err
}

func id(of string) []byte { sum := sha256.Sum256([]byte(of)); return sum[:] }

func requestOf(t *testing.T, command, action, body string) string {
	t.Helper()
	q := request{ID: 7, Command: command, ActionID: id(action)}
	if command == "put" {
		q.OutputID, q.BodySize = id(body), int64(len(body))
	}
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if q.BodySize > 0 {
		text = append(text, "\n\""+base64.StdEncoding.EncodeToString([]byte(body))+"\""...)
	}
	return string(text)
}

// everything returns what is below a folder: names, modes, times and contents.
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
		fmt.Fprintln(&b, name, info.Mode(), info.ModTime(), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is stored goes into the own layer, what is not there is found in the user's, and nothing of that changes.
func TestLayers(t *testing.T) {
	own, user := t.TempDir(), t.TempDir()
	large := strings.Repeat("large", 100_000)
	if _, err := ask(t, user, "", requestOf(t, "put", "of the user", "made by the user"), requestOf(t, "put", "both", "the user's")); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	for _, kind := range []string{entryName(id("of the user"), "a"), entryName(id("made by the user"), "d")} {
		if err := os.Chtimes(filepath.Join(user, kind), old, old); err != nil {
			t.Fatal(err)
		}
	}
	before := everything(t, user)
	all, err := ask(t, own, user,
		requestOf(t, "get", "none", ""), requestOf(t, "put", "empty", ""), requestOf(t, "put", "own", large), requestOf(t, "put", "both", "the repository's"),
		requestOf(t, "get", "of the user", ""), requestOf(t, "get", "own", ""), requestOf(t, "get", "empty", ""), requestOf(t, "get", "both", ""),
		`{"ID":8,"Command":"close"}`, "not read any more")
	if err != nil || len(all) != 9 || !all[0].Miss || all[8].ID != 8 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range map[int]struct{ text, layer string }{4: {"made by the user", user}, 5: {large, own}, 6: {"", own}, 7: {"the repository's", own}} {
		a := all[i]
		text, err := os.ReadFile(a.DiskPath)
		if err != nil || string(text) != want.text || !bytes.Equal(a.OutputID, id(want.text)) || a.Size != int64(len(want.text)) || a.Time == nil || a.ID != 7 || !strings.HasPrefix(a.DiskPath, want.layer) {
			t.Errorf("answer %d: %+v, %v", i, a, err)
		}
	}
	if after := everything(t, user); after != before {
		t.Errorf("the user's cache has changed:\n%s\nto\n%s", before, after)
	}
	used := filepath.Join(own, entryName(id("own"), "a"))
	if err := os.Chtimes(used, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, own, user, requestOf(t, "get", "own", "")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(used); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("an entry that was used looks unused: %v", err)
	}
}

// An entry that is not whole, or is another's, is none; a file that was made stays what its id says.
func TestDamagedEntries(t *testing.T) {
	for name, damage := range map[string]func(action, made string) error{
		"what was made is gone":    func(_, made string) error { return os.Remove(made) },
		"what was made is shorter": func(_, made string) error { return os.Truncate(made, 2) },
		"a folder":                 func(_, made string) error { return errAny(os.Remove(made), os.Mkdir(made, 0o700)) },
		"another's": func(action, _ string) error {
			return replace(action, fmt.Sprintf("%x", id("a")), fmt.Sprintf("%x", id("b")))
		},
		"another version": func(action, _ string) error { return replace(action, "v1", "v2") },
		"cut off":         func(action, _ string) error { return os.Truncate(action, 100) },
		"endless":         func(action, _ string) error { return os.Truncate(action, 1<<20) },
	} {
		own := t.TempDir()
		if _, err := ask(t, own, "", requestOf(t, "put", "a", "made")); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(own, entryName(id("a"), "a")), filepath.Join(own, entryName(id("made"), "d"))); err != nil {
			t.Fatal(err)
		}
		if all, err := ask(t, own, "", requestOf(t, "get", "a", "")); err != nil || len(all) != 1 || !all[0].Miss {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	own := t.TempDir()
	false1 := strings.Replace(requestOf(t, "put", "a", "made"), base64.StdEncoding.EncodeToString([]byte("made")), base64.StdEncoding.EncodeToString([]byte("fake")), 1)
	all, err := ask(t, own, "", requestOf(t, "put", "b", "made"), false1, `{"ID":3,"Command":"get","ActionID":"YQ=="}`, `{"ID":4,"Command":"sing"}`, requestOf(t, "get", "b", ""))
	if err != nil || len(all) != 5 || all[1].Err == "" || !all[2].Miss || all[3].Err == "" || all[4].Miss {
		t.Errorf("%+v, %v", all, err)
	}
	for _, bad := range []string{"{", strings.Replace(requestOf(t, "put", "a", "made"), `"`+base64.StdEncoding.EncodeToString([]byte("made")), "x", 1)} {
		if _, err := ask(t, own, "", bad); err == nil {
			t.Errorf("%q is understood", bad)
		}
	}
	if err := serve(strings.NewReader(""), &bytes.Buffer{}, "relative", ""); err == nil {
		t.Error("a relative folder is written")
	}
}

func errAny(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func replace(name, old, with string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, bytes.ReplaceAll(text, []byte(old), []byte(with)), 0o600)
}

func TestCommand(t *testing.T) {
	for want, words := range map[string][2]string{
		`'/a b/p' 'agentteam-go-cache' '/c'`:   {"/a b/p", "/c"},
		`"/it's/p" 'agentteam-go-cache' '/c'`:  {"/it's/p", "/c"},
		"":                                     {`/a'b"c`, "/c"},
		`'/p' 'agentteam-go-cache' '/quo"ted'`: {"/p", `/quo"ted`},
	} {
		if got := Command(words[0], words[1]); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

// The go command takes from the user's layer what it would take alone, and a toolchain that does not know
// this program finds what it has stored.
func TestGoCommand(t *testing.T) {
	goProgram, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir, own, user := t.TempDir(), t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.24\n", "m.go": "package m\n", "own/own.go": "package own\n\nfunc Own() {}\n"} {
		if err := errAny(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	build := func(what, cache, prog string) (compiled bool) {
		cmd := exec.Command(goProgram, "build", "-x", what)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOCACHE="+cache, "GOCACHEPROG="+prog, "GOFLAGS=", "GOTOOLCHAIN=local")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return bytes.Contains(out, []byte("/compile "))
	}
	prog := Command(self, user)
	if !build(".", user, "") || build(".", own, prog) {
		t.Error("what the user has built is built again")
	}
	if !build("./own", own, prog) || build("./own", own, prog) {
		t.Error("what was built is not stored")
	}
	if build("./own", own, "") {
		t.Error("a toolchain that knows no such program builds it again")
	}
	if !build("./own", user, "") {
		t.Error("what was built has reached the user's cache")
	}
}
