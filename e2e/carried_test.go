package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agentteam/pkg/teamtest/testenv"
)

// Every request of the demo is a stream call of go-openai, in the leader and in its members.
func TestGoOpenAICarriesTheDemo(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const library = "github.com/sashabaranov/go-openai"
	programs, counts := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", programs+"/", "-cover", "-covermode=atomic", "-coverpkg="+library+",agentteam/cmd/...", "../cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	to, err := url.Parse(rehearse(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.Method == http.MethodPost {
			requests.Add(1)
		}
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
	}}
	endpoint := httptest.NewServer(proxy)
	t.Cleanup(endpoint.Close)

	c := folder(t, endpoint.URL+to.Path, "GOCOVERDIR="+counts)
	run := c.command(append([]string{"run", "--timeout", limit.String()}, survey(tree(t))...)...)
	run.Path = filepath.Join(programs, "teamctl")
	if code, out, errs := exit(t, run); code != 0 {
		t.Fatalf("exit status %d\n%s\n%s", code, out, errs)
	}

	covered := coverage(t, library, counts)
	asked := covered("chat_stream.go", "request.Stream = true")
	if asked != requests.Load() || asked < 20 {
		t.Errorf("%d stream calls of go-openai for %d requests", asked, requests.Load())
	}
	if read := covered("stream_reader.go", "return stream.processLines()"); read < asked {
		t.Errorf("go-openai has read %d events of %d answers", read, asked)
	}
}

// coverage returns how often a line of a file of the library was reached by all processes that
// wrote their counts into dir.
func coverage(t *testing.T, library, dir string) func(file, line string) int64 {
	t.Helper()
	text := filepath.Join(t.TempDir(), "counts")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+text).CombinedOutput(); err != nil {
		t.Fatalf("covdata: %v\n%s", err, out)
	}
	counts, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	return func(file, line string) int64 {
		t.Helper()
		code, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(source)), file))
		if err != nil {
			t.Fatal(err)
		}
		before, _, found := strings.Cut(string(code), line)
		if !found {
			t.Fatalf("%s has no line %q", file, line)
		}
		at := 1 + strings.Count(before, "\n")
		sum := int64(0)
		for s := bufio.NewScanner(strings.NewReader(string(counts))); s.Scan(); {
			block, ok := strings.CutPrefix(s.Text(), library+"/"+file+":")
			var from, to, column, statements int
			var n int64
			if ok {
				if _, err := fmt.Sscanf(block, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &statements, &n); err != nil {
					t.Fatal(err)
				}
			}
			if from <= at && at <= to {
				sum = max(sum, n)
			}
		}
		return sum
	}
}
