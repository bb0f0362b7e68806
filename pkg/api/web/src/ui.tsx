// Parts that several views have.

import { h, redraw, type Child } from "./dom"
import { path } from "./request"
import { act, isBusy, once, session, team, type, typed } from "./store"
import { asked, isPlan, type Member } from "./state"
import type { Key } from "./keys"
import { filter, place, route, to } from "./route"
import { line, words } from "./text"
import type { Agent } from "./types"

export type { Key }

// focus has a person type in a field that is about to be drawn; look shows what a selector finds then.
export const focus = (id: string) => soon(() => document.getElementById(id)?.focus())
export const look = (at: string) => soon(() => document.querySelector(at)?.scrollIntoView({ block: "nearest", inline: "nearest" }))
const soon = (f: () => void) => requestAnimationFrame(() => requestAnimationFrame(f))

// mayWrite reports whether what changes something is to be offered.
export const mayWrite = () => session.mayWrite

interface ButtonProps { id?: string; do: () => unknown; children?: Child; class?: string; title?: string; disabled?: boolean; hint?: string }

// Button does something once it is pressed. hint is the key that does the same.
export const Button = (p: ButtonProps) => (
  <button class={p.class} title={p.title} disabled={p.disabled || (p.id ? isBusy(p.id) : false)} aria-keyshortcuts={p.hint} onclick={() => p.do()}>
    {p.children}{p.hint && <kbd aria-hidden="true">{p.hint}</kbd>}
  </button>
)

// Box is where a text is typed; it is kept for its place and id until send has succeeded. Ctrl+Enter sends it.
export function Box(p: { id: string; label: string; button: string; send: (text: string) => Promise<unknown>; done?: string; rows?: number; extra?: Child; optional?: boolean; placeholder?: string }) {
  const id = place() + " " + p.id
  const send = async () => {
    const text = typed(id).trim()
    if (isBusy(id)) return
    if (!text && !p.optional) return document.getElementById(p.id)?.focus()
    type(id, "") // what is typed from now on is another text
    if (!(await act(id, () => p.send(text), p.done))) type(id, text + (typed(id) && "\n" + typed(id)))
  }
  return <form class="box" key={id} onsubmit={(e: Event) => { e.preventDefault(); send() }}>
    <textarea id={p.id} aria-label={p.label} placeholder={p.placeholder ?? p.label} rows={p.rows ?? 2} value={typed(id)}
      oninput={(e: any) => type(id, e.target.value)}
      onkeydown={(e: KeyboardEvent) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) send()
        if (e.key === "Escape") (e.target as HTMLElement).blur()
      }}></textarea>
    <div class="acts">{p.extra}<button class="main" type="submit" disabled={isBusy(id)} title="Ctrl+Enter">{p.button}</button></div>
  </form>
}

// Choice is a list to choose from: values, each with its text. With pick it shows value, whatever was
// chosen, so the same can be picked again.
export const Choice = (p: { id?: string; label: string; value: string; of: [string, string][]; pick?: (value: string) => void }) => (
  <select id={p.id} aria-label={p.label} onchange={p.pick && ((e: any) => { const now = e.target.value; e.target.value = p.value; p.pick!(now) })}>
    {p.of.map(([v, text]) => <option value={v} selected={v === p.value} key={v}>{text}</option>)}
  </select>
)

// memberNames are the names of all members, to choose from.
export const memberNames = (): [string, string][] => [...team!.state.members.keys()].filter((m) => m !== "user").sort().map((m) => [m, line(m, 40)])

// moves are the keys that go through a list. pick chooses an id, whose place is then scrolled to.
export function moves(what: string, ids: string[], at: string, pick: (id: string) => void, mark: string): Key[] {
  const move = (by: number) => () => {
    pick(ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(at) + by))] || "")
    redraw()
    look(mark)
  }
  return [{ keys: "j ArrowDown", does: "next " + what, run: move(1) }, { keys: "k ArrowUp", does: "previous " + what, run: move(-1) }]
}

// write sends mail of the person. id is that of the box.
export const write = (id: string, to: string, content: string, more: object = {}) => once(id, "/teams" + path(team!.id, "messages"), { to, content, ...more })

// The one question that is open, before what cannot be undone.
let question: { text: string; button: string; bad: boolean; answer: (yes: boolean) => void } | null = null

// sure asks before something that cannot be undone.
export function sure(text: string, button: string, bad = true): Promise<boolean> {
  question?.answer(false)
  return new Promise((answer) => {
    question = { text, button, bad, answer }
    redraw()
  })
}

