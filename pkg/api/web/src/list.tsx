// Long lists: only the rows that can be seen are in the document, whatever their number.

import { h, redraw, type Child } from "./dom"
import { made } from "./made"

class Lane {
  y = 0
  height = 800
  sums = [0] // where row i begins
  tall: number[] = [] // heights that were measured
  known = 0 // rows whose place in sums holds
  stuck = true // it stays at its end
  goal = -1 // the row that stays in sight, whatever above it is read and measured, until a person goes elsewhere
  el: any

  fit(n: number, estimate: number) {
    for (let i = Math.min(this.known, n); i < n; i++) this.sums[i + 1] = this.sums[i] + (this.tall[i] ?? estimate)
    this.known = n
  }

  // at is the row at a height.
  at(y: number, n: number): number {
    let lo = 0
    let hi = n
    while (lo < hi) {
      const mid = (lo + hi) >> 1
      if (this.sums[mid + 1] <= y) lo = mid + 1
      else hi = mid
    }
    return lo
  }
}

const lanes = new Map<string, Lane>()

const laneOf = (id: string) => made(lanes, id, () => new Lane(), 50)

export interface ListProps {
  id: string // of the list: it keeps its place as long as it has this id
  count: number
  row: (i: number) => Child
  keyOf?: (i: number) => string | number
  estimate: number // how tall a row is, in pixels
  follow?: boolean // it stays at its end while it is there
  label: string
  class?: string
}

// List shows rows, each as tall as it is.
export function List(p: ListProps) {
  const l = laneOf(p.id)
  l.fit(p.count, p.estimate)
  const whole = l.sums[p.count]
  const place = () => Math.max(0, l.sums[Math.min(l.goal, p.count)] - l.height / 3)
  const y = Math.min(p.follow && l.stuck ? Infinity : l.goal < 0 ? l.y : place(), Math.max(0, whole - l.height))
  const from = Math.max(0, l.at(y, p.count) - 4)
  const to = Math.min(p.count, l.at(y + l.height, p.count) + 5)
  const rows: Child[] = []
  for (let i = from; i < to; i++)
    rows.push(<div class="row" role="listitem" key={p.keyOf?.(i) ?? i} data-i={i} aria-posinset={i + 1} aria-setsize={p.count}>{p.row(i)}</div>)
  const each = (el: any) => {
    l.el = el
    let changed = false
    if (el.clientHeight && el.clientHeight !== l.height) {
      l.height = el.clientHeight
      changed = true
    }
    let shift = 0
    for (const row of el.firstChild.firstChild.children) {
      const i = +row.dataset.i
      const now = row.offsetHeight
      if (now && now !== (l.tall[i] ?? p.estimate)) {
        if (l.sums[i] < el.scrollTop) shift += now - (l.tall[i] ?? p.estimate)
        l.tall[i] = now
        l.known = Math.min(l.known, i)
        changed = true
      }
    }
    if (changed) {
      l.fit(p.count, p.estimate)
      el.firstChild.style.setProperty("height", l.sums[p.count] + "px")
    }
    if (p.follow && l.stuck) el.scrollTop = el.scrollHeight
    else if (l.goal >= 0) el.scrollTop = place()
    else if (shift) el.scrollTop += shift
    l.y = el.scrollTop
    if (changed) redraw(p.follow && l.stuck ? 100 : 0) // at the end new rows come, and are measured, on and on
  }
  const onscroll = () => {
    const { el } = l
    if (Math.abs(el.scrollTop - l.y) < 1) return
    l.y = el.scrollTop
    l.goal = -1
    l.stuck = el.scrollTop + el.clientHeight >= el.scrollHeight - 30
    redraw()
  }
  return <div class={"list " + (p.class || "")} key={p.id} tabindex="0" role="region" aria-label={p.label} onscroll={onscroll} onpointerdown={() => { l.goal = -1 }} each={each}>
    <div class="space" role="list" style={{ height: whole + "px" }}>
      <div class="rows" role="presentation" style={{ transform: "translateY(" + l.sums[from] + "px)" }}>{rows}</div>
    </div>
  </div>
}

// toEnd has a list stay at its end again; toRow shows a row.
export function toEnd(id: string) {
  laneOf(id).stuck = true
  redraw()
}

export function toRow(id: string, i: number) {
  const l = laneOf(id)
  l.stuck = false
  l.goal = i
  redraw()
}

export const atEnd = (id: string) => lanes.get(id)?.stuck ?? true
