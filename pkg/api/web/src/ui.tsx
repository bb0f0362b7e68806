// Parts that several views have.

import { drawn, drawNow, h, redraw, type Child } from "./dom"
import { key, type Key } from "./keys"
import { path, say, type Problem } from "./request"
import { filter, picked, place, to } from "./route"
import { act, isBusy, once, session, team, type, typed } from "./store"
import { line, words } from "./text"

// focus draws a field and has a person type in it. It waits for no frame: the next key of a person who types fast would act on
// the page, and approve what is to be rejected.
export function focus(id: string) {
  drawNow()
  document.getElementById(id)?.focus()
}
// look shows what a selector finds once the page is drawn.
export const look = (at: string) => drawn(() => document.querySelector(at)?.scrollIntoView({ block: "nearest", inline: "nearest" }))

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
interface BoxProps { id: string; label: string; button: string; send: (text: string) => Promise<unknown>; done?: string; rows?: number; extra?: Child; placeholder?: string }

const nameOf = (id: string) => place() + " " + id

export function Box(p: BoxProps) {
  const id = nameOf(p.id)
  const send = async () => {
    const text = typed(id).trim()
    if (isBusy(id)) return
    if (!text) return document.getElementById(p.id)?.focus()
    type(id, "") // what is typed from now on is another text
    if (!(await act(id, () => p.send(text), p.done))) type(id, text + (typed(id) && "\n" + typed(id)))
  }
  return <form key={id} onsubmit={(e: Event) => { e.preventDefault(); send() }}>
    <textarea id={p.id} aria-label={p.label} placeholder={p.placeholder ?? p.label} rows={p.rows ?? 2} value={typed(id)}
      oninput={(e: any) => type(id, e.target.value)}
      onkeydown={(e: KeyboardEvent) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) send()
        if (e.key === "Escape") (e.target as HTMLElement).blur()
      }}></textarea>
    <div class="acts">{p.extra}<button class="main" type="submit" disabled={isBusy(id)} title="Ctrl+Enter">{p.button}</button></div>
  </form>
}

// deaf is why no mail is offered: the team is not at work, and its API would refuse it, or who is to get it
// has left; "" = it is.
export function deaf(who = "leader"): Child {
  const status = team!.record?.status || "active"
  if (status !== "active") return ["The team " + (status === "failed" ? "has " : "is ") + words(status) + " and reads no mail. ", wakes() && <a href={to(team!.id, "result")}>Start again from here</a>]
  return who !== "leader" && who !== "*" && !team!.state.member(who).joined && line(who, 60) + " is not in the team: no mail is read there."
}

// wakes reports whether a goal or a task has the team work, if it does not.
export const wakes = () => !/saved|ing$/.test(team!.record?.status)

// Mail is a box for mail, or says why there is none. What was typed, and refused, stays in sight.
export function Mail(p: BoxProps & { to?: string }) {
  const why = deaf(p.to)
  return mayWrite() && <div class="composer">{why && <p class="dim small">{why}</p>}{(!why || typed(nameOf(p.id))) && Box(p)}</div>
}

// Choice is a list to choose from: values, each with its text. With pick it shows value, whatever was
// chosen, so the same can be picked again.
export const Choice = (p: { id?: string; label: string; value: string; of: [string, string][]; pick?: (value: string) => void }) => (
  <select id={p.id} aria-label={p.label} onchange={p.pick && ((e: any) => { const now = e.target.value; e.target.value = p.value; p.pick!(now) })}>
    {p.of.map(([v, text]) => <option value={v} selected={v === p.value} key={v}>{text}</option>)}
  </select>
)

// Jump is a choice of where to go, among the first 500 places.
export function Jump(p: { to: string; of: [string, string][]; go: (place: string) => void }) {
  const label = "Jump to a " + p.to
  const all = p.of.length
  return <Choice label={label} value="" pick={p.go} of={[["", label + (all > 500 ? ", the first 500 of " + all : "")], ...p.of.slice(0, 500)]} />
}

// moves are the keys that go through a list. pick chooses an id, whose place is then scrolled to.
export function moves(what: string, ids: string[], at: string, pick: (id: string) => void, mark: string): Key[] {
  const move = (by: number) => () => {
    pick(ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(at) + by))] || "")
    redraw()
    look(mark)
  }
  return [key("j ArrowDown", "next " + what, move(1)), key("k ArrowUp", "previous " + what, move(-1))]
}

// setGoal gives a team a goal, or adds to the one that it has.
export const setGoal = (team: string, goal: string, add = false) => once("goal-" + team, path(team) + "/goal", { goal, ...(add && { add }) })

// write sends mail of the person. id is that of the box.
export const write = (id: string, to: string, content: string, more: object = {}) => once(id, path(team!.id, "messages"), { to, content, ...more })

// Find is the field in which a person looks for what; the words stand in the address as q. has
// reports whether a text has all of them.
export const Find = (p: { what: string; enter?: (back: boolean) => void }) => <input id="search" type="search" placeholder="Find  /" aria-label={"Find " + p.what} value={picked("q")} oninput={(e: any) => filter("q", e.target.value)}
  onkeydown={(e: any) => {
    if (e.key === "Enter" && p.enter) p.enter(e.shiftKey)
    else if (e.key === "Escape" || e.key === "Enter") e.target.blur()
  }} />
export const findKey = (what: string): Key => key("/", "find " + what, () => focus("search"))
export const has = (words: string, text: string) => words.toLowerCase().split(/\s+/).every((w) => text.toLowerCase().includes(w))

// Chip is one of several that may be on.
export const Chip = (p: { on: boolean; do: () => void; children?: Child }) => <button class="chip" aria-pressed={"" + p.on} onclick={p.do}>{p.children}</button>

// Panel is a part of a view that has a name.
export const Panel = (p: { name: string; children?: Child }) => <section class="panel" aria-label={p.name}><h2>{p.name}</h2>{p.children}</section>

// Empty says what to do where there is nothing yet.
export const Empty = (p: { children?: Child }) => <p class="empty">{p.children}</p>

// Looking stands for what was asked for, until it is here, or says why it is not and what may be done.
export const Looking = (p: { why?: Problem; children?: Child }) => <Empty>{p.why ? [say(p.why), " ", p.children] : "Looking…"}</Empty>

// TaskLink leads to a task.
export const TaskLink = (p: { of: string }) => (team && p.of ? <a class="task" href={to(team.id, "task", p.of)}><bdi>{line(p.of, 40)}</bdi></a> : null)
