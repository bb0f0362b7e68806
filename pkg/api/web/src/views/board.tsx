// The board: tasks in columns by status, or as a graph, and what a person may do with them.

import { h, redraw, type Child } from "../dom"
import { List } from "../list"
import { api, path } from "../request"
import { filter, go, picked, to } from "../route"
import { act, once, team, type OpenTeam } from "../store"
import { line, part, short, words } from "../text"
import { Sheet, sure } from "../dialog"
import { key, type Key } from "../keys"
import { colour, Who } from "../member"
import { Box, Button, Chip, Empty, Find, findKey, focus, has, look, mayWrite, TaskLink } from "../ui"
import type { Task } from "../state"
import type { View } from "../view"
import { Graph, graphKeys, openGraph } from "./graph"

export const priorities = ["normal", "high", "critical"]

const columns: Record<string, string> = { blocked: "Blocked", pending: "Ready", in_progress: "In progress", completed: "Completed", ended: "Failed, cancelled" }

export const numberOf = (id: string) => +id.replace(/\D/g, "") || 0

// missing are the dependencies of a pending task that are not completed.
export const missing = (t: OpenTeam, task: Task) => (task.status === "pending" ? (task.dependencies || []).filter((d) => t.state.tasks.get(d)?.status !== "completed") : [])

// statusOf is its status as people see it: also blocked, or merging while its work waits to be in the line.
export function statusOf(t: OpenTeam, task: Task): string {
  const a = t.agents.get(task.assignee)
  return missing(t, task).length ? "blocked" : task.status === "in_progress" && a?.waits_for === "merge" && a.task === task.id ? "merging" : task.status
}

function columnOf(t: OpenTeam, task: Task): string {
  const s = statusOf(t, task)
  return s === "merging" ? "in_progress" : Object.hasOwn(columns, s) ? s : "ended"
}

// sorted are the tasks of each column that have all the words: what is open in the order of work,
// what has ended with the newest first.
function sorted(t: OpenTeam, find: string): Map<string, Task[]> {
  const all = new Map<string, Task[]>(Object.keys(columns).map((name) => [name, []]))
  for (const task of t.state.tasks.values())
    if (has(find, task.id + " " + task.title + " " + task.assignee + " " + task.role)) all.get(columnOf(t, task))!.push(task)
  for (const [name, list] of all) {
    if (name === "completed" || name === "ended") list.sort((a, b) => Date.parse(b.updated_at || "") - Date.parse(a.updated_at || "") || numberOf(b.id) - numberOf(a.id))
    else list.sort((a, b) => (b.priority || 0) - (a.priority || 0) || numberOf(a.id) - numberOf(b.id))
  }
  return all
}

const at = (id: string, ...more: string[]) => path(team!.id, "tasks", id, ...more)

// change has the board changed, and says so.
const change = (id: string, what: string, body: object, done: string, method = "POST") => act(id, () => api(method, at(id, ...(what ? [what] : [])), body), id + " is " + done + ".")

const assign = (id: string, assignee: string) => change(id, "assign", { assignee }, "given to " + assignee)
const release = (id: string) => change(id, "release", {}, "on the board again")
const prioritise = (id: string, priority: number) => change(id, "", { priority }, priorities[priority] + " now", "PATCH")

async function cancel(id: string) {
  if (await sure("Cancel " + id + "? What waits for it stays blocked.", "Cancel it")) change(id, "cancel", {}, "cancelled")
}

async function undo(id: string) {
  if (await sure("Take the work of " + id + " back? A commit of the team's line undoes it.", "Undo it")) change(id, "undo", {}, "undone")
}

let menu = ""
export function openMenu(id: string) {
  menu = mayWrite() ? id : ""
  redraw()
}

// Menu is what may be done with a task.
export function Menu(): Child {
  const task = team?.state.tasks.get(menu)
  if (!task) return null
  const shut = () => openMenu("")
  const then = (f: (id: string) => unknown) => () => { shut(); f(task.id) }
  const open = task.status === "pending" || task.status === "in_progress"
  return <Sheet name={line(task.id + " " + task.title, 80)} shut={shut}>
    <div class="acts left"><a href={to(team!.id, "task", task.id)} onclick={shut}>Its whole story</a></div>
    {open && <section><h3>Assign to</h3><div class="acts left">{people().map((m) => <Button do={then((id) => assign(id, m))} disabled={task.status === "in_progress" && task.assignee === m}><bdi class={"c-" + colour(m)}>{line(m, 40)}</bdi></Button>)}</div></section>}
    {task.status === "pending" && <section><h3>Priority</h3><div class="acts left">{priorities.map((p, n) => <Button do={then((id) => prioritise(id, n))} disabled={n === (task.priority || 0)}>{p}</Button>)}</div></section>}
    <div class="acts">
      {task.status === "in_progress" && <Button do={then(release)}>Put it back</Button>}
      {open && <Button class="bad" do={then(cancel)}>Cancel the task…</Button>}
      {task.status === "completed" && task.commit && !task.undone && <Button class="bad" do={then(undo)}>Undo its work…</Button>}
    </div>
  </Sheet>
}

