// How a team stands: the same fold of its feed as package feed/state in Go, whose comments say
// why. One file of cases tests both, ../../../feed/state/testdata/cases.json. Texts are counted
// in bytes, as the feed counts them. Times are milliseconds since 1970; 0 = not known.

import { made } from "./made"
import type { Approval, Delta, Entry, EventBody, Member as Record_, Message, Task as TaskRecord } from "./types"

export interface Call {
  id: string
  message: string
  run: string
  name: string // of the tool, as the model calls it
  tool: string // the same in our own words
  args: string
  began: number
  over: boolean // its run has ended without a result
}

export interface Member {
  id: string
  role: string
  colour: string
  person: boolean
  state: string // by its record
  incarnation: number
  here: boolean
  joined: number // grows in the order of joining; 0 = it is not in the team
  lost: boolean
  idle: boolean
  run: string
  task: string
  call: Call | null // whose result it waits for
  since: number
  asks: string // whose answer it waits for
  trouble: string // why its model gives no turn
  refused: number
  retried: boolean
  parked: boolean
  damaged: boolean
}

export interface Task extends TaskRecord {
  tokens: number
  earlier: boolean
}

export interface Draft {
  agent: string
  message: string
  run: string
  begun: number
  from: number // bytes of the text before what is known of it
  text: string
  bytes: number // of text
  open: boolean
  sent: string
  hidden: boolean
}

interface Run { agent: string; id: string; over: boolean }
interface Texts { queue: Draft[]; run: string; closed: string; cut: string[]; turn: string }

const user = "user"
const mostOver = 1000

// nativeTool is our own word for a tool that members wait by.
export const nativeTool = (name: string) => (name === "Bash" ? "bash" : name === "SendMessage" ? "send_message" : name)

export const isPlan = (p: Approval) => (!p.kind || p.kind === "plan") && !p.call
export const asked = (p: Approval) => (p.approver === "human" || !isPlan(p) ? user : "leader")

export const isSubagent = (agent: string) => agent.includes(".")

const encoder = new TextEncoder()
const bytes = (s: string) => encoder.encode(s).length
const head = (s: string, n: number) => new TextDecoder().decode(encoder.encode(s).subarray(0, n))
const fields = (s?: string) => (s || "").trim().replace(/\s+/g, " ")
const asks = (m: Message) => !!m.await_reply || (m.choices?.length ?? 0) > 0
const time = (t: string | null | undefined) => Date.parse(t || "") || 0

