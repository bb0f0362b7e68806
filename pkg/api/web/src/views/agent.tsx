// A member: its conversation as a person reads it, and what a person may do with it.

import { h, redraw, type Child } from "../dom"
import { atEnd, List, toEnd, toRow } from "../list"
import { Markdown } from "../markdown"
import { api, path, say, type Problem } from "../request"
import { picked, route, to } from "../route"
import { act, note, team } from "../store"
import { follow } from "../stream"
import { Ago, line, Name, Text, Time, words } from "../text"
import { argument, pretty } from "../call"
import { sure } from "../dialog"
import { key, type Key } from "../keys"
import { colour, Doing, standOf, Who } from "../member"
import { Button, Empty, Find, findKey, focus, Jump, Mail, mayWrite, TaskLink, write } from "../ui"
import { Transcript } from "../transcript"
import type { Entry } from "../types"
import type { Route } from "../route"
import type { View } from "../view"
import { Delivery, storedMessage } from "./delivery"

let said = new Transcript("")
let why: Problem | undefined
let read = false
const open = new Set<string>() // what was unfolded
let urgent = false
let sent: { id: string; text: string }[] = []

function begin(r: Route): () => void {
  const where = path(r.team, "members", r.id, "transcript")
  const clear = () => {
    said = new Transcript(where)
    read = false
  }
  clear()
  why = undefined
  sent = []
  found = -1
  jumped = ""
  const end = follow({
    url: () => "/v1" + where,
    on: (name, data, id) => {
      if (name === "") said.add(+id - 1, JSON.parse(data))
      redraw(100)
    },
    state: (c, p) => {
      why = c === "live" ? undefined : p
      if (c === "live") read = true
      redraw()
    },
    restart: clear,
  })
  return () => {
    end()
    searches++
  }
}

const Fold = (p: { id: string; title: Child; children?: Child; class?: string }) => (
  <details class={"fold " + (p.class || "")} open={open.has(p.id)} ontoggle={(e: any) => { if (e.target.open) open.add(p.id); else open.delete(p.id); redraw() }}>
    <summary>{p.title}</summary>{open.has(p.id) && p.children}
  </details>
)

