import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked } from "./answers"
import { drawing, h, redraw } from "../dom"
import { atEnd, List, toRow } from "../list"
import { api, get, path, Problem, say } from "../request"
import { filter, picked, route, to } from "../route"
import { part } from "../text"

const address = (hash: string) => ((globalThis as any).location.hash = hash)

test("an address names a team, a view and what it is of, whatever is in the names", () => {
  for (const [team, view, id] of [["red", "task", "T-001"], ["red", "", ""], ["a b/c?#%", "file", "x/y ü.txt"]]) {
    address(to(team, view, id, { q: "a&b=c", none: "" }))
    const r = route()
    assert.deepEqual([r.team, r.view, r.id, r.query.get("q"), r.query.has("none")], [team, view, id, "a&b=c", false])
  }
  address("#/red/%zz")
  assert.equal(route().view, "%zz")
  address("")
})

test("what was not done is said in a sentence", async () => {
  answers["/a"] = () => new Response(JSON.stringify({ detail: "team red is there already", hint: "by HTTP: PUT it; in a shell: choose another name" }), { status: 409 })
  answers["/b"] = () => new Response("<html>", { status: 502 })
  answers["/c"] = () => { throw new TypeError("fetch failed") }
  answers["/d"] = () => new Response("", { status: 401 })
  const says = (where: string) => get(where).then(() => "", say)
  assert.equal(await says("/a"), "Team red is there already. Choose another name.")
  assert.equal(await says("/b"), "The API answers with the status 502. It may be back soon; try again.")
  assert.match(await says("/c"), /^The API does not answer\./)
  assert.match(await says("/d"), /^Your login has ended/)
  const e = await get("/a").catch((e) => e)
  assert.ok(e instanceof Problem && e.status === 409)
})

test("a request has its key and its body", async () => {
  asked.length = 0
  answers["POST /teams/a%2Fb/goal"] = () => new Response(null, { status: 204 })
  assert.equal(await api("POST", path("a/b") + "/goal", { goal: "g" }, "k"), null)
  assert.deepEqual([asked[0].body, asked[0].headers["Idempotency-Key"], asked[0].headers["Content-Type"]], [{ goal: "g" }, "k", "application/json"])
})

test("of a long list only what is seen is drawn", () => {
  let drawn: number[] = []
  const list = (count: number) => { drawn = []; return List({ id: "l", label: "l", count, estimate: 20, follow: true, row: (i) => { drawn.push(i); return h("p", null, i) } }) }
  list(100_000)
  assert.ok(drawn.length < 60 && drawn.at(-1) === 99_999 && atEnd("l"), drawn.join())
  toRow("l", 500)
  list(100_001)
  assert.ok(drawn.length < 60 && drawn.includes(500) && !atEnd("l"), drawn.join())
})

test("a row that is gone to stays in sight, however tall what is above it turns out to be", () => {
  const heights = (i: number) => 20 + (i * 37) % 400
  const el: any = { clientHeight: 600, scrollTop: 0, scrollHeight: 1e6, firstChild: { style: { setProperty() {} }, firstChild: {} } }
  const draw = () => {
    const list: any = List({ id: "m", label: "m", count: 1000, estimate: 20, follow: true, row: (i) => h("p", null, i) })
    const rows = list.kids[0].kids[0]
    el.firstChild.firstChild.children = rows.kids.map((r: any) => ({ dataset: { i: r.props["data-i"] }, offsetHeight: heights(r.props["data-i"]) }))
    let y = +/[\d.]+/.exec(rows.props.style.transform)![0]
    const places = new Map<number, number>()
    for (const r of rows.kids) {
      places.set(r.props["data-i"], y)
      y += heights(r.props["data-i"])
    }
    list.props.each(el)
    return { list, place: places.get(500)! - el.scrollTop }
  }
  draw()
  toRow("m", 500)
  for (let n = 0; n < 20; n++) draw()
  const { list, place } = draw()
  assert.equal(place, 200)
  el.scrollTop += 100 // by a person
  list.props.onscroll()
  assert.equal(draw().place, 100)
})

test("what narrows a view leaves no step behind, what opens something does", () => {
  const page = globalThis as any
  const { location, history } = page
  const steps: string[] = []
  page.location = { get hash() { return steps.at(-1) ?? "" }, set hash(to: string) { steps.push(to) } }
  page.history = { replaceState(_: any, __: any, to: string) { steps[steps.length - 1] = to } }
  address("#/red/mail")
  for (const typed of ["a", "ab", "abc"]) filter("q", typed)
  filter("thread", "m1", true)
  filter("q", "")
  assert.deepEqual(steps, ["#/red/mail?q=abc", "#/red/mail?thread=m1"])
  assert.deepEqual([picked("thread"), picked("q")], ["m1", ""])
  Object.assign(page, { location, history })
})

test("of a list that is not shown whole the rest is counted, and shown when it is asked for", () => {
  const all = [...Array(700).keys()]
  const [last, more]: any = part("p", all, -300)
  assert.deepEqual([last.length, last[0], more.kids[0].text], [300, 400, "Show more (these are the last 300 of 700)"])
  more.props.onclick()
  assert.deepEqual(part("p", all, -300)[0], all.slice(100))
  assert.deepEqual(part("q", all.slice(0, 300), 300), [all.slice(0, 300), false])
})

test("a tab that was hidden before its frame came is drawn when it is seen", () => {
  const page = globalThis as any
  let draws = 0
  drawing(() => draws++)
  const frames: Record<number, () => void> = {}
  let last = 0
  page.requestAnimationFrame = (f: () => void) => { frames[++last] = f; return last }
  page.cancelAnimationFrame = (n: number) => { delete frames[n] }
  page.document.hidden = false
  page.document.changed()
  for (const f of Object.values(frames)) f()
  draws = 0
  redraw()
  for (const n in frames) delete frames[n] // the tab is hidden: its frame never comes
  page.document.changed()
  for (const f of Object.values(frames)) f()
  assert.equal(draws, 1)
  page.document.hidden = true
})
