// What took the time of a goal: a lane for each member, and the tasks that it held.

import { h, kept, redraw, type Child } from "../dom"
import { curve, Legend, Zoom, zoomKeys } from "../drawing"
import { drag } from "../pointer"
import { path, type Problem } from "../request"
import { filter, go, picked, route, to } from "../route"
import { ask, every, team } from "../store"
import { line, span, Time, words } from "../text"
import { rowsOf, Table } from "../table"
import { key, type Key } from "../keys"
import { colour, Who } from "../member"
import { Empty, Looking, Panel, TaskLink } from "../ui"
import type { Bar, Count, Lane, Span, Stage, Timeline } from "../api"
import type { Route } from "../route"
import type { View } from "../view"

const kinds: Record<string, string> = { model: "model", tool: "tool", wait: "waiting", idle: "idle", unknown: "unknown" }
const row = 40 // of a lane
const gutter = 104
const head = 22
const ms = (t: string) => Date.parse(t)

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
  const part = partOf(r)
  const now = standing()
  const mine = (asking = {})
  ask(path(r.team, "timeline") + "?points=" + Math.max(100, Math.min(600, width >> 1)) + "&" + part, (t) => {
    if (asking !== mine) return
    shown = t
    askedFor = now
    why = undefined
    if (begun && /from|to/.test(part)) return
    begun = ms(t.from)
    ended = ms(t.to)
  }, (e) => { if (asking === mine) why = e }).finally(() => {
    if (asking !== mine) return
    asking = null
    if (part !== partOf(route())) read()
  })
}

function begin() {
  shown = pointed = null
  why = undefined
  begun = ended = seen = 0
  read()
  const end = every(5000, () => {
    if (standing() !== askedFor || !(picked("to") || picked("goal") || team?.goal?.status !== "active")) read()
  })
  return () => {
    asking = null
    end()
  }
}

// zoom shows a part of the time, of a tenth of a second at least.
function zoom(from: number, until: number) {
  if (!shown || until - from < 100) return
  const whole = until - from >= ended - begun
  filter("from", whole ? "" : new Date(Math.round(from)).toISOString())
  filter("to", whole ? "" : new Date(Math.round(until)).toISOString())
  read()
}

let begun = 0 // when the whole goal began, and ended, or now; 0 = that is not known
let ended = 0

function closer(by: number) {
  const a = ms(picked("from")) || begun // what is wanted, which may not be shown yet
  const b = ms(picked("to")) || ended
  const mid = pointed?.at ?? (a + b) / 2
  zoom(Math.max(begun, mid - (mid - a) / by), Math.min(ended, mid + (b - mid) / by))
}

const all = () => zoom(begun, ended)

const saysOf = (s: Span) => (s.kind === "wait" ? "waits for " + (waits[s.for || ""] || words(s.for)) : words(s.tool || s.kind))
const waits: Record<string, string> = { person: "a person", answer: "an answer", plan: "its plan", permission: "leave", model: "its model", merge: "the line", job: "its jobs" }

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

// The lanes that can be seen, and some beside them. What points at them leaves them as they are drawn.
function Lanes(p: { t: Timeline; id: string }) {
  const t = p.t
  const a = ms(t.from)
  const b = Math.max(ms(t.to), a + 1)
  const at = (e: PointerEvent) => {
    const box = document.querySelector(".lanes")!.getBoundingClientRect()
    return { lane: t.lanes[Math.floor((e.clientY - box.top - head) / row)]?.agent_id, at: a + within((e.clientX - box.left - gutter) / inner()) * (b - a) }
  }
  const point = (e: PointerEvent) => { const to = at(e); pointed = to.lane ? to : null; redraw() }
  const leave = (e: PointerEvent) => { if (e.pointerType === "mouse") { pointed = null; redraw() } }
  return <div class="lanes" each={fit} onpointermove={point} onpointerleave={leave}
    onpointerdown={(e: PointerEvent) => {
      point(e)
      const start = at(e)
      drag(e, () => {}, (u) => { const end = at(u); if (Math.abs(end.at - start.at) * inner() > 8 * (b - a)) zoom(Math.min(start.at, end.at), Math.max(start.at, end.at)) })
    }}>
    <Drawn t={t} id={p.id} a={a} b={b} width={width} from={seen} to={seen + 20 + Math.ceil(innerHeight / row)} colours={coloursOf(t)} />
    {pointed && <div class="cursor" style={{ transform: "translateX(" + (gutter + within((pointed.at - a) / (b - a)) * inner()) + "px)" }}></div>}
  </div>
}

