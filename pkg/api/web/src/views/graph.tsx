// Which task waits for which, as the API has laid it out: a layer for each depth.

import { h, redraw, type Child } from "../dom"
import { curve, Zoom, zoomKeys } from "../drawing"
import { grip } from "../pointer"
import { path, type Problem } from "../request"
import { filter, go, picked, to } from "../route"
import { ask, every, team, type OpenTeam } from "../store"
import { line, words } from "../text"
import { key, type Key } from "../keys"
import { has, Looking, mayWrite, TaskLink } from "../ui"
import type { Route } from "../route"
import type { Edge, Node } from "../api"
import { openMenu, statusOf } from "./board"

const wide = 190 // of a layer
const tall = 46 // of a place
const box = { w: 150, h: 34 }

let nodes: Node[] = []
let edges: Edge[] = []
let by = new Map<string, Node>()
let layers: number[] = [] // how many nodes each has
let why: Problem | undefined
let asked = "" // the tasks and their dependencies for which it was asked
let moved = false // a person has chosen what is seen
const see = { x: 0, y: 0, scale: 0, w: 800, h: 500 } // what is seen of it: its middle, and how large
let dragged = false

let paths: string[] = [] // of the lines between tasks, of those of the selected one, and that
let drawn = new Map<string, { says: string; as: Child }>() // the tasks that are in the document

export function openGraph(r: Route) {
  nodes = []
  edges = []
  why = undefined
  asked = ""
  moved = false
  return every(5000, () => read(r.team))
}

function read(id: string) {
  if (picked("show") !== "graph") return
  const now = [...team!.state.tasks.values()].map((x) => x.id + ":" + x.dependencies).join()
  if (now === asked) return
  asked = now
  ask(path(id, "graph"), (g) => {
    nodes = g.nodes || []
    edges = g.edges || []
    by = new Map(nodes.map((n) => [n.id, n]))
    layers = []
    for (const n of nodes) layers[n.depth] = Math.max(layers[n.depth] || 0, n.place + 1)
    why = undefined
    whole(!moved)
  }, (e) => {
    why = e
    asked = ""
  })
}

// A layer of many is folded into several columns of so many rows, so that all of it has the shape of
// the window. starts are the columns at which layers begin, and where the next would.
let most = 1
let starts: number[] = [0]
const xOf = (n: Node) => (starts[n.depth] + Math.floor(n.place / most)) * wide
const yOf = (n: Node) => ((n.place % most) + (most - Math.min(most, layers[n.depth])) / 2) * tall

// whole gives each task its place, and with fit has all of them seen.
function whole(fit = true) {
  most = Math.max(1, Math.min(Math.max(...layers), Math.ceil(Math.sqrt((nodes.length * wide * see.h) / (tall * see.w)))))
  starts = [0]
  for (const n of layers) starts.push(starts.at(-1)! + Math.ceil(n / most))
  paths = []
  if (!fit) return
  const w = starts[layers.length] * wide
  const hgt = most * tall
  see.scale = Math.min(1.2, see.w / (w + 40), see.h / (hgt + 40))
  see.x = (w - wide + box.w) / 2
  see.y = (hgt - tall + box.h) / 2
  moved = false
}

function zoom(by: number, x = see.x, y = see.y) {
  const next = Math.max(0.02, Math.min(3, see.scale * by))
  see.x = x + (see.x - x) * (see.scale / next)
  see.y = y + (see.y - y) * (see.scale / next)
  see.scale = next
  seen()
}

// seen draws what a person has chosen to see.
function seen() {
  moved = true
  redraw()
}

function show(id: string) {
  const n = by.get(id)
  if (!n) return
  filter("at", id)
  const x = xOf(n) + box.w / 2
  const y = yOf(n) + box.h / 2
  if (Math.abs(x - see.x) * see.scale > see.w / 2 - 60) see.x = x
  if (Math.abs(y - see.y) * see.scale > see.h / 2 - 30) see.y = y
  if (see.scale < 0.5) see.scale = 0.8
  seen()
}

function all() {
  whole()
  redraw()
}

export function graphKeys(t: OpenTeam): Key[] {
  const selected = picked("at")
  const n = by.get(selected)
  const move = (depth: number, place: number) => {
    const e = depth > 0 ? edges.find((e) => e.from === selected)?.to : edges.find((e) => e.to === selected)?.from
    show((!n ? nodes[0]?.id : depth ? e : nodes.find((x) => x.depth === n.depth && x.place === n.place + place)?.id) || "")
  }
  return [
    key("h ArrowLeft", "what it waits for", () => move(-1, 0)),
    key("l ArrowRight", "what waits for it", () => move(1, 0)),
    key("j ArrowDown", "next", () => move(0, 1)),
    key("k ArrowUp", "previous", () => move(0, -1)),
    ...zoomKeys(zoom, all),
    key("Enter", "its whole story", () => n && go(to(t.id, "task", n.id))),
    key("m", "what to do with it", () => openMenu(selected)),
  ]
}

