package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// returnedScript has two of three coders change the same line at the same time. The third, which is idle, takes the work that is
// returned: it finds that in its tree, and does nothing of it again.
var returnedScript = ledScript(3,
	`{key: one, title: Be 1, check: 'grep -qx "by 1" shared.txt && test -f own-1'}`,
	`{key: two, title: Be 2, check: 'grep -qx "by 2" shared.txt && test -f own-2'}`,
) + `
      - name: taken
        since: '(?s)<task id="(?P<id>T-0*(?P<n>\d+))".*it conflicts with the line in shared.txt.*This work has in shared.txt:.*\+by'
        steps:
          - calls: [{tool: bash, args: {command: "sed -i '/^[<=>]/d' shared.txt; cat shared.txt own-{{.Match.n}}"}}]
          - calls: [{tool: ask_user, args: {question: "Is it good?", choices: ["yes", "no"]}}]
          - await: 'in_reply_to="'
            calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "taken up"}}]
      - name: work
        since: '(?s)<task id="(?P<id>T-0*(?P<n>\d+))"'
        steps:
          - calls: [{tool: bash, args: {command: "echo 'by {{.Match.n}}' > shared.txt; echo {{.Match.n}} > own-{{.Match.n}}"}}]
          - calls: [{tool: ask_user, args: {question: "Shall I?", choices: ["yes", "no"]}}]
          - await: 'in_reply_to="'
            calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "my way"}}]
      - name: rest
        say: Nothing to do.
`

// Three hosts share nothing but the server, and each has one coder. Work that does not go into the line
// is in the tree of the next holder on another host, and until that has brought it in people see it.
func TestReturnedWorkIsTakenUp(t *testing.T) {
	t.Parallel()
	url := brokertest.Server(t)
	model := rehearse(t, returnedScript)
	var hosts []*cluster
	var caches []string
	for n := range 3 {
		caches = append(caches, t.TempDir())
		hosts = append(hosts, folder(t, model, "NATS_URL="+url, "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+caches[n]))
		hosts[n].start("teammate")
	}
	c := hosts[0]
	repository(t, c.dir, "echo nobody > shared.txt; echo processes.log > .gitignore")
	tm, _ := watched(t, dial(t, url), team.DefaultTeam, 5*time.Second)
	c.start("leader")
	c.limit = 3 * limit
	done := c.begin("Do them", "--workspace", c.dir)

	// Both have begun before either is merged.
	first := asked(t, tm, 2)
	c.answers(first)
	var taker team.AgentID
	until(t, "the third coder asks", func() bool {
		for _, a := range asking(t, tm) {
			if !first[a] {
				taker = a
			}
		}
		return taker != ""
	})
	page, err := tm.Board().List(t.Context(), team.Query{Status: []team.TaskStatus{team.InProgress}})
	if err != nil || len(page.Tasks) != 1 || len(page.Tasks[0].Returned) != 2 {
		t.Fatalf("in progress: %+v, %v", page.Tasks, err)
	}
	task := page.Tasks[0]
	work, n := task.Returned[0], strings.TrimLeft(strings.TrimPrefix(string(task.ID), "T-"), "0")
	if task.Assignee != taker || !first[work.By] || task.Attempts != 0 {
		t.Errorf("%s is %s's after %d attempts, its work was %s's; %v began, %s goes on", task.ID, task.Assignee, task.Attempts, work.By, first, taker)
	}
	if got := c.ok("tasks", "get", string(task.ID)); !strings.Contains(got, work.Commit+" of "+string(work.By)+", not merged") {
		t.Errorf("tasks get: %s", got)
	}
	code, out, said := exit(t, c.command("diff", string(task.ID)))
	if code != 0 || !strings.Contains(out, "+by "+n+"\n") || !strings.Contains(out, "own-"+n) || !strings.Contains(said, "this work was not merged") && !strings.Contains(said, "what its holder has written so far") { // the taker may be on this host
		t.Errorf("diff ends with %d: %s\n%s", code, out, said)
	}
	c.ok("answer", string(taker), "1")
	r := done.end(t)
	if r.Status != "finished" || len(r.Tasks) != 2 {
		t.Fatalf("the goal ended as %s: %+v", r.Status, r.Tasks)
	}
	for _, v := range r.Tasks {
		if v.Status != team.Completed || v.Commit == "" {
			t.Errorf("%s is %s with commit %q: %s", v.ID, v.Status, v.Commit, v.Reason)
		}
	}
	for name, want := range map[string]string{"own-" + n: n, "shared.txt": fmt.Sprintf("by %d\nby %s", 3-int(n[0]-'0'), n)} {
		if got := git(t, lineOf(t, caches[0]), "show", "agentteam/default:"+name); got != want {
			t.Errorf("the line has %s: %q, want %q", name, got, want)
		}
	}
}

// asked waits until so many members have asked a person something, and returns which.
func asked(t *testing.T, tm *client.Team, n int) map[team.AgentID]bool {
	t.Helper()
	all := map[team.AgentID]bool{}
	until(t, fmt.Sprintf("%d members have asked", n), func() bool {
		for _, a := range asking(t, tm) {
			all[a] = true
		}
		return len(all) == n
	})
	return all
}

// answers gives each of the members the first of the choices.
func (c *cluster) answers(asked map[team.AgentID]bool) {
	c.t.Helper()
	for a := range asked {
		c.ok("answer", string(a), "1")
	}
}

// asking lists the members that wait for a person's answer.
func asking(t *testing.T, tm *client.Team) (all []team.AgentID) {
	t.Helper()
	list, err := tm.Members().List(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.WaitsFor == team.ForPerson {
			all = append(all, a.Member.AgentID)
		}
	}
	return all
}