const shut = (yes: boolean) => {
  question?.answer(yes)
  question = null
  redraw()
}

// Sheet is a window above the page, with a name and a way out.
export function Sheet(p: { name: string; shut: () => void; wide?: boolean; children?: Child }) {
  return <dialog key={p.name} class={p.wide ? "wide" : undefined} each={modal} gone={close} aria-label={p.name} oncancel={(e: Event) => { e.preventDefault(); p.shut() }} onclick={(e: Event) => { if (e.target === e.currentTarget) p.shut() }}>
    <div class="acts"><b dir="auto">{p.name}</b><button type="button" onclick={p.shut}>Close<kbd aria-hidden="true">Esc</kbd></button></div>
    {p.children}
  </dialog>
}

const modal = (el: any) => { if (!el.open) el.showModal() }
const close = (el: any) => el.close() // which puts the focus back to where it was

export function Question() {
  const q = question
  return q && <dialog key="question" each={modal} gone={close} aria-label={q.text} oncancel={() => shut(false)}>
    <p>{q.text}</p>
    <div class="acts"><button onclick={() => shut(false)}>Leave it</button><button class={q.bad ? "bad" : "main"} onclick={() => shut(true)}>{q.button}</button></div>
  </dialog>
}

let helped = false
export function toggleHelp() {
  helped = !helped
  redraw()
}

// Help lists the keys.
export function Help(p: { groups: () => [string, Key[]][] }) {
  return helped && <Sheet name="Keys" shut={toggleHelp}>
    {p.groups().map(([name, keys]) => keys.length > 0 && <section><h3>{name}</h3><dl class="keys">
      {keys.map((k) => [<dt>{k.keys.split(" ").map((x) => <kbd>{named[x] || x}</kbd>)}</dt>, <dd>{k.does}</dd>])}
    </dl></section>)}
  </Sheet>
}

const named: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" }

// Find is the field in which a person looks for what; the words stand in the address as q. has
// reports whether a text has all of them.
export const Find = (p: { what: string; enter?: (back: boolean) => void }) => <input id="search" type="search" placeholder="Find  /" aria-label={"Find " + p.what} value={route().query.get("q") || ""} oninput={(e: any) => filter("q", e.target.value)}
  onkeydown={(e: any) => {
    if (e.key === "Enter" && p.enter) p.enter(e.shiftKey)
    else if (e.key === "Escape" || e.key === "Enter") e.target.blur()
  }} />
export const findKey = (what: string): Key => ({ keys: "/", does: "find " + what, run: () => focus("search") })
export const has = (words: string, text: string) => words.toLowerCase().split(/\s+/).every((w) => text.toLowerCase().includes(w))

// Chip is one of several that may be on.
export const Chip = (p: { on: boolean; do: () => void; children?: Child }) => <button class="chip" aria-pressed={String(p.on)} onclick={p.do}>{p.children}</button>

// Zoom are the buttons of a drawing; closer gets by how much.
export const Zoom = (p: { closer: (by: number) => void; whole: () => void }) => [<button aria-label="Closer" onclick={() => p.closer(1.5)}>+</button>, <button aria-label="Farther" onclick={() => p.closer(1 / 1.5)}>−</button>, <button onclick={p.whole}>All</button>]

// Panel is a part of a view that has a name.
export const Panel = (p: { name: string; children?: Child }) => <section class="panel" aria-label={p.name}><h2>{p.name}</h2>{p.children}</section>

// Empty says what to do where there is nothing yet.
export const Empty = (p: { children?: Child }) => <p class="empty">{p.children}</p>

// TaskLink leads to a task.
export const TaskLink = (p: { of: string }) => (team && p.of ? <a class="task" href={to(team.id, "task", p.of)}><bdi>{line(p.of, 40)}</bdi></a> : null)

// Who is a member's name, which leads to what it does.
export function Who(p: { of: string }) {
  if (!team || !p.of || p.of === "*" || p.of === "watchdog") return <b>{p.of === "*" ? "everyone" : line(p.of, 60)}</b>
  if (p.of === "user") return <b>you</b>
  return <a class={"who c-" + colour(p.of)} href={to(team.id, "agent", p.of)}><bdi>{line(p.of, 60)}</bdi></a>
}

const colours = ["cyan", "yellow", "magenta", "green", "blue"]

