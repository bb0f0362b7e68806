package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		status int
		code   team.Code
		detail string
		hint   string
	}{
		{"one of ours", team.Errorf(team.Conflict, "T-001 is held").WithHint("choose another"), 409, team.Conflict, "T-001 is held", "choose another"},
		{"within another", fmt.Errorf("in vain: %w", team.Errorf(team.NotFound, "there is\nno task")), 404, team.NotFound, "in vain: there is no task", ""},
		{"none of ours", errors.New("open /etc/shadow: no"), 500, "", "", ""},
		{"a command", team.Errorf(team.NotFound, "x").WithHint("`teamctl tasks` lists the tasks"), 404, team.NotFound, "x", "by HTTP: GET /v1/teams/TEAM/tasks; in a shell: `teamctl tasks` lists the tasks"},
		{"a command with more", team.Errorf(team.Busy, "x").WithHint("put it back first: teamctl tasks release T-001"), 409, team.Busy, "x",
			"by HTTP: POST /v1/teams/TEAM/tasks/ID/release; in a shell: put it back first: teamctl tasks release T-001"},
		{"a team that is not there", team.Errorf(team.NotFound, "x").WithHint("`teamctl run --team red GOAL` or `teamctl tasks add --team red --title TITLE` makes it"), 404, team.NotFound, "x",
			"by HTTP: POST /v1/teams; in a shell: `teamctl run --team red GOAL` or `teamctl tasks add --team red --title TITLE` makes it"},
		{"a team among others", team.Errorf(team.NotFound, "x").WithHint("name one with --team: a, b and 3 more; `teamctl run --team red GOAL` makes red"), 404, team.NotFound, "x",
			"by HTTP: GET /v1/teams, POST /v1/teams; in a shell: `teamctl teams` lists the teams; `teamctl run --team red GOAL` makes red"},
		{"a stop of a team", team.Errorf(team.Conflict, "x").WithHint("`teamctl stop --team red` ends that"), 409, team.Conflict, "x", "by HTTP: DELETE /v1/teams/TEAM/goal; in a shell: `teamctl stop --team red` ends that"},
		{"a stop of a member called team", team.Errorf(team.Conflict, "x").WithHint("stop it: teamctl stop team"), 409, team.Conflict, "x", "by HTTP: DELETE /v1/teams/TEAM/members/NAME; in a shell: stop it: teamctl stop team"},
		{"a command of two words", team.Errorf(team.Blocked, "x").WithHint("teamctl approvals approve ID lets it go on"), 409, team.Blocked, "x", "by HTTP: POST /v1/teams/TEAM/approvals/ID/decide; in a shell: teamctl approvals approve ID lets it go on"},
		{"a stop of a member", team.Errorf(team.Conflict, "x").WithHint("stop it: teamctl stop ann"), 409, team.Conflict, "x", "by HTTP: DELETE /v1/teams/TEAM/members/NAME; in a shell: stop it: teamctl stop ann"},
		{"one for operators", team.Errorf(team.InvalidState, "x").WithHint(team.RepairHint), 409, team.InvalidState, "x", team.RepairHint},
		{"names of NATS", team.Errorf(team.Unavailable, "nobody serves at.red.ctl.leader.start: stream AT_red_MSG, $KV.at-red.task.T-001"), 503, team.Unavailable,
			"nobody serves (internal): stream (internal), (internal)", ""},
	} {
		d := Of(tt.err)
		if d.Status != tt.status || d.Code != tt.code || d.Detail != tt.detail || d.Hint != tt.hint || d.Title == "" {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
	w := httptest.NewRecorder()
	Write(w, team.Errorf(team.Blocked, "x"))
	if ct := w.Header().Get("Content-Type"); w.Code != 409 || ct != "application/problem+json" || !strings.Contains(w.Body.String(), `"code":"blocked"`) {
		t.Errorf("%d of type %s: %s", w.Code, ct, w.Body)
	}
}

// Every command of teamctl that a hint of ours names has a request, or is for whoever runs the
// cluster.
func TestHintsHaveRequests(t *testing.T) {
	operators := map[string]bool{"repair": true, "up": true, "down": true, "demo": true, "web": true, "doctor": true, "into": true, "trust": true, "land": true, "budget": true}
	hint := regexp.MustCompile(`(?:WithHint\(|Hint:? *=? *|hint = ).*`)
	named := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, line := range hint.FindAllString(string(data), -1) {
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				named++
				if requests[m[1]] == "" && requests[m[1]+m[2]] == "" && !operators[m[1]] {
					t.Errorf("%s: no request for teamctl %s%s", path, m[1], m[2])
				}
			}
		}
		return err
	})
	if err != nil || named < 20 {
		t.Errorf("%d commands were found, %v", named, err)
	}
}

// A request keeps the name that its client has given it, and has one in any case: in its answer, and in the
// document of what went wrong.
func TestNamed(t *testing.T) {
	h := Named(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Request(r.Context()) != w.Header().Get("X-Request-Id") {
			t.Error("the context and the answer have other names")
		}
		Write(w, team.Errorf(team.Unavailable, "NATS is away"))
	}))
	for given, taken := range map[string]bool{"abc-1:2.3_x": true, "": false, "two words": false, "a\"b": false, strings.Repeat("x", 129): false} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/teams", nil)
		r.Header.Set("X-Request-Id", given)
		h.ServeHTTP(w, r)
		id := w.Header().Get("X-Request-Id")
		var d Document
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || d.Instance != "urn:agentteam:request:"+id {
			t.Errorf("%q: %v, %+v, answered as %q", given, err, d, id)
		}
		if (id == given) != taken || id == "" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%q is answered as %q, %v", given, id, w.Header())
		}
	}
}
