// What took the time of a goal: a lane for each member, and the tasks that it held.

import { h, kept, redraw, type Child } from "../dom"
import { Bar, curve, Legend, Zoom, zoomKeys } from "../drawing"
import { grip } from "../pointer"
import { path, type Problem } from "../request"
import { filter, go, picked, route, to } from "../route"
import { ask, every, team } from "../store"
import { line, span, Time, words } from "../text"
import { rowsOf, Table } from "../table"
import { key, type Key } from "../keys"
import { colour, Who } from "../member"
import { Empty, Looking, Panel, TaskLink } from "../ui"
import type { Bar as Hold, Count, Lane, Span, Stage, Timeline } from "../api"
import type { Route } from "../route"
import type { View } from "../view"

const kinds = ["model", "tool", "wait", "idle", "unknown"]
const row = 40 // of a lane
const gutter = 104
const head = 22
const mostLines = 2000 // between tasks
const ms = (t: string | number) => +new Date(t)

const took = (s: { from: string; to: string }) => span((ms(s.to) - ms(s.from)) / 1000)

let shown: Timeline | null = null
let why: Problem | undefined
let width = 900
let seen = 0 // the first lane that is drawn
let pointed: { lane: string; at: number } | null = null
let asking: object | null = null // the request that is under way, of this visit
let askedFor = "" // what shown is of, and how its goal stood then

const partOf = (r: Route) => "" + new URLSearchParams([...r.query].filter(([k]) => /^(goal|from|to)$/.test(k)))
const standing = () => partOf(route()) + " " + team?.goal?.goal_number + team?.goal?.status

// read asks for the part that is wanted, once at a time: if another is wanted by then, for that.
function read() {
  if (asking) return
  const r = route()
  const wanted = partOf(r)
  const now = standing()
  const mine = (asking = {})
  ask(path(r.team, "timeline") + "?" + wanted, (t) => {
    if (asking !== mine) return
    shown = t
    askedFor = now
    why = undefined
  }, (e) => { if (asking === mine) why = e }).finally(() => {
    if (asking !== mine) return
    asking = null
    if (wanted !== partOf(route())) read()
  })
}

function begin() {
  shown = pointed = null
  why = undefined
  seen = 0
  held = undefined
  read()
  const end = every(5000, () => {
    if (standing() !== askedFor || !(picked("to") || picked("goal") || team?.goal?.status !== "active")) read()
  })
  return () => {
    asking = shown = null
    end()
  }
}

let held: [number, number] | undefined // what a gesture shows; it gets into the address a little later
let late: any = 0

// part is from when to when it is shown, which may not have been read yet.
const part = (): [number, number] => held || [ms(picked("from") || shown!.begun), ms(picked("to") || shown!.ended)]

function look(from: number, to: number) {
  const set = (name: string, at: number, end: string) => filter(name, Math.round(at) === ms(end) ? "" : new Date(at).toISOString())
  held = undefined
  set("from", from, shown!.begun)
  set("to", to, shown!.ended)
  read()
}

// zoom shows less or more of the time of the goal around a time, a tenth of a second at least, or goes along by a
// part of what is shown. With soon more of this may follow.
function zoom(by: number, along = 0, at = pointed?.at, soon?: boolean) {
  if (!shown) return
  const [a, b] = part()
  const begun = ms(shown.begun)
  const ended = ms(shown.ended)
  const long = Math.min((b - a) / by, ended - begun)
  if (long < 100) return
  at ??= (a + b) / 2
  const from = Math.max(begun, Math.min(ended - long, at - (at - a) / by + along * (b - a)))
  held = [from, from + long]
  if (!soon) look(...held)
  else late ||= setTimeout(() => {
    late = 0
    if (shown) look(...part())
  }, 200)
  redraw()
}

const all = () => zoom(1e-9)

const saysOf = (s: Span) => (s.kind === "wait" ? "waits for " + words(s.for) : words(s.tool || s.kind))

// step moves along the spans of a lane, or to another lane.
function step(lane: number, by: number) {
  const lanes = shown?.lanes || []
  const l = lanes[lanes.findIndex((l) => l.agent_id === pointed?.lane) + lane] || lanes[0]
  const at = pointed?.at ?? 0
  const s = l?.spans[l.spans.findIndex((s) => ms(s.to) > at) + by] || l?.spans[0]
  if (s) pointed = { lane: l.agent_id, at: (ms(s.from) + ms(s.to)) / 2 }
  redraw()
}

