// The team: what it is to reach and how far it is, what waits for a person, its members, and what
// happens beside them.

import { h, type Child } from "../dom"
import { Line } from "../lines"
import { Markdown } from "../markdown"
import { atEnd, List, toEnd } from "../list"
import { kinds } from "../log"
import { filter, picked, to } from "../route"
import { OpenTeam, team } from "../store"
import { Ago, line, Name, plain, price, short, span, State } from "../text"
import { key, type Key } from "../keys"
import { colour, Doing, OnlyMember, standOf, Who } from "../member"
import { Box, Chip, Empty, focus, Mail, mayWrite, setGoal, write } from "../ui"
import type { Draft, Member } from "../state"
import type { View } from "../view"
import { statusOf } from "./board"
import { Inbox, inboxKeys } from "./inbox"
import { Progress } from "./progress"

// counts are the tasks of the present goal by status; those that wait for others are blocked.
export function counts(t: OpenTeam): Record<string, number> {
  const n: Record<string, number> = {}
  for (const task of t.state.tasks.values()) {
    if (task.earlier) continue
    const s = statusOf(t, task)
    n[s] = (n[s] || 0) + 1
  }
  return n
}

function Goal(p: { t: OpenTeam }) {
  const g = p.t.goal
  const record = p.t.record
  const text = g?.goal || record?.goal || ""
  const status = g?.status || record?.status || ""
  const working = status === "active" && !!text
  const cost = price(g?.usage)
  const seconds = working && g?.goal_at ? (Date.now() - Date.parse(g.goal_at)) / 1000 : g?.elapsed_seconds
  return <section class="goal-head" aria-label="Goal">
    <div class="head">
      <State of={status} as={!status && "…"} end={g?.end} />
      {g?.goal_number ? <span class="dim">goal {g.goal_number}</span> : null}
      <span class="gap"></span>
      {seconds ? <span class="dim" title="since the goal was set">{span(seconds)}</span> : null}
      <span class="dim" title="tokens of its model calls">{short(g?.usage?.total_tokens || p.t.state.tokens)} tokens</span>
      {cost && <span class="dim" title="the part of the cost that is known">{cost}</span>}
    </div>
    <h1 dir="auto">{text ? <details class="goal-text"><summary>{line(text, 280)}</summary><div class="text">{plain(text)}</div></details> : <span class="dim">{record ? "This team has no goal yet." : "…"}</span>}</h1>
    {g?.lost && <p class="badge warn">{line(g.lost, 300)}</p>}
    <Progress tasks={counts(p.t)} />
    {!working && g?.summary && <details class="result" open><summary>Result</summary><Markdown id={"result" + p.t.id + g.goal_number} of={g.summary} first={6000} /></details>}
    {!working && g?.reason && <p class="badge bad">{line(g.reason, 600)}</p>}
    {mayWrite() && !working && record && <Box id={"goal-" + p.t.id} label="Goal" placeholder={text ? "What is it to reach next?" : "What is the team to reach?"} button="Set the goal"
      send={(goal) => setGoal(p.t.id, goal)} done="The goal is set." />}
  </section>
}

function Card(p: { t: OpenTeam; m: Member }) {
  const { t, m } = p
  const a = t.agents.get(m.id)
  const s = standOf(m, a)
  const draft = t.state.draft(m.id)
  const last = draft ? draft.text.slice(-400) : t.lastWords.get(m.id) || a?.last_line
  return <article class={"card st-" + s.state} aria-label={m.id + ", " + s.says}>
    <div class="head"><a class={"who c-" + colour(m.id)} href={to(t.id, "agent", m.id)}><Name of={m.id} /></a><span class="dim role"><bdi>{line(m.role, 40)}</bdi></span><span class="gap"></span>
      {s.since > 0 && <span class="dim since"><Ago at={s.since} /></span>}</div>
    <Doing of={m} as={s}>{last && <div class={"last" + (draft ? " live" : "")} dir="auto">{line(last, 240)}</div>}</Doing>
  </article>
}

function Members(p: { t: OpenTeam }) {
  const all = p.t.state.present().map((m) => ({ m, rank: standOf(m, p.t.agents.get(m.id)).rank })).sort((a, b) => a.rank - b.rank)
  return <section class="members" aria-label="Members">
    <h2>Members <span class="dim">{all.length || ""}</span></h2>
    {all.length === 0 && <p class="dim">{p.t.record ? "No member is in the team. The leader comes with the first goal." : "Looking…"}</p>}
    <div class="cards">{all.map(({ m }) => <Card t={p.t} m={m} key={m.id} />)}</div>
  </section>
}

const Written = (p: { d: Draft }) => <div class="line live"><span class="dim pen" title="it is being written">✎</span> <Who of={p.d.agent} /> <span class="what" dir="auto">{line("…" + p.d.text.slice(-300), 320)}</span></div>

function Stream(p: { t: OpenTeam }) {
  const t = p.t
  const kind = picked("kind")
  const agent = picked("member")
  const rows = t.log.rows(kind, agent)
  const drafts = (!kind || kind.includes("says") ? t.state.drafts() : []).filter((d) => !agent || d.agent === agent)
  const on = kind ? kind.split(",") : []
  const id = "stream|" + t.id + "|" + t.resets + "|" + kind + "|" + agent
  return <section class="stream" aria-label="Stream">
    <div class="head tools">
      <h2>Stream</h2>
      <OnlyMember />
      <span class="chips" role="group" aria-label="Kinds">{kinds.map((k) =>
        <Chip on={on.includes(k)} do={() => filter("kind", (on.includes(k) ? on.filter((x) => x !== k) : [...on, k]).join(","))}>{k}</Chip>)}</span>
      {t.strange > 0 && <p class="badge warn" role="status">{t.strange} records have a form that this page does not know. Reload it for a newer one.</p>}
    </div>
    {rows.length === 0 && drafts.length === 0 && <Empty>{kind || agent ? "Nothing of that has happened." : "Nothing has happened yet."}</Empty>}
    {rows.length > 0 && <List id={id} count={rows.length} estimate={44} follow label="What happens" keyOf={(i) => rows[i]} row={(i) => <Line of={t.log.entry(rows[i])} />} />}
    {!atEnd(id) && <button class="tail" onclick={() => toEnd(id)}>To the newest ↓</button>}
    {drafts.length > 0 && <div class="drafts" aria-hidden="true">{drafts.slice(-4).map((d) => <Written d={d} key={d.agent} />)}</div>}
  </section>
}

function keys(): Key[] {
  return team ? [
    ...inboxKeys(team),
    key("f", "stream: only the next kind", () => filter("kind", kinds[kinds.indexOf(picked("kind") as any) + 1] ?? "")),
    key("w", "write to the leader", () => focus("say-leader")),
  ] : []
}

export const overview: View = {
  name: "",
  label: "Team",
  go: "o",
  keys,
  draw(): Child {
    const t = team!
    return <div class="cols">
      <div class="side">
        <Goal t={t} />
        <Inbox t={t} />
        <Members t={t} />
        {mayWrite() && t.record && <section aria-label="Write to the leader"><h2>Write to the leader</h2>
          <Mail id="say-leader" label="Message to the leader" placeholder="A message to the leader  (w)" button="Send" send={(content) => write("say-leader", "leader", content)} done="Sent." /></section>}
      </div>
      <Stream t={t} />
    </div>
  },
}