// colour is that of a member, by its record or else by its name.
export function colour(id: string): string {
  const known = team?.state.member(id).colour
  if (known && colours.includes(known)) return known
  let n = 0
  for (const c of id) n = (n * 31 + c.codePointAt(0)!) >>> 0
  return colours[n % colours.length]
}

// Stand is how a member stands, in words for people.
export interface Stand {
  state: string // one of those of styles: wants, trouble, waits, works, idle, gone, person
  says: string
  why: string
  since: number
  rank: number // who needs attention comes first
}

// standOf says what a member is at, or why it is not.
export function standOf(m: Member, a?: Agent): Stand {
  const since = m.since || Date.parse(a?.since || "") || 0
  const s = (state: string, says: string, why: unknown, rank: number): Stand => ({ state, says, why: line(why, 400), since, rank })
  if (m.joined === 0) return m.state === "" || m.here ? s("gone", "not in the team", "", 9) : s("gone", "left", a?.last_error, 9)
  if (m.lost) return s("trouble", "lost", a?.reason || a?.last_error || "its process is gone", 1)
  if (m.damaged) return s("trouble", "its journal cannot be read", m.trouble, 1)
  if (m.parked) return s("trouble", "waits for its model", m.trouble || a?.trouble, 1)
  if (a?.state === "stalled") return s("trouble", "stalled", a.reason || "in a run, without progress", 2)
  if (a?.storage) return s("trouble", "cannot store", a.storage, 1)
  const plan = team && [...team.state.plans.values()].find((p) => p.agent_id === m.id)
  if (plan) return s(asked(plan) === "user" ? "wants" : "waits", isPlan(plan) ? "waits for its plan" : "waits for leave", asked(plan) === "user" ? "you decide" : "the leader decides", asked(plan) === "user" ? 0 : 4)
  const q = team && [...team.state.questions.values()].find((q) => q.from === m.id)
  if (q || a?.waits_for === "person") return s("wants", "waits for your answer", a?.about || q?.content, 0)
  if (m.asks) return team?.state.isPerson(m.asks)
    ? s("wants", m.asks === "user" ? "waits for you" : "waits for " + line(m.asks, 40), "", 0)
    : s("waits", "waits for " + line(m.asks, 40), "", 4)
  if (a?.waits_for && a.waits_for !== "model") return s("waits", "waits for " + ({ answer: line(a.awaits, 40) || "an answer", merge: "its work to be merged", job: "its job", plan: "its plan", permission: "leave" }[a.waits_for] ?? words(a.waits_for)), a.about, 4)
  if (m.trouble) return s("trouble", "its model gives no turn", m.trouble + (m.refused > 1 ? " (" + m.refused + " times)" : ""), 2)
  if (m.person) return s("person", m.task ? "has a task" : "a person's seat", "", 7)
  if (m.call) return s("works", m.call.tool === "bash" ? "runs a command" : words(m.call.tool), argument(m.call.args), 5)
  if (!m.idle) return s("works", team?.state.draft(m.id) ? "writes" : "thinks", a?.reason, 5)
  return s("idle", a?.drains ? "idle, leaves" : "idle", a?.reason, 6)
}

// pretty are the arguments of a call, a line each.
export function pretty(args: string): string {
  try {
    const a = Object.entries(JSON.parse(args))
    return a.map(([k, v]) => (a.length > 1 ? k + ": " : "") + (typeof v === "string" ? v : JSON.stringify(v, null, 2))).join("\n")
  } catch {
    return args
  }
}

// argument is what a call is about, out of its arguments.
export function argument(args: string): string {
  try {
    const a = JSON.parse(args)
    for (const k of ["command", "file_path", "path", "pattern", "to", "task_id", "id", "question", "title", "name", "content", "summary", "plan", "prompt"])
      if (typeof a[k] === "string" && a[k]) return line(a[k], 200)
    const all = JSON.stringify(a)
    return all === "{}" ? "" : line(all, 200)
  } catch {
    return line(args, 200)
  }
}

// theme is light, dark, or "" for that of the system.
export const theme = {
  get: () => document.documentElement.dataset.theme || "",
  set(to: string) {
    if (to) document.documentElement.dataset.theme = to
    else delete document.documentElement.dataset.theme
    try {
      localStorage.setItem("theme", to)
    } catch {
      // it holds until the page is left
    }
    redraw()
  },
  init() {
    try {
      const t = localStorage.getItem("theme")
      if (t) document.documentElement.dataset.theme = t
    } catch {
      // the system's
    }
  },
}

