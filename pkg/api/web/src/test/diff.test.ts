import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, until } from "./answers"
import { Diff, load } from "../views/diff"

const at = (hash: string) => ((globalThis as any).location.hash = hash)

test("a difference that is answered while a person is elsewhere is there when they are back", async () => {
  let late: (v: any) => void = () => {}
  answers["/teams/red/diff"] = () => new Promise((f) => (late = f))
  at("#/red/result")
  load("red", "", "c1")
  at("#/red/board")
  late({ diff: "", files: [] })
  await new Promise((go) => setImmediate(go))
  at("#/red/result")
  load("red", "", "c1")
  await until("the difference", () => JSON.stringify(Diff({ id: "red", to: () => "leader" })).includes("Nothing was changed"))
  assert.equal(asked.length, 1)
})
