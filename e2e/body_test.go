package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// A body of exactly 1 MiB is taken by a leader's API, and one byte more is refused.
func TestBodyAtItsLimit(t *testing.T) {
	t.Parallel()
	c := up(t, idlerScript, 0)
	cl := c.file()
	token, err := os.ReadFile(cl.APITokenFile)
	if err != nil {
		t.Fatal(err)
	}
	const limit, end = 1 << 20, "}"
	begin := `{"tasks":[{"title":"x"}]`
	c.ok("tasks", "add", "--team", "t", "--title", "first") // which makes the team
	for size, want := range map[int]int{limit: http.StatusCreated, limit + 1: http.StatusRequestEntityTooLarge} {
		body := begin + strings.Repeat(" ", size-len(begin)-len(end)) + end
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cl.API+"/v1/teams/t/tasks", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a body of %d bytes: %s, want %d", size, resp.Status, want)
		}
	}
}