function parsed(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

// waits is the agent that waits for the answer to q: the holder of the task for which it is asked; "" = none.
const waits = (q: Message, t?: TaskRecord) => (!q.task_id || !t ? q.from : t.status === "in_progress" ? t.assignee : "")

// answers reports whether m is an answer to q.
const answers = (m: Message, q: Message, waiting: string) =>
  (m.in_reply_to === q.id || (!m.in_reply_to && !!waiting && (m.to === waiting || m.to === "*"))) && m.type !== "idle_notification" && !m.drain

const isOver = (t: TaskRecord) => t.status !== "pending" && t.status !== "in_progress"

export class Team {
  members = new Map<string, Member>()
  tasks = new Map<string, Task>()
  questions = new Map<string, Message>() // to people, and not answered
  plans = new Map<string, Approval>() // that wait for a decision
  tokens = 0

  #runs = new Map<string, Run>()
  #over: string[] = []
  #calls = new Map<string, Call[]>()
  #texts = new Map<string, Texts>()
  #joined = 0

  member(id: string): Member {
    return this.members.get(id) ?? blank(id)
  }

  isPerson(id: string) {
    return id === user || this.member(id).person
  }

  // present are the members that are in the team, in the order of joining.
  present(): Member[] {
    return [...this.members.values()].filter((m) => m.joined > 0).sort((a, b) => a.joined - b.joined)
  }

  callsOf(agent: string): Call[] {
    return this.#calls.get(agent) ?? []
  }

  // drafts are the texts that are being written, the oldest first.
  drafts(): Draft[] {
    return [...this.#texts.values()].flatMap((x) => shown(x) ?? []).sort((a, b) => a.begun - b.begun || (a.agent < b.agent ? -1 : 1))
  }

  draft(agent: string): Draft | undefined {
    const x = this.#texts.get(agent)
    return x && shown(x)
  }

  knowMembers(records: Record_[]) {
    const known = new Set<string>()
    for (const r of records) {
      known.add(r.agent_id)
      const m = this.#get(r.agent_id)
      if (m.state === r.state && m.incarnation === r.incarnation && m.state !== "") continue
      record(m, r)
      if (r.state === "stopped") leaves(m)
      else {
        m.here = true
        m.lost = r.state === "lost"
        m.parked = m.parked && r.state !== "joined"
        this.#joins(m)
      }
    }
    for (const [id, m] of this.members) if (m.here && !known.has(id)) leaves(m)
  }

  // counts reports whether a task is of the present goal; without it all are.
  knowTasks(records: TaskRecord[], counts?: (id: string) => boolean) {
    const before = this.tasks
    this.tasks = new Map()
    for (const r of records) {
      const was = before.get(r.id)
      this.tasks.set(r.id, { ...r, tokens: was?.tokens ?? 0, earlier: !!counts && !counts(r.id) })
      if (!was || was.status !== r.status || was.assignee !== r.assignee) this.#hold(r, time(r.updated_at))
    }
  }

  // apply takes in the next entry.
  apply(e: Entry) {
    const b = e.event
    const a = e.agent_id
    const at = time(e.time)
    if (b.type === "CUSTOM" && b.name === "reset" && !a) return
    if (e.role_name) this.#get(a).role = e.role_name
    if (b.tokens && b.tokens > 0) {
      this.tokens += b.tokens
      const task = this.tasks.get(this.member(a).task)
      if (task) task.tokens += b.tokens
    }
    const value: any = b.value
    switch (b.type) {
      case "RUN_STARTED": case "RUN_FINISHED": case "RUN_ERROR": case "TEXT_MESSAGE_CHUNK": case "TOOL_CALL_CHUNK":
      case "TOOL_CALL_RESULT": case "RETRY": case "COMPACTION_FINISHED":
        this.#ran(e, at)
        return
      case "MAIL_SENT":
        if (value) this.#mail(value)
        return
      case "CUSTOM":
        if (b.name === "task" && value) this.#get(a).task = value.id ?? ""
        return
    }
    if (!value) return
    if (b.type.startsWith("TASK_")) {
      if (value.id) this.#task(value, at)
    } else if (b.type.startsWith("MEMBER_")) this.#changed(b.type, { ...value, agent_id: value.agent_id || a }, at)
    else if (b.type.startsWith("APPROVAL_")) this.#plan(value)
  }

  // write takes in a piece of a text that is being written.
  write(d: Delta, now: number) {
    const r = this.#runs.get(d.run_id || d.agent_id)
    if (r?.over) return
    const x = this.#text(d.agent_id)
    if (d.message_id <= x.closed || x.cut.includes(d.message_id)) return
    let w = x.queue.find((w) => w.message === d.message_id)
    if (!w) {
      w = { agent: d.agent_id, message: d.message_id, run: d.run_id || "", begun: now, from: d.offset, text: "", bytes: 0, open: false, sent: "", hidden: false }
      x.queue.push(w)
    }
    if (d.offset < w.from || d.offset > w.from + w.bytes) { // another try, or a piece was lost
      w.from = d.offset
      w.text = ""
      w.bytes = 0
    }
    const before = d.offset - w.from
    w.text = (before === w.bytes ? w.text : head(w.text, before)) + d.text
    w.bytes = before + bytes(d.text)
    w.hidden = w.hidden && d.offset > 0
    this.#next(x)
  }

  #get(id: string): Member {
    return made(this.members, id, () => blank(id))
  }

  #joins(m: Member) {
    m.joined = ++this.#joined
  }

  #text(a: string): Texts {
    return made(this.#texts, a, () => ({ queue: [], run: "", closed: "", cut: [], turn: "" }))
  }

  #hold(task: TaskRecord, at: number) {
    for (const [id, m] of this.members)
      if (m.task === task.id && (task.status !== "in_progress" || task.assignee !== id)) {
        m.task = ""
        m.since = at
      }
    if (task.status === "in_progress") {
      const m = this.#get(task.assignee)
      if (m.task !== task.id && !m.call) m.since = at
      m.task = task.id
      m.idle = false
    }
  }

  #ran(e: Entry, at: number) {
    const b = e.event
    const a = e.agent_id
    let id = e.run_id || ""
    if (!id && b.type === "TOOL_CALL_RESULT") id = this.callsOf(a).find((c) => c.id === (b.toolCallId ?? ""))?.run ?? ""
    const r = this.#run(a, id, b)
    const late = r.over
    const m = this.#get(a)
    const x = this.#text(a)
    switch (b.type) {
      case "RUN_STARTED":
        if (r.over) return
        m.idle = false
        m.call = null
        m.since = at
        break
      case "RUN_FINISHED": case "RUN_ERROR":
        if (r.over) return
        if (m.run === r.id) {
          m.idle = true
          m.call = null
          if (b.type === "RUN_FINISHED") m.since = at
        }
        this.#end(r)
        break
      case "TEXT_MESSAGE_CHUNK":
        answered(m, late, at)
        this.#store(x, b)
        break
      case "TOOL_CALL_CHUNK":
        answered(m, late, at)
        x.turn = b.messageId ?? ""
        this.#called(m, r.id, b, at)
        break
      case "TOOL_CALL_RESULT":
        this.#returned(m, b, at)
    }
    if (!r.over) { // the run was reported
      const w = x.queue.find((w) => w.open)
      if (w && w.run !== r.id) ends(x)
      x.run = r.id
      this.#next(x)
    }
    if (b.type === "RETRY") this.#refused(m, r, b)
  }

  #run(a: string, id: string, b: EventBody): Run {
    const r = made(this.#runs, id || a, () => ({ agent: a, id, over: false }))
    const m = this.#get(a)
    const closes = b.type === "RUN_FINISHED" || b.type === "RUN_ERROR"
    if (!r.over && (m.run === "" || !closes)) m.run = id
    return r
  }

  #end(r: Run) {
    const m = this.#get(r.agent)
    const present = m.run === r.id
    if (present) m.run = ""
    const x = this.#text(r.agent)
    if (x.queue.find((w) => w.open)?.run === r.id) ends(x)
    x.queue = x.queue.filter((w) => w.run !== r.id)
    if (x.run === r.id) x.run = ""
    const calls = this.callsOf(r.agent).filter((c) => !(c.over && present && c.run !== r.id))
    for (const c of calls) if (!c.over && (present || c.run === r.id)) c.over = true
    this.#calls.set(r.agent, calls)
    r.over = true
    if (!r.id) {
      this.#runs.delete(r.agent)
      return
    }
    this.#over.push(r.id)
    if (this.#over.length > mostOver) this.#forget(this.#over.shift()!)
  }

  #forget(run: string) {
    const a = this.#runs.get(run)?.agent ?? ""
    this.#runs.delete(run)
    if (isSubagent(a)) for (const of of [this.members, this.#calls, this.#texts]) of.delete(a)
  }

  // next opens the text that may be seen now.
  #next(x: Texts) {
    const w = x.queue.find((w) => w.open) ?? x.queue.find((w) => w.run === x.run && w.from === 0)
    if (!w) return
    if (!w.open) {
      w.open = true
      if (!this.#runs.has(w.run || w.agent)) this.#run(w.agent, w.run, { type: "" })
    }
    if (w.from === 0 && w.text.startsWith(w.sent)) w.sent = w.text
  }

  #store(x: Texts, b: EventBody) {
    const id = b.messageId ?? ""
    if (id && id === x.closed) return
    const w = x.queue.find((w) => w.open)
    if (!w || w.message !== id || !(b.delta ?? "").startsWith(w.sent)) ends(x)
    x.closed = x.turn = id
    x.queue = x.queue.filter((w) => w.message > id)
    x.cut = x.cut.filter((earlier) => earlier > id)
  }

  #called(m: Member, run: string, b: EventBody, at: number) {
    const name = b.toolCallName ?? ""
    let c: Call = { id: b.toolCallId ?? "", message: b.messageId ?? "", run, name, tool: nativeTool(name), args: b.delta ?? "", began: at, over: false }
    const was = this.#drop(m.id, c.id)
    if (was && was.message === c.message && was.name === c.name && was.args === c.args) c = was
    const calls = this.callsOf(m.id)
    calls.push(c)
    this.#calls.set(m.id, calls)
    if (!m.call || c.tool === "bash") {
      m.call = c
      m.since = at
    }
    const args = c.tool === "send_message" ? parsed(c.args) : null
    if (args?.await_reply === true) m.asks = typeof args.to === "string" ? args.to : ""
    if (c.tool === "ask_user") m.asks = user
  }

  #returned(m: Member, b: EventBody, at: number) {
    const c = this.#drop(m.id, b.toolCallId ?? "")
    if (!c || m.call !== c) return
    m.call = null
    m.since = at
    const other = this.callsOf(m.id).find((c) => !c.over)
    if (other) {
      m.call = other
      m.since = other.began
    }
  }

  #drop(a: string, id: string): Call | undefined {
    const calls = this.callsOf(a)
    const i = calls.findIndex((c) => c.id === id)
    return i < 0 ? undefined : calls.splice(i, 1)[0]
  }

  #refused(m: Member, r: Run, b: EventBody) {
    const cause = fields(b.message)
    if (((b.value as any)?.tried ?? 0) > 0) {
      if (!m.retried && m.refused === 0) {
        m.retried = true
        m.trouble = cause
      }
      return
    }
    if (cause !== m.trouble) {
      m.trouble = cause
      m.refused = 0
    }
    m.refused++
    m.idle = false
    m.call = null
    hide(this.#text(m.id), r.id)
  }

  #mail(m: Message) {
    const to = this.members.get(m.to)
    if (to && to.asks === m.from) to.asks = ""
    for (const [id, q] of this.questions) if (answers(m, q, waits(q, this.tasks.get(q.task_id || ""))) && (m.from === q.to || m.from === user)) this.questions.delete(id)
    if (asks(m)) {
      this.#get(m.from).asks = m.to
      if (this.isPerson(m.to)) this.questions.set(m.id, m)
    }
  }

  #task(r: TaskRecord, at: number) {
    const before = this.tasks.get(r.id)
    this.tasks.set(r.id, { ...r, tokens: before?.tokens ?? 0, earlier: false })
    this.#hold(r, at)
    for (const [id, q] of this.questions) {
      const holder = waits(q, r)
      if (q.task_id !== r.id) continue
      if (isOver(r)) this.questions.delete(id)
      else if (holder && holder !== q.from && before?.assignee !== holder) { // the next holder waits for the answer
        this.#get(q.from).asks = ""
        this.#get(holder).asks = q.to
      }
    }
  }

  #plan(p: Approval) {
    this.plans.delete(p.id)
    const m = this.members.get(p.agent_id)
    if (p.status === "pending" && !p.ended_at) {
      this.plans.set(p.id, p)
      if (!isPlan(p)) this.#get(p.agent_id).asks = asked(p)
    } else if (m && m.asks === asked(p) && !isPlan(p)) m.asks = ""
  }

  #changed(what: string, r: Record_, at: number) {
    const m = this.#get(r.agent_id)
    record(m, r)
    switch (what) {
      case "MEMBER_CREATED":
        this.#joins(m)
        m.lost = m.lost || (m.here && r.incarnation > 1)
        break
      case "MEMBER_JOINED":
        this.#joins(m)
        m.here = true
        m.lost = m.parked = false
        m.idle = true
        break
      case "MEMBER_LOST":
        m.lost = true
        m.call = null
        hide(this.#text(m.id))
        break
      case "MEMBER_STOPPED": case "MEMBER_REMOVED":
        leaves(m)
        hide(this.#text(m.id))
        break
      case "MEMBER_PARKED":
        m.parked = true
        m.since = at
        m.trouble = fields(r.last_error)
        m.damaged = r.state === "waiting_repair"
        break
      case "MEMBER_RESUMED":
        if (m.parked) {
          m.parked = false
          m.trouble = ""
          m.refused = 0
          m.damaged = false
        }
    }
  }
}

