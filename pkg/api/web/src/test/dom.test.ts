import { mock, test } from "node:test"
import assert from "node:assert/strict"
import * as doc from "./document"
import { drawing, drawn as afterDraw, h, redraw, render } from "../dom"

const root = () => (document as any).createElement("root")
const rows = (...keys: (string | number)[]) => keys.map((k) => h("li", { key: k }, String(k)))

test("what is the same is not touched", () => {
  const el = root()
  render(el, rows(1, 2, 3))
  doc.reset()
  render(el, rows(1, 2, 3))
  assert.equal(doc.changes, 0)
})

test("any order comes out of any other, and nodes stay themselves", () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  const el = root()
  const known = new Map<string, any>()
  for (let round = 0; round < 500; round++) {
    const keys = [...Array(9).keys()].filter(() => random(3) > 0).sort(() => random(3) - 1)
    render(el, rows(...keys))
    assert.deepEqual(el.childNodes.map((c: any) => c.childNodes[0].data), keys.map(String), "round " + round)
    for (const k of [...known.keys()]) if (!keys.includes(+k)) known.delete(k)
    el.childNodes.forEach((c: any, i: number) => {
      const was = known.get(String(keys[i]))
      if (was) assert.equal(was, c, "the node of " + keys[i] + " was made again in round " + round)
      known.set(String(keys[i]), c)
    })
  }
})

test("one that moves to the end moves alone", () => {
  const el = root()
  render(el, rows(1, 2, 3, 4, 5, 6))
  doc.reset()
  render(el, rows(2, 3, 4, 5, 6, 1))
  assert.equal(doc.changes, 1)
})

test("texts, attributes, handlers and styles", () => {
  const el = root()
  let pressed = ""
  render(el, h("button", { class: "a", onclick: () => (pressed = "first"), style: { width: "1px" }, disabled: true }, "go ", 1))
  const b = el.childNodes[0]
  assert.deepEqual([b.attributes, b.style.set, el.flat], [{ class: "a", disabled: "" }, { width: "1px" }, "<root><button>go 1</button></root>"])
  render(el, h("button", { class: "a", onclick: () => (pressed = "second"), style: { height: "2px" }, disabled: false }, "go ", 2))
  b.listeners.click({})
  assert.deepEqual([pressed, b.attributes, b.style.set, el.flat], ["second", { class: "a" }, { height: "2px" }, "<root><button>go 2</button></root>"])
  render(el, h("button", { onclick: "alert(1)" }, "<b>x</b>"))
  b.listeners.click({})
  assert.equal(el.flat, "<root><button><b>x</b></button></root>")
  assert.equal(b.childNodes.length, 1)
})

test("what has gone is called once", () => {
  const el = root()
  let gone = 0
  render(el, h("div", null, h("p", { gone: () => gone++ })))
  render(el, null)
  render(el, null)
  assert.deepEqual([gone, el.childNodes.length], [1, 0])
})

test("a part that fails takes nothing else with it", () => {
  const said = mock.method(console, "error", () => {})
  const el = root()
  const Part = (p: any) => h("p", null, p.of.text.trim())
  render(el, [h(Part, { of: { text: "one" }, key: 1 }), h(Part, { of: {}, key: 2 }), h("p", null, { of: "the future" }, [1])])
  assert.equal(el.flat, "<root><p>one</p><p>This cannot be shown: it has a form that this page does not know.</p><p>[object Object]1</p></root>")
  assert.equal(said.mock.callCount(), 1)
  said.mock.restore()
})

test("what has the focus keeps it when it moves", () => {
  const el = root()
  render(el, rows(1, 2, 3))
  const first: any = el.childNodes[0]
  const d = document as any
  first.isConnected = true
  first.focus = () => { d.activeElement = first }
  first.focus()
  const insert = el.insertBefore
  el.insertBefore = (c: any, at: any) => { // a browser takes the focus from what is moved
    if (c === first) d.activeElement = null
    insert.call(el, c, at)
  }
  render(el, rows(3, 2, 1))
  assert.equal(d.activeElement, first)
  d.activeElement = null
})

test("what a person has typed gives way to what the page wants there", () => {
  const el = root()
  render(el, h("textarea", { value: "" }))
  el.childNodes[0].value = "typed"
  render(el, h("textarea", { value: "" }))
  assert.equal(el.childNodes[0].value, "")
})

test("what is wanted sooner is drawn sooner, and what comes later moves nothing", (t) => {
  const d = document as any
  let drawn = 0
  drawing(() => drawn++)
  t.mock.timers.enable({ apis: ["Date"] })
  const timers: number[] = []
  let late = () => {} // what the last timer calls
  mock.method(globalThis as any, "setTimeout", (f: any, ms: number) => { late = f; timers.push(ms) })
  const frames: (() => void)[] = []
  mock.method(globalThis as any, "requestAnimationFrame", (f: () => void) => frames.push(f))
  t.after(() => {
    mock.restoreAll()
    d.hidden = true
    drawing(() => {})
  })
  d.hidden = false
  redraw(1000)
  redraw(100)
  redraw(1000)
  redraw(100)
  assert.deepEqual([timers, frames.length], [[1000, 100], 0])
  t.mock.timers.tick(50)
  redraw(100)
  redraw()
  redraw()
  assert.deepEqual([timers, frames.length], [[1000, 100], 1])
  frames[0]()
  redraw(100)
  assert.deepEqual([timers, drawn], [[1000, 100, 100], 1])

  t.mock.timers.tick(200) // the timer is late
  const seen: number[] = []
  afterDraw(() => seen.push(drawn))
  late()
  assert.deepEqual(seen, [])
  frames[1]()
  frames[1]()
  assert.deepEqual(seen, [2])
})