// taskAt is the task whose bar is pointed at.
const taskAt = () => shown?.tasks.find((k) => k.agent_id === pointed?.lane && ms(k.from) <= pointed.at && ms(k.to) >= pointed.at)?.task || ""

// fit has the lanes drawn again once they have another width, or others of them are seen.
function fit(el: any) {
  if (!el) return
  const first = Math.max(0, Math.floor((-el.getBoundingClientRect().top / row - 5) / 10) * 10)
  if (Math.abs(el.clientWidth - width) > 1 || first !== seen) {
    width = el.clientWidth
    seen = first
    redraw()
  }
}
addEventListener("scroll", () => fit(document.querySelector(".lanes")))

const inner = () => Math.max(100, width - gutter - 8)
const within = (n: number) => Math.max(0, Math.min(1, n))

// coloursOf is what the drawings of a timeline depend on beside it.
const coloursOf = (t: Timeline) => t.lanes.map((l) => colour(l.agent_id)).join()

// The lanes that can be seen, and some beside them. What points at them leaves them as they are drawn. A drag
// chooses a part of the whole, and moves what is only a part.
function Lanes(p: { t: Timeline; id: string }) {
  const t = p.t
  const [a, b] = part()
  const at = (x: number, y: number) => {
    const box = document.querySelector(".lanes")!.getBoundingClientRect()
    return { lane: t.lanes[Math.floor((y - box.top - head) / row)]?.agent_id, at: a + within((x - box.left - gutter) / inner()) * (b - a) }
  }
  const point = (e: PointerEvent) => { const to = at(e.clientX, e.clientY); pointed = to.lane ? to : null; redraw() }
  const whole = !picked("from") && !picked("to")
  return <div class="lanes" each={fit} onpointermove={point} onpointerleave={(e: PointerEvent) => { if (e.pointerType === "mouse") { pointed = null; redraw() } }}
    onpointerdown={(e: PointerEvent) => {
      point(e)
      let pinched = false
      grip(e, (dx) => { if (!whole) zoom(1, -dx / inner(), 0, true) }, (by, x, y) => { pinched = true; zoom(by, 0, at(x, y).at, true) }, (u) => {
        const [from, to] = [at(e.clientX, 0).at, at(u.clientX, 0).at].sort((a, b) => a - b)
        if (whole && !pinched && (to - from) * inner() > 8 * (b - a)) look(from, to)
      })
    }}
    onwheel={(e: WheelEvent) => { // what goes up and down scrolls the page
      if (e.ctrlKey) zoom(Math.exp(-e.deltaY / 400), 0, at(e.clientX, 0).at, true)
      else if (e.deltaX) zoom(1, e.deltaX / inner(), 0, true)
      else return
      e.preventDefault()
    }}>
    <Drawn t={t} id={p.id} a={a} b={b} width={width} from={seen} to={seen + 20 + (innerHeight / row)} colours={coloursOf(t)} />
    {pointed && <div class="cursor" style={{ transform: "translateX(" + (gutter + within((pointed.at - a) / (b - a)) * inner()) + "px)" }}></div>}
  </div>
}

// block is a rectangle, as a part of a path.
const block = (x: number, y: number, w: number, h: number) => "M" + x + " " + y + "h" + w + "v" + h + "h-" + w + "z"