// people are those who can be given a task.
const people = () => team!.state.present().map((m) => m.id).filter((id) => id !== "leader")

// drop is what dragging a task to a column or a member does.
function drop(where: string, member: boolean) {
  return {
    ondragover: (e: DragEvent) => e.preventDefault(),
    ondrop: (e: DragEvent) => {
      e.preventDefault()
      const task = team!.state.tasks.get(e.dataTransfer?.getData("text/plain") || "")
      if (!task || !mayWrite()) return
      if (member) assign(task.id, where)
      else if (where === "pending" && task.status === "in_progress") release(task.id)
      else if (where === "ended" && (task.status === "pending" || task.status === "in_progress")) cancel(task.id)
      else if (where === "in_progress" && task.status === "pending") openMenu(task.id)
    },
  }
}

let selected = ""

function TaskCard(p: { t: OpenTeam; task: Task }) {
  const { t, task } = p
  const waits = missing(t, task)
  const s = statusOf(t, task)
  return <article class={"card p" + (task.priority || 0) + (selected === task.id ? " on" : "")} aria-label={line(task.id + " " + task.title, 120)}
    draggable={mayWrite() ? "true" : undefined} ondragstart={(e: DragEvent) => e.dataTransfer?.setData("text/plain", task.id)}>
    <div class="head"><TaskLink of={task.id} />
      {task.priority ? <span class="badge warn">{priorities[task.priority]}</span> : null}
      {s === "merging" && <span class="badge">merging</span>}
      {task.returned?.length ? <span class="badge warn" title="It was not merged. The next holder of the task has it.">work returned</span> : null}
      <span class="gap"></span>
      {mayWrite() && <button class="icon" aria-label={"What to do with " + task.id} aria-haspopup="dialog" onclick={() => openMenu(task.id)}>⋯</button>}</div>
    <div class="last" dir="auto">{line(task.title, 200)}</div>
    <div class="foot dim">
      {task.status !== "pending" && task.assignee && <Who of={task.assignee} />}{task.status === "pending" && task.reserved_for && ["kept for ", <Who of={task.reserved_for} />]}
      {waits.length > 0 && <span>waits for {waits.slice(0, 6).map((d) => {
        const of = t.state.tasks.get(d)?.status || ""
        return [<TaskLink of={d} />, /failed|cancelled/.test(of) && <b class="bad"> {words(of)}</b>, " "]
      })}{waits.length > 6 && "and " + (waits.length - 6) + " more"}</span>}
      {task.status === "pending" && !waits.length && task.role && <span>for a {line(task.role, 40)}</span>}
      {task.tokens ? <span>{short(task.tokens)} tok</span> : null}
      {/failed|cancelled/.test(s) && <span class="bad">{words(task.status)}{task.reason && ": " + line(task.reason, 120)}</span>}
    </div>
  </article>
}

let adding = false
let typed = "" // in the box of new tasks

export function startAdding() {
  adding = true
  redraw()
  focus("new-tasks")
}

interface NewTask { name: string; title: string; description: string; priority: number; role: string; dependencies: string[] }

// read makes tasks of lines: a title each, then what it has of ! (priority), @role and < what it
// waits for, which are lines of the list or tasks that known has; any other < is of the title, as is
// a mark behind a \. Lines that are set in are its description.
export function read(text: string, known: (id: string) => boolean): NewTask[] {
  const tasks: NewTask[] = []
  const lines = text.split("\n")
  const titles = lines.filter((l) => /^\S/.test(l)).length
  let indent = 0
  let blank = ""
  for (let l of lines) {
    const last = tasks.at(-1)!
    const from = l.search(/\S/)
    l = l.trimEnd()
    if (from > 0 && last) {
      if (!last.description) indent = from
      last.description += (last.description && blank) + l.slice(Math.min(from, indent)) + "\n"
    } else if (l) {
      const [, before, after] = /^(.*)\s<([^<]+)$/.exec(l) || []
      const dependencies = after?.trim().toUpperCase().split(/[\s,]+/).map((d) => (+d > 0 && +d <= titles ? "line " + +d : d)) || []
      const waits = dependencies.every((d) => d.startsWith("line ") || known(d))
      const [, title, high, role] = /^(.*?)(?:\s+(!!?))?(?:\s+@(\S+))?$/.exec((waits && before || l).trim())!
      tasks.push({ name: "line " + (tasks.length + 1), title: title.replace(/\\([!@<])/g, "$1"), description: "", priority: high?.length || 0, role: role || "", dependencies: waits ? dependencies : [] })
    }
    blank = l ? "" : blank + "\n"
  }
  return tasks
}

