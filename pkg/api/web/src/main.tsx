// The page: what is around the views, and who draws them.

import "./order"
import { drawing, drawn, h, redraw, render, type Child } from "./dom"
import { key, press, spells, type Key } from "./keys"
import { go, place, route, to, type Route } from "./route"
import { askSession, conn, dismiss, notes, openTeam, session, team, teams } from "./store"
import { say } from "./request"
import { line, Name } from "./text"
import { Help, Question, toggleHelp } from "./dialog"
import { choose, theme } from "./theme"
import { Empty, focus, Looking } from "./ui"
import { views } from "./views"
import { wants } from "./views/teams"
import type { View } from "./view"

let shown = ""
let ends: (() => void) | void

function viewOf(r: Route): View | undefined {
  return views.find((v) => !!v.top === !r.team && v.name === (r.team ? r.view : ""))
}

function arrive() {
  const r = route()
  const here = place()
  if (here !== shown) {
    if (shown) drawn(() => document.getElementById("main")!.focus()) // its name is read out; no later: who is quick types already
    shown = here
    if (ends) ends()
    openTeam(r.team)
    ends = viewOf(r)?.open?.(r)
    scrollTo(0, 0)
  }
  redraw()
}

// waits is how much waits for a person: of the team that is shown, or of all.
function waits(): number {
  if (team) return team.waiting().length
  return (teams.list || []).reduce((n, t) => n + wants(t), 0)
}

const titleOf = (r: Route, v?: View) => line(!v ? "not found" : !r.team ? "Teams" : !v.name ? r.team : (r.id || v.label) + " · " + r.team, 120)

let titled = ""

function dress(r: Route, v: View | undefined) {
  const n = waits()
  const title = (n ? "(" + n + ") " : "") + titleOf(r, v) + " · agentteam"
  if (title !== titled) {
    document.title = titled = title
    document.querySelector("link[rel=icon]")!.setAttribute("href", "/assets/icon.svg" + (n ? "?n=" + n : ""))
  }
}

function Bar() {
  let says: Child = null
  if (conn.state === "live") says = session.newer && ["The process has another version now: ", <button onclick={() => location.reload()}>Reload the page</button>]
  else if (conn.state !== "missing" && (conn.state !== "connecting" || conn.why)) {
    const left = Math.ceil((conn.retryAt - Date.now()) / 1000)
    if (left > 0) setTimeout(() => redraw(100), 1000)
    says = [<b>{conn.state === "expired" ? "Logged out." : "Not connected."}</b>, " ", conn.why && say(conn.why), " ", <span aria-hidden="true">{left > 0 && "Next try in " + left + " s."}</span>]
  }
  return <div class={"bar" + (says ? " on" : "")} role="status" aria-live="polite">{says}</div>
}

function Top(p: { r: Route; n: number }) {
  const r = p.r
  const worn = "Theme: " + (theme() || "as the system")
  return <header class="top">
    <a class="skip" href="#main" onclick={(e: Event) => { e.preventDefault(); focus("main") }}>To the content</a>
    <a class="brand" href="#/" title="All teams">agentteam</a>
    {r.team && <nav aria-label="Views of the team" class="views">
      {views.filter((v) => !v.top && v.label).map((v) => <a href={to(r.team, v.name)} aria-current={v.name === r.view ? "page" : undefined}>
        {v.name === "" ? <Name of={r.team} /> : v.label}{v.name === "" && p.n > 0 && <span class="count" title="waits for you">{p.n}</span>}
      </a>)}
    </nav>}
    <span class="gap"></span>
    {session.readOnly && <span class="dim">read-only</span>}
    <span class={"dot " + conn.state} role="img" aria-label={"connection: " + conn.state} title={"connection: " + conn.state}></span>
    <button class="icon" onclick={() => choose({ "": "dark", dark: "light" }[theme()])} title={worn} aria-label={worn + ". Change"}>
      {{ "": "◐", dark: "●", light: "○" }[theme()]}
    </button>
    <button class="icon" onclick={toggleHelp} title="Keys (?)" aria-label="Keys">?</button>
  </header>
}

const Shown = (p: { v: View; r: Route }) => p.v.draw(p.r)

function draw() {
  const r = route()
  const v = viewOf(r)
  dress(r, v)
  render(document.getElementById("page"), [
    <Top r={r} n={r.team ? waits() : 0} key="top" />,
    <Bar key="bar" />,
    <main id="main" key="main" tabindex="-1" aria-label={titleOf(r, v)}>
      {r.team && conn.state === "missing" ? <Empty>There is no team <b><Name of={r.team} /></b> here. <a href="#/">All teams</a></Empty> : v && !v.top && !team ? <Looking /> : v ? <Shown v={v} r={r} /> : <Empty>There is no view of this name. <a href={to(r.team)}>To the team</a></Empty>}
    </main>,
    <div class="notes" key="notes" role="status" aria-live="polite">
      {notes.map((n) => <div class={"note" + (n.bad ? " bad" : "")} key={n.id}>{n.text}<button class="icon" aria-label="Dismiss" onclick={() => dismiss(n)}>×</button></div>)}
    </div>,
    <Question />,
    <Help groups={() => [["Everywhere", everywhere(r)], ["Here", v?.keys?.(r) ?? []]]} />,
  ])
}

function everywhere(r: Route): Key[] {
  return [
    key("?", "these keys", toggleHelp),
    key("gh", "all teams", () => go("#/")),
    ...views.filter((v) => r.team && v.go && !v.top).map((v) => key("g" + v.go, v.name === "" ? "the team" : (v.label || v.name).toLowerCase(), () => go(to(r.team, v.name)))),
  ]
}

addEventListener("keydown", (e) => press(e, () => {
  const r = route()
  return [...(viewOf(r)?.keys?.(r) ?? []), ...everywhere(r)]
}))
addEventListener("keypress", spells)

document.getElementById("page")!.replaceChildren()
drawing(draw)
addEventListener("hashchange", arrive)
addEventListener("resize", () => redraw())
setInterval(() => { if (!document.hidden) redraw(100) }, 10_000) // for what is since when
askSession()
arrive()
