import { mock, test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, until } from "./answers"
import { isBusy, session } from "../store"
import { Inbox, inboxKeys } from "../views/inbox"

session.mayWrite = true
const ask = (id: string) => ({ id, kind: "permission", from: "coder-1", task: "T-001", at: "2026-03-14T12:00:00Z", approval: { id, call: { tool: "bash", arguments: "{}", dir: "/", why: "" } } })

// inbox is one with these asks.
function inbox(...ids: string[]) {
  const t: any = { id: "red", settled: new Set<string>(), caughtUp: true, all: ids.map(ask) }
  t.waiting = () => t.all.filter((w: any) => !t.settled.has(w.id))
  for (const id of ids) answers["POST /teams/red/approvals/" + id + "/decide"] = () => ({})
  asked.length = 0
  Inbox({ t })
  return t
}

const press = (t: any, key: string) => inboxKeys(t).find((k) => k.keys.split(" ").includes(key))?.run(key)
const decided = () => asked.map((a) => a.path.split("/")[4]).join(" ")

test("one after the other is answered by the same key", async () => {
  const t = inbox("a1", "a2", "a3")
  for (const id of ["a1", "a2"]) {
    press(t, "a")
    press(t, "a") // it is on its way
    await until("the answer to " + id, () => t.settled.has(id))
    Inbox({ t })
  }
  assert.equal(decided(), "a1 a2")
})

test("what has taken the place of one that others have settled is not answered at once", async () => {
  const clock = mock.method(Date, "now", () => 1e12)
  const t = inbox("b1", "b2", "b3")
  t.all.shift()
  press(t, "a") // the page still shows the first
  Inbox({ t })
  press(t, "a")
  press(t, "t")
  assert.equal(decided(), "")
  clock.mock.mockImplementation(() => 1e12 + 501)
  press(t, "a")
  await until("the answer", () => t.settled.has("b2"))
  assert.equal(decided(), "b2")
  clock.mock.restore()
})

test("what takes the place of one whose answer failed is not answered at once", async () => {
  const clock = mock.method(Date, "now", () => 3e12)
  const t = inbox("d1", "d2")
  answers["POST /teams/red/approvals/d1/decide"] = () => new Response("{}", { status: 409 })
  press(t, "a")
  await until("the failure", () => !isBusy("d1"))
  t.all.shift() // a colleague was first
  Inbox({ t })
  press(t, "a")
  assert.equal(decided(), "d1")
  clock.mock.restore()
})

test("who types on into what is gone chooses and answers nothing", async () => {
  let now = 2e12
  const clock = mock.method(Date, "now", () => now)
  const t = inbox("c1", "c2", "c3")
  t.all.shift()
  Inbox({ t })
  for (const key of "just a") {
    press(t, key)
    now += 200
  }
  now += 500
  press(t, "j")
  press(t, "a")
  await until("the answer", () => t.settled.has("c3"))
  assert.equal(decided(), "c3")
  clock.mock.restore()
})