const Drawn = kept(({ t, id, a, b, width, from, to: until }) => {
  const x = (at: string | number) => Math.round((gutter + within((ms(at) - a) / (b - a)) * inner()) * 2) / 2
  const mids = new Map<string, number>(t.lanes.map((l: Lane, i: number) => [l.agent_id, head + i * row + 26])) // of the bars
  const mid = (k: Hold) => mids.get(k.agent_id)!
  const top = head + from * row
  const critical = new Set(t.critical.map((c: Stage) => c.task))
  const last = new Map<string, Hold>(t.tasks.map((k: Hold) => [k.task, k]))
  const first = new Map<string, Hold>([...t.tasks].reverse().map((k) => [k.task, k]))
  const sees = (k: Hold) => mid(k) >= top && mid(k) < head + until * row
  const bars = t.tasks.filter((k: Hold) => sees(k) && ms(k.to) >= a && ms(k.from) <= b)
  let lines = ""
  let marked = ""
  const link = (f: Hold | undefined, g: Hold | undefined) => {
    if (!f || !g || !mid(f) || !mid(g) || !(sees(f) || sees(g)) || ms(g.from) < a || ms(f.to) > b) return ""
    return curve(x(f.to), mid(f), x(g.from), mid(g))
  }
  let many = 0 // lines of tasks in sight
  for (const e of t.edges) {
    const l = link(last.get(e.from), first.get(e.to))
    if (l && ++many <= mostLines) lines += l
  }
  t.critical.forEach((c: Stage, i: number) => { marked += link(last.get(t.critical[i - 1]?.task), first.get(c.task)) })
  const high = head + t.lanes.length * row
  const n = Math.max(2, Math.floor(inner() / 130))
  const each = (b - a) / n
  const ticks = Array.from({ length: n }, (_, i) => a + each * i)
  const clock = clockOf(each)
  return [<svg width={width} height={high} viewBox={"0 0 " + width + " " + high} role="img" aria-label={line(t.sentence, 600) + " The tables below hold the rest."}>
    {ticks.map((k) => [<line class="tick" x1={x(k)} x2={x(k)} y1={head - 6} y2={high} />, <text class="tick" x={x(k) + 3} y="12">{clock.format(k)}</text>])}
    {t.lanes.slice(from, until).map((l: Lane, i: number) => {
      const y = top + i * row
      const paths: Record<string, string> = {}
      for (const s of l.spans) if (ms(s.to) > a && ms(s.from) < b) {
        const w = Math.max(0.5, x(s.to) - x(s.from))
        paths[s.kind] = (paths[s.kind] || "") + block(x(s.from), y + 3, w, 12)
      }
      return <g key={l.agent_id}>
        <text x="0" y={y + 14} class={"lane-name c-" + colour(l.agent_id)}>{line(l.agent_id, 15)}</text>
        {Object.keys(paths).map((k) => <path key={k} class={"k-" + k} d={paths[k]} />)}
      </g>
    })}
    <path class="edges" d={lines} />
    <path class="edges near" d={marked} />
    {bars.map((k: Hold) => {
      const x1 = x(k.from)
      const w = Math.max(2, x(k.to) - x1)
      const y = mid(k)
      return <g key={k.task + k.from} class={"bar t-" + k.status + (critical.has(k.task) ? " critical" : "")} ondblclick={() => go(to(id, "task", k.task))}>
        <title>{line(k.task + " " + k.title, 120)}: {took(k)}, {words(k.status)}</title>
        <rect x={x1} y={y - 8} width={w} height="15" rx="2" />{w > 40 && <text x={x1 + 4} y={y + 3}>{line(k.task, 10)}{w > 120 ? " " + line(k.title, Math.floor((w - 50) / 7)) : ""}</text>}
      </g>
    })}
  </svg>, many > mostLines && <p class="dim">{many - mostLines} lines between tasks in sight are not drawn: zoom in.</p>]
})

// clockOf shows times that are so many milliseconds apart.
export const clockOf = (apart: number) => new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", ...(apart < 60_000 && { second: "2-digit" }), ...(apart < 1000 && { fractionalSecondDigits: 3 }), hourCycle: "h23" })

function Pointed(p: { t: Timeline }) {
  const l = p.t.lanes.find((x) => x.agent_id === pointed?.lane)
  const s = l?.spans.find((x) => ms(x.from) <= pointed!.at && ms(x.to) > pointed!.at)
  return <p class="dim pointed" aria-live="polite">{l ? [<b>{line(l.agent_id, 60)}</b>, " ", s ? [saysOf(s), " for ", took(s), ", from ", <Time at={s.from} />] : "was not there", " ", <TaskLink of={taskAt()} />] : "Point at a lane, or go by arrow keys."}</p>
}

