package teamtest_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/api/access"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// served returns the API of each leader process, as they tell it; none if nobody answers yet.
func served(t *testing.T, c *teamtest.Cluster) (urls []string) {
	t.Helper()
	s, err := c.Client.Processes(t.Context())
	if err != nil && !errors.Is(err, team.Unavailable) {
		t.Fatal(err)
	}
	slices.SortFunc(s.Leaders, func(a, b control.Process) int { return strings.Compare(a.ID, b.ID) })
	for _, p := range s.Leaders {
		urls = append(urls, p.API)
	}
	return urls
}

// Two leader processes have one token file. A browser that is logged in at one may ask the
// other; a process that is told to stop ends its streams, and the other goes on.
func TestLeadersServeTheAPI(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	c.Config.API.Addr, c.Config.API.TokenFile = "127.0.0.1:0", filepath.Join(t.TempDir(), "token")
	stopFirst := c.Leader()
	var first, second string
	brokertest.Until(t, "the API is served", func() bool {
		for _, url := range served(t, c) {
			first = url
		}
		return first != ""
	})
	c.Leader()
	brokertest.Until(t, "another process serves it too", func() bool {
		for _, url := range served(t, c) {
			if url != first {
				second = url
			}
		}
		return second != ""
	})
	token, err := access.ReadToken(c.Config.API.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for _, address := range []string{first + "/login?code=" + access.NewCode(token, time.Now()), second + "/files/tree"} { // cookies do not tell ports apart
		res, err := browser.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", address, res.Status)
		}
	}

	tm, g, _ := atWork(t, c)
	open := func(at string) *bufio.Reader {
		req, err := http.NewRequestWithContext(t.Context(), "POST", at+"/v1/teams/t/agui", strings.NewReader(`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"go on"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+string(token))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		r := bufio.NewReader(res.Body)
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "RUN_STARTED") {
			t.Fatalf("the stream of %s begins with %q, %v", at, line, err)
		}
		return r
	}
	here, there := open(first), open(second)
	stopFirst()
	if _, err := io.ReadAll(here); err != nil && err != io.ErrUnexpectedEOF {
		t.Errorf("the stream of the process that has stopped: %v", err)
	}
	letGo(t, tm)
	teamtest.Wait(t, g)
	if rest, err := io.ReadAll(there); err != nil || !strings.Contains(string(rest), "RUN_FINISHED") {
		t.Errorf("the other stream ends with %q, %v", rest, err)
	}
}