function Adding(p: { t: OpenTeam }) {
  if (!adding) return null
  const shut = () => { adding = false; redraw() }
  const made = (text: string) => read(text, (id) => p.t.state.tasks.has(id))
  const [some, more] = part("new-tasks", made(typed), 50)
  return <Sheet name="New tasks" shut={shut} wide>
    <div oninput={() => redraw()} each={(el: any) => {
      const now = el.querySelector("textarea").value
      if (now !== typed) redraw()
      typed = now
    }}><Box id="new-tasks" label="New tasks, one a line" placeholder={"Write the parser ! @coder\n  All that its assignee needs to know.\nTest it < 1, T-004"} rows={6} button="Add" done="They are on the board."
      send={async (text) => { await once("new-tasks", path(p.t.id, "tasks"), { tasks: made(text) }); adding = false }} /></div>
    <ol class="steps">{some.map((n) => <li><span dir="auto">{line(n.title)}</span> <span class="dim">{[n.priority && priorities[n.priority], n.role && "for a " + line(n.role, 40),
      n.dependencies[0] && "waits for " + n.dependencies.join(", "), n.description && "with a description"].filter(Boolean).join(", ")}</span></li>)}</ol>{more}
    <p class="dim small">! is a high priority, !! a critical one, @ a role, &lt; what it waits for: numbers of this list, or ids; \ keeps a mark in the title. Lines set in describe a task.</p>
  </Sheet>
}

function keys(): Key[] {
  const t = team
  if (!t) return []
  const graph = picked("show") === "graph"
  const common: Key[] = [
    findKey("tasks"),
    key("v", graph ? "show columns" : "show the graph", () => filter("show", graph ? "" : "graph", true)),
    ...(mayWrite() ? [key("n", "new tasks", startAdding)] : []),
  ]
  if (graph) return [...common, ...graphKeys(t)]
  const lists = [...sorted(t, picked("q")).values()].filter((list) => list.length)
  const now = t.state.tasks.get(selected)
  const column = lists.findIndex((list) => list.includes(now!))
  const move = (right: number, down: number) => {
    const list = lists[Math.max(0, Math.min(lists.length - 1, column + right))] || []
    selected = list[Math.max(0, Math.min(list.length - 1, (lists[column] || []).indexOf(now!) + down))]?.id || ""
    redraw()
    look(".card.on")
  }
  return [
    ...common,
    key("j ArrowDown", "next task", () => move(0, 1)),
    key("k ArrowUp", "previous task", () => move(0, -1)),
    key("h ArrowLeft", "column before", () => move(-1, 0)),
    key("l ArrowRight", "next column", () => move(1, 0)),
    key("Enter", "its whole story", () => selected && go(to(t.id, "task", selected))),
    ...(mayWrite() && now ? [key("m", "what to do with it", () => openMenu(selected))] : []),
  ]
}

export const board: View = {
  name: "board",
  label: "Board",
  go: "b",
  open: openGraph,
  keys,
  draw(r): Child {
    const t = team!
    const q = picked("q")
    const graph = picked("show") === "graph"
    return <div class="page board">
      <div class="head tools">
        <h1>Board</h1>
        <Find what="tasks" />
        <span class="chips"><Chip on={!graph} do={() => filter("show", "", true)}>columns</Chip><Chip on={graph} do={() => filter("show", "graph", true)}>graph</Chip></span>
        <span class="gap"></span>
        {mayWrite() && <Button class="main" hint="n" do={startAdding}>New tasks</Button>}
      </div>
      {t.state.tasks.size === 0 ? <Empty>There is no task yet.{mayWrite() && " The leader makes some for a goal; you can, too."}</Empty>
        : graph ? <Graph t={t} find={q} /> : Columns(t, q)}
      <Adding t={t} />
      <Menu />
    </div>
  },
}

function Columns(t: OpenTeam, q: string) {
  const all = sorted(t, q)
  return [
    mayWrite() && <div class="chips members" role="group" aria-label="Members, to drag tasks to">{people().map((m) => <a class={"chip c-" + colour(m)} href={to(t.id, "agent", m)} key={m} {...drop(m, true)}>{line(m, 40)}</a>)}</div>,
    <div class="columns">{[...all].map(([name, list]) => {
      const label = columns[name]
      return <section class="column" key={name} aria-label={label} {...drop(name, false)}>
        <h2>{label} <span class="dim">{list.length}</span></h2>
        <List id={"board|" + t.id + "|" + name + "|" + q} count={list.length} estimate={84} label={label} keyOf={(i) => list[i].id} row={(i) => <TaskCard t={t} task={list[i]} />} />
      </section>
    })}</div>,
  ]
}