// Counts is how many tasks there were of each kind over time.
const Counts = kept(({ t }) => {
  const a = ms(t.begun)
  const all: Count[] = t.counts
  const most = Math.max(1, ...all.map((c) => c.done + c.running + c.ready + c.blocked + c.failed + c.cancelled))
  if (all.length < 2) return null
  const layers = [["done", "completed"], ["running", "in_progress"], ["ready", "pending"], ["blocked", "blocked"], ["failed", "failed"], ["cancelled", "cancelled"]] as ["done", string][]
  const x = (i: number) => Math.round(((ms(all[i]?.at ?? t.ended) - a) / Math.max(ms(t.ended) - a, 1)) * 600)
  const low = all.map(() => 80)
  const now = all.at(-1)!
  return <Panel name="Tasks over time">
    <svg class="area" viewBox="0 0 600 80" preserveAspectRatio="none" role="img" aria-label={"Now: " + layers.map(([k]) => now[k] + " " + k).join(", ")}>
      {layers.map(([k, name]) => <path class={"t-" + name} d={all.map((c, i) => block(x(i), (low[i] -= (c[k] / most) * 78), x(i + 1) - x(i), (c[k] / most) * 78)).join("")} />)}
    </svg>
    <Legend of={layers.map(([k, name]) => ["t-" + name, now[k] + " " + k])} />
  </Panel>
})

const Tables = kept(({ t }) => {
  const critical = new Set(t.critical.map((c: Stage) => c.task))
  const most = Math.max(1, ...t.lanes.map((l: Lane) => Object.values(l.seconds).reduce((a, b) => a + b, 0)))
  return [
    <Panel name="Where the time went"><Table id="lanes" head={["Member", "", ...kinds, "waited for"]} of={t.lanes as Lane[]} row={(l) => {
        const by: Record<string, number> = {}
        for (const s of l.spans) if (s.for) by[s.for] = (by[s.for] || 0) + ms(s.to) - ms(s.from)
        return <tr key={l.agent_id}><th><bdi class={"c-" + colour(l.agent_id)}>{line(l.agent_id, 60)}</bdi></th><td><Bar of={kinds.map((k) => ["k-" + k, l.seconds[k] || 0])} most={most} /></td>{kinds.map((k) => <td class="n">{l.seconds[k] ? span(l.seconds[k]) : ""}</td>)}<td>{Object.keys(by).map((w) => words(w) + " " + span(by[w] / 1000)).join(", ")}</td></tr>
      }} /></Panel>,
    t.tasks.length > 0 && <Panel name="Tasks"><Table id="held" head={["Task", "", "Member", "from", "for"]} of={t.tasks as Hold[]} row={(k) => <tr><th><TaskLink of={k.task} /></th><td><span class="badge">{words(k.status)}</span> {critical.has(k.task) && <span class="badge">critical path</span>} <span dir="auto">{line(k.title, 120)}</span></td>
        <td><Who of={k.agent_id} /></td><td class="n"><Time at={k.from} /></td><td class="n">{took(k)}</td></tr>} /></Panel>,
  ]
})

export const timeline: View = {
  name: "timeline",
  label: "Timeline",
  go: "t",
  open: begin,
  keys: (): Key[] => [
    key("l ArrowRight", "next span", () => step(0, 1)), key("h ArrowLeft", "previous span", () => step(0, -1)),
    key("j ArrowDown", "next member", () => step(1, 0)), key("k ArrowUp", "previous member", () => step(-1, 0)),
    ...zoomKeys(zoom, all), key("H", "earlier", () => zoom(1, -0.3)), key("L", "later", () => zoom(1, 0.3)),
    key("Enter", "its whole story", () => { const id = taskAt(); if (id) go(to(route().team, "task", id)) }),
  ],
  draw(r): Child {
    const t = shown
    if (!t) return <Looking why={why}><a href={to(r.team)}>To the team</a></Looking>
    return <div class="page">
      <div class="head tools"><h1>Timeline</h1><span class="dim">goal {t.goal}, {took(t)}</span>
        {!t.whole && <span class="badge warn" title="Entries of this time are not stored any more">incomplete</span>}<span class="gap"></span>
        <Zoom closer={zoom} whole={all} /></div>
      <p class="says">{line(t.sentence, 600)}</p>
      {t.lanes.length ? <section class="panel" aria-label="Lanes"><Lanes t={t} id={r.team} /><Pointed t={t} />
        <Legend of={[...kinds.map((k): [string, string] => ["k-" + k, k]), ["critical", "critical path"]]} /></section>
        : <Empty>No member yet.</Empty>}
      <Counts t={t} /><Tables t={t} rows={rowsOf("lanes") + rowsOf("held")} colours={coloursOf(t)} />
    </div>
  },
}
