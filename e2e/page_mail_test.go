package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// A comment on a line goes to who is there to read it, and that is said before it is sent: to the holder of the
// task, to the leader once that has left, and as a task, which wakes the team, once the team has ended. No view
// offers mail then, and each says why. What a person opens is a step from which Back returns.
func TestPageMailIsRead(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	b := openBrowser(t)
	c := folder(t, rehearse(t, actScript), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+t.TempDir())
	repository(t, c.dir, `echo zero > zero.txt; printf '.agentteam\n' > .gitignore`)
	c.upWith(2)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder")
	for _, id := range []team.TaskID{"T-001", "T-002"} {
		c.ok("tasks", "add", "--title", "Write one "+string(id))
		until(t, "it is done", func() bool {
			v, err := tm.Board().Task(t.Context(), id)
			return err == nil && v.Status == team.Completed && v.Assignee == "coder-1"
		})
	}
	p := b.tab()
	p.open(c)

	// From the story of a task to the conversation about it, and back.
	p.goTo("#/default/task/T-002")
	p.presses("Transcript of coder-1")
	begun := func(id string) {
		t.Helper()
		p.until("it shows where "+id+" was begun", `document.querySelector(".part.on .given a")?.getAttribute("href").endsWith(`+quoted(id)+`)`)
	}
	begun("T-002")
	eval[bool](p, `(() => {
		const jump = document.querySelector("select[aria-label='Jump to a task']")
		jump.value = [...jump.options].find((o) => o.text.startsWith("T-001")).value
		return jump.dispatchEvent(new Event("change"))
	})()`)
	begun("T-001")
	back := func(to string) {
		t.Helper()
		eval[bool](p, "(history.back(), true)")
		p.until("Back leads to "+to, "location.hash === "+quoted(to))
	}
	back("#/default/task/T-002")

	// A thread is opened, and left by Back; what is typed into a search is no step.
	p.goTo("#/default/mail")
	p.types("New message", "Is it whole?")
	p.submits()
	p.types("Find mail", "whole")
	p.until("it is found", `document.querySelectorAll(".thread-row").length === 1`)
	p.presses("you →", ".threads")
	p.until("the thread is open", `location.hash.includes("thread=") && document.querySelector(".message")`)
	back("#/default/mail?q=whole")
	p.until("no thread is open", `!document.querySelector(".message")`)
	back("#/default/task/T-002")

	// The comment goes to the holder, and to the leader once that has left.
	says := func(to, text string) {
		t.Helper()
		p.until("nothing is noted", `!document.querySelector(".note")`)
		p.presses("Comment on line +1")
		p.types("Comment on deliverables", text)
		p.presses("Send to " + string(to))
		p.sees("Said.")
		until(t, to+" has it", func() bool {
			all, err := tm.Mail().Inbox(t.Context(), team.AgentID(to))
			return err == nil && slices.ContainsFunc(all, func(l client.StoredMessage) bool { return strings.HasSuffix(l.Content, "\n\n"+text) })
		})
	}
	says("coder-1", "Is it tested?")
	c.ok("stop", "coder-1", "--force")
	p.until("that coder-1 has left is known", `(async () => (await (await fetch("/v1/teams/default/members")).json()).members.every((m) => m.agent_id !== "coder-1"))()`)
	p.presses("Comment on line +1")
	p.sees("coder-1 is not in the team: no mail is read there. The leader gets it.")
	p.presses("Leave it")
	says("leader", "Who tests it?")

	// The team ends, as its leader has nothing to do: nothing is offered that is refused.
	c.ok("run", "--detach", "Rest")
	const why = "The team is finished and reads no mail."
	for _, at := range []string{"", "/mail", "/agent/coder-1"} {
		p.goTo("#/default" + at)
		p.sees(why)
		if boxes := eval[[]string](p, `[...document.querySelectorAll("textarea")].map((e) => e.ariaLabel).filter((name) => name !== "Goal")`); len(boxes) > 0 {
			t.Errorf("at %q the page offers %q", at, boxes)
		}
	}
	p.presses("Start again from here")
	p.sees("The next goal")
	p.goTo("#/default/task/T-002")
	p.presses("Comment on line +1")
	p.sees(why)
	p.types("Comment on deliverables", "Test it")
	p.presses("Make it a task")
	until(t, "a task follows", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-003")
		return err == nil && v.Title == "Test it" && slices.Equal(v.Dependencies, []team.TaskID{"T-002"})
	})
	p.goTo("#/default/mail")
	p.until("the team is awake, and can be written to", find+`("New message", "")`)
}

// Mail that is refused is still there to be sent, also when the page hears only then that the team has ended.
func TestPageRefusedMail(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	f.refuses("POST /teams/red/messages", 409, "team red is finished")
	p := f.opened("#/red/mail")
	p.types("New message", "A long thought")
	f.says("GET /teams/red", `{"id": "red", "status": "finished", "goal": "It", "goal_number": 1}`)
	p.submits()
	p.sees("Team red is finished.")
	p.sees("The team is finished and reads no mail.")
	p.until("the text is there", `document.getElementById("write")?.value === "A long thought"`)
}

// What is not shown of a long list is counted, and can be.
func TestPageSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.member("red", "coder-1")
	steps := make([]string, 301)
	for n := range steps {
		steps[n] = fmt.Sprintf(`{"revision": %d, "at": "2026-03-14T12:00:00Z", "what": "step %d."}`, n+1, n+1)
	}
	f.says("GET /teams/red/tasks/T-001", `{"id": "T-001", "title": "It", "status": "pending", "assignee": "", "dependencies": []}`)
	f.says("GET /teams/red/tasks/T-001/history", `{"whole": true, "steps": [`+strings.Join(steps, ",")+`]}`)
	f.task("red", "T-001", "pending", "")
	for n := range 140 {
		f.happens("red", "MAIL_SENT", map[string]any{"id": fmt.Sprint("m", n), "from": "coder-1", "to": "user", "content": "Which?", "created_at": fmt.Sprintf("2026-03-14T12:00:%02d.%03dZ", n/60, n), "await_reply": true})
	}
	p := f.opened("#/red")
	p.presses("Show more (these are the first 100 of 140)")
	p.until("all are there", `document.querySelectorAll(".ask").length === 140`)
	p.goTo("#/red/task/T-001")
	p.until("the last are there", `document.querySelectorAll(".steps li").length === 300`)
	p.presses("Show more (these are the last 300 of 301)")
	p.until("all are there", `document.querySelector(".steps li").innerText.includes("step 1.")`)
}
