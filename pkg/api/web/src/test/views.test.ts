import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, streamed, until } from "./answers"
import { route } from "../route"
import { openTeam, session, team, type } from "../store"
import { Mail } from "../ui"
import { board } from "../views/board"
import { Diff, load } from "../views/diff"
import { one } from "../views/task"
import { overview } from "../views/team"

// says is all text of what is drawn, with spaces between its parts; named is that of the first node whose
// label begins so.
const says = (v: any): string => (Array.isArray(v) ? v.map(says).join(" ") : v?.kids ? v.text + says(v.kids) : "").replace(/\s+/g, " ").trim()
const named = (v: any, label: string): any => Array.isArray(v) ? v.map((c) => named(c, label)).find(Boolean) : v?.props?.["aria-label"]?.startsWith(label) ? v : v?.kids && named(v.kids, label)

const forms = (v: any): any[] => Array.isArray(v) ? v.flatMap(forms) : v?.tag === "form" ? [v] : v?.kids ? forms(v.kids) : []

const entry = (type: string, value: any) => "data: " + JSON.stringify({ cursor: "", time: "2026-03-14T12:00:00Z", agent_id: "leader", event: { type, value } }) + "\n\n"
const at = (hash: string) => ((globalThis as any).location.hash = hash)
const task = (id: string, status: string, more: any = {}) => ({ id, title: "The work of " + id, status, assignee: "coder-1", deliverable_path: "", ...more })
const back = { by: "coder-2", epoch: 3, commit: "0123456789abcdef", base: "fedcba" }

test("what merges, what was returned and what runs beside a member is shown", async (t) => {
  const tasks = [task("T-001", "in_progress"), task("T-002", "pending", { returned: [back], reason: "it conflicts" })]
  answers["/teams/red/events"] = () => streamed([entry("MEMBER_JOINED", { agent_id: "coder-1", role: "coder", state: "joined", incarnation: 1 }), ...tasks.map((v) => entry("TASK_CREATED", v)), "event: ready\ndata: {}\n\n"], false)
  const since = new Date(Date.now() - 90_000).toISOString()
  answers["/teams/red/members"] = () => ({ members: [{ agent_id: "coder-1", state: "running", task: "T-001", waits_for: "merge", jobs: [
    { id: "a123456", kind: "subagent", type: "explorer", about: "find <b>all</b> callers", since }, { id: "b1", kind: "command", about: "make test", since, still: 75 },
    { id: "b2", kind: "command", about: "sleep 1", since, ended: "exit status 1" }, { id: "a2", kind: "subagent", about: "asks", since, asked: "p1" }, { kind: 7 },
  ] }] })
  answers["/teams/red/tasks/T-001"] = () => ({ ...tasks[0], merging: since })
  answers["/teams/red/tasks/T-002"] = () => tasks[1]
  for (const id of ["T-001", "T-002"]) answers["/teams/red/tasks/" + id + "/history"] = () => ({ steps: [{ at: since, by: "", what: "released", why: "**not** done", revision: 1, assignee: "" }], whole: true })
  answers["/teams/red/usage"] = () => ({ rows: [] })
  answers["/teams/red/diff"] = () => ({ diff: "diff --git a/x b/x\n@@ -1 +1 @@\n-x\n+y\n", files: [{ path: "x", added: 1, deleted: 1 }], returned: true })
  at("#/red")
  openTeam("red")
  let end: any
  t.after(() => { end?.(); openTeam("") })
  await until("the team", () => team!.caughtUp && team!.agents.size)

  const card = named(overview.draw(route()), "coder-1,")
  assert.equal(says(named(card, "In the background")).replace(/1 min 3\d s/g, "T"), "explorer ( T ): find <b>all</b> callers command ( T , silent for 1 min 15 s): make test command (ended: exit status 1): sleep 1 subagent ( T , waits for a person): asks 7 ():")
  assert.match(says(overview.draw(route())), /1 merging 1 pending/)

  const columns = board.draw(route())
  assert.match(says(named(columns, "T-001")), /^T-001 merging/)
  assert.match(says(named(columns, "T-002")), /^T-002 work returned/)
  assert.match(says(named(columns, "In progress")), /T-001/)

  const shows = async (id: string, what: RegExp) => {
    at("#/red/task/" + id)
    end?.()
    end = one.open!(route())
    await until(id, () => !says(one.draw(route())).includes("Looking…"))
    assert.match(says(one.draw(route())), what)
  }
  const strong = (v: any): string => (Array.isArray(v) ? v.map(strong).join("") : v?.tag === "strong" ? says(v) : v?.kids ? strong(v.kids) : "")
  await shows("T-001", /^T-001 The work of T-001 merging its work has waited for the line 1 min 3. s/)
  assert.ok(!/not merged/.test(says(one.draw(route()))))
  assert.equal(strong(one.draw(route())), "not", "the reason of a step is Markdown")
  await shows("T-002", /Returned work .* coder-2 returned\/T-002\/3 0123456789 What was not merged 1 file/)
})

