package sandbox_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
)

// socket returns a unix socket in a folder with a short name, as a socket's must be.
func socket(t *testing.T) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// With a proxy or without one, nothing is reached but the proxy.
func TestNoWayAroundTheProxy(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Bubblewrap)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	r.box.Proxy = socket(t).Addr().String()
	for _, try := range [][2]string{
		{"tcp", outside.Addr().String()}, {"mptcp", outside.Addr().String()}, {"unix", r.box.Proxy}, {"tcp", "192.0.2.1:80"},
		{"udp", "192.0.2.1:53"}, {"udp6", "[2001:db8::1]:53"}, {"netlink", ""}, {"vsock", ""}, {"packet", ""},
	} {
		if got := r.probe("socket", try[0], try[1]); got == "done\n" {
			t.Errorf("%s %s: %s", try[0], try[1], got)
		}
	}
}

// A box whose proxy cannot be, or could be replaced by its commands, is refused.
func TestBadProxy(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Bubblewrap)
	l, err := net.Listen("unix", filepath.Join(r.box.Dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link := r.outside("link")
	if err := os.Symlink(r.box.Dir, link); err != nil {
		t.Fatal(err)
	}
	file := r.outside("file")
	r.put(file, "")
	good := socket(t).Addr().String()
	for path, want := range map[string]string{
		l.Addr().String(): "commands may write", filepath.Join(link, "s"): "commands may write", file: "is not a unix socket",
		"s": "no such file", r.outside("none"): "no such file",
	} {
		r.box.Proxy = path
		if _, err := r.Runner(r.box); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if s, err := sandbox.Find(t.Context(), team.Confined); err == nil {
		r.box.Proxy = good
		if _, err := s.Runner(r.box); team.CodeOf(err) != team.Unavailable || !strings.Contains(team.HintOf(err), "network: none") {
			t.Errorf("at level confined: %v", err)
		}
	}
}
