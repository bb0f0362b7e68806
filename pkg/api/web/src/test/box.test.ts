import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, until } from "./answers"
import { ask, once } from "../store"
import { Box } from "../ui"

const at = (hash: string) => ((globalThis as any).location.hash = hash)

// drawn is the field of a box as it is drawn now, and its form.
function drawn(send: (text: string) => Promise<unknown>) {
  const form: any = Box({ id: "say-leader", label: "Message", button: "Send", send })
  const field = form.kids[0]
  return { text: field.props.value, key: form.key, types: (value: string) => field.props.oninput({ target: { value } }), sends: () => form.props.onsubmit({ preventDefault() {} }) }
}

test("what is typed for one team is not in the box of another", () => {
  const none = async () => {}
  at("#/red")
  drawn(none).types("a secret of red")
  const red = drawn(none)
  at("#/blue")
  const blue = drawn(none)
  assert.deepEqual([red.text, blue.text], ["a secret of red", ""])
  assert.notEqual(red.key, blue.key) // else the field itself stays, with its text
  at("#/red?kind=says")
  assert.equal(drawn(none).text, "a secret of red")
})

test("what is typed while a message is on its way stays", async () => {
  at("#/green")
  const sent: string[] = []
  let answer = { ok: () => {}, fail: (_: Error) => {} }
  const send = (text: string) => new Promise<void>((ok, fail) => { sent.push(text); answer = { ok, fail } })
  drawn(send).types("first")
  drawn(send).sends()
  assert.equal(drawn(send).text, "")
  drawn(send).types("second")
  drawn(send).sends() // the first is on its way
  answer.ok()
  await until("it is sent", () => { drawn(send).sends(); return sent.length === 2 })
  assert.deepEqual(sent, ["first", "second"])
  drawn(send).types("third")
  answer.fail(new Error("no"))
  await until("it is put back", () => drawn(send).text !== "third")
  assert.equal(drawn(send).text, "second\nthird")
})

test("a request that is sent again has the same key, one to elsewhere has another", async () => {
  asked.length = 0
  for (const where of ["/red", "/red", "/blue"]) await once("x", where, { goal: "g" }).catch(() => {})
  const keys = asked.map((a) => a.headers["Idempotency-Key"])
  assert.ok(keys[0] && keys[0] === keys[1] && keys[1] !== keys[2], keys.join())
})

test("a late answer is for nobody", async () => {
  let late: (v: any) => void = () => {}
  answers["/teams/red/timeline"] = () => new Promise((f) => (late = f))
  const got: string[] = []
  at("#/red/timeline")
  const asks = ask("/teams/red/timeline", (d) => got.push(d.of), () => got.push("failed"))
  at("#/blue/timeline")
  late({ of: "red" })
  await asks
  assert.deepEqual(got, [])
  answers["/teams/blue/timeline"] = () => ({ of: "blue" })
  await ask("/teams/blue/timeline", (d) => got.push(d.of))
  assert.deepEqual(got, ["blue"])
})
