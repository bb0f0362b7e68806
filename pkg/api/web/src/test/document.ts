// As much of a document as the modules touch when they are loaded in node, and a renderer's own
// needs: nodes that count what was changed.

export let changes = 0
export const reset = () => { changes = 0 }

class El {
  childNodes: any[] = []
  parentNode: any = null
  attributes: Record<string, string> = {}
  listeners: Record<string, any> = {}
  style: any = { set: {}, setProperty(n: string, v: string) { this.set[n] = v }, removeProperty(n: string) { delete this.set[n] } }
  value = ""
  private text = ""
  constructor(readonly tag: string, text = "") { this.text = text }
  get data() { return this.text }
  set data(t: string) { changes++; this.text = t }
  get firstChild() { return this.childNodes[0] ?? null }
  private get at() { return this.parentNode ? this.parentNode.childNodes.indexOf(this) : -1 }
  get nextSibling() { return this.parentNode?.childNodes[this.at + 1] ?? null }
  get previousSibling() { return this.parentNode?.childNodes[this.at - 1] ?? null }
  insertBefore(el: any, before: any) {
    changes++
    el.parentNode?.childNodes.splice(el.at, 1)
    el.parentNode = this
    const i = before ? this.childNodes.indexOf(before) : this.childNodes.length
    if (i < 0) throw new Error("the node before which it goes is not here")
    this.childNodes.splice(i, 0, el)
  }
  appendChild(el: any) { this.insertBefore(el, null) }
  remove() { changes++; this.parentNode?.childNodes.splice(this.at, 1); this.parentNode = null }
  setAttribute(n: string, v: string) {
    changes++
    if (/^on|^style$/i.test(n)) throw new Error("the policy forbids " + n)
    this.attributes[n] = String(v)
  }
  removeAttribute(n: string) { changes++; delete this.attributes[n] }
  addEventListener(n: string, f: any) { this.listeners[n] = f }
  get flat(): string { return this.tag === "#" ? this.text : "<" + this.tag + ">" + this.childNodes.map((c) => c.flat).join("") + "</" + this.tag + ">" }
}

const d: any = { createTextNode: (t: string) => new El("#", t), createElement: (t: string) => new El(t), createElementNS: (_: string, t: string) => new El(t), hidden: true, activeElement: null, changed() {}, addEventListener(n: string, f: any) { if (n === "visibilitychange") this.changed = f }, removeEventListener() {}, getElementById: () => null, documentElement: { dataset: {} } }
;(globalThis as any).document = d
export const heard: Record<string, () => void> = {} // what the window's events call
;(globalThis as any).addEventListener = (n: string, f: any) => { heard[n] = f }
;(globalThis as any).removeEventListener = () => {}
;(globalThis as any).location = { hash: "" }
;(globalThis as any).history = { replaceState(_: any, __: any, to: string) { location.hash = to } }
;(globalThis as any).dispatchEvent = () => true
;(globalThis as any).requestAnimationFrame = (globalThis as any).cancelAnimationFrame = () => 0

// A test is over when it is: nothing waits for a timer of the page.
const timeout = setTimeout
;(globalThis as any).setTimeout = (f: () => void, ms: number) => timeout(f, ms).unref()
