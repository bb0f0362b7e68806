package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// named are the roles that a screen reader names: of these none may be without a name.
var named = []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "DisclosureTriangle", "dialog", "region", "main", "image"}

// structure has roles that do not say what one can do with a thing that takes the focus.
var structure = []string{"generic", "none", "GenericContainer", "StaticText", "InlineTextBox"}

// spoken judges what a screen reader gets of the page: the tree that the browser makes.
func spoken(p *tab) (faults []string) {
	p.t.Helper()
	tree := devtools(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	text := func(v *accessibility.Value) (s string) {
		if v != nil {
			_ = json.Unmarshal(v.Value, &s) // of another type there is no text
		}
		return s
	}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	count, level, live := map[string]int{}, 0, 0
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		role, name := text(n.Role), strings.TrimSpace(text(n.Name))
		count[role]++
		if slices.Contains(named, role) && name == "" {
			fault("a %s without a name", role)
		}
		for _, prop := range n.Properties {
			switch value := string(prop.Value.Value); {
			case prop.Name == "level" && role == "heading":
				now := 0
				_, _ = fmt.Sscan(value, &now)
				if level > 0 && now > level+1 {
					fault("a heading of level %d follows on one of level %d: %s", now, level, name)
				}
				level = now
			case prop.Name == "live" && value != `"off"`:
				live++
			case prop.Name == "focusable" && value == "true" && slices.Contains(structure, role):
				fault("what takes the focus has no role: %s", name)
			}
		}
	}
	if count["dialog"] == 1 { // which hides all else
		return faults
	}
	for _, role := range []string{"main", "banner"} {
		if count[role] != 1 {
			fault("there are %d of %s", count[role], role)
		}
	}
	if live == 0 {
		fault("nothing is read out when it changes")
	}
	return faults
}

// Where nothing has happened yet, a screen reader gets as much as elsewhere, and in the windows above a
// page as well.
func TestPageIsSpoken(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	p := f.opened("#/")
	p.expects("404")
	p.sees("The goal of red")
	judged := func(where string) {
		t.Helper()
		p.drawn()
		for _, fault := range spoken(p) {
			t.Errorf("%s: %s", where, fault)
		}
	}
	judged("teams")
	p.keys("?")
	p.until("the keys are shown", `document.querySelector("dialog[open]")`)
	judged("the keys")
	p.presses("Close", "dialog")
	for _, view := range []string{"", "board", "mail", "result", "timeline"} {
		p.goTo("#/blue/" + view)
		p.until("the view is there", `document.querySelector("main")?.innerText.length > 20`)
		judged("an empty view " + view)
	}
	f.member("red", "coder-1")
	f.task("red", "T-001", "pending", "")
	p.goTo("#/red/board")
	p.until("the task is there", `document.querySelector(".card")`)
	judged("the board")
	p.presses("What to do with T-001")
	p.until("the menu is there", `document.querySelector("dialog[open]")`)
	judged("the menu of a task")
	p.presses("Cancel the task", "dialog")
	p.sees("What waits for it stays blocked.")
	judged("a question")
}

// hears waits until a screen reader gets a text, whole or as part of another.
func (p *tab) hears(text string) {
	p.t.Helper()
	until(p.t, "a screen reader gets "+text, func() bool {
		for _, n := range devtools(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			name := ""
			if !n.Ignored && n.Name != nil && json.Unmarshal(n.Name.Value, &name) == nil && strings.Contains(name, text) {
				return true
			}
		}
		return false
	})
}

