import { mock, test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, streamed, until } from "./answers"
import { askSession, conn, openTeam, session, team, watchTeams } from "../store"

const event = (data: any, name = "", id = "") => (id ? "id: " + id + "\n" : "") + (name ? "event: " + name + "\n" : "") + "data: " + (typeof data === "string" ? data : JSON.stringify(data)) + "\n\n"
const entry = (type: any, value: any = {}) => ({ cursor: "", time: "2026-03-14T12:00:00Z", agent_id: "coder-1", event: { type, value } })
const task = (id: string, status: string) => entry("TASK_CREATED", { id, title: id, status, assignee: "" })

// A team that a failed test leaves open would keep its process alive.
const closing = (f: () => Promise<void>) => async () => {
  try {
    await f()
  } finally {
    openTeam("")
    mock.restoreAll()
  }
}

test("a record that the page does not know takes nothing with it, and is not asked for again", closing(async () => {
  mock.method(console, "error", () => {})
  answers["/teams/red/events"] = () => streamed([event(task("T-001", "completed"), "", "c1"), event("{", "", "c2"), event({ cursor: "c3" }, "", "c3"),
    event(entry({ a: 1 }), "", "c4"), event(entry("TASK_CREATED", { id: "T-002", dependencies: 7, title: {} }), "", "c5"), event({ what: 1 }, "of_the_future"), event(task("T-003", "pending"), "", "c6"), event({}, "ready")], false)
  answers["/teams/red/goal"] = () => ({ status: "active", goal: "g", earlier_tasks: ["T-001"] })
  openTeam("red")
  assert.equal(team!.caughtUp, false)
  await until("the past is read", () => team!.caughtUp)
  assert.deepEqual([[...team!.state.tasks.keys()], team!.strange > 0, conn.state], [["T-001", "T-002", "T-003"], true, "live"])
  assert.equal(asked.filter((a) => a.path.includes("/events")).length, 1)
  await until("the goal says which tasks it has", () => team!.state.tasks.get("T-001")!.earlier)
  assert.equal(team!.state.tasks.get("T-003")!.earlier, false)
}))

test("it is asked where the stream says that something is new, and not where it says again that all is read", closing(async () => {
  mock.method(console, "error", () => {})
  let says: (text: string) => void = () => {}
  answers["/teams/blue/events"] = () => new Response(new ReadableStream({ start(c) { says = (text) => c.enqueue(new TextEncoder().encode(text)) } }))
  openTeam("blue")
  const planned = () => (team as any).timers.soon
  await until("the stream", () => conn.state === "live" && !planned())
  const looks = () => asked.filter((a) => a.path === "/teams/blue/goal").length
  const before = looks()
  says(event({}, "ready"))
  await until("the state is asked for", () => looks() > before && !planned())
  assert.ok(team!.caughtUp)
  answers["/teams/blue/goal"] = () => new Response("{}", { status: 503 })
  says(event({ connected: false }, "connection"))
  await until("NATS is away", () => conn.state === "lost" && !planned())
  answers["/teams/blue/goal"] = () => ({})
  says(event({ connected: true }, "connection"))
  await until("it is back", () => conn.state === "live" && !planned())
  const then = looks()
  says(event({}, "ready") + event("{", "", "c1"))
  await until("what comes behind it", () => team!.strange)
  assert.deepEqual([!!planned(), looks()], [false, then])
}))

test("nothing may be written until it is known who asks, and it is asked again after a new login", async () => {
  assert.equal(session.mayWrite, false)
  let access = "write"
  let version = "1"
  answers["/session"] = () => ({ access, version })
  await askSession()
  assert.deepEqual(session, { mayWrite: true, readOnly: false, newer: false })
  answers["/teams"] = () => new Response("{}", { status: 401 })
  watchTeams()()
  let end = watchTeams()
  await until("the login has ended", () => conn.state === "expired")
  end()
  access = "read"
  version = "2"
  answers["/teams"] = () => ({ teams: [] })
  end = watchTeams()
  await until("it is connected", () => conn.state === "live")
  await until("the rights are read", () => session.readOnly)
  assert.deepEqual(session, { mayWrite: false, readOnly: true, newer: true })
  for (const status of [404, 503]) { // the process is older, or the server busy: the page is connected
    answers["/session"] = () => new Response("{}", { status })
    await askSession()
    assert.equal(conn.state, "live")
  }
  end()
})

test("a login that has ended is said, and no more once a request is answered", closing(async () => {
  answers["/session"] = () => ({ access: "write" })
  answers["/teams/green/events"] = () => streamed([event({}, "ready")], false)
  await askSession() // which is not asked again then
  let ended = false
  answers["/teams/green/goal"] = () => (ended ? new Response("{}", { status: 401 }) : { status: "active", goal: "g" })
  openTeam("green")
  await until("the stream", () => conn.state === "live" && team!.goal && !(team as any).timers.soon)
  ended = true
  team!.refresh(0)
  await until("the login has ended", () => conn.state === "expired")
  ended = false
  team!.goal = null
  team!.refresh(0)
  await until("it is renewed", () => conn.state === "live" && team!.goal)
}))

