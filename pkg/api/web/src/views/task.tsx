// One task's whole story.

import { h, type Child } from "../dom"
import { Markdown } from "../markdown"
import { path, type Problem } from "../request"
import { to } from "../route"
import { ask, every, team } from "../store"
import { Ago, line, part, spent, Text, Time, words } from "../text"
import { key, type Key } from "../keys"
import { Who } from "../member"
import { Button, Looking, mayWrite, Panel, TaskLink } from "../ui"
import type { History, Step, TaskView, UsageRow } from "../api"
import type { Route } from "../route"
import type { View } from "../view"
import { Menu, openMenu, priorities, statusOf } from "./board"
import { Diff, load } from "./diff"
import { Deliverable } from "./file"

let task: TaskView | null = null
let history: History | null = null
let used: UsageRow | undefined
let why: Problem | undefined

function read(r: Route) {
  const at = path(r.team, "tasks", r.id)
  ask(at, (d) => {
    task = d
    why = undefined
    const work = d.commit || back(d)?.commit
    if (work) load(r.team, "?task=" + encodeURIComponent(r.id), work)
  }, (e) => { why = e })
  ask(at + "/history", (d) => { history = d })
  ask(path(r.team, "usage") + "?by=task", (d) => { used = d.rows?.find((x: UsageRow) => x.name === r.id) })
}

// back is the work on a task that was returned last.
const back = (v: TaskView) => v.returned?.at(-1)

function begin(r: Route): () => void {
  task = history = null
  used = why = undefined
  read(r)
  let seen = ""
  return every(1500, () => {
    const t = team!.state.tasks.get(r.id)
    const mark = "" + [t && statusOf(team!, t), t?.updated_at, t?.tokens, team!.state.tasks.size]
    if (mark !== seen) read(r)
    seen = mark
  })
}

function steps(id: string, all: Step[]) {
  const [some, more] = part("steps" + id, all, -300)
  return [more, <ol class="steps">{some.map((s) => <li key={s.revision}><span class="dim"><Time at={s.at} /></span> {s.by && <Who of={s.by} />} <span dir="auto">{line(s.what, 200)}</span>{s.why && <Markdown id={"why" + id + s.revision} of={s.why} first={600} />}</li>)}</ol>]
}

function links(name: string, id: string, ids: string[] = []) {
  const [some, more] = part(name + id, ids, 60)
  return ids.length > 0 && [<h3>{name}</h3>, <ul class="plain">{some.map((d) => {
    const s = team!.state.tasks.get(d)
    return <li key={d}><TaskLink of={d} /> <span class="badge">{words(s ? statusOf(team!, s) : "unknown")}</span> <span dir="auto">{line(s?.title, 100)}</span></li>
  })}</ul>, more]
}

export const one: View = {
  name: "task",
  open: begin,
  keys: (r): Key[] => (task && mayWrite() ? [key("m", "what to do with it", () => openMenu(r.id))] : []),
  draw(r): Child {
    const v = task
    if (!v) return <Looking why={why}><a href={to(r.team, "board")}>To the board</a></Looking>
    return <div class="page story">
      <div class="head"><h1 dir="auto"><span class="dim">{line(v.id, 20)}</span> {line(v.title, 500)}</h1></div>
      <div class="head">
        <span class={"state s-" + (v.status === "completed" ? "finished" : v.status === "failed" ? "failed" : "active")}>{v.is_blocked ? "blocked" : v.merging ? "merging" : words(v.status)}</span>
        {v.merging && <span class="dim">its work has waited for the line <Ago at={v.merging} /></span>}
        {v.priority > 0 && <span class="badge warn">{priorities[v.priority] || v.priority}</span>}
        {v.role && <span class="dim">for a {line(v.role, 40)}</span>}
        {v.gate && <span class="dim">with a plan that {v.gate === "human" ? "a person" : "the leader"} approves</span>}
        {v.assignee && <span>{v.status === "in_progress" ? "held by " : "last held by "}<Who of={v.assignee} /></span>}
        {v.claimed_at && v.status === "in_progress" && <span class="dim">for <Ago at={v.claimed_at} /></span>}
        {v.attempts > 0 && <span class="bad">{v.attempts} tries came to nothing</span>}
        {used && <span class="dim">{spent(used, 3)}</span>}
        {v.undone && <span class="badge bad">its work was taken back</span>}
        <span class="gap"></span>
        {mayWrite() && <Button hint="m" do={() => openMenu(v.id)}>What to do…</Button>}
      </div>
      {v.why && <p class="panel">{line(v.why, 600)}</p>}
      {v.reason && <p class="panel bad" dir="auto">{line(v.reason, 1000)}</p>}
      {v.description && <Panel name="What is to be done"><Markdown id={"d" + v.id} of={v.description} first={4000} /></Panel>}
      {v.result_summary && <Panel name="What came of it"><Markdown id={"r" + v.id} of={v.result_summary} first={4000} /></Panel>}
      {v.check && <Panel name="Check"><Text id={"k" + v.id} of={v.check} mono /></Panel>}
      {(v.waiting_for?.length || v.dependencies?.length || v.blocks?.length) ? <Panel name="Around it">
        {links("It comes after", v.id, v.dependencies || [])}{links("What waits for it", v.id, v.blocks || [])}</Panel> : null}
      {v.deliverable_digest && <Panel name="Deliverable"><Deliverable team={r.team} task={v.id} path={v.deliverable_path} /></Panel>}
      <Panel name="History">{history && steps(r.team + v.id, history.steps || [])}
        {history && !history.whole && <p class="dim small">Older steps are not stored any more.</p>}
        {[...new Set(history?.steps?.map((s) => s.assignee))].map((a) => a && a !== "user" && <p><a href={to(r.team, "agent", a, { task: v.id })}>Transcript of {line(a, 40)}</a></p>)}</Panel>
      {v.returned?.length ? <Panel name="Returned work"><p class="dim">It was not merged. The next holder of the task has it.</p>
        <ul class="plain">{v.returned.map((y) => <li key={y.epoch}><Who of={y.by} /> <bdi class="mono">{line("returned/" + v.id + "/" + y.epoch + " " + (y.commit || "").slice(0, 10), 90)}</bdi></li>)}</ul></Panel> : null}
      {(v.commit || back(v)) && <Panel name={v.commit ? "What it has changed" : "What was not merged"}><Diff id={r.team} task={v.id} to={() => v.assignee} /></Panel>}
      <Menu />
    </div>
  },
}