function blank(id: string): Member {
  return {
    id, role: "", colour: "", person: false, state: "", incarnation: 0, here: false, joined: 0, lost: false, idle: true, run: "", task: "", call: null, since: 0,
    asks: "", trouble: "", refused: 0, retried: false, parked: false, damaged: false,
  }
}

function record(m: Member, r: Record_) {
  Object.assign(m, { role: r.role || m.role, colour: r.color || "", person: r.backend === "person", state: r.state || "", incarnation: r.incarnation || 0 })
}

function leaves(m: Member) {
  Object.assign(m, { here: false, lost: false, joined: 0, task: "", call: null, idle: true })
}

function answered(m: Member, late: boolean, at: number) {
  if (late) return
  Object.assign(m, { idle: false, since: at, asks: "", trouble: "", refused: 0, retried: false, parked: false })
}

function ends(x: Texts) {
  const i = x.queue.findIndex((w) => w.open)
  if (i >= 0) x.cut.push(x.queue.splice(i, 1)[0].message)
}

function hide(x: Texts, run?: string) {
  x.queue = x.queue.filter((w) => {
    w.hidden = w.hidden || run === undefined || w.run === run
    return !w.hidden || w.open
  })
}

function shown(x: Texts): Draft | undefined {
  return x.queue.findLast((w) => !w.hidden && w.message !== x.turn && w.text)
}
