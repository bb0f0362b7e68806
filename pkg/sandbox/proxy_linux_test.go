package sandbox_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/sandbox"
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

// A command reaches the proxy of its box at the address in its variables, and its own servers without it.
func TestProxy(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Bubblewrap)
	l := socket(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s %d", req.Method, req.RequestURI, len(body))
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	r.box.Proxy = l.Addr().String()

	_, output := r.bash(`env | grep -i _proxy= | sort`)
	const own = "localhost,127.0.0.1,::1"
	if want := "HTTPS_PROXY=http://127.0.0.1:3128\nHTTP_PROXY=http://127.0.0.1:3128\nNO_PROXY=" + own + "\nhttp_proxy=http://127.0.0.1:3128\nhttps_proxy=http://127.0.0.1:3128\nno_proxy=" + own + "\n"; output != want {
		t.Errorf("variables: %s", output)
	}
	for range 2 { // each command has its own network, and so the same port
		if got := r.probe("fetch", "http://a.example/x"); got != "POST http://a.example/x 1048576\n" {
			t.Errorf("through the proxy: %s", got)
		}
	}
	if _, err := exec.LookPath("curl"); err != nil && (os.Getenv("CI") == "" || strings.Contains(os.Getenv("CI_WITHOUT"), "curl")) {
		t.Log(err)
	} else if got := r.probe("own server"); got != "own\n" {
		t.Errorf("its own server: %s", got)
	}
	// Nothing of what made the socket is left for the command.
	if exit, output := r.bash(`echo /proc/self/fd/*; tr '\0' ' ' < /proc/$$/cmdline; ls "$1" 2>&1`, r.box.Proxy); !strings.HasPrefix(output, "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\nbash -c") || !strings.Contains(output, "No such file") {
		t.Errorf("left: %+v: %s", exit, output)
	}
	if exit, output := r.bash(`exit 7`); exit.Code != 7 || output != "" {
		t.Errorf("%+v: %s", exit, output)
	}
}

// A refusal of the proxy stands in the output of the command, once, whatever the program prints.
func TestRefusalIsSeen(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Bubblewrap)
	l := socket(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				io.WriteString(conn, "HTTP/1.1 403 network: the reason\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}()
		}
	}()
	r.box.Proxy = l.Addr().String()
	script := `for i in 1 2 3; do exec 5<>/dev/tcp/127.0.0.1/3128; echo >&5; cat <&5 > /dev/null; done`
	if exit, output := r.bash(script); exit.Code != 0 || output != "network: the reason\n" {
		t.Errorf("%+v: %q", exit, output)
	}
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
		l.Addr().String(): "commands may write", filepath.Join(link, "s"): "commands may write", file: "not the absolute path of a unix socket",
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
