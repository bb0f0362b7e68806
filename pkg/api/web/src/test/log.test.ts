import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, until } from "./answers"
import { Log } from "../log"

// The feed of red: every tenth entry is of the future, and every third is of coder-2.
const feed = [...Array(12_000).keys()].map((i): any => ({
  cursor: "c" + i, time: "2026-03-14T12:00:00Z", agent_id: i % 3 ? "coder-1" : "coder-2",
  event: i % 10 === 9 ? { what: i } : { type: i % 2 ? "TEXT_MESSAGE_CHUNK" : "TASK_CREATED", delta: "text " + i, value: { id: "T-" + i } },
}))

const numberOf = (e: any) => e.event.what ?? Number(e.event.delta.slice(5))

answers["/teams/red/events"] = (a) => {
  const q = new URLSearchParams(a.path.split("?")[1])
  const from = q.get("after") ? feed.findIndex((e) => e.cursor === q.get("after")) + 1 : 0
  return { events: feed.slice(from, from + Number(q.get("limit"))) }
}

test("of a long past what is looked at is read again, at its place", async () => {
  const log = new Log("red")
  for (const e of feed) log.add(e)
  asked.length = 0
  assert.equal(numberOf(log.entry(11_999)), 11_999)
  for (const i of [5, 3456]) {
    assert.equal(log.entry(i), undefined)
    await until("it is read", () => log.entry(i))
    assert.equal(numberOf(log.entry(i)), i)
  }
  assert.equal(asked.length, 2)
})

test("rows are those of some kinds and a member", () => {
  const log = new Log("red")
  for (const e of feed.slice(0, 100)) log.add(e)
  assert.equal(log.rows("", "").length, 90) // what is of the future is not shown
  const says = () => log.rows("says", "coder-2")
  assert.deepEqual(says().slice(0, 3), [3, 15, 21])
  const before = says().length
  log.add({ ...feed[3], cursor: "d" })
  assert.deepEqual([says().length, says().at(-1)], [before + 1, 100])
})

test("long texts of an entry are cut, the mail is kept", () => {
  const log = new Log("red")
  log.add({ cursor: "m", time: "", agent_id: "coder-1", event: { type: "MAIL_SENT", value: { id: "01", content: "x".repeat(9000), tags: ["a"] } } } as any)
  assert.deepEqual([log.mail.length, log.mail[0].content!.length], [1, 4001])
})