// What waits for the line, what came back from it and what runs beside a member is shown and read out, with
// names of files that would break a patch or the page.
func TestPageShowsTheLine(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.task("red", "T-001", "in_progress", "coder-1")
	const back = `{"id": "T-002", "title": "The work of T-002", "status": "pending", "assignee": "coder-2", "deliverable_path": "d.md", "returned": [{"by": "coder-2", "epoch": 3, "commit": "0123456789abcdef"}]}`
	f.happens("red", "TASK_CREATED", json.RawMessage(back))
	f.says("GET /teams/red/members", `{"members": [{"agent_id": "coder-1", "state": "running", "task": "T-001", "waits_for": "merge", "jobs": [
		{"id": "a123456", "kind": "subagent", "type": "explorer", "about": "find <b>all</b> callers", "since": "2026-03-14T12:00:00Z"},
		{"id": "b123456", "kind": "command", "about": "`+strings.Repeat("make test ", 100)+`", "since": "2026-03-14T12:00:00Z", "still": 75}]}]}`)
	f.says("GET /teams/red/tasks/T-002", back)
	f.says("GET /teams/red/tasks/T-002/history", `{"steps": [], "whole": true}`)
	f.says("GET /teams/red/usage", `{"rows": []}`)
	names := []string{`"a/\303\244 \"\\.txt" "b/\303\244 \"\\.txt"`, `"a/a\n<img src=x onerror=alert(1)>\t.txt" "b/a\n<img src=x onerror=alert(1)>\t.txt"`, "a/my b/x b/my b/x", "a/" + strings.Repeat("long/", 60) + " b/" + strings.Repeat("long/", 60)}
	patch := ""
	for _, name := range names {
		patch += "diff --git " + name + "\n@@ -1 +1 @@\n-old\n+new\n"
	}
	f.says("GET /teams/red/diff", `{"returned": true, "files": [{"path": "x", "added": 1, "deleted": 1}], "diff": `+quoted(patch)+`}`)

	p := f.opened("#/red")
	p.expects("404")
	p.hears("make test make test")
	p.hears("silent for 1 min 15 s")
	p.hears("waits for its work to be merged")
	p.hears("1 merging")
	if wide := eval[bool](p, `[...document.querySelectorAll(".card > *, .card li")].some((e) => e.getBoundingClientRect().right > e.closest(".card").getBoundingClientRect().right)`); wide {
		t.Error("a part of a card is wider than it")
	}
	p.shot("members")
	p.goTo("#/red/board")
	for _, text := range []string{"merging", "work returned"} {
		p.hears(text)
	}
	p.shot("board")
	p.goTo("#/red/task/T-002")
	for _, text := range []string{"Returned work", "returned/T-002/3 0123456789", "What was not merged", `ä "\.txt`, "a␊<img src=x onerror=alert(1)>␉.txt", "my b/x"} {
		p.hears(text)
	}
	p.until("all lines are there", `document.querySelectorAll(".d-more").length === 4`)
	p.shot("task")
	for _, fault := range spoken(p) {
		t.Error(fault)
	}
}

// taps touches the control of that name with a finger, for which it has to be large enough.
func (p *tab) taps(name, within string) {
	p.t.Helper()
	at := find + "(" + quoted(name) + ", " + quoted(within) + ")"
	p.until("there is "+name, at)
	if high := eval[float64](p, at+"?.getBoundingClientRect().height ?? 24"); high < 24 { // WCAG 2.2, 2.5.8
		p.t.Errorf("%s is %v pixels high, too small for a finger", name, high)
	}
	p.meets(func(x, y float64) {
		p.touches(x, y, x, y)
		// The click comes soon after, if the finger has met the control.
		eval[bool](p, `new Promise((done) => {
			let frames = 0
			const look = () => window.clicked !== false || ++frames > 30 ? done(true) : requestAnimationFrame(look)
			look()
		})`)
	}, name, within)
	p.tapped++
}

// onPhone has the page in the window of a phone, which is touched.
func (p *tab) onPhone() {
	p.t.Helper()
	devtools(p, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	p.do(chromedp.EmulateViewport(360, 740))
}

// decidesByTaps answers what waits for a person on a phone, from the list of the teams on, in at most three taps.
func (p *tab) decidesByTaps(asked, button string) {
	p.t.Helper()
	p.goTo("#/")
	p.tapped = 0
	p.taps("1 waiting for you", "main")
	p.asked(asked)
	if w := eval[float64](p, "document.documentElement.scrollWidth"); w > 360 {
		p.t.Errorf("it is %v pixels wide", w)
	}
	p.taps(button, ".ask")
	p.until("it waits no more", `!document.querySelector(".ask")?.textContent.includes(`+quoted(asked)+`)`)
	if p.tapped > 3 {
		p.t.Errorf("%s has taken %d taps", button, p.tapped)
	}
}

// The theme is the system's until a person chooses one, which stays; nothing moves, whatever is wanted.
func TestPageTheme(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.feeds["/teams/red/events"] = append(f.feeds["/teams/red/events"], `{"agent_id": "coder-1", "message_id": "01", "offset": 0, "text": "I write"}`+"\nevent: delta")
	p := f.opened("#/red")
	p.until("a text is being written", `document.querySelector(".pen")`)
	system := func(name, value string) {
		t.Helper()
		devtools(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
		p.drawn()
	}
	dark := func(want bool) {
		t.Helper()
		p.until(fmt.Sprint("it is dark: ", want), `getComputedStyle(document.documentElement).backgroundColor === `+quoted(map[bool]string{true: "rgb(16, 20, 25)", false: "rgb(244, 245, 247)"}[want]))
	}
	system("prefers-color-scheme", "dark")
	dark(true)
	system("prefers-color-scheme", "light")
	dark(false)
	p.presses("Theme: as the system", "header")
	dark(true)
	p.do(chromedp.Reload())
	p.until("it stays", `document.querySelector("main#main")`)
	dark(true)
	p.presses("Theme: dark", "header")
	dark(false)
	system("prefers-color-scheme", "dark")
	dark(false)
	p.presses("Theme: light", "header")
	dark(true)
	p.until("it is there again", `document.querySelector(".pen")`)
	p.until("nothing moves", "document.getAnimations().length === 0")
}