const Drawn = kept(({ t, id, a, b, width, from, to: until }) => {
  const x = (at: number) => gutter + within((at - a) / (b - a)) * inner()
  const mids = new Map<string, number>(t.lanes.map((l: Lane, i: number) => [l.agent_id, head + i * row + 26])) // of the bars
  const mid = (k: Bar) => mids.get(k.agent_id)!
  const top = head + from * row
  const critical = new Set(t.critical.map((c: Stage) => c.task))
  const last = new Map<string, Bar>(t.tasks.map((k: Bar) => [k.task, k]))
  const first = new Map<string, Bar>([...t.tasks].reverse().map((k) => [k.task, k]))
  const bars = t.tasks.filter((k: Bar) => mid(k) >= top && mid(k) < head + until * row && ms(k.to) >= a && ms(k.from) <= b)
  let lines = ""
  let marked = ""
  const link = (f: Bar | undefined, g: Bar | undefined) => {
    if (!f || !g || !(mid(f) && mid(g)) || ms(g.from) < a || ms(f.to) > b) return ""
    return curve(x(ms(f.to)), mid(f), x(ms(g.from)), mid(g))
  }
  if (t.edges.length < 2000) for (const e of t.edges) lines += link(last.get(e.from), first.get(e.to))
  t.critical.forEach((c: Stage, i: number) => { if (i) marked += link(last.get(t.critical[i - 1].task), first.get(c.task)) })
  const high = head + t.lanes.length * row + 6
  const n = Math.max(2, Math.floor(inner() / 130))
  const ticks = Array.from({ length: n }, (_, i) => a + ((b - a) * i) / n)
  return <svg width={width} height={high} viewBox={"0 0 " + width + " " + high} role="img" aria-label={"Critical path: " + t.critical.map((c: Stage) => c.task + (c.after === "member" ? " (waited for " + c.agent_id + ")" : "")).join(", ") + ". The tables below hold the rest."}>
    {ticks.map((k) => [<line class="tick" x1={x(k)} x2={x(k)} y1={head - 6} y2={high} />, <text class="tick" x={x(k) + 3} y="12">{clock(k, b - a)}</text>])}
    {t.lanes.slice(from, until).map((l: Lane, i: number) => {
      const y = top + i * row
      const paths: Record<string, string> = {}
      for (const s of l.spans) {
        const x1 = x(ms(s.from))
        const w = Math.max(0.6, x(ms(s.to)) - x1).toFixed(1)
        paths[s.kind] = (paths[s.kind] || "") + "M" + x1.toFixed(1) + " " + (y + 3) + "h" + w + "v12h-" + w + "z"
      }
      return <g key={l.agent_id}>
        <text x="0" y={y + 14} class={"lane-name c-" + colour(l.agent_id)}>{line(l.agent_id, 15)}</text>
        {Object.keys(paths).map((k) => <path key={k} class={"k-" + k} d={paths[k]} />)}
      </g>
    })}
    <path class="edges" d={lines} />
    <path class="edges near" d={marked} />
    {bars.map((k: Bar) => {
      const x1 = x(ms(k.from))
      const w = Math.max(2, x(ms(k.to)) - x1)
      const y = mid(k)
      return <g key={k.task + k.from} class={"bar t-" + k.status + (critical.has(k.task) ? " critical" : "")} ondblclick={() => go(to(id, "task", k.task))}>
        <title>{line(k.task + " " + k.title, 120)}: {span((ms(k.to) - ms(k.from)) / 1000)}, {words(k.status)}</title>
        <rect x={x1} y={y - 8} width={w} height="15" rx="2" />{w > 40 && <text x={x1 + 4} y={y + 3}>{line(k.task, 10)}{w > 120 ? " " + line(k.title, Math.floor((w - 50) / 7)) : ""}</text>}
      </g>
    })}
  </svg>
})

const clock = (t: number, of: number) => new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", ...(of < 600_000 && { second: "2-digit" }), hourCycle: "h23" }).format(t)

function Pointed(p: { t: Timeline }) {
  const l = p.t.lanes.find((x) => x.agent_id === pointed?.lane)
  const s = l?.spans.find((x) => ms(x.from) <= pointed!.at && ms(x.to) > pointed!.at)
  return <p class="dim pointed" aria-live="polite">{l ? [<b>{line(l.agent_id, 60)}</b>, " ", s ? [saysOf(s), " for ", span((ms(s.to) - ms(s.from)) / 1000), ", from ", <Time at={s.from} />] : "was not there", " ", <TaskLink of={taskAt()} />] : "Point at a lane, or go by arrow keys; Enter opens the task."}</p>
}

