import { mock, test } from "node:test"
import assert from "node:assert/strict"
import { heard } from "./document"
import { answers, asked, until } from "./answers"
import { openTeam, team } from "../store"
import { route } from "../route"
import { clockOf, timeline } from "../views/timeline"

test("a table that cannot be made is said to be so each time that it is drawn", async (t) => {
  mock.method(console, "error", () => {})
  ;(globalThis as any).location.hash = "#/red/timeline"
  const at = "2026-03-14T12:00:00Z"
  answers["/teams/red/timeline"] = () => ({ begun: at, ended: at, from: at, to: at, sentence: "", goal: 1, lanes: [], tasks: [null], counts: [], critical: [] })
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

const looks = (document as any).changed // of the renderer, when the tab is seen again
const from = "2026-03-14T12:00:00Z"
const to = "2026-03-14T12:10:00Z"
const at = (r: { path: string }, name: string) => Date.parse(new URLSearchParams(r.path.split("?")[1]).get(name)!)
const press = (does: string) => timeline.keys!(route()).find((k) => k.does === does)!.run("")
const reads = () => asked.filter((a) => a.path.startsWith("/teams/red/timeline"))

test("a held key asks once at a time, each press counts, and what is shown is what was wanted last", async (t) => {
  asked.length = 0
  ;(globalThis as any).location.hash = "#/red/timeline"
  const answer: ((d: any) => void)[] = []
  answers["/teams/red/timeline"] = () => new Promise((go) => answer.push(go))
  const says = (sentence: string, from: number, to: number) => ({ begun: "2026-03-14T12:00:00Z", ended: "2026-03-14T12:10:00Z", from: new Date(from).toISOString(), to: new Date(to).toISOString(), sentence, goal: 1, counts: [], critical: [], edges: [], lanes: [], tasks: [] })
  openTeam("red")
  let end: any = timeline.open!(route())
  t.after(() => {
    end()
    openTeam("")
    mock.restoreAll()
  })
  const drawn = () => JSON.stringify(timeline.draw(route()))
  answer[0](says("All of it.", Date.parse(from), Date.parse(to)))
  await until("the timeline", () => drawn().includes("All of it."))
  for (let i = 0; i < 5; i++) press("closer")
  assert.equal(reads().length, 2)
  answer[1](says("Of the first press.", at(reads()[1], "from"), at(reads()[1], "to")))
  await until("the last is asked for", () => reads().length > 2)
  const length = at(reads()[2], "to") - at(reads()[2], "from")
  assert.ok(Math.abs(length - 600_000 / 1.3 ** 5) < 10, "it shows " + length + " ms")
  answer[2](says("Of the last press.", at(reads()[2], "from"), at(reads()[2], "to")))
  await until("the last is shown", () => drawn().includes("Of the last press."))
  for (let i = 0; i < 100; i++) press("closer")
  answer[3](says("Closest.", at(reads()[3], "from"), at(reads()[3], "to")))
  await until("the closest is asked for", () => reads().length > 4)
  assert.ok(at(reads()[4], "to") - at(reads()[4], "from") >= 100)

  end() // while that request is under way
  end = timeline.open!(route())
  assert.equal(reads().length, 6)
  answer[5](says("Of this visit.", Date.parse(from), Date.parse(to)))
  await until("this visit's answer", () => drawn().includes("Of this visit."))
  answer[4](says("Of the visit before.", Date.parse(from), Date.parse(to)))
  let turns = 0
  await until("what comes late has come", () => {
    assert.match(drawn(), /Of this visit/)
    return ++turns > 100
  })
  assert.equal(reads().length, 6)
})

test("a member that gets another colour is drawn in it", async (t) => {
  ;(globalThis as any).location.hash = "#/red/timeline"
  ;(globalThis as any).innerHeight = 800
  answers["/teams/red/timeline"] = () => ({ begun: from, ended: to, from, to, sentence: "", goal: 1, counts: [], critical: [], edges: [], tasks: [], lanes: [{ agent_id: "coder-1", seconds: {}, spans: [] }] })
  openTeam("red")
  const end: any = timeline.open!(route())
  t.after(() => {
    end()
    openTeam("")
  })
  const drawn = () => JSON.stringify(timeline.draw(route()))
  for (const color of ["cyan", "magenta"]) {
    team!.state.knowMembers([{ agent_id: "coder-1", color } as any])
    await until(color, () => drawn().split("c-" + color).length === 3) // the lane, and its row of the table
  }
})

test("what points at the lanes leaves them as they are drawn, and only those that are seen are", async (t) => {
  ;(globalThis as any).location.hash = "#/red/timeline"
  ;(globalThis as any).innerHeight = 800
  const many = <T>(n: number, of: (i: number) => T) => Array.from({ length: n }, (_, i) => of(i))
  answers["/teams/red/timeline"] = () => ({
    begun: from, ended: to, from, to, sentence: "", goal: 1, counts: [], critical: [], edges: [],
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

  const d = document as any
  const frames: (() => void)[] = []
  mock.method(globalThis as any, "requestAnimationFrame", (f: () => void) => frames.push(f))
  const lanes = { clientWidth: 900, top: 0, getBoundingClientRect() { return this } }
  d.querySelector = () => lanes
  d.hidden = false
  looks() // which plans a drawing
  const scrolled = (top: number) => {
    frames.splice(0).forEach((f) => f())
    lanes.top = top
    heard.scroll()
    return frames.length
  }
  assert.deepEqual([0, -100, -800, -810, 0].map(scrolled), [0, 0, 1, 0, 1])
  lanes.clientWidth = 0 // as of a window that is hardly there
  scrolled(0)
  press("closer")
  lanes.clientWidth = 900
  scrolled(0)
  d.querySelector = () => null
  frames.splice(0).forEach((f) => f())

  const rows = () => all(drawn(), "tr").length
  const few = rows()
  assert.equal(few, 2 + 100 + 100)
  const trs: any[] = []
  all(drawn(), "button").filter((b) => b.props.class === "more").at(-1).props.onclick({ target: { previousSibling: { firstChild: { rows: trs } } } })
  assert.equal(rows(), few + 300)
  let focused = -1 // which is not the button, that may have gone
  for (let i = 0; i <= 400; i++) trs.push({ focus() { focused = this.tabIndex === -1 ? i : NaN } })
  while (frames.length) frames.shift()!()
  d.hidden = true
  mock.restoreAll()
  assert.equal(focused, 101)
})

test("of very many lines between tasks those in sight are drawn, and how many are not is said", async (t) => {
  ;(globalThis as any).location.hash = "#/red/timeline"
  ;(globalThis as any).innerHeight = 800
  const hold = (task: string, lane: number, minute: number) => ({ task, title: "", agent_id: "coder-" + lane, status: "completed", from: "2026-03-14T12:0" + minute + ":00Z", to: "2026-03-14T12:0" + (minute + 1) + ":00Z" })
  const edges = (n: number, of: string) => Array.from({ length: n }, () => ({ from: of + 1, to: of + 2 }))
  answers["/teams/red/timeline"] = () => ({
    begun: from, ended: to, from, to, sentence: "", goal: 1, counts: [], critical: [],
    lanes: Array.from({ length: 300 }, (_, i) => ({ agent_id: "coder-" + i, seconds: {}, spans: [] })),
    tasks: [hold("near-1", 0, 1), hold("near-2", 1, 4), hold("far-1", 200, 1), hold("far-2", 201, 4), hold("person-1", 999, 1), hold("person-2", 0, 5)],
    edges: [...edges(2003, "near-"), ...edges(5000, "far-"), ...edges(1, "person-")],
  })
  openTeam("red")
  const end: any = timeline.open!(route())
  t.after(() => {
    end()
    openTeam("")
  })
  const drawn = () => JSON.stringify(timeline.draw(route()))
  await until("the timeline", () => drawn().includes("lane-name"))
  const lines = /"class":"edges","d":"(.*?)"/.exec(drawn())![1]
  assert.equal(lines.split("M").length - 1, 2000)
  assert.doesNotMatch(lines, /undefined|NaN/)
  assert.match(drawn(), /"text":"3 lines between tasks in sight are not drawn: zoom in\."/)
})

test("times beside each other differ", () => {
  const at = Date.parse("2026-03-14T12:00:00.125Z")
  for (const apart of [125, 1000, 60_000]) {
    const clock = clockOf(apart)
    assert.notEqual(clock.format(at), clock.format(at + apart))
  }
  assert.doesNotMatch(clockOf(60_000).format(at), /:\d\d:/)
})
