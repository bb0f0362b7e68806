package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"agentteam/pkg/teamtest/testenv"
)

// drags has what a selector finds dropped on what another finds.
func (p *tab) drags(what, on string) {
	p.t.Helper()
	p.until("there is "+what, "document.querySelector("+quoted(what)+") && document.querySelector("+quoted(on)+")")
	eval[bool](p, `(() => {
		const dataTransfer = new DataTransfer()
		const fire = (kind, at) => document.querySelector(at).dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }))
		fire("dragstart", `+quoted(what)+`)
		fire("dragover", `+quoted(on)+`)
		return fire("drop", `+quoted(on)+`) || true
	})()`)
}

// A task is given away, put back and cancelled by dragging, and its work is undone by the menu.
func TestPageDragAndUndo(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.task("red", "T-001", "pending", "")
	f.task("red", "T-002", "in_progress", "coder-1")
	f.happens("red", "TASK_UPDATED", map[string]any{"id": "T-003", "title": "Done", "status": "completed", "assignee": "coder-1", "commit": "abc"})
	for _, what := range []string{"T-001/assign", "T-002/release", "T-001/cancel", "T-003/undo"} {
		f.says("POST /teams/red/tasks/"+what, `{}`)
	}
	p := f.opened("#/red/board")
	p.sees("New tasks") // who may write sees it
	p.drags(".card[aria-label^=T-001]", ".members a")
	if got := f.requested("POST /teams/red/tasks/T-001/assign"); !strings.Contains(got, `"assignee":"coder-1"`) {
		t.Errorf("the page sends %s", got)
	}
	p.drags(".card[aria-label^=T-002]", ".column[aria-label=Ready]")
	f.requested("POST /teams/red/tasks/T-002/release")
	p.drags(".card[aria-label^=T-001]", `.column[aria-label="Failed, cancelled"]`)
	p.presses("Cancel it", "dialog")
	f.requested("POST /teams/red/tasks/T-001/cancel")
	p.presses("What to do with T-003")
	p.presses("Undo its work", "dialog")
	p.presses("Undo it", "dialog")
	f.requested("POST /teams/red/tasks/T-003/undo")
}

// A member is stopped, drained and told to shorten its conversation, after a question where it cannot
// be undone.
func TestPageStopsMember(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.says("DELETE /teams/red/members/coder-1", `{}`)
	f.says("POST /teams/red/members/coder-1/compact", `{}`)
	f.feeds["/teams/red/members/coder-1/transcript"] = nil
	p := f.opened("#/red/agent/coder-1")
	p.presses("Compact")
	f.requested("POST /teams/red/members/coder-1/compact")
	p.presses("Drain")
	p.presses("Leave it", "dialog")
	p.presses("Drain")
	p.presses("Drain it", "dialog")
	f.requested("DELETE /teams/red/members/coder-1?drain=true&timeout=1")
	p.presses("Stop")
	p.presses("Stop it", "dialog")
	f.requested("DELETE /teams/red/members/coder-1?timeout=20")
}

// Something is said about a line of a difference, as mail and as a task that follows. What is shown
// follows the team's line, but not while a comment is written: its line stays.
func TestPageComments(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	f := newFakeAPI(t)
	diff := func(line string) string {
		return `{"files": [{"path": "x.go", "added": 1}], "diff": ` + quoted("diff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -3,1 +3,2 @@\n same\n+"+line+"\n") + `}`
	}
	head := func(commit, line, why string) {
		f.says("GET /teams/red/diff", diff(line))
		f.says("GET /teams/red", `{"id": "red", "status": "active", "goal": "It", "goal_number": 1, "branch": {"goal": 1, "why": "`+why+`"}, "branch_head": "`+commit+`"}`)
		f.member("red", "coder-"+commit) // something happens, so the record is read again
	}
	head("1", "first", "")
	f.says("POST /teams/red/tasks", `{"tasks": []}`)
	p := f.opened("#/red/result")
	p.sees("first")
	head("2", "second", "")
	p.sees("second")
	p.presses("Comment on line +4")
	p.types("Comment on x.go:4", "Is it tested?")
	asked := f.times("GET /teams/red/diff")
	head("3", "third", "it was moved by hand")
	p.until("the page knows of it", `!document.querySelector("section[aria-label='Take it over']")`)
	for _, by := range []string{"role", "alias"} { // each reads again what the view shows
		p.presses("by " + by)
		f.requested("GET /teams/red/usage?split=alias&by=" + by + "&goal=-1")
	}
	if n := f.times("GET /teams/red/diff"); n != asked {
		t.Errorf("the difference was asked for %d times while a line of it is commented on", n-asked)
	}
	p.presses("Send to leader")
	if got := f.requested("POST /teams/red/messages"); !strings.Contains(got, `On x.go:4:\n\u003e +second`) && !strings.Contains(got, `On x.go:4:\n> +second`) {
		t.Errorf("the page sends %s", got)
	}
	p.sees("third")
	p.presses("Comment on line +4")
	p.types("Comment on x.go:4", "Test it")
	p.presses("Make it a task")
	if got := f.requested("POST /teams/red/tasks"); !strings.Contains(got, `"title":"Test it"`) {
		t.Errorf("the page sends %s", got)
	}
}

// What fails is said where it is missing, and all else works: a team that is not there, an API that
// answers 5xx, a cursor that is too old, and records of the future.
func TestPageFaults(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.task("red", "T-001", "pending", "")
	f.refuses("GET /teams/red/timeline", 500, "the store is broken")
	f.refuses("GET /teams/red/graph", 503, "the server is busy")
	f.refuses("GET /teams/red/diff", 500, "git is not there")
	f.refuses("GET /teams/none/events", 404, "there is no team none")
	p := f.opened("#/none")
	p.expects("404", "500", "503", "422", "ERR_", "console: TypeError") // of what is unknown
	p.sees("There is no team none here.")
	for at, want := range map[string]string{"timeline": "The store is broken.", "board?show=graph": "The server is busy.", "result": "Git is not there."} {
		p.goTo("#/red/" + at)
		p.sees(want)
	}
	if n := f.times("GET /teams/red/graph"); n > 20 {
		t.Errorf("what fails was asked for %d times", n)
	}
	p.goTo("#/red/board")
	p.until("the board is there", `document.querySelector(".column .card")`)

	// A stream that ends, and a place in it that is gone: it is read from its beginning.
	var ended atomic.Bool
	f.does("GET /teams/blue/events", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Last-Event-ID") != "":
			fail(w, 422, "the cursor is too old")
		case ended.Swap(true):
			f.stream(w, r, "/teams/blue/events")
		default:
			fmt.Fprintf(w, "id: 1\ndata: %s\n\n", f.feeds["/teams/blue/events"][0])
		}
	})
	f.task("blue", "T-001", "pending", "")
	p.goTo("#/blue/board")
	p.until("the board is there", `document.querySelector(".column .card")`)

	// Records of another version.
	f.happens("blue", "WONDER_DONE", map[string]any{"id": 7}, nil, "text")
	f.writes("/teams/blue/events", map[string]any{"future": true})
	f.happens("blue", "TASK_CREATED", map[string]any{"id": "T-002", "title": "New", "status": "pondered", "mood": "good"})
	p.until("what comes behind them is shown", `[...document.querySelectorAll(".column .card")].some((c) => c.textContent.includes("pondered") || c.textContent.includes("T-002"))`)
}