// Counts is how many tasks there were of each kind over time.
const Counts = kept(({ t, a, b }) => {
  const all: Count[] = t.counts
  const most = Math.max(1, ...all.map((c) => c.done + c.running + c.ready + c.blocked + c.failed))
  if (all.length < 2) return null
  const x = (i: number) => (((ms(all[i].at) - a) / Math.max(b - a, 1)) * 600).toFixed(1)
  const layers = [["done", "completed"], ["running", "in_progress"], ["ready", "pending"], ["blocked", "blocked"], ["failed", "failed"]] as ["done", string][]
  const below = all.map(() => 0)
  const now = all.at(-1)!
  return <Panel name="Tasks over time">
    <svg class="area" viewBox="0 0 600 80" preserveAspectRatio="none" role="img" aria-label={"Now: " + layers.map(([k]) => now[k] + " " + k).join(", ")}>
      {layers.map(([k, name]) => {
        const low = [...below]
        all.forEach((c, i) => { below[i] += c[k] })
        const y = (n: number) => (80 - (n / most) * 78).toFixed(1)
        return <path key={name} class={"t-" + name} d={all.map((_, i) => (i ? "H" : "M") + x(i) + (i ? "V" : " ") + y(below[i])).join("") + "H600" + low.map((n, i) => "V" + y(n) + "H" + x(i)).reverse().join("") + "z"} />
      })}
    </svg>
    <Legend of={layers.map(([k, name]) => ["t-" + name, now[k] + " " + k])} />
  </Panel>
})

const Tables = kept(({ t }) => {
  const critical = new Set(t.critical.map((c: Stage) => c.task))
  return [
    <Panel name="Where the time went"><Table id="lanes" head={["Member", ...Object.values(kinds), "waited for"]} of={t.lanes as Lane[]} row={(l) => {
        const by: Record<string, number> = {}
        for (const s of l.spans) if (s.for) by[s.for] = (by[s.for] || 0) + (ms(s.to) - ms(s.from)) / 1000
        return <tr key={l.agent_id}><th><bdi class={"c-" + colour(l.agent_id)}>{line(l.agent_id, 60)}</bdi></th>{Object.keys(kinds).map((k) => <td class="n">{l.seconds[k] ? span(l.seconds[k]) : ""}</td>)}<td>{Object.keys(by).map((w) => (waits[w] || words(w)) + " " + span(by[w])).join(", ")}</td></tr>
      }} /></Panel>,
    t.tasks.length > 0 && <Panel name="Tasks"><Table id="held" head={["Task", "", "Member", "from", "for"]} of={t.tasks as Bar[]} row={(k) => <tr><th><TaskLink of={k.task} /></th><td><span class="badge">{words(k.status)}</span> {critical.has(k.task) && <span class="badge">critical path</span>} <span dir="auto">{line(k.title, 120)}</span></td>
        <td><Who of={k.agent_id} /></td><td class="n"><Time at={k.from} /></td><td class="n">{span((ms(k.to) - ms(k.from)) / 1000)}</td></tr>} /></Panel>,
  ]
})

export const timeline: View = {
  name: "timeline",
  label: "Timeline",
  go: "t",
  open: begin,
  keys: (): Key[] => [
    key("ArrowRight l", "next span", () => step(0, 1)), key("ArrowLeft h", "span before", () => step(0, -1)),
    key("ArrowDown j", "next member", () => step(1, 0)), key("ArrowUp k", "member before", () => step(-1, 0)),
    ...zoomKeys(closer, all),
    key("Enter", "the task's story", () => { const id = taskAt(); if (id) go(to(route().team, "task", id)) }),
  ],
  draw(r): Child {
    const t = shown
    if (!t) return <Looking why={why}><a href={to(r.team)}>To the team</a></Looking>
    return <div class="page">
      <div class="head tools"><h1>Timeline</h1><span class="dim">goal {t.goal}, {span((ms(t.to) - ms(t.from)) / 1000)}</span>
        {!t.whole && <span class="badge warn" title="Entries of this time are not stored any more">incomplete</span>}<span class="gap"></span>
        <Zoom closer={closer} whole={all} /></div>
      <p class="says">{line(t.sentence, 600)}</p>
      {t.lanes.length ? <section class="panel" aria-label="Lanes"><Lanes t={t} id={r.team} /><Pointed t={t} />
        <Legend of={[...Object.entries(kinds).map(([k, name]): [string, string] => ["k-" + k, name]), ["critical", "critical path"]]} /></section>
        : <Empty>No member has been at it yet.</Empty>}
      <Counts t={t} a={begun} b={ended} /><Tables t={t} rows={rowsOf("lanes") + rowsOf("held")} colours={coloursOf(t)} />
    </div>
  },
}
