import { mock, test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, until } from "./answers"
import { openTeam } from "../store"
import { route } from "../route"
import { timeline } from "../views/timeline"

test("a table that cannot be made is said to be so each time that it is drawn", async (t) => {
  mock.method(console, "error", () => {})
  ;(globalThis as any).location.hash = "#/red/timeline"
  const at = "2026-03-14T12:00:00Z"
  answers["/teams/red/timeline"] = () => ({ from: at, to: at, sentence: "", goal: 1, lanes: [], tasks: [null], counts: [], critical: [] })
  openTeam("red")
  const end: any = timeline.open!(route())
  t.after(() => {
    end()
    openTeam("")
    mock.restoreAll()
  })
  const drawn = () => JSON.stringify(timeline.draw(route()))
  const faults = () => drawn().split("cannot be shown").length
  await until("the timeline", () => !drawn().includes("Looking"))
  assert.deepEqual([faults(), faults()], [2, 2])
})
