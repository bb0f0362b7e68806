package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"agentteam/pkg/api/access"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// holdScript has a coder that takes what it is assigned and holds it, and answers to mail.
const holdScript = `
agents:
  - match: {role: leader}
    rules:
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: mail
        since: '<mail from="user"'
        steps:
          - calls: [{tool: send_message, args: {to: user, content: "I have read it."}}]
      - name: hold
        since: '<task id='
        unless: 'was taken from you'
        steps:
          - calls: [{tool: bash, args: {command: "exec sleep 300"}}]
      - name: rest
        say: Nothing to do.
`

// A person works on the board, by the menu and by keys, and writes to a member.
func TestPageBoard(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	c := up(t, holdScript, 2)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder")
	p := b.tab()
	p.open(c)
	p.goTo("#/default/board")
	p.until("it is known that one may write", find+`("New tasks", "")`)
	p.keys("n")
	p.types("New tasks, one a line", "Read the grammar ! @tester\n  All of it.\nWrite the parser @tester < 1\nWrite the tests @tester < 1, 2")
	p.submits()
	p.until("three tasks stand in their columns", `document.querySelectorAll(".column .card").length === 3`)
	status := func(id team.TaskID) (v team.TaskView) {
		t.Helper()
		v, err := tm.Board().Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := status("T-001"); v.Priority != 1 || v.Role != "tester" || v.Description != "All of it.\n" {
		t.Errorf("the first task is %+v", v.Task)
	}
	if v := status("T-003"); !slices.Equal(v.Dependencies, []team.TaskID{"T-001", "T-002"}) {
		t.Errorf("the third task waits for %v", v.Dependencies)
	}
	p.sees("waits for T-001 T-002")
	p.presses("What to do with T-002")
	p.presses("critical")
	p.until("its priority shows", `document.querySelector(".column .badge.warn")?.textContent.includes("critical")`)
	p.presses("What to do with T-003")
	p.presses("Cancel the task")
	p.sees("What waits for it stays blocked.")
	p.presses("Cancel it", "dialog")
	until(t, "it is cancelled", func() bool { return status("T-003").Status == team.Cancelled })
	p.presses("What to do with T-001") // for a tester: a coder takes it only if it is assigned
	p.presses("coder-1", "dialog")
	until(t, "it is assigned", func() bool { return status("T-001").Assignee == "coder-1" })
	p.until("it is in progress", `document.querySelector("[aria-label='In progress'] .card")`)
	p.keys("jm") // the first that is blocked
	p.reaches("Cancel the task", "dialog")
	p.sees("Cancel T-002?")
	p.reaches("Cancel it", "dialog")
	until(t, "it is cancelled by keys", func() bool { return status("T-002").Status == team.Cancelled })
	p.keys("v")
	p.until("the graph has the tasks", `document.querySelectorAll(".node").length === 3`)
	p.keys("l")
	p.keys("l")
	p.keys(string('\r'))
	p.until("a task's story is open", `location.hash.startsWith("#/default/task/")`)
	p.goTo("#/default/task/T-001")
	p.sees("reserved for coder-1")
	p.presses("What to do")
	p.presses("Put it back", "dialog")
	until(t, "it is put back", func() bool { v := status("T-001"); return v.Status == team.Pending || v.Epoch > 1 })
	p.goTo("#/default/agent/coder-1")
	p.types("Message to coder-1", "How far are you?")
	p.submits()
	p.sees("processed")
	p.presses("urgent")
	p.types("Message to coder-1", "Write less.")
	p.presses("Send", ".composer")
	p.until("both have been read", `document.querySelectorAll(".delivery-processed").length === 2`)
	if all, err := tm.Mail().Inbox(t.Context(), "coder-1"); err != nil || !slices.ContainsFunc(all, func(l client.StoredMessage) bool { return l.Content == "Write less." && l.Urgent }) {
		t.Errorf("coder-1 has the mail %+v, %v", all, err)
	}

	// Its conversation is made shorter, and it leaves.
	p.presses("Compact")
	p.presses("The conversation was made shorter here", ".transcript")
	p.presses("Stop")
	p.presses("Stop it", "dialog")
	until(t, "coder-1 has left", func() bool {
		all, err := tm.Members().Records(t.Context())
		return err == nil && slices.ContainsFunc(all, func(m team.Member) bool { return m.AgentID == "coder-1" && m.State == team.Stopped })
	})
	p.sees("It has left.")

	// Mail is found by its words.
	p.goTo("#/default/mail")
	p.sees("I have read it.")
	p.keys("/")
	p.until("the search has the focus", `document.activeElement.id === "search"`)
	p.keys("WRITE less")
	p.until("one thread is found", `document.querySelectorAll(".thread-row").length === 1 && location.hash.includes("q=")`)
	p.presses("you → coder-1", ".threads")
	p.until("it is urgent", `document.querySelector(".message .badge.warn")?.textContent === "urgent"`)
	p.types("Find mail", " otherwise")
	p.sees("No mail fits.")
}

// codeOf is an address that logs a browser in by the token in a file.
func codeOf(t *testing.T, c *cluster, file string) string {
	t.Helper()
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	token, err := access.ReadToken(filepath.Join(c.dir, ".agentteam", file))
	if err != nil {
		t.Fatal(err)
	}
	return cl.API + "/login?" + url.Values{"code": {access.NewCode(token, time.Now())}}.Encode()
}

// memberPlayed makes a member of a team that only the test plays.
func memberPlayed(t *testing.T, bt *broker.Storage, name team.AgentID) *journal.Journal {
	t.Helper()
	if _, err := roster.New(bt).Put(t.Context(), team.Member{AgentID: name, Role: "coder", Backend: team.Pool, State: team.Joined, Incarnation: 1, JoinedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(t.Context(), bt, name, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// evil are texts that would do harm if a page took them for more than texts.
var evil = []string{
	`<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`,
	`<svg onload="window.hacked=1"><a xlink:href="javascript:window.hacked=1">x</a></svg>`,
	"[press](javascript:window.hacked=1) ![](https://evil.example.org/x.png) <https://evil.example.org>",
	"a\u202eb\u2066c\u200bd\ufeffe \x1b[31mred\x1b[0m",
	"`" + strings.Repeat("x", 3000) + "`",
	"__proto__ constructor ${window.hacked=1} {{window.hacked=1}}",
}

// visit shows each view of the team, in every size and both themes, and judges it: it has one main
// landmark, headings in order, a name on each control, and nothing that is wider than the window, covered or cut off.
func visit(t *testing.T, p *tab, views ...string) {
	t.Helper()
	for _, at := range views {
		p.size(360, 900, "light")
		arrives := eval[string](p, "location.hash || '#/'") != at
		p.goTo(at)
		p.until("the view is there", `document.querySelector("main")?.innerText.length > 20 && !/Looking/.test(document.querySelector("main").innerText)`)
		if arrives {
			p.until("it has the focus", `document.activeElement.id === "main"`)
			if y := eval[float64](p, "scrollY"); y != 0 {
				t.Errorf("%s: %v pixels of it are above the window of a phone", at, y)
			}
		}
		for _, width := range []int64{360, 1280, 2560, 3840} {
			for _, theme := range []string{"dark", "light"} {
				if theme == "dark" && shots == "" {
					continue // which has other colours only, for people to look at
				}
				p.size(width, 900, theme)
				p.shot(fmt.Sprintf("%s-%d-%s", strings.NewReplacer("#", "", "/", "_", "?", "_").Replace(at), width, theme))
			}
			for _, rules := range []string{judge, overlaps} {
				for _, fault := range eval[[]string](p, rules) {
					t.Errorf("%s, %d pixels: %s", at, width, fault)
				}
			}
		}
		for _, fault := range spoken(p) {
			t.Errorf("%s: a screen reader finds %s", at, fault)
		}
	}
}

const judge = `(() => {
  const faults = []
  const seen = (e) => e.getClientRects().length > 0
  if (document.querySelectorAll("main").length !== 1) faults.push("it has no main landmark, or several")
  let level = 0
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!seen(h)) continue
    const n = +h.tagName[1]
    if (level && n > level + 1) faults.push("a heading of level " + n + " follows on one of level " + level + ": " + h.textContent.slice(0, 40))
    level = n
  }
  for (const e of document.querySelectorAll("button, a[href], input, select, textarea, summary, [role=button]")) {
    const label = e.labels?.[0]?.textContent || ""
    if (seen(e) && !(e.getAttribute("aria-label") || label || e.textContent || e.title).trim()) faults.push("a control without a name: " + e.outerHTML.slice(0, 120))
  }
  for (const e of document.querySelectorAll("svg[role=img]")) if (!e.getAttribute("aria-label")) faults.push("a drawing without a name")
  if (document.documentElement.scrollWidth > innerWidth + 1) faults.push("it is " + document.documentElement.scrollWidth + " pixels wide in a window of " + innerWidth)
  if (window.hacked) faults.push("a text has run")
  if (document.querySelector("main img, main script, main iframe, main object, main style, main foreignObject, [onerror], [onload], [href^='javascript:' i]")) faults.push("a text has become an element")
  if (/[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test(document.body.innerText)) faults.push("a character that hides or turns others is shown as it is")
  return faults
})()`

// harmless begin the names of the controls that only change what is shown.
const harmless = `^(Keys|Theme: |Find |Only (this member|with)|Jump to a |says$|tool$|mail$|task$|member$|trouble$|columns$|graph$|by (member|role|alias)$|all goals$|Closer$|Farther$|All$|Show|Hide$|Copy$|Follow ↓|To the newest ↓|← All mail|Dismiss$|Reload the page|https?:|you →|\S+ → )`

// Nothing of what a hostile member says, does, names or writes runs, and a token for reading sees no
// button that it may not press. All views are judged with it.
func TestPageHostile(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	b := openBrowser(t)
	c := up(t, holdScript, 0)
	conn := c.connect()
	tm, bt := watched(t, conn, team.DefaultTeam, time.Minute) // so that a member without a process is not lost meanwhile
	if _, err := tm.Goals().Start(t.Context(), without(strings.Join(evil[:4], " "), unicode.IsControl), ""); err != nil {
		t.Fatal(err)
	}
	j := memberPlayed(t, bt, "coder-1")
	box := mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})
	for i, text := range append(evil, strings.Repeat("long ", 200<<10)) {
		reply := model.Reply{Message: model.Message{Role: "assistant", Content: text, ToolCalls: []model.ToolCall{{ID: fmt.Sprint("c", i), Name: "bash", Arguments: `{"command":` + quoted(text[:min(len(text), 3000)]) + `}`}}}}
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Turn, RunID: "r1", Turn: mustJSON(t, reply)}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Result, RunID: "r1", Result: &journal.ToolResult{CallID: fmt.Sprint("c", i), Name: "bash", Content: text}}); err != nil {
			t.Fatal(err)
		}
		if i == len(evil) {
			break
		}
		if _, _, err := box.Send(t.Context(), team.Message{Type: team.MsgMessage, From: "coder-1", To: team.UserAgent, Content: without(text, unicode.IsControl), AwaitReply: i == 0}); err != nil {
			t.Fatal(err)
		}
		// What a title may not hold, the board refuses.
		title := without(text[:min(len(text), 200)], func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) })
		if _, _, err := tm.Board().Add(t.Context(), "", team.NewTask{Title: title, Description: without(text, unicode.IsControl), Role: "tester"}); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"#/", "#/default", "#/default/board", "#/default/board?show=graph", "#/default/task/T-001", "#/default/timeline", "#/default/result", "#/default/mail", "#/default/agent/coder-1"}
	p := b.tab()
	p.open(c)
	visit(t, p, all...)
	p.goTo("#/default/board")
	p.until("the board is there", `document.querySelector(".column .card")`)
	p.size(1280, 900, "light")
	spoils(t, p)
	reads := openBrowser(t).tab()
	reads.login(codeOf(t, c, "api.read.token"))
	for _, at := range all {
		reads.goTo(at)
		reads.until("the view is there", `document.querySelector("main")?.innerText.length > 20 && document.body.innerText.includes("read-only")`)
		// What is not named here may change something, and is not for a token that reads.
		if others := eval[[]string](reads, `[...document.querySelectorAll("button, input, textarea, select, form, [draggable=true], [contenteditable]")].filter((e) => e.getClientRects().length)
			.map((e) => (e.ariaLabel || e.textContent).trim()).filter((name) => !/`+harmless+`/.test(name))`); len(others) > 0 {
			t.Errorf("%s offers a token for reading %q", at, others)
		}
	}
	// A session that has ended is said, and the page stays.
	p.expects("401")
	eval[bool](p, `fetch("/logout", {method: "POST", headers: {"Content-Type": "application/json"}}).then(() => true)`)
	p.goTo("#/default/mail")
	p.sees("Logged out.")
	p.sees("teamctl web")
}

// without is a text without some of its characters.
func without(text string, bad func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return -1
		}
		return r
	}, text)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The server's process is killed under the page: that is said, and mended without a reload, without
// a gap and without anything twice.
func TestPageComesBack(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	b := openBrowser(t)
	c := up(t, pageScript, 3)
	newTeam(t, c.connect(), team.DefaultTeam)
	s, err := c.connect().Processes(t.Context())
	if err != nil || len(s.Leaders) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	leader := 0
	for _, pid := range cl.PIDs {
		if cmd, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(cmd), "leader") {
			leader = pid
		}
	}
	if leader == 0 {
		t.Fatalf("none of %v is a leader", cl.PIDs)
	}
	b.cutOff(c, func() {
		if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}, func() {}) // the cluster starts another
}
