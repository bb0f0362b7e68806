package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

func TestCheckLink(t *testing.T) {
	for _, tt := range []struct {
		path, target string
		ok           bool
	}{
		{"a", "b", true}, {"a", "b/c", true}, {"d/a", "../b", true}, {"d/e/a", "../../b/./c", true}, {"d/a", "./../b", true}, {"a", ".", true},
		{"a", ".github/x", true}, {"a", "x.git", true},
		{"a", "..", false}, {"a", "/b", false}, {"a", "", false}, {"d/a", "../../b", false}, {"d/a", "e/../b", false}, {"a", "./../b", false},
		{"a", ".git", false}, {"a", "b/.GIT/hooks", false}, {"a", "git~1/x", false}, {"a", ".g\u200dit/x", false}, {"a", ".git./x", false},
		{"a", `b\c`, false}, {"a", "c:/x", false}, {"a", "b\x00", false},
	} {
		if err := checkLink(tt.path, tt.target); (err == nil) != tt.ok {
			t.Errorf("%s -> %q: %v", tt.path, tt.target, err)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, p := range []string{"a", "a/b.c", ".gitignore", ".github/x", "a b", "\u00e4", "a.git/b", "\U0001F469\u200d\U0001F4BB.md"} {
		if err := checkPath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{"", "/a", "a//b", "a/", "../a", "a/./b", ".git", "a/.Git/b", ".git ", ".git.. ", ".git::$INDEX_ALLOCATION/x", "GIT~1", "a\rb", "a\x7f", "a\u0085", "\ufeffa", "a\u2066b", strings.Repeat("d/", 250) + "x", strings.Repeat("x", 5000)} {
		if err := checkPath(p); !errors.Is(err, team.InvalidArgument) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestCheckCase(t *testing.T) {
	for _, tt := range []struct {
		all, added []string
		ok         bool
	}{
		{[]string{"a", "b"}, []string{"b"}, true},
		{[]string{"A", "a"}, []string{"a"}, false},
		{[]string{"A/x", "a/y"}, []string{"A/x"}, false},
		{[]string{"A/x", "a/y", "c"}, []string{"c"}, true},
		{[]string{"A/x", "a/y", "a/z"}, []string{"a/z"}, false},
		{[]string{"dir/x", "dir/y"}, []string{"dir/y"}, true},
		{[]string{"\u00c4", "\u00e4"}, []string{"\u00e4"}, false},
	} {
		if err := checkCase(tt.all, tt.added); (err == nil) != tt.ok {
			t.Errorf("%q with %q: %v", tt.all, tt.added, err)
		}
	}
}

func TestReadMerge(t *testing.T) {
	const tree = "902e6c15e36ba119d690388e2ba2e93e3474cb7e"
	const out = tree + "\x00100644 " + tree + " 1\tf.txt\x00100644 " + tree + " 2\tf.txt\x00\x001\x00f.txt\x00Auto-merging\x00Auto-merging f.txt\n\x00" +
		"1\x00f.txt\x00CONFLICT (contents)\x00CONFLICT (content): x\n\x002\x00a\x00b\x00CONFLICT (rename/rename)\x00x\n\x00"
	got, all, err := readMerge(out)
	want := []Conflict{{Path: "a", Kind: "rename/rename"}, {Path: "b", Kind: "rename/rename"}, {Path: "f.txt", Kind: "contents"}}
	if err != nil || got != tree || !slices.Equal(all, want) {
		t.Errorf("%s %+v %v", got, all, err)
	}
	if got, all, err := readMerge(tree + "\x00"); err != nil || got != tree || len(all) > 0 {
		t.Errorf("without conflicts: %s %+v %v", got, all, err)
	}
	for _, bad := range []string{"", "x\x00", tree + "\x00\x00x\x00y\x00", tree + "\x00\x009\x00y\x00", tree + "\x00\x00-1\x00y\x00"} {
		if _, _, err := readMerge(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("# v2 git bundle\n-902e6c15e36ba119d690388e2ba2e93e3474cb7e x\n902e6c15e36ba119d690388e2ba2e93e3474cb7e refs/heads/agentteam/bundle\n\nPACK"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHeader(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		again, err := readHeader(bufio.NewReader(strings.NewReader(h.text())))
		if err != nil || again.tip != h.tip || !slices.Equal(again.bases, h.bases) || !slices.Equal(again.shallow, h.shallow) {
			t.Errorf("%+v became %+v: %v", h, again, err)
		}
	})
}

// The scan never unpacks more than its limit, whatever the pack says.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x30x\x9c\x03\x00\x00\x00\x00\x01aaaaaaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = scanPack(bufio.NewReader(bytes.NewReader(b)), Limits{Objects: 100, Unpacked: 1 << 20})
	})
}

// What a git has started ends with it, also what ignores SIGTERM and has none of its pipes: else it would write to a
// repository that others take for free.
func TestGroupEndsAsAWhole(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "bash", "-c", `(trap "" TERM; echo >&3; exec sleep 1000 >/dev/null 2>&1) & wait`)
	cmd.ExtraFiles = []*os.File{w} // the child has it until it ends
	ended := make(chan error, 1)
	go func() {
		err := runGroup(cmd)
		w.Close()
		ended <- err
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := brokertest.Receive(t, "the command ends", ended); err == nil {
		t.Error("it ended in order")
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	gone := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, r)
		gone <- err
	}()
	if err := brokertest.Receive(t, "its child ends", gone); err != nil {
		t.Error(err)
	}
}
