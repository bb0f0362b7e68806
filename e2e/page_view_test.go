package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"agentteam/pkg/store/broker/brokertest"
)

// timelineOf is what the API says of a goal in which coder-1 has done T-001.
func timelineOf(sentence string) string {
	return `{"goal": 1, "begun": "2026-03-14T12:00:00Z", "ended": "2026-03-14T12:10:00Z", "from": "2026-03-14T12:00:00Z", "to": "2026-03-14T12:10:00Z", "whole": true, "sentence": ` + quoted(sentence) + `,
		"lanes": [{"agent_id": "coder-1", "seconds": {"model": 300, "idle": 300}, "spans": [
			{"kind": "model", "from": "2026-03-14T12:00:00Z", "to": "2026-03-14T12:05:00Z", "task": "T-001"},
			{"kind": "idle", "from": "2026-03-14T12:05:00Z", "to": "2026-03-14T12:10:00Z"}]}],
		"tasks": [{"task": "T-001", "title": "Read it", "agent_id": "coder-1", "status": "completed", "from": "2026-03-14T12:00:00Z", "to": "2026-03-14T12:05:00Z"}],
		"critical": [{"task": "T-001", "agent_id": "coder-1", "after": ""}], "edges": [], "counts": []}`
}

// graphOf is the graph of tasks of which each waits for the one before.
func graphOf(tasks ...string) string {
	nodes, edges := []string{}, []string{}
	for i, id := range tasks {
		nodes = append(nodes, fmt.Sprintf(`{"id": %q, "title": "Its title", "status": "pending", "depth": %d, "place": 0}`, id, i))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"from": %q, "to": %q}`, tasks[i-1], id))
		}
	}
	return `{"nodes": [` + strings.Join(nodes, ",") + `], "edges": [` + strings.Join(edges, ",") + `]}`
}

// What is answered late for one team is not shown for the next.
func TestPageLateAnswer(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	answer := make(chan string)
	slow := func(w http.ResponseWriter, r *http.Request) {
		select {
		case document := <-answer:
			fmt.Fprint(w, document)
		case <-r.Context().Done():
		}
	}
	f.task("red", "T-001", "pending", "")
	f.task("blue", "T-001", "pending", "")
	for what, fast := range map[string]string{"timeline": timelineOf("Blue was quick."), "graph": graphOf("blue-1"), "usage": `{"by": "agent", "rows": [{"name": "blue-1", "total_tokens": 1}]}`} {
		f.does("GET /teams/red/"+what, slow)
		f.says("GET /teams/blue/"+what, fast)
	}
	p := f.opened("#/red")
	for _, v := range []struct{ view, path, late, sees string }{
		{"timeline", "timeline", timelineOf("Red was slow."), "Blue was quick."},
		{"board?show=graph", "graph", graphOf("red-1"), "blue-1"},
		{"result", "usage", `{"by": "agent", "rows": [{"name": "red-1", "total_tokens": 1}]}`, "blue-1"},
	} {
		p.goTo("#/red/" + v.view)
		f.requested("GET /teams/red/" + v.path)
		p.goTo("#/blue/" + v.view)
		p.sees(v.sees)
		came := `performance.getEntriesByType("resource").filter((e) => e.name.includes("/red/` + v.path + `") && e.responseEnd).length`
		before := eval[int](p, came)
		brokertest.Send(t, "red's request is open", answer, v.late)
		p.until("the late answer is there", came+" > "+fmt.Sprint(before))
		p.drawn()
		if text := p.text(); !strings.Contains(strings.ToLower(text), strings.ToLower(v.sees)) {
			t.Errorf("%s: red's answer is shown as blue's:\n%s", v.view, text)
		}
	}
}

// The graph of a team at work stays a graph: no two tasks are in one place, and dependencies that
// change have their lines, though the number of tasks stays.
func TestPageGraphGrows(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.says("GET /teams/red/graph", graphOf("T-001"))
	f.task("red", "T-001", "pending", "")
	p := f.opened("#/red/board?show=graph")
	p.until("one task is there", `document.querySelectorAll(".node").length === 1`)
	f.says("GET /teams/red/graph", graphOf("T-001", "T-002", "T-003"))
	f.task("red", "T-002", "pending", "", "T-001")
	f.task("red", "T-003", "pending", "", "T-002")
	p.until("three tasks stand beside one another", `new Set([...document.querySelectorAll(".node")].map((n) => n.getAttribute("transform"))).size === 3`)
	lines := `document.querySelector(".graph .edges").getAttribute("d").split("M").length - 1`
	p.until("two lines", lines+" === 2")
	f.says("GET /teams/red/graph", strings.Replace(graphOf("T-001", "T-002", "T-003"), `"edges": [`, `"edges": [{"from": "T-001", "to": "T-003"},`, 1))
	f.task("red", "T-003", "pending", "", "T-002", "T-001")
	p.until("three lines", lines+" === 3")
	p.keys("l")
	p.until("which task is chosen stands in the address", `location.hash.includes("at=T-001") && document.querySelector(".edges.near").getAttribute("d")`)
	p.do(chromedp.Reload())
	p.until("it is chosen again", `document.querySelector(".node.on")?.dataset.id === "T-001"`)
}

// A graph of 1,000 tasks is drawn again in each frame while it is dragged and zoomed. Only of what is seen
// there are elements, and no frame makes many of them.
func TestPageGraphIsLarge(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	nodes, edges := []string{}, []string{}
	for i := range 1000 {
		id := fmt.Sprintf("T-%04d", i)
		nodes = append(nodes, fmt.Sprintf(`{"id": %q, "title": "Its title", "status": "pending", "depth": %d, "place": %d}`, id, i/20, i%20))
		if i >= 20 {
			edges = append(edges, fmt.Sprintf(`{"from": "T-%04d", "to": %q}`, i-20, id))
		}
		f.task("red", id, "pending", "")
	}
	f.says("GET /teams/red/graph", `{"nodes": [`+strings.Join(nodes, ",")+`], "edges": [`+strings.Join(edges, ",")+`]}`)
	p := f.opened("#/red/board?show=graph")
	p.until("all tasks are there", `document.querySelectorAll(".node").length === 1000`)
	const view = `document.querySelector(".graph svg")?.getAttribute("viewBox")`
	for n := 0; n < 12; n++ {
		was := eval[string](p, view)
		p.keys("+")
		p.until("it is closer", view+" !== "+quoted(was))
	}
	if n := eval[int](p, `document.querySelectorAll(".graph *").length`); n > 1000 {
		t.Errorf("%d elements are drawn of what is not seen", n)
	}
	eval[bool](p, `(() => {
		window.views = new Set()
		const frame = () => { views.add(`+view+`); requestAnimationFrame(frame) }
		frame()
		return true
	})()`)
	x, y := p.place(".graph svg")
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, x, y, chromedp.ButtonType(input.MouseButtonLeft)))
	for n := 1.0; n <= 10; n++ {
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x+10*n, y+5*n, chromedp.ButtonType(input.MouseButtonLeft)))
		p.drawn()
	}
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, x+100, y+50, chromedp.ButtonType(input.MouseButtonLeft)))
	if n := eval[int](p, "views.size"); n < 8 {
		t.Errorf("of ten moves of the pointer %d were drawn", n)
	}
	eval[bool](p, `(() => {
		window.most = 0
		let was = Infinity
		const frame = () => {
			const now = document.querySelectorAll(".node").length
			most = Math.max(most, now - was)
			was = now
			requestAnimationFrame(frame)
		}
		frame()
		return true
	})()`)
	p.keys("0")
	p.until("all are seen again", `document.querySelectorAll(".node").length === 1000`)
	p.keys("v")
	p.until("they stand in columns", `document.querySelector(".graph") === null`)
	p.keys("v")
	p.until("all are in the graph again", `document.querySelectorAll(".node").length === 1000`)
	if n := eval[int](p, "most"); n < 1 || n > 100 {
		t.Errorf("%d tasks were drawn in one frame", n)
	}
	for range 3 {
		p.drawn()
	}
	p.do(chromedp.EmulateViewport(360, 740))
	p.until("the window is a phone's", "innerWidth === 360")
	p.drawn() // it is measured, and drawn again
	if form := eval[float64](p, `(() => {
		const [, , w, h] = `+view+`.split(" ")
		const graph = document.querySelector(".graph")
		return w / h / (graph.clientWidth / graph.clientHeight)
	})()`); form < 0.95 || form > 1.05 {
		t.Errorf("in a smaller window the graph is drawn for another: %v", form)
	}
}

// touches has fingers go from one place to another, and let go.
func (p *tab) touches(x, y, toX, toY float64) {
	p.t.Helper()
	at := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		devtools(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	}
	at("touchStart", &input.TouchPoint{X: x, Y: y})
	for i := 1.0; i <= 8; i++ {
		at("touchMove", &input.TouchPoint{X: x + (toX-x)*i/8, Y: y + (toY-y)*i/8})
	}
	at("touchEnd")
}

// place is the middle of what a selector finds.
func (p *tab) place(selector string) (x, y float64) {
	p.t.Helper()
	p.until("there is "+selector, "document.querySelector("+quoted(selector)+")")
	at := eval[[]float64](p, `(() => { const r = document.querySelector(`+quoted(selector)+`).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	return at[0], at[1]
}

// The timeline is read by touch, too: what scrolls the page chooses no part, a finger along a lane
// does, and a touch or a key leads to the task. What the bars show stands in a table.
func TestPageTimelineByTouchAndKeys(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.says("GET /teams/red/timeline", timelineOf("It was quick."))
	p := f.opened("#/red/timeline")
	p.do(chromedp.EmulateViewport(360, 420))
	p.sees("It was quick.")
	x, y := p.place(".lanes svg")
	p.touches(x, y, x, y-200)
	p.until("the page has scrolled", "scrollY > 0")
	p.touches(x+60, 300, x+60, 300) // elsewhere, which ends nothing
	p.drawn()
	if at := eval[string](p, "location.hash"); at != "#/red/timeline" {
		t.Errorf("a touch that scrolls leads to %s", at)
	}
	p.until("it is at the top", "(scrollTo(0, 0), scrollY === 0)")
	x, y = p.place(".lanes svg .bar")
	p.touches(x, y, x, y)
	p.until("a touch shows the task", `document.querySelector(".pointed a[href='#/red/task/T-001']")`)
	p.touches(x, y, x+50, y)
	p.until("a finger along a lane chooses a part", `location.hash.includes("from=")`)
	p.goTo("#/red/timeline")
	p.until("the table has the bars", `[...document.querySelectorAll("table a[href='#/red/task/T-001']")].some((a) => a.closest("tr").textContent.includes("critical path"))`)
	if w := eval[float64](p, `document.querySelector("table .badge").closest("td").offsetWidth`); w < 70 {
		t.Errorf("the cell of a title is %v pixels wide: words are broken into letters", w)
	}
	p.keys("lh")
	p.until("a span is pointed at", `document.querySelector(".pointed").textContent.includes("model for 5 min")`)
	p.keys("\r")
	p.until("Enter opens the task", `location.hash === "#/red/task/T-001"`)
}

// Mail keeps its delivery status while another team is looked at. Of a long list the newest is here, and
// that there was more is said.
func TestPageMailStays(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	mail := func(from, to int) {
		for n := from; n <= to; n++ {
			f.happens("red", "MAIL_SENT", map[string]any{"id": fmt.Sprint("m", n), "from": "leader", "to": "user", "content": fmt.Sprint("It is number ", n, "."), "created_at": "2026-03-14T12:00:00Z"})
		}
	}
	mail(1, 3000)
	f.says("GET /teams/red/messages/m3000", `{"id": "m3000", "from": "leader", "to": "user", "content": "All of number 3000.", "deliveries": [{"agent_id": "user", "status": "processed"}]}`)
	p := f.opened("#/red/mail?thread=m3000")
	whole := func() {
		t.Helper()
		p.sees("All of number 3000.")
		p.sees("processed")
	}
	threads := func(n int) {
		t.Helper()
		p.until("all threads are there", fmt.Sprintf(`Number(document.querySelector(".threads [aria-setsize]")?.getAttribute("aria-setsize")) === %d`, n))
	}
	whole()
	threads(3000)
	p.goTo("#/blue/mail")
	p.sees("No mail was sent yet.")
	p.goTo("#/red/mail?thread=m3000")
	whole()
	threads(3000)
	p.goTo("#/red")
	mail(3001, 5500)
	p.until("all has come", `document.querySelector(".stream .list")?.textContent.includes("number 5500.")`)
	p.goTo("#/red/mail?thread=m3000")
	threads(4500)
	whole()
	p.sees("Older mail is not listed.")
}

// A long conversation is not held whole, and still found in: page by page.
func TestPageTranscriptIsRead(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	const path = "/teams/red/members/coder-1/transcript"
	entry := func(n int, kind string, more map[string]any) map[string]any {
		more["type"] = kind
		return map[string]any{"agent_id": "coder-1", "event": more}
	}
	f.writes(path, entry(0, "TEXT_MESSAGE_CHUNK", map[string]any{"delta": "I begin with the **needle**."}))
	f.writes(path, map[string]any{"agent_id": "coder-1", "future": true})
	for n := range 1500 {
		if n == 700 {
			for range 20 { // which are taller than a list takes them for
				f.writes(path, entry(n, "TEXT_MESSAGE_CHUNK", map[string]any{"delta": strings.Repeat("I think.\n\n", 20)}))
			}
			f.writes(path, entry(n, "CUSTOM", map[string]any{"name": "task", "value": map[string]any{"id": "T-007", "title": "Count"}}))
		}
		f.writes(path, entry(n, "TOOL_CALL_CHUNK", map[string]any{"toolCallId": fmt.Sprint("c", n), "toolCallName": "bash", "delta": `{"command": "echo"}`}))
		f.writes(path, entry(n, "TOOL_CALL_RESULT", map[string]any{"toolCallId": fmt.Sprint("c", n), "content": fmt.Sprint("result ", n, " ") + strings.Repeat("long ", 1500)}))
	}
	f.does("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "event-stream") {
			f.stream(w, r, path)
			return
		}
		from, limit := 0, 0
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &from) // which the page of a test sends
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprint(w, `{"entries": [`+strings.Join(f.feeds[path][from:min(from+limit, len(f.feeds[path]))], ",")+`]}`)
	})
	p := f.opened("#/red/agent/coder-1?q=needle")
	p.sees("1,522 entries")
	p.sees("result 1499") // at its end
	p.keys("n")
	p.until("the first entry is found", `document.querySelector(".part.on strong")?.textContent === "needle"`)
	f.requested("GET " + path + "?limit=100&page=0")
	p.goTo("#/red/agent/coder-1?q=result 700 ")
	p.keys("n")
	p.until("a result is found", `document.querySelector(".part.on .outcome")?.textContent.startsWith("result 700 ")`)

	// The address of a task leads to where it was begun, in what is read and measured only then.
	const given = `(() => {
		const at = document.querySelector(".part.on .given a[href$='/task/T-007']")?.getBoundingClientRect()
		const list = document.querySelector(".transcript")?.getBoundingClientRect()
		return at && at.top >= list.top && at.bottom <= list.bottom
	})()`
	begun := func() {
		t.Helper()
		p.until("its begin is read and seen", given)
		p.until("what is above it, too", `[...document.querySelectorAll(".transcript .what")].every((e) => e.innerText !== "…")`)
		for range 3 {
			p.drawn()
		}
		p.until("it stays in sight", given)
	}
	p.goTo("#/red/agent/coder-1?task=T-007")
	begun()
	p.do(chromedp.Reload())
	begun()
	p.keys("G")
	p.sees("result 1499")
	eval[bool](p, `(() => {
		const jump = document.querySelector("select[aria-label='Jump to a task']")
		jump.value = [...jump.options].find((o) => o.text === "T-007 Count").value
		return jump.dispatchEvent(new Event("change"))
	})()`)
	begun()
}

// A deliverable is read as far as it is shown, and is text or named as none.
func TestPageDeliverableIsRead(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	left := make(chan struct{})
	f.says("GET /teams/red/deliverables", `{"deliverables": [{"task": "T-001", "path": "endless.txt"}, {"task": "T-002", "path": "picture.png"}, {"task": "T-003", "path": "gone.txt"}]}`)
	f.does("GET /teams/red/tasks/T-001/deliverable", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("more\n", 1000)); err != nil {
				break
			}
		}
		close(left)
	})
	f.does("GET /teams/red/tasks/T-002/deliverable", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\x89PNG\x00\x00") })
	f.does("GET /teams/red/tasks/T-003/deliverable", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	p := f.opened("#/red/result")
	p.expects("ERR_", "404")
	p.until("there are three", `document.querySelectorAll("a[download]").length === 3`)
	if name := eval[string](p, `document.querySelector("a[download]").download`); name != "endless.txt" {
		t.Errorf("it is downloaded as %s", name)
	}
	for n, want := range []string{"Show more", "It is no text.", "The API does not answer."} {
		p.presses("Show", fmt.Sprintf("tbody tr:nth-child(%d)", n+1))
		p.sees(want)
	}
	brokertest.Receive(t, "no more of it is read than is shown", left)
	p.presses("Hide", "tbody tr:nth-child(2)")
	p.until("it is gone", `!document.body.innerText.includes("It is no text.")`)
}

// New tasks are shown as they will be made, while they are typed.
func TestPageNewTasksPreview(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.says("POST /teams/red/tasks", `{"tasks": []}`)
	p := f.opened("#/red/board")
	p.sees("New tasks") // who may write sees it
	p.keys("n")
	p.types("New tasks, one a line", "Check that a < b !\nTest it < 1")
	for n, want := range []string{"Check that a < b high", "Test it waits for line 1"} {
		p.until("there is "+want, fmt.Sprintf(`document.querySelectorAll("dialog li")[%d]?.innerText.replace(/\s+/g, " ").trim() === %s`, n, quoted(want)))
	}
	p.submits()
	if got := f.requested("POST /teams/red/tasks"); !strings.Contains(got, `"title":"Check that a < b"`) || !strings.Contains(got, `"dependencies":["line 1"]`) {
		t.Errorf("the page sends %s", got)
	}
}

// fingers has two fingers go apart along a line through a place, and let go.
func (p *tab) fingers(x, y, from, to float64) {
	p.t.Helper()
	at := func(kind input.DispatchTouchEventType, apart float64) {
		one, two := 1.0, 2.0
		devtools(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind,
			TouchPoints: []*input.TouchPoint{{X: x - apart/2, Y: y, ID: &one}, {X: x + apart/2, Y: y, ID: &two}}})
	}
	at("touchStart", from)
	for i := 1.0; i <= 8; i++ {
		at("touchMove", from+(to-from)*i/8)
	}
	devtools(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: "touchEnd"})
}

