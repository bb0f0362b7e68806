import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked } from "./answers"
import { drawing, h, redraw } from "../dom"
import { atEnd, List, toRow } from "../list"
import { api, get, path, Problem, say } from "../request"
import { route, to } from "../route"

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
  answers["/a"] = () => new Response(JSON.stringify({ detail: "team red is there already", hint: "choose another name; by HTTP: PUT it" }), { status: 409 })
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
