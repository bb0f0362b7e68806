package sandbox_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// unserved is a proxy that serves nothing.
func unserved(ctx context.Context, l net.Listener, _ io.Writer) {
	<-ctx.Done()
	l.Close()
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
	r.box.Proxy = unserved
	for _, try := range [][2]string{
		{"tcp", outside.Addr().String()}, {"mptcp", outside.Addr().String()}, {"unix", socket(t).Addr().String()}, {"tcp", "192.0.2.1:80"},
		{"udp", "192.0.2.1:53"}, {"udp6", "[2001:db8::1]:53"}, {"netlink", ""}, {"vsock", ""}, {"packet", ""},
	} {
		if got := r.probe("socket", try[0], try[1]); got == "done\n" {
			t.Errorf("%s %s: %s", try[0], try[1], got)
		}
	}
}

// A proxy is refused where commands have no network.
func TestBadProxy(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Confined)
	r.box.Proxy = unserved
	if _, err := r.Runner(r.box); team.CodeOf(err) != team.Unavailable || !strings.Contains(team.HintOf(err), "network: none") {
		t.Error(err)
	}
}
