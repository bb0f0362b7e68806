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

test("what points at the lanes leaves them as they are drawn, and only those that are seen are", async (t) => {
  ;(globalThis as any).location.hash = "#/red/timeline"
  ;(globalThis as any).innerHeight = 800
  const from = "2026-03-14T12:00:00Z"
  const to = "2026-03-14T12:10:00Z"
  const many = <T>(n: number, of: (i: number) => T) => Array.from({ length: n }, (_, i) => of(i))
  answers["/teams/red/timeline"] = () => ({
    from, to, sentence: "", goal: 1, counts: [], critical: [], edges: [],
    lanes: many(300, (i) => ({ agent_id: "coder-" + i, seconds: {}, spans: [{ kind: "model", from, to }] })),
    tasks: many(500, (i) => ({ task: "T-" + i, title: "", agent_id: "coder-" + (i % 300), status: "completed", from, to })),
  })
  openTeam("red")
  const end: any = timeline.open!(route())
  t.after(() => {
    end()
    openTeam("")
  })
  const all = (v: any, tag: string): any[] => (Array.isArray(v) ? v.flatMap((x) => all(x, tag)) : !v?.kids ? [] : [...(v.tag === tag ? [v] : []), ...all(v.kids, tag)])
  const drawn = () => timeline.draw(route())
  await until("the timeline", () => all(drawn(), "svg").length)
  const [before] = all(drawn(), "svg")
  assert.equal(all(before, "g").length, 40 * 3) // a lane and its two bars
  timeline.keys!(route()).find((k) => k.does === "next span")!.run("l")
  const after = drawn()
  assert.equal(all(after, "svg")[0], before)
  assert.equal(all(after, "div").filter((v) => v.props.class === "cursor").length, 1)

  const rows = () => all(drawn(), "tr").length
  const few = rows()
  assert.equal(few, 2 + 100 + 100)
  all(drawn(), "button").filter((b) => b.props.class === "more").at(-1).props.onclick()
  assert.equal(rows(), few + 300)
})
