import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked } from "./answers"
import { Transcript } from "../transcript"

const entries = [...Array(12_345).keys()].map((i): any => ({ event: { type: "TEXT_MESSAGE_CHUNK", delta: "text " + i + "." } }))

test("a search of a long conversation takes few requests", async () => {
  answers["/t"] = (a) => {
    const q = new URLSearchParams(a.path.split("?")[1])
    const from = Number(q.get("page"))
    return { entries: entries.slice(from, from + Number(q.get("limit"))) }
  }
  const t = new Transcript("/t")
  entries.forEach((e, i) => t.add(i, e))
  const find = (text: string, from: number, by: number) => t.find(text, from, by, () => true)
  assert.equal(await find("text 7.", 12_344, -1), 7)
  assert.ok(asked.length <= 13, asked.length + " requests")
  assert.equal(await find("text 4321.", 7, 1), 4321)
  assert.equal(await find("nothing of that", 7, 1), -1)
  assert.ok(asked.length <= 35, asked.length + " requests")
})
