// All teams, and what each wants.

import { h, redraw, type Child } from "../dom"
import { List } from "../list"
import { api } from "../request"
import { go, picked, to } from "../route"
import { teams, watchTeams } from "../store"
import { line, Name, plain, spent, State, words } from "../text"
import { key, type Key } from "../keys"
import { Box, Button, Choice, Empty, Find, findKey, focus, has, Looking, mayWrite, moves, setGoal } from "../ui"
import type { View } from "../view"
import type { TeamStatus } from "../types"
import { Progress } from "./progress"

export const wants = (t: TeamStatus) => t.waiting ?? 0
const trouble = (t: TeamStatus) => (t.parked?.length || 0) + (t.damaged?.length || 0) + (t.silent?.length || 0) + (t.lost?.length || 0) + (t.storage ? 1 : 0)
const works = (t: TeamStatus) => t.status === "active" && !!t.goal
const rank = (t: TeamStatus) => (wants(t) ? 0 : trouble(t) ? 1 : works(t) ? 2 : t.status === "active" ? 3 : 4)

let selected = ""
let setting = "" // the team whose goal is being set
let adding = false

function found(words: string): TeamStatus[] {
  return (teams.list || [])
    .filter((t) => has(words, t.id + " " + (t.description || "") + " " + t.goal + " " + t.status))
    .sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1))
}

function keys(): Key[] {
  return [
    ...moves("team", found(picked("q")).map((t) => t.id), selected, (id) => (selected = id), ".team.on"),
    key("Enter", "open the team", () => selected && go(to(selected))),
    findKey("teams"),
    ...(mayWrite() ? [key("n", "new team", () => { adding = true; redraw(); focus("new-team") })] : []),
  ]
}

const field = (id: string) => (document.getElementById(id) as HTMLInputElement | HTMLSelectElement).value.trim()

async function add(goal: string) {
  const id = field("new-team")
  const most = field("new-most")
  await api("POST", "/teams", { id, ...(most && { max_teammates: +most }),
    policies: { approver: field("new-approver"), plan_mode: field("new-plans") === "yes" } })
  try {
    await setGoal(id, goal)
  } finally {
    adding = false
    go(to(id))
  }
}

function Row(p: { t: TeamStatus }) {
  const t = p.t
  const members = Object.entries(t.members || {}).filter(([s]) => s !== "stopped")
  const n = wants(t)
  const bad = trouble(t)
  return <article class={"team" + (t.id === selected ? " on" : "")} aria-label={"team " + line(t.id)}>
    <div class="head">
      <a class="big" href={to(t.id)}><Name of={t.id} /></a>
      <State of={t.status} end={t.end} />
      {n ? <a class="count" href={to(t.id)}>{n} waiting for you</a> : null}
      {bad > 0 && <span class="badge bad">{bad} in trouble</span>}
      {!t.leader && t.status === "active" && <span class="badge warn">not led</span>}
    </div>
    {t.description && <p class="dim" dir="auto">{line(t.description, 120)}</p>}
    <p class="goal" dir="auto">{line(t.goal, 240) || <span class="dim">It has no goal yet.</span>}</p>
    <Progress tasks={t.tasks || {}} />
    <div class="foot dim">
      <span>{members.map(([s, n]) => n + " " + words(s)).join(", ") || "no members"}</span>
      {t.usage && spent(t.usage)}
      {mayWrite() && <Button class="quiet" do={() => { setting = setting === t.id ? "" : t.id; redraw() }}>{works(t) ? "Add to the goal" : "Set a goal"}</Button>}
    </div>
    {setting === t.id && <Box id={"goal-" + t.id} label={"Goal of " + line(t.id)} button={works(t) ? "Add" : "Set it"} rows={3}
      send={async (goal) => { await setGoal(t.id, goal, works(t)); setting = "" }} done="The goal is set." />}
  </article>
}

export const all: View = {
  name: "",
  top: true,
  open: watchTeams,
  keys,
  draw(r): Child {
    const q = picked("q")
    const list = found(q)
    return <div class="page">
      <div class="head tools">
        <h1>Teams</h1>
        <Find what="teams" />
        <span class="gap"></span>
        {mayWrite() && <Button class="main" hint="n" do={() => { adding = !adding; redraw() }}>New team</Button>}
      </div>
      {adding && <section class="panel" aria-label="New team">
        <label class="field">Name <input id="new-team" autocomplete="off" maxlength="63" placeholder="a-z, 0-9 and -"
          onkeydown={(e: KeyboardEvent) => { if (e.key === "Enter") { e.preventDefault(); focus("new-goal") } }} /></label>
        <label class="field">Plans are approved by <Choice id="new-approver" label="Who approves plans" value="leader" of={[["leader", "its leader"], ["human", "a person"]]} /></label>
        <label class="field">Its teammates <Choice id="new-plans" label="What teammates do before a plan is approved" value="no" of={[["no", "begin to work"], ["yes", "submit a plan first"]]} /></label>
        <label class="field">At most <input id="new-most" type="number" min="0" max="1000" placeholder="teammates" /></label>
        <Box id="new-goal" label="Its goal" button="Start" rows={3} send={add} />
      </section>}
      {!teams.list && <Looking why={teams.why} />}
      {teams.list && list.length === 0 && <Empty>{q ? "No team has " + plain(q) + " in its name or goal." :
        ["There is no team yet.", mayWrite() && " Make one here, or by: teamctl run GOAL"]}</Empty>}
      {list.length > 40
        ? <List id={"teams|" + q} class="teams" count={list.length} estimate={150} label="Teams" keyOf={(i) => list[i].id} row={(i) => <Row t={list[i]} />} />
        : <div class="teams grid">{list.map((t) => <Row t={t} key={t.id} />)}</div>}
    </div>
  },
}