test("mail is offered where it is read, and why not is said elsewhere", (t) => {
  answers["/teams/green/events"] = () => streamed([], false)
  at("#/green/agent/coder-1")
  openTeam("green")
  session.mayWrite = true
  t.after(() => { openTeam(""); session.mayWrite = false })
  const box = (to?: string) => says(Mail({ id: "say", label: "Say", button: "Send", send: async () => {}, to }))
  const has = (status: string, ...members: string[]) => {
    team!.record = { status }
    team!.state.knowMembers(members.map((agent_id) => ({ agent_id, role: "coder", state: "joined", incarnation: 1 })))
  }
  has("active", "coder-1")
  assert.deepEqual([box("coder-1"), box("leader"), box("*"), box()], ["Send", "Send", "Send", "Send"])
  assert.equal(box("coder-2"), "coder-2 is not in the team: no mail is read there.")
  has("finished", "coder-1")
  assert.equal(box("coder-1"), "The team is finished and reads no mail. Start again from here")
  type("green/agent/coder-1 say", "A thought")
  assert.match(box(), /reads no mail.* Send$/)
  type("green/agent/coder-1 say", "")
  has("failed")
  assert.match(box(), /^The team has failed /)
  has("saved")
  assert.equal(box(), "The team is saved and reads no mail.")
})

test("the cards of members stand in the order in which they need a person", async (t) => {
  const joins = (id: string) => entry("MEMBER_JOINED", { agent_id: id, role: "coder", state: "joined", incarnation: 1 })
  const by = (id: string, event: any) => "data: " + JSON.stringify({ cursor: "", time: "2026-03-14T12:00:01Z", agent_id: id, run_id: "r-" + id, event }) + "\n\n"
  answers["/teams/blue/events"] = () => streamed([...["idle", "works", "asks", "lost", "waits", "works-too"].map(joins), by("works", { type: "RUN_STARTED" }), by("works-too", { type: "RUN_STARTED" }),
    entry("MAIL_SENT", { id: "m1", from: "asks", to: "user", content: "which?", await_reply: true }), entry("MAIL_SENT", { id: "m2", from: "waits", to: "leader", content: "which?", await_reply: true }),
    entry("MEMBER_LOST", { agent_id: "lost", role: "coder", state: "lost", incarnation: 1 }), "event: ready\ndata: {}\n\n"], false)
  at("#/blue")
  openTeam("blue")
  t.after(() => openTeam(""))
  await until("the team", () => team!.caughtUp)
  const cards = (v: any): string[] => Array.isArray(v) ? v.flatMap(cards) : v?.props?.class?.startsWith("card ") ? [v.key] : v?.kids ? cards(v.kids) : []
  assert.deepEqual(cards(overview.draw(route())), ["asks", "lost", "waits", "works", "works-too", "idle"])
})

test("a comment in a team that has ended becomes a task, which waits only for what can be completed", async (t) => {
  const tasks = [task("T-001", "completed", { commit: "c1" }), task("T-002", "failed", { commit: "c2" })]
  answers["/teams/grey/events"] = () => streamed(["event: snapshot\ndata: " + JSON.stringify({ members: [], tasks }) + "\n\nevent: ready\ndata: {}\n\n"], false)
  answers["/teams/grey"] = () => ({ id: "grey", status: "finished" })
  answers["/teams/grey/diff"] = () => ({ diff: "diff --git a/x b/x\n@@ -1 +1 @@\n-x\n+y\n", files: [{ path: "x", added: 1, deleted: 1 }] })
  answers["POST /teams/grey/tasks"] = () => ({ tasks: [] })
  at("#/grey/task/T-001")
  openTeam("grey")
  session.mayWrite = true
  t.after(() => { openTeam(""); session.mayWrite = false })
  await until("the team", () => team!.caughtUp && team!.record)
  for (const [id, dependencies] of [["T-001", ["T-001"]], ["T-002", undefined]] as const) {
    const diff = () => Diff({ id: "grey", task: id, to: () => "coder-1" })
    load("grey", "?task=" + id, id)
    await until("the difference", () => named(diff(), "Comment on line +1"))
    named(diff(), "Comment on line +1").props.onclick()
    assert.match(says(diff()), /The team is finished and reads no mail\. Start again from here .*Leave it Make it a task/)
    type("grey/task/T-001 comment-" + id + "x:1", "Test it")
    asked.length = 0
    forms(diff())[0].props.onsubmit({ preventDefault() {} })
    await until("it is sent", () => asked.some((a) => a.method === "POST"))
    const [sent] = asked.find((a) => a.method === "POST")!.body.tasks
    assert.deepEqual([sent.title, sent.description, sent.dependencies], ["Test it", "On x:1 of " + id + ":\n> +y\n\nTest it", dependencies])
    await until("it is done", () => !forms(diff()).length)
  }
})
