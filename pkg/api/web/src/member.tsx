// A member, as several views show it.

import { h, type Child } from "./dom"
import { argument } from "./call"
import { filter, picked, to } from "./route"
import { asked, isPlan, type Member } from "./state"
import { team } from "./store"
import { Ago, line, price, short, span, words } from "./text"
import type { Agent } from "./types"
import { Choice, TaskLink } from "./ui"

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
  if (a?.state === "unknown") return s("trouble", "does not answer", a.reason || "its process may be slow, or gone", 2)
  if (a?.state === "stalled") return s("trouble", "stalled", a.reason || "in a run, without progress", 2)
  if (a?.storage) return s("trouble", "cannot store", a.storage, 1)
  const plan = [...team!.state.plans.values()].find((p) => p.agent_id === m.id)
  const you = plan && asked(plan) === "user"
  if (plan) return s(you ? "wants" : "waits", isPlan(plan) ? "waits for its plan" : "waits for leave", you ? "you decide" : "the leader decides", you ? 0 : 4)
  const q = [...team!.state.questions.values()].find((q) => q.from === m.id)
  if (q || a?.waits_for === "person") return s("wants", "waits for your answer", a?.about || q?.content, 0)
  const person = team!.state.isPerson(m.asks)
  if (m.asks) return s(person ? "wants" : "waits", "waits for " + (m.asks === "user" ? "you" : line(m.asks, 40)), "", person ? 0 : 4)
  if (a?.waits_for && a.waits_for !== "model") return s("waits", "waits for " + ({ answer: line(a.awaits, 40) || "an answer", merge: "its work to be merged", job: "its job", plan: "its plan", permission: "leave" }[a.waits_for] ?? words(a.waits_for)), a.about, 4)
  if (m.trouble) return s("trouble", "its model gives no turn", m.trouble + (m.refused > 1 ? " (" + m.refused + " times)" : ""), 2)
  if (m.person) return s("person", m.task ? "has a task" : "a person's seat", "", 7)
  if (m.call) return s("works", m.call.tool === "bash" ? "runs a command" : words(m.call.tool), argument(m.call.args), 5)
  if (!m.idle) return s("works", team!.state.draft(m.id) ? "writes" : "thinks", a?.reason, 5)
  return s("idle", a?.drains ? "idle, leaves" : "idle", a?.reason, 6)
}

// OnlyMember narrows a view to one member.
export const OnlyMember = () => <Choice label="Only this member" value={picked("member")} pick={(m) => filter("member", m)}
  of={[["", "everyone"], ["user", "you"], ...[...team!.state.members.keys()].filter((m) => m !== "user").sort().map((m): [string, string] => [m, line(m, 40)])]} />

function Fill(p: { used?: number; of?: number }) {
  if (!p.used) return null
  return <span title={"context: about " + p.used.toLocaleString() + " tokens" + (p.of ? " of " + p.of.toLocaleString() : "")}>
    {p.of ? [<meter aria-label="context" max={p.of} high={p.of * 0.85} optimum="0" value={p.used}></meter>, " ", Math.min(100, Math.round((100 * p.used) / p.of)), " %"] : short(p.used)}
  </span>
}

// Doing is what a member is at, what it has under way beside its conversation, and what its turns have used.
// What is given stands in between.
export function Doing(p: { of: Member; as: Stand; children?: Child }) {
  const { of: m, as: s } = p
  const a = team!.agents.get(m.id)
  const cost = price({ ...team!.goal?.usage, cost: a?.cost }, 3)
  return [
    <div class="stand"><b>{s.says}</b>{s.why && <span class="why" title={s.why}> {s.why}</span>}</div>,
    m.task && <div class="on-task"><TaskLink of={m.task} /> <span dir="auto">{line(team!.state.tasks.get(m.task)?.title, 120)}</span></div>,
    p.children,
    a?.jobs?.length ? <ul class="plain small dim" aria-label="In the background">{a.jobs.map((j) => <li class="on-task" key={j.id} title={line(j.about)}>
      {j.kind === "subagent" ? <a href={to(team!.id, "agent", m.id + "." + j.id)}>{words(j.type || j.kind)}</a> : words(j.kind)} ({j.ended ? "ended: " + line(j.ended, 60)
        : [<Ago at={j.since} />, j.asked ? ", waits for a person" : j.kind === "command" && j.still! >= 60 && ", silent for " + span(j.still!)]}): <span dir="auto">{line(j.about, 120)}</span></li>)}</ul> : null,
    <div class="foot dim">
      {a?.turn ? <span title="turns of its model">turn {a.turn}</span> : null}
      {a?.tokens ? <span title="tokens that its turns have used">{short(a.tokens)} tok</span> : null}
      {cost && <span title="cost">{cost}</span>}
      <Fill used={a?.context} of={a?.window} />
      {a?.model && <span title={line(a.model, 200)}>{line(a.alias || a.model, 30)}</span>}
    </div>,
  ]
}