test("while one of two requests fails the page stays not connected", closing(async () => {
  answers["/session"] = () => ({ access: "write" })
  await askSession()
  answers["/teams/two/events"] = () => streamed([event({}, "ready")], false)
  const away = new Set<string>()
  for (const what of ["/goal", "/members"]) answers["/teams/two" + what] = () => (away.has(what) ? new Response("{}", { status: 503 }) : {})
  openTeam("two")
  const looks = (n: number) => until("all is asked", () => asked.filter((a) => a.path.startsWith("/teams/two/goal")).length >= n && !(team as any).asking.size)
  const again = async () => {
    const n = asked.filter((a) => a.path.startsWith("/teams/two/goal")).length
    clearTimeout((team as any).timers.soon)
    ;(team as any).timers.soon = 0
    team!.refresh(0)
    await looks(n + 1)
  }
  await until("the stream", () => conn.state === "live" && team!.caughtUp && team!.goal && !(team as any).asking.size)
  const seen: string[] = []
  const assign = Object.assign
  mock.method(Object, "assign", (to: any, ...from: any[]) => {
    if (to === conn) seen.push(from[0].state)
    return assign(to, ...from)
  })
  away.add("/goal").add("/members")
  await again()
  away.delete("/goal")
  await again()
  away.add("/goal").delete("/members")
  await again()
  assert.deepEqual([conn.state, seen.filter((s) => s !== "lost")], ["lost", []])
  away.clear()
  await again()
  assert.deepEqual([conn.state, seen.at(-1)], ["live", "live"])
}))

test("a word that the process has lost NATS is enough: no request has to fail", closing(async () => {
  mock.method(console, "error", () => {})
  answers["/session"] = () => ({ access: "write" })
  let says: (text: string) => void = () => {}
  answers["/teams/dark/events"] = () => new Response(new ReadableStream({ start(c) { says = (text) => c.enqueue(new TextEncoder().encode(text)) } }))
  answers["/teams/dark/goal"] = answers["/teams/dark/members"] = answers["/teams/dark"] = () => ({})
  openTeam("dark")
  const still = () => !(team as any).timers.soon && !(team as any).asking.size
  await until("the stream", () => conn.state === "live" && still())
  says(event({ connected: false }, "connection"))
  await until("it is said", () => conn.state === "lost" && conn.why!.status === 503)
  await until("all is answered", still)
  assert.equal(conn.state, "lost")
  says(event({ connected: true }, "connection"))
  await until("it is back", () => conn.state === "live")
}))

test("what waits for a person is known before the past is read, and then as the past says", closing(async () => {
  answers["/session"] = () => ({ access: "write" })
  let says: (text: string) => void = () => {}
  answers["/teams/long/events"] = () => new Response(new ReadableStream({ start(c) { says = (text) => c.enqueue(new TextEncoder().encode(text)) } }))
  let answered: (r: any) => void = () => {}
  answers["/teams/long/questions"] = () => new Promise((go) => (answered = go))
  answers["/teams/long/approvals"] = () => ({ approvals: [{ id: "p1", agent_id: "ann", plan: "x", status: "pending", approver: "human", created_at: "2026-03-14T11:00:00Z" }, { id: "p2", agent_id: "ben", plan: "y", status: "pending", approver: "leader", created_at: "2026-03-14T11:30:00Z" }] })
  openTeam("long")
  await until("the plans", () => team!.waiting().length > 0)
  assert.equal(team!.known, false)
  answered({ messages: [{ id: "q1", from: "ann", to: "user", content: "which?", created_at: "2026-03-14T12:00:00Z" }] })
  await until("the questions", () => team!.known)
  assert.deepEqual([team!.waiting().map((w) => w.id), team!.caughtUp], [["p1", "q1"], false])
  team!.settled.add("p1")
  assert.deepEqual(team!.waiting().map((w) => w.id), ["q1"])
  says(event({}, "ready"))
  await until("the past is read", () => team!.caughtUp)
  assert.deepEqual([team!.waiting(), team!.known], [[], true])
}))

test("a team whose name cannot be is none, as one that is not there", closing(async () => {
  answers["/session"] = () => ({ access: "write" })
  answers["/teams/NO!/events"] = answers["/teams/NO%21/events"] = () => new Response(JSON.stringify({ detail: "the team's name is not valid" }), { status: 422 })
  openTeam("NO!")
  await until("that is said", () => conn.state === "missing")
}))
