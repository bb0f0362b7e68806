// What came out of a goal, and what it cost.

import { h, type Child } from "../dom"
import { Markdown } from "../markdown"
import { path } from "../request"
import { filter, picked, to } from "../route"
import { act, ask, every, team } from "../store"
import { Ago, line, plain, price, short, span, spent, State, Time, words } from "../text"
import { key, type Key } from "../keys"
import { Who } from "../member"
import { Box, Button, Chip, Empty, focus, mayWrite, Panel, setGoal, TaskLink, wakes } from "../ui"
import type { Deliverable as File, PastGoal, UsageRow, UsageTable } from "../api"
import type { Route } from "../route"
import type { View } from "../view"
import { numberOf } from "./board"
import { Diff, load } from "./diff"
import { Deliverable } from "./file"
import { Table } from "../table"
import { Bar, Legend } from "../drawing"

const bys = { agent: "member", role: "role", alias: "alias" } as Record<string, string>

let goals: PastGoal[] | null = null
let files: File[] | null = null
let usage: UsageTable | null = null

const by = () => picked("by") || "agent"
const asks = () => "?split=alias&by=" + by() + (picked("all") ? "" : "&goal=-1")

// A part that is not answered stays as it is; the bar says it if the connection is lost.
function read(id: string) {
  const at = path(id)
  ask(at + "/goals", (d) => { goals = d.goals || [] })
  ask(at + "/deliverables?limit=1000", (d) => { files = d.deliverables || [] })
  const of = asks()
  ask(at + "/usage" + of, (d) => { if (of === asks()) usage = d })
  load(id, "", team?.record?.branch_head)
}

function begin(r: Route) {
  goals = files = usage = null
  const again = () => read(r.team)
  again()
  return every(10_000, again)
}

function Files(p: { id: string }) {
  if (!files?.length) return <p class="dim">{files ? "None." : "Looking…"}</p>
  return <Table id="files" head={["Task", "File"]} of={files} row={(f) => <tr key={f.task}><th><TaskLink of={f.task} /></th><td><Deliverable team={p.id} task={f.task} path={f.path} /></td></tr>} />
}

const hues = ["blue", "yellow", "green", "magenta", "cyan"] // of models

function Cost(p: { by: string }) {
  const rows = usage?.rows || []
  const models = [...new Set(rows.flatMap((r) => (r.parts || []).map((m) => m.name)))]
  const money = rows.some((r) => r.cost)
  const size = (r: UsageRow) => (money ? r.cost : r.total_tokens) || 0
  const hue = (name: string) => "c-" + hues[models.indexOf(name) % 5]
  const named = (name: string) => line(name, 60) || "not known"
  const pick = (name: string, value: string) => { usage = null; filter(name, value); read(team!.id) }
  return <Panel name="What it cost">
    <div class="chips">{Object.keys(bys).map((k) => <Chip on={p.by === k} do={() => pick("by", k)}>by {bys[k]}</Chip>)}
      <Chip on={!!picked("all")} do={() => pick("all", picked("all") ? "" : "1")}>all goals</Chip></div>
    {rows.length > 0 && usage?.by === p.by ? [<Table id="usage" class="usage" head={[bys[p.by], "calls", "tokens in", "out", "cost", ""]} of={rows} row={(r) => <tr key={r.name}><th>{p.by === "agent" ? <Who of={r.name} /> : named(r.name)}</th><td class="n">{r.model_calls}</td><td class="n">{short(r.prompt_tokens)}</td><td class="n">{short(r.completion_tokens)}</td>
        <td class="n">{price(r, 3) || <span class="dim">not known</span>}</td>
        <td><Bar of={(r.parts || []).map((m) => [hue(m.name), size(m)])} most={Math.max(...rows.map(size)) || 1} /></td></tr>} />,
      <Legend of={models.map((m) => [hue(m), named(m)])} />] : <p class="dim">{usage ? "Nothing so far." : "Looking…"}</p>}
  </Panel>
}

export const result: View = {
  name: "result",
  label: "Result",
  go: "r",
  open: begin,
  keys: (): Key[] => (mayWrite() ? [key("w", "set the next goal", () => focus("next-goal"))] : []),
  draw(r): Child {
    const t = team!
    const g = t.goal
    const working = g?.status === "active"
    const tasks = [...t.state.tasks.values()].filter((x) => !x.earlier).sort((a, b) => numberOf(a.id) - numberOf(b.id))
    const command = "teamctl land --team " + r.team
    return <div class="page story">
      <div class="head"><h1>Result</h1>{g && <State of={g.status} as={working && "still at it"} end={g.end} />}
        {g?.finished_at && <span class="dim"><Time at={g.finished_at} />, after {span(g.elapsed_seconds)}</span>}
        <span class="gap"></span>{g && <span class="dim">{spent(g.usage)} for this goal</span>}</div>
      {!g && <Empty>The team has had no goal yet. {mayWrite() && "Set one below."}</Empty>}
      {g && <Panel name={"Goal " + g.goal_number}><div class="text" dir="auto">{plain(line(g.goal, 2000))}</div></Panel>}
      {g?.reason && <p class="panel bad" dir="auto">{line(g.reason, 1000)}</p>}
      {g?.summary ? <Panel name="Summary"><Markdown id={"sum" + r.team + g.goal_number} of={g.summary} first={6000} /></Panel> : g && <p class="dim">{working ? "The summary comes with the end." : "It left no summary."}</p>}
      {t.record?.branch && !t.record.branch.why && <Panel name="Take it over"><code class="mono command">{command}</code> <Button do={() => act("copy", () => navigator.clipboard.writeText(command), "Copied.")}>Copy</Button></Panel>}
      <Panel name="Deliverables"><Files id={r.team} /></Panel>
      <Panel name="Tasks">{tasks.length ? <Table id="tasks" head={["Task", "", "Result", "Check"]} of={tasks} row={(x) => <tr key={x.id}><th><TaskLink of={x.id} /></th><td><span class="badge">{words(x.status)}</span> <span dir="auto">{line(x.title, 120)}</span></td><td><Markdown id={"tr" + r.team + x.id} of={x.result_summary || x.reason || ""} first={200} /></td>
          <td>{x.check ? <code class="mono">{line(x.check, 60)}</code> : <span class="dim">none</span>}</td></tr>} /> : <p class="dim">None.</p>}</Panel>
      {g && <Cost by={by()} />}
      <Panel name="What was changed"><Diff id={r.team} to={() => "leader"} /></Panel>
      {mayWrite() && t.record && wakes() && <Panel name={working ? "Add to the goal" : "The next goal"}><Box id="next-goal" label={working ? "What to add" : "The next goal"} button={working ? "Add" : "Start"} rows={2}
        send={(goal) => setGoal(r.team, goal, working)} done={working ? "The leader reads it." : "The goal is set."} /></Panel>}
      {goals && goals.length > 0 && <Panel name="Goals before"><ol class="steps">{[...goals].reverse().map((p) => <li key={p.number}><b>{p.number}</b> <State of={p.status} end={p.end} /> <span dir="auto">{line(p.goal, 300)}</span>
        <span class="dim"> {p.ended_at && [<Ago at={p.ended_at} />, " ago"]} {line(p.tasks, 200)}</span>{p.set_at && [" ", <a href={to(r.team, "timeline", "", { goal: "" + p.number })}>Timeline</a>]}
        {(p.summary || p.reason) && <details class="fold"><summary>what came of it</summary><Markdown id={"g" + r.team + p.number} of={p.summary || p.reason || ""} first={6000} /></details>}</li>)}</ol></Panel>}
    </div>
  },
}
