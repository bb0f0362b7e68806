package archive_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/team"
)

// saved is a save of team a, in memory.
func saved(t *testing.T) []byte {
	t.Helper()
	s := newSite(t)
	s.work(t)
	file := filepath.Join(t.TempDir(), "a.save")
	if _, err := s.store.Save(t.Context(), "a", file, false); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// refusal is what is said of a save of these bytes; "" if it is taken.
func refusal(t testing.TB, file string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(file)
	if err == nil {
		f.Close()
		return ""
	}
	if code := team.CodeOf(err); code != team.InvalidArgument || strings.Contains(err.Error(), "\n") {
		t.Errorf("code %q: %v", code, err)
	}
	return err.Error()
}

// A save with any byte changed is refused, and so is one that is cut short anywhere or has
// something behind it.
func TestChangedSaveIsRefused(t *testing.T) {
	whole := saved(t)
	file := filepath.Join(t.TempDir(), "b.save")
	if why := refusal(t, file, whole); why != "" {
		t.Fatal(why)
	}
	data, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	flip := func(fatal func(string, ...any), at int, bits byte) {
		_, err := data.WriteAt([]byte{whole[at] ^ bits}, int64(at))
		if err == nil {
			if f, err := archive.Open(file); err == nil {
				f.Close()
				fatal("bits %#x of byte %d of %d are flipped, and nothing is said", bits, at, len(whole))
			} else if team.CodeOf(err) != team.InvalidArgument {
				fatal("byte %d: %v", at, err)
			}
			_, err = data.WriteAt(whole[at:at+1], int64(at))
		}
		if err != nil {
			fatal("%v", err)
		}
	}
	for at := range whole { // its head, and its end
		if at < 1100 || at >= len(whole)-2100 {
			flip(t.Fatalf, at, 1<<(at%8))
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		flip(r.Fatalf, rapid.IntRange(0, len(whole)-1).Draw(r, "at"), byte(rapid.IntRange(1, 255).Draw(r, "bits")))
	})
	rapid.Check(t, func(r *rapid.T) {
		length := rapid.IntRange(0, len(whole)-1).Draw(r, "length")
		if refusal(t, filepath.Join(t.TempDir(), "c.save"), whole[:length]) == "" {
			r.Fatalf("%d of %d bytes are taken", length, len(whole))
		}
	})
	if why := refusal(t, file, whole[:len(whole)-1]); !strings.Contains(why, "cut short") {
		t.Errorf("without its last byte: %s", why)
	}
	if why := refusal(t, file, append(bytes.Clone(whole), 0)); !strings.Contains(why, "something was added") {
		t.Errorf("with a byte more: %s", why)
	}
	middle := bytes.Clone(whole)
	middle[len(middle)/2] ^= 1
	if why := refusal(t, file, middle); !strings.Contains(why, "changed") {
		t.Errorf("with a byte changed: %s", why)
	}
}

// What is no save, or one of a later version, is named as that.
func TestForeignFileIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.save")
	pack := func(name, head string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(head))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(head)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, tt := range []struct {
		data []byte
		want string
	}{
		{nil, "it is no save of agentteam"},
		{[]byte("hello"), "it is no save of agentteam"},
		{pack("backup.json", "{}"), "it is no save of agentteam"},
		{pack("agentteam-save.json", "{"), "its head cannot be read"},
		{pack("agentteam-save.json", `{"format":2,"team":"a"}`), "its head is not complete"},
		{pack("agentteam-save.json", `{"format":2,"id":"x","team":"../a"}`), "its head is not complete"},
		{pack("agentteam-save.json", `{"format":2,"id":"x","team":"a"}`), "cut short"},
		{pack("agentteam-save.json", `{"format":3,"id":"x","team":"a","program":"v9"}`), "it has protocol version 3, this program speaks 2"},
		{pack("agentteam-save.json", `{"format":1,"id":"x","team":"a","program":"v0"}`), "it has protocol version 1, this program speaks 2"},
	} {
		if why := refusal(t, file, tt.data); !strings.Contains(why, tt.want) {
			t.Errorf("%.60q: %s, want %s", tt.data, why, tt.want)
		}
	}
	if _, err := archive.Open(filepath.Join(t.TempDir(), "none")); team.CodeOf(err) != team.NotFound {
		t.Errorf("without a file: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open(pipe); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := archive.Open(t.TempDir()); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
}
