package teamwire_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// What a team with a tree for each task has done is shown, though nothing of it is in the folder:
// for its session, and without one where it was set a goal last.
func TestFilesOfLine(t *testing.T) {
	r := newRig(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	git := exec.Command("bash", "-ec", "echo merged > done.txt; git init -q; git add -A; git -c user.name=A -c user.email=a@example.org commit -qm first; rm done.txt")
	git.Dir = r.dir
	r.ok(git.Run())
	s, err := r.client.MakeSession(t.Context(), "ann", "day 1", client.NewTeam{Workspace: r.dir})
	r.ok(err)
	_, err = s.Goals().Start(t.Context(), "count the files", "")
	r.ok(err)
	r.beginLine(s.ID())

	ask := func(fields string) (int, string) { return r.ask("GET", "/files/content?path=done.txt"+fields, "") }
	for _, fields := range []string{"", "&user_id=ann&session_id=" + url.QueryEscape("day 1")} {
		if status, body := ask(fields); status != http.StatusOK || !strings.Contains(body, "merged") {
			t.Errorf("with %q it is %d %s", fields, status, body)
		}
	}
	if status, body := ask("&user_id=bob&session_id=x"); status != http.StatusNotFound || !strings.Contains(body, "no session") {
		t.Errorf("the files of a session that is not there: %d %s", status, body)
	}
	if status, body := ask("&user_id=ann"); status != http.StatusUnprocessableEntity {
		t.Errorf("half of a session: %d %s", status, body)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "done.txt")); err == nil {
		t.Error("the folder has it, too")
	}
	// A team without trees that was set a goal later.
	s, err = r.client.MakeSession(t.Context(), "ann", "day 2", client.NewTeam{Workspace: r.dir})
	r.ok(err)
	_, err = s.Goals().Start(t.Context(), "count them again", "")
	r.ok(err)
	if status, body := ask(""); status != http.StatusNotFound {
		t.Errorf("the folder's: %d %s", status, body)
	}
}

// beginLine has a team work on the line, from its folder's HEAD on.
func (r *rig) beginLine(id team.TeamID) {
	r.t.Helper()
	ctx := r.t.Context()
	reg, err := registry.Open(ctx, brokertest.Connect(r.t, r.nats))
	r.ok(err)
	bt, record, err := reg.Open(ctx, id)
	r.ok(err)
	site, err := mergequeue.At(ctx, "", bt, record)
	r.ok(err)
	c, err := gitrepo.Inspect(ctx, r.dir)
	r.ok(err)
	r.ok(site.Repo.Fetch(ctx, c))
	r.ok(site.Advance(ctx, "", c.Head))
	_, err = reg.Edit(ctx, bt, func(t *team.Team) { t.Branch = &team.GoalBranch{Goal: t.GoalNumber} })
	r.ok(err)
}