// at zooms around a place of the window.
function at(by: number, x: number, y: number) {
  const r = document.querySelector(".graph")!.getBoundingClientRect()
  zoom(by, see.x + (x - r.left - r.width / 2) / see.scale, see.y + (y - r.top - r.height / 2) / see.scale)
}

// pan follows the pointers while they are down.
function pan(e: PointerEvent) {
  let far = 0
  dragged = false
  grip(e, (dx, dy) => {
    far += Math.abs(dx) + Math.abs(dy)
    if (far < 3) return
    dragged = true
    see.x -= dx / see.scale
    see.y -= dy / see.scale
    seen()
  }, at)
}

function drawLines(selected: string) {
  paths = ["", "", selected]
  for (const e of edges) {
    const a = by.get(e.from)
    const b = by.get(e.to)
    if (a && b) paths[+(a.id === selected || b.id === selected)] += curve(xOf(a) + box.w, yOf(a) + box.h / 2, xOf(b), yOf(b) + box.h / 2)
  }
  return paths
}

export function Graph(p: { t: OpenTeam; find: string }): Child {
  if (!asked && !why) read(p.t.id)
  if (!nodes.length) return <Looking why={why} />
  const w = see.w / see.scale
  const hgt = see.h / see.scale
  const left = see.x - w / 2
  const top = see.y - hgt / 2
  const selected = picked("at")
  const [lines, close] = paths[2] === selected ? paths : drawLines(selected)
  const stands = (n: Node) => {
    const task = p.t.state.tasks.get(n.id)
    return task ? statusOf(p.t, task) : n.status
  }
  const sel = by.get(selected)
  const each = (el: any) => {
    if (Math.abs(el.clientWidth - see.w) > 1 || Math.abs(el.clientHeight - see.h) > 1) {
      see.w = el.clientWidth || 800
      see.h = el.clientHeight || 500
      whole(!moved)
      redraw()
    }
  }
  const on = (f: (id: string) => void) => (e: Event) => {
    const { id } = (e.target as any).closest(".node")?.dataset || {}
    if (id && !dragged) f(id)
  }
  const named = see.scale > 0.5
  let more = 100 // tasks that may be drawn in this frame; the others come in the next ones
  const now: typeof drawn = new Map()
  const node = (n: Node) => {
    const s = stands(n)
    const at = "translate(" + xOf(n) + " " + yOf(n) + ")"
    const as = "node t-" + s + (n === sel ? " on" : "") + (p.find && !has(p.find, n.id + " " + n.title) ? " far" : "")
    const says = at + as + named + n.title
    let was = drawn.get(n.id)
    if (was?.says !== says) {
      if (more-- > 0) was = { says, as: <g key={n.id} data-id={n.id} class={as} transform={at}>
        <title>{line(n.id + " " + words(s) + ": " + n.title, 200)}</title>
        <rect width={box.w} height={box.h} rx="5" />
        {named && [<text x="8" y="14">{line(n.id, 14)} {words(s)}</text>, <text x="8" y="27">{line(n.title, 22)}</text>]}
      </g> }
      else redraw()
    }
    if (was) now.set(n.id, was)
    return was?.as
  }
  const tasks = nodes.map((n) => xOf(n) > left - box.w && xOf(n) < left + w && yOf(n) > top - box.h && yOf(n) < top + hgt && node(n))
  drawn = now
  return <div class="graph" each={each}>
    <svg viewBox={left + " " + top + " " + w + " " + hgt} role="img" aria-label={nodes.length + " tasks"} onpointerdown={pan} gone={() => drawn.clear()} onclick={on(show)} ondblclick={on((id) => go(to(p.t.id, "task", id)))}
      oncontextmenu={(e: Event) => { e.preventDefault(); on(openMenu)(e) }}
      onwheel={(e: WheelEvent) => { e.preventDefault(); at(Math.exp(-e.deltaY / 400), e.clientX, e.clientY) }}>
      <path class="edges" d={lines} />
      <path class="edges near" d={close} />
      {tasks}
    </svg>
    <div class="over">
      <Zoom closer={zoom} whole={all} />
      <span aria-live="polite">{sel && [<TaskLink of={sel.id} />, " ", words(stands(sel)), " ", line(sel.title, 80)]}</span>
      {sel && mayWrite() && <button class="icon" aria-label={"What to do with " + sel.id} aria-haspopup="dialog" onclick={() => openMenu(sel.id)}>⋯</button>}
    </div>
  </div>
}