function Call(p: { e: Entry; result?: Entry; id: string }) {
  const b = p.e.event
  const result = p.result?.event.content
  const bad = /^[[{"]*error/i.test(result || "")
  return <Fold id={p.id} class={bad ? "failed" : ""} title={[<b class="tool">{words(b.toolCallName)}</b>, " ", <code>{argument(b.delta || "")}</code>, " ",
    <span class="dim outcome">{result === undefined ? "…" : line(result, 80) || "done"}</span>]}>
    <Text id={p.id + "a"} of={pretty(b.delta || "")} mono />{result !== undefined && [<div class="dim small">result</div>, <Text id={p.id + "r"} of={result} mono />]}
  </Fold>
}

function body(e: Entry, result: Entry | undefined, n: number, id: string): Child {
  const b = e.event
  const v: any = b.value ?? {}
  const key = id + "|" + n
  switch (b.type) {
    case "TEXT_MESSAGE_CHUNK": return <Markdown id={key} of={b.delta || ""} />
    case "TOOL_CALL_CHUNK": return <Call e={e} result={result} id={key} />
    case "TOOL_CALL_RESULT": return <Fold id={key} title={["a result ", <span class="dim">{line(b.content, 100)}</span>]}><Text id={key} of={b.content} mono /></Fold>
    case "MAIL_SENT": return <div class="mail-part"><div class="dim">{v.from === id ? ["to ", <Who of={v.to || ""} />] : ["mail from ", <Who of={v.from || e.agent_id} />]}{v.urgent && <b class="badge warn">urgent</b>}</div>
      <Markdown id={key} of={String(v.content || v.summary || "")} first={1500} /></div>
    case "COMPACTION_FINISHED": return <Fold id={key} class="mark" title="The conversation was made shorter here"><Markdown id={key} of={b.message || ""} /></Fold>
    case "RETRY": return <p class="badge bad">{v.tried ? "Its model is tried again: " : "Its model gave no turn: "}{line(b.message, 500)}</p>
    case "CUSTOM":
      if (b.name === "task") return <div class="given" id={"given-" + n}>was given <TaskLink of={v.id || ""} /> <b dir="auto">{line(v.title, 200)}</b></div>
      return <Fold id={key} title={<span class="dim">{words(b.name)}: {line(b.message, 120)}</span>}><Text id={key} of={b.message} /></Fold>
  }
  return <span class="dim">{words(b.type)} {line(b.message, 200)}</span>
}

let found = -1 // the row that was found last
let searches = 0 // each ends the one before
let jumped = "" // the task of the address to whose begin it has gone

const idOf = (r: Route) => "transcript|" + r.team + "|" + r.id

function jump(r: Route, row: number) {
  found = row
  toRow(idOf(r), row)
}

async function search(r: Route, by: number) {
  const q = picked("q").toLowerCase()
  if (!q || !said.rows.length) return
  const mine = ++searches
  const wanted = () => mine === searches
  try {
    const row = await said.find(q, found, by, wanted)
    if (!wanted()) return
    if (row < 0) return note("Nothing of that is in the conversation.")
    jump(r, row)
  } catch (e) {
    if (wanted()) note(say(e), true)
  }
}

async function stop(id: string, name: string, drain: boolean) {
  if (!(await sure(drain ? "Let " + line(name, 60) + " end its task, and then leave?" : "Stop " + line(name, 60) + "? A task that it holds goes back to the board.", drain ? "Drain it" : "Stop it"))) return
  act("stop" + name, () => api("DELETE", path(id, "members", name) + (drain ? "?drain=true&timeout=1" : "?timeout=20")), drain ? "It leaves once it has no task." : "It has left.")
}

const compact = (id: string, name: string) => act("compact" + name, () => api("POST", path(id, "members", name, "compact")), "It is made shorter before its next turn.")

function Head(p: { r: Route }) {
  const { r } = p
  const m = team!.state.member(r.id)
  const a = team!.agents.get(r.id)
  const s = standOf(m, a)
  return <div class={"who-head st-" + s.state}>
    <h1><span class={"c-" + colour(r.id)}><Name of={r.id} /></span> <span class="dim">{line(m.role, 40)} {s.since > 0 && <Ago at={s.since} />}</span></h1>
    <Doing of={m} as={s}>{a?.trouble && <p class="bad">{line(a.trouble, 200)}</p>}</Doing>
    {mayWrite() && m.joined > 0 && <div class="acts left">
      {r.id !== "leader" && [<Button id={"stop" + r.id} do={() => stop(r.team, r.id, true)}>Drain…</Button>, <Button id={"stop" + r.id} class="bad" do={() => stop(r.team, r.id, false)}>Stop…</Button>]}
      {!m.person && <Button id={"compact" + r.id} title="Make its conversation shorter" do={() => compact(r.team, r.id)}>Compact</Button>}
    </div>}
  </div>
}

export const agent: View = {
  name: "agent",
  open: begin,
  keys: (r): Key[] => [
    findKey("in the conversation"),
    key("n", "next place", () => search(r, 1)),
    key("N", "place before", () => search(r, -1)),
    key("G", "to the end, and follow", () => toEnd(idOf(r))),
    key("w", "write to it", () => focus("say-" + r.id)),
  ],
  draw(r): Child {
    const id = idOf(r)
    const draft = team!.state.draft(r.id)
    const task = picked("task")
    const first = task !== jumped && said.given.find((g) => g.id === task)
    if (first) {
      jumped = task
      jump(r, first.row)
    }
    const count = said.rows.length
    return <div class="page agent">
      <Head r={r} />
      <div class="head tools">
        <Find what="in the conversation" enter={(back) => search(route(), back ? -1 : 1)} />
        {said.given.length > 0 && <Jump to="task" go={(i) => jump(r, +i)} of={said.given.map((g): [string, string] => [String(g.row), line(g.id + " " + g.title, 60)]).reverse()} />}
        <span class="dim">{count.toLocaleString()} entries</span>
        <span class="gap"></span>
        {!atEnd(id) && <Button do={() => toEnd(id)} hint="G">Follow ↓</Button>}
      </div>
      {why && !count && <Empty>{say(why)}</Empty>}
      {!why && !count && <Empty>{read ? "It has said and done nothing yet." : "Looking…"}</Empty>}
      {(count > 0 || draft) && <List id={id} class="transcript" count={count + (draft ? 1 : 0)} estimate={60} follow label={"Conversation of " + line(r.id, 60)} row={(i) => {
        if (i === count) return <div class="part live"><div class="at dim">✎</div><div class="what"><Markdown id={id + "draft"} of={draft!.text.slice(-20_000)} first={20_000} /></div></div>
        const { n, e, result } = said.row(i)
        return <div class={"part" + (i === found ? " on" : "")}><div class="at dim"><Time at={e?.time} /></div><div class="what">{e ? body(e, result, n, r.id) : "…"}</div></div>
      }} />}
      <div>
        <Mail id={"say-" + r.id} to={r.id} label={"Message to " + line(r.id, 60)} placeholder={"A message to " + line(r.id, 60) + "  (w)"} button="Send"
          send={async (content) => { sent.push({ id: (await write("say-" + r.id, r.id, content, { urgent })).message_id, text: content }) }} extra={<label class="check" title="It interrupts the reader"><input type="checkbox" checked={urgent} onchange={(e: any) => { urgent = e.target.checked }} /> urgent</label>} />
        {sent.slice(-3).map((s) => {
          const l = storedMessage(s.id)
          return <p class="dim" key={s.id}>{line(s.text, 80)} — {l ? <Delivery of={l} /> : "sent"}</p>
        })}
      </div>
    </div>
  },
}
