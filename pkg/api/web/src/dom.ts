// A renderer: what is to be seen is a tree of plain values, made anew for each frame, and patch
// changes of the document only what differs. Texts become text nodes and nothing else; there is
// no way from here to innerHTML, to a style attribute or to a handler in an attribute.

export type Child = VNode | string | number | boolean | null | undefined | Child[]
export type Props = Record<string, any>

export interface VNode {
  tag: string // "#" = a text
  props: Props
  kids: VNode[]
  key: string | number
  text: string
  el?: any
}

const svg = new Set("svg g path line rect text title".split(" "))

// h makes a node. A function as tag is called: it gets its props, and what stands in it as children.
export function h(tag: any, props: Props | null, ...children: Child[]): any {
  if (typeof tag === "function") {
    const made = part(tag, { ...props, children })
    if (made && typeof made === "object" && !Array.isArray(made) && props?.key !== undefined) made.key = props.key
    return made
  }
  const kids: VNode[] = []
  flatten(children, kids)
  return { tag, props: props || {}, kids, key: props?.key ?? "", text: "" }
}

// part is what a function draws. One that fails, most often for a record of the future, takes nothing
// else with it.
function part(tag: (p: Props) => any, props: Props): any {
  try {
    return tag(props)
  } catch (e) {
    console.error(e)
    return h("p", { class: "bad" }, "This cannot be shown: it has a form that this page does not know.")
  }
}

// kept is a part that is drawn again only when it gets something else: what it was drawn as stays. It must
// depend on its props only.
export function kept(tag: (p: Props) => any): (p: Props) => any {
  let was: Props = {}
  let made: any
  return (p) => {
    if (!made || Object.keys(p).some((k) => k !== "children" && p[k] !== was[k])) {
      made = tag(p)
      was = p
    }
    return made
  }
}

function flatten(from: Child, into: VNode[]) {
  if (Array.isArray(from)) for (const c of from) flatten(c, into)
  else if ((from as any)?.kids) into.push(from as VNode)
  else if (from !== null && from !== undefined && typeof from !== "boolean" && from !== "") {
    const last = into.at(-1)!
    if (last?.tag === "#") last.text += from
    else into.push({ tag: "#", props: {}, kids: [], key: "", text: String(from) })
  }
}

let after: (() => void)[] = []

// render makes el hold what child says.
export function render(el: any, child: Child) {
  const kids: VNode[] = []
  flatten(child, kids)
  const at: any = document.activeElement
  patch(el, el.vkids || [], kids, false)
  el.vkids = kids
  if (at?.isConnected && at !== document.activeElement) at.focus({ preventScroll: true }) // it was moved
  const run = after
  after = []
  for (const f of run) f()
}

function patch(parent: Node, old: VNode[], next: VNode[], inSvg: boolean) {
  const left = new Map<string, VNode>()
  names(old, (name, v) => left.set(name, v))
  const reuse: (VNode | undefined)[] = []
  names(next, (name) => {
    const v = left.get(name)
    left.delete(name)
    reuse.push(v)
  })
  for (const v of left.values()) gone(v)
  let at: any = parent.firstChild
  next.forEach((v, i) => {
    const was = reuse[i]
    if (was) update(was, v, inSvg)
    else create(v, inSvg)
    if (v.el === at) at = at.nextSibling
    else if (at && at.nextSibling === v.el) { // one that has moved behind others: it is placed later
      at = v.el.nextSibling
      parent.appendChild(v.el.previousSibling)
    } else parent.insertBefore(v.el, at)
  })
}

// names calls f with a name for each node, by which the next tree finds it again.
function names(all: VNode[], f: (name: string, v: VNode) => void) {
  const count: Record<string, number> = {}
  for (const v of all) {
    const name = v.tag + "|" + v.key
    const n = (count[name] = (count[name] || 0) + 1)
    f(n > 1 ? name + "|" + n : name, v)
  }
}

function gone(v: VNode) {
  leave(v)
  v.el.remove()
}

function leave(v: VNode) {
  v.props.gone?.(v.el)
  v.kids.forEach(leave)
}

function create(v: VNode, inSvg: boolean) {
  if (v.tag === "#") {
    v.el = document.createTextNode(v.text)
    return
  }
  inSvg = v.tag === "svg" || (inSvg && svg.has(v.tag))
  v.el = inSvg ? document.createElementNS("http://www.w3.org/2000/svg", v.tag) : document.createElement(v.tag)
  patch(v.el, [], v.kids, inSvg)
  for (const name in v.props) set(v.el, name, undefined, v.props[name])
  seen(v)
}

function update(was: VNode, v: VNode, inSvg: boolean) {
  if (was === v) return // it was kept
  v.el = was.el
  if (v.tag === "#") {
    if (was.text !== v.text) v.el.data = v.text
    return
  }
  patch(v.el, was.kids, v.kids, v.tag === "svg" || inSvg)
  for (const name in was.props) if (!(name in v.props)) set(v.el, name, was.props[name], undefined)
  for (const name in v.props) set(v.el, name, was.props[name], v.props[name])
  seen(v)
}

// seen has the handler "each" called once the whole tree stands in the document, after each patch.
function seen(v: VNode) {
  if (v.props.each) after.push(() => v.props.each(v.el))
}

function set(el: any, name: string, was: any, now: any) {
  if (name === "key" || name === "each" || name === "gone") return
  if (name === "value") {
    if (el.value !== (now ?? "")) el.value = now ?? "" // other than was: a person may have typed meanwhile
    return
  }
  if (was === now) return
  if (name.startsWith("on")) {
    const what = name.slice(2).toLowerCase()
    const handlers = (el.handlers ||= {})
    if (!(what in handlers)) el.addEventListener(what, (e: Event) => handlers[what]?.call(el, e))
    handlers[what] = typeof now === "function" ? now : undefined
  } else if (name === "style") {
    for (const p in was) if (!now || !(p in now)) el.style.removeProperty(p)
    for (const p in now) if (was?.[p] !== now[p]) el.style.setProperty(p, now[p])
  } else if (name === "checked" || name === "selected") el[name] = now ?? ""
  else if (now === undefined || now === null || now === false) el.removeAttribute(name)
  else el.setAttribute(name, now === true ? "" : now)
}

let draw: () => void = () => {}
let due = 0 // when the page is drawn; 0 = that is not planned
let timer: any
let frame = 0

// drawing says what redraw calls.
export function drawing(f: () => void) {
  draw = f
}

// redraw has the page drawn in the next frame. With later it is soon enough in so many milliseconds:
// what comes in by the stream is more than a person can follow.
export function redraw(later = 0) {
  const at = Date.now() + later
  if (due && due <= at) return
  unplan()
  due = at
  const next = () => { frame = requestAnimationFrame(drawNow) }
  if (document.hidden) timer = setTimeout(drawNow, 500) // no frames come, but the title is seen
  else if (later) timer = setTimeout(next, later)
  else next()
}

// drawNow draws the page before it returns.
export function drawNow() {
  unplan()
  draw()
  for (const f of waiting.splice(0)) f()
}

const waiting: (() => void)[] = []

// drawn has the page drawn, and calls f with what is in the document then.
export function drawn(f: () => void) {
  waiting.push(f)
  redraw()
}

function unplan() {
  due = 0
  clearTimeout(timer)
  cancelAnimationFrame(frame)
}

// A frame that was asked for comes to no tab that is hidden meanwhile.
document.addEventListener("visibilitychange", () => {
  unplan()
  redraw()
})
