package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	downloads "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// The NATS server is killed under the page, and comes back: that is said, and repaired without a
// reload, without a gap and without anything twice.
func TestPageServerKilled(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	nats := brokertest.NewCluster(t, 1)
	c := folder(t, rehearse(t, pageScript), "NATS_URL="+nats.URL(), "AGENTTEAM_LEASE=5s", "AGENTTEAM_API=127.0.0.1:0")
	c.env = append(c.env, "AGENTTEAM_API_TOKEN_FILE="+filepath.Join(c.dir, "token"))
	c.start("leader")
	for range 3 {
		c.start("teammate")
	}
	conn := dial(t, nats.URL())
	until(t, "the API is served, and the standbys answer", func() bool {
		s, err := conn.Processes(t.Context())
		return err == nil && len(s.Leaders) == 1 && s.Leaders[0].API != "" && len(s.Standbys) == 3
	})
	newTeam(t, conn, team.DefaultTeam)
	b.cutOff(c, func() { nats.Kill(0) }, func() { nats.Restart(0) })
}

// cutOff has a person follow a goal on the page while it is cut off, until mend is called.
func (b *browser) cutOff(c *cluster, cut, mend func()) {
	b.t.Helper()
	p := b.tab()
	p.open(c)
	p.expects("ERR_", "503", "504")
	p.goTo("#/default")
	eval[float64](p, "window.opened = 1")
	run := c.begin("Port the parser")
	p.asked("Which port is it to be?")
	cut()
	p.sees("Not connected.")
	mend()
	p.until("it is connected again", `!document.querySelector(".bar.on")`)
	p.presses("9090")
	p.sees("finished")
	if r := run.end(b.t); r.Status != "finished" {
		b.t.Errorf("the run is %s", r.Status)
	}
	if eval[float64](p, "window.opened || 0") != 1 {
		b.t.Error("the page was loaded again")
	}
	fresh := b.tab()
	fresh.open(c)
	fresh.goTo("#/default")
	p.sameStream(fresh)
}

// sameStream waits until two tabs show as many entries of the stream.
func (p *tab) sameStream(other *tab) {
	p.t.Helper()
	const count = `Number(document.querySelector(".stream [aria-setsize]")?.getAttribute("aria-setsize")) || 0`
	until(p.t, "the stream is the same in both tabs", func() bool {
		n := eval[float64](p, count)
		return n > 10 && n == eval[float64](other, count)
	})
}

// actScript has coders that write a file each for a task, and hold what is named so.
const actScript = `
agents:
  - match: {role: leader}
    rules:
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: hold
        since: '(?s)<task id="T-\d+".*Hold it'
        steps:
          - calls: [{tool: bash, args: {command: "exec sleep 300"}}]
      - name: work
        since: '(?s)<task id="(?P<id>T-\d+)".*Write one'
        steps:
          - calls: [{tool: bash, args: {command: "echo one > one.txt; mkdir -p deliverables evil; echo 'REPORT' > deliverables/{{.Match.id}}-write-one.md; echo evil > 'evil/turned\u202e\u200b.txt'"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "It is written."}}]
          - await: 'characters that do not show'
            waiting: Nothing to do.
            calls: [{tool: bash, args: {command: "rm evil/*; EVIL"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "It is written."}}]
      - name: rest
        say: Nothing to do.
`

// report is a deliverable, which is text.
const report = "the report\n<script>window.hacked=1</script>\n"

// evilNames are names of files that would do harm if a page took them for more than names, and what it shows of
// each. What turns or hides others besides, no file of the line has.
var evilNames = map[string]string{
	`<img src=x onerror="window.hacked=1">.txt`: "",
	`<svg onload=window.hacked=1>.svg`:          "",
	"<script>window.hacked=1</script>.js":       "",
	"javascript:window.hacked=1":                "",
	"soft\u00adhy\u200cphen\u3164.txt":          "soft⟨00AD⟩hy⟨200C⟩phen⟨3164⟩.txt",
	"\u05d0\u05d1\u05d2 (1) \u202f.txt":         "",
	`"a b/x b/x.txt`:                            "",
	"__proto__":                                 "",
	strings.Repeat("long", 50) + ".txt":         "",
}

// evilWork is actScript with a coder that makes such files.
func evilWork() string {
	make := ""
	for name := range evilNames {
		file := "evil/" + name
		make += "mkdir -p '" + filepath.Dir(file) + "'; echo evil > '" + file + "'; "
	}
	escaped := func(s string) string { return strings.Trim(quoted(s), `"`) } // it stands in quotes
	return strings.NewReplacer("REPORT", escaped(strings.TrimSpace(report)), "EVIL", escaped(make)).Replace(actScript)
}