// wheel turns the wheel over a place; the modifier 2 is Ctrl, and DevTools take no 0.
func (p *tab) wheel(x, y, dx, dy float64, modifiers int64) {
	p.t.Helper()
	devtools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: dx, DeltaY: dy, Modifiers: modifiers})
}

// A timeline and a graph are moved and stretched by the mouse, the wheel and fingers; what is seen of a
// timeline, and which task of a graph is chosen, stands in the address.
func TestPagePansAndZooms(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.says("GET /teams/red/timeline", timelineOf("It was quick."))
	p := f.opened("#/red/timeline")
	p.sees("It was quick.")
	shown := func() (from, to time.Time) {
		t.Helper()
		at := eval[[]string](p, `((q) => [q.get("from") || "2026-03-14T12:00:00Z", q.get("to") || "2026-03-14T12:10:00Z"])(new URLSearchParams(location.hash.split("?")[1]))`)
		for i, to := range []*time.Time{&from, &to} {
			var err error
			if *to, err = time.Parse(time.RFC3339, at[i]); err != nil {
				t.Fatal(err)
			}
		}
		return from, to
	}
	shows := func(what string, holds func(from, to, was time.Time) bool, do func(x, y float64)) {
		t.Helper()
		_, was := shown()
		x, y := p.place(".lanes svg")
		do(x, y)
		p.untilSo(what, func() bool { from, to := shown(); return holds(from, to, was) })
	}
	mouse := func(from, to, y float64) {
		button := chromedp.ButtonType(input.MouseButtonLeft)
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, from, y, button))
		for i := 1.0; i <= 8; i++ {
			p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, from+(to-from)*i/8, y, button))
		}
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, to, y, button))
	}
	shows("a drag along the whole chooses a part", func(from, to, _ time.Time) bool { return to.Sub(from) < 5*time.Minute }, func(x, y float64) { mouse(x-100, x+100, y) })
	shows("a drag along a part goes to what is later", func(from, to, was time.Time) bool { return to.After(was) && to.Sub(from) < 5*time.Minute }, func(x, y float64) { mouse(x, x-60, y) })
	shows("the wheel goes back", func(_, to, was time.Time) bool { return to.Before(was) }, func(x, y float64) { p.wheel(x, y, -90, 0.1, 0) })
	shows("H goes to what is earlier", func(_, to, was time.Time) bool { return to.Before(was) }, func(_, _ float64) { p.keys("H") })
	from, to := shown()
	long := to.Sub(from)
	shows("the wheel with Ctrl comes closer", func(from, to, _ time.Time) bool { return to.Sub(from) < long }, func(x, y float64) { p.wheel(x, y, 0.1, -200, 2) })
	from, to = shown()
	long = to.Sub(from)
	shows("fingers that go apart come closer", func(from, to, _ time.Time) bool { return to.Sub(from) < long*2/3 }, func(x, y float64) { p.fingers(x, y, 60, 200) })
	for range 18 {
		p.keys("+")
	}
	p.until("a part of a second has milliseconds", `document.querySelector("text.tick")?.textContent.includes(".")`)
	if ticks := eval[[]string](p, `[...document.querySelectorAll("text.tick")].map((e) => e.textContent)`); len(ticks) < 2 || ticks[0] == ticks[1] {
		t.Errorf("the ticks are %q", ticks)
	}

	f.says("GET /teams/red/graph", graphOf("T-001", "T-002"))
	f.task("red", "T-001", "pending", "")
	f.task("red", "T-002", "pending", "", "T-001")
	p.goTo("#/red/board?show=graph")
	p.until("two tasks are there", `document.querySelectorAll(".node").length === 2`)
	const view = `document.querySelector(".graph svg").getAttribute("viewBox").split(" ").map(Number)`
	was := eval[[]float64](p, view)
	x, y := p.place(".graph svg")
	p.fingers(x, y, 60, 200)
	p.until("fingers that go apart come closer", fmt.Sprintf("%s[2] < %f", view, was[2]*2/3))
	was = eval[[]float64](p, view)
	p.touches(x, y+100, x+50, y+100)
	p.until("a finger moves it", fmt.Sprintf("%s[0] < %f", view, was[0]))
	p.keys("0")
	p.drawn() // in another place
	x, y = p.place(".node[data-id='T-002']")
	p.do(chromedp.MouseClickXY(x, y))
	p.until("the chosen task stands in the address", `location.hash.includes("at=T-002") && document.querySelector(".node.on")?.dataset.id === "T-002"`)
	p.presses("What to do with T-002")
	p.until("its menu is open", `document.querySelector("dialog[open]")?.textContent.includes("T-002")`)
	p.keys(kb.Escape)
	p.until("the menu is shut", `!document.querySelector("dialog[open]")`)
	x, y = p.place(".node[data-id='T-001']")
	p.do(chromedp.MouseClickXY(x, y, chromedp.ButtonType(input.MouseButtonRight)))
	p.until("the other button opens the menu of another", `document.querySelector("dialog[open]")?.textContent.includes("T-001")`)
}