// showsNames has the page show the names of hostile files, and what is in them, as text, wherever they are.
func showsNames(t *testing.T, p *tab) {
	t.Helper()
	p.size(1280, 3000, "light")
	for name, shown := range evilNames {
		want := "evil/" + cmp.Or(shown, name)
		for _, view := range []string{"#/default/task/T-001", "#/default/result"} {
			p.goTo(view)
			p.until("the difference has "+want, `[...document.querySelectorAll(".d-file")].some((e) => e.textContent === `+quoted(want)+`)`)
			p.until("it can be jumped to", `[...document.querySelectorAll("option")].some((e) => e.textContent.startsWith(`+quoted(want[max(0, len(want)-80):])+`))`)
		}
	}
	p.presses("Show", "section[aria-label=Deliverables]")
	p.sees("<script>window.hacked=1</script>")
	visit(t, p, "#/default/result", "#/default/task/T-001", "#/default/agent/coder-1")
	p.size(1280, 900, "light")
}

// What a person does with tasks and members reaches the team: by dragging and by the menu, by the
// pointer and by keys.
func TestPageActs(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	c := folder(t, rehearse(t, evilWork()), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+t.TempDir())
	repository(t, c.dir, `echo zero > zero.txt; printf '.agentteam\n' > .gitignore`)
	c.upWith(3)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder")
	c.ok("spawn", "coder")
	for _, title := range []string{"Write one", "Hold it", "Leave it"} {
		c.ok("tasks", "add", "--title", title, "--role", "tester") // which nobody is
	}
	task := func(id team.TaskID) team.TaskView {
		t.Helper()
		v, err := tm.Board().Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	p := b.tab()
	p.open(c)
	p.goTo("#/default/board")
	p.until("three tasks are there", `document.querySelectorAll(".column .card").length === 3`)

	// A task is given away and cancelled by dragging, and held by what the menu does.
	p.drops(".card[aria-label^=T-001]", ".members a:nth-child(1)")
	until(t, "it is done by coder-1", func() bool {
		v := task("T-001")
		return v.Status == team.Completed && v.Assignee == "coder-1" && v.Commit != ""
	})
	p.keys("jm") // the first that is ready
	p.reaches("coder-2", "dialog")
	until(t, "it is held by coder-2", func() bool { v := task("T-002"); return v.Status == team.InProgress && v.Assignee == "coder-2" })
	p.until("it stands there", `document.querySelector("[aria-label='In progress'] .card")`)
	p.drops(".card[aria-label^=T-003]", ".column:last-child")
	p.presses("Cancel it", "dialog")
	until(t, "it is cancelled", func() bool { return task("T-003").Status == team.Cancelled })

	showsNames(t, p)

	// What T-001 has changed is commented on: as mail to its member, and as a task that follows it.
	p.goTo("#/default/task/T-001")
	p.presses("Comment on line +1")
	p.types("Comment on deliverables", "Is it tested?")
	p.submits()
	p.sees("Said.")
	until(t, "coder-1 has the mail", func() bool {
		all, err := tm.Mail().Inbox(t.Context(), "coder-1")
		return err == nil && slices.ContainsFunc(all, func(l client.StoredMessage) bool {
			return l.Content == "On deliverables/T-001-write-one.md:1 of T-001:\n> +the report\n\nIs it tested?"
		})
	})
	p.presses("Comment on line +1")
	p.types("Comment on deliverables", "Test it")
	p.presses("Make it a task")
	until(t, "a task follows", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-004")
		return err == nil && v.Title == "Test it" && slices.Equal(v.Dependencies, []team.TaskID{"T-001"}) && strings.Contains(v.Description, "> +the report")
	})

	// Its deliverable is downloaded, and its work undone.
	files := t.TempDir()
	devtools(p, downloads.SetDownloadBehavior, downloads.SetDownloadBehaviorParams{Behavior: downloads.SetDownloadBehaviorBehaviorAllow, DownloadPath: files})
	for _, asks := range []func(string, ...string){p.presses, p.reaches} {
		asks("Download", "section[aria-label=Deliverable]")
		file := filepath.Join(files, "T-001-write-one.md")
		until(t, "it is downloaded", func() bool {
			data, err := os.ReadFile(file)
			return err == nil && string(data) == report
		})
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	p.keys("m")
	p.presses("Undo its work", "dialog")
	p.presses("Undo it", "dialog")
	until(t, "it is undone", func() bool { return task("T-001").Undone != "" })
	p.sees("its work was taken back")

	// A member leaves once it has no task.
	p.goTo("#/default/agent/coder-1")
	p.presses("Drain")
	p.presses("Drain it", "dialog")
	until(t, "coder-1 has left", func() bool {
		all, err := tm.Members().Records(t.Context())
		return err == nil && !slices.ContainsFunc(all, func(m team.Member) bool { return m.AgentID == "coder-1" && m.State != team.Stopped })
	})
}

// drops drags with the pointer what a selector finds, to what another finds.
func (p *tab) drops(what, on string) {
	p.t.Helper()
	p.until("there is "+what, "document.querySelector("+quoted(what)+") && document.querySelector("+quoted(on)+")")
	p.drawn()
	x, y := p.place(what)
	toX, toY := p.place(on)
	p.do(chromedp.DragAndDropXY(x, y, toX, toY))
}
