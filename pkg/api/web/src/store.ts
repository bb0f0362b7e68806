// What the page knows: who asks, and how the team stands that it shows.

import { drawn, redraw } from "./dom"
import { Log } from "./log"
import { api, get, newKey, path, Problem, say } from "./request"
import { place } from "./route"
import { asked, isPlan, isSubagent, Team } from "./state"
import { follow, type Conn } from "./stream"
import type { Agent, Approval, Goal, Message, TeamStatus } from "./types"

// session is who asks. Until that is known nothing may be written.
export const session = { mayWrite: false, readOnly: false, newer: false }
let version = "" // of the process that this page is of
let later: any

// askSession is called again when the page is connected again: maybe by another login, or with a
// process of another version.
export async function askSession() {
  clearTimeout(later)
  try {
    const s = await get("/session")
    session.readOnly = s.access === "read"
    session.mayWrite = !session.readOnly
    session.newer = s.version !== (version ||= s.version)
    failing.delete("session")
    settled()
    redraw()
  } catch (e) {
    // The stream tells whether the page is connected; a process of an older version has no sessions.
    if ((e as Problem).status === 401) lost(e, "session")
    later = setTimeout(askSession, 5000)
  }
}

// connected takes note of how the page is connected.
let away = false
function connected(state: Conn, why?: Problem, retryAt = 0) {
  if (state === "live" && away) askSession()
  away = !!why || (away && state !== "live")
  Object.assign(conn, { state, why, retryAt })
  redraw()
}

// lost takes note of a request that was not answered; settled is called when what was asked for is, all of
// it: the stream may have lived on meanwhile, as it does while the process that sends it has lost the NATS
// server. The bar stays as it is until no request fails, but for a login that has ended.
const failing = new Set<string>()
function lost(e: unknown, what: string) {
  failing.add(what)
  const ended = (e as Problem).status === 401
  if (ended || !conn.why) connected(ended ? "expired" : "lost", e as Problem)
}
function settled() {
  if (conn.why && !failing.size && team?.streams) live()
}
function live() {
  failing.clear()
  connected("live")
}

// conn is how the page is connected, for the bar.
export const conn: { state: Conn; why?: Problem; retryAt: number } = { state: "connecting", retryAt: 0 }

// What waits for a person: a question, a plan, or a call that is to be allowed.
export interface Waiting {
  id: string
  kind: "question" | "plan" | "permission" | "respawn" | string
  from: string
  task: string
  at: string
  question?: Message
  approval?: Approval
}

export class OpenTeam {
  state = new Team()
  log: Log
  agents = new Map<string, Agent>() // what the processes say of members, as of the last request
  goal: Goal | null = null
  record: any = null // the team's record
  lastWords = new Map<string, string>() // the newest text of each member
  settled = new Set<string>() // what was answered from here, before the stream says so
  resets = 0
  caughtUp = false // the past has been read
  #early: { question?: Waiting[]; approval?: Waiting[] } = {} // what waits, as it was asked for before that
  streams = false // the stream is there
  strange = 0 // entries of a form that this page does not know
  #end: () => void
  private timers: Record<string, any> = {}
  private asking = new Set<string>()
  #latest = 0
  #over = false

  constructor(readonly id: string) {
    this.log = new Log(id)
    connected("connecting")
    this.#end = follow({
      url: () => "/v1" + path(id) + "/events?follow=true",
      unseen: (after) => path(id) + "/events?limit=1000&after=" + encodeURIComponent(after),
      on: (name, data) => this.#take(name, data),
      state: (c, why, retryAt) => {
        this.streams = c === "live"
        if (this.streams && conn.state !== "live") this.refresh(0)
        if (this.streams) live()
        else connected(c, why, retryAt)
      },
      restart: () => {
        this.state = new Team()
        this.log = new Log(id)
        this.caughtUp = false
        this.resets++
      },
    })
    this.#ask("/questions", (d) => (this.#early.question = (d.messages || []).map(ofQuestion)))
    this.#ask("/approvals", (d) => (this.#early.approval = (d.approvals || []).filter((p: Approval) => asked(p) === "user").map(ofApproval)))
    this.refresh(0)
    this.timers.each = setInterval(() => this.refresh(0), 15_000)
  }

  close() {
    this.#over = true
    this.#end()
    clearInterval(this.timers.each)
    clearTimeout(this.timers.soon)
  }

  // take takes in an event of the stream. One that it cannot is counted, and the next ones are taken.
  #take(name: string, data: string) {
    try {
      this.#fold(name, JSON.parse(data))
    } catch (e) {
      console.error(e)
      this.strange++
    }
    redraw(this.caughtUp ? 100 : 1000) // while the past is read, one drawing a second is enough
  }

  #fold(name: string, d: any) {
    switch (name) {
      case "delta":
        this.state.write(d, this.#latest || Date.now())
        break
      case "snapshot":
        this.state.knowMembers(d.members || [])
        this.state.knowTasks(d.tasks || [], this.#counts)
        break
      case "connection": // the process has lost NATS, or has it again
        if (d.connected === false) lost(new Problem(503, "the cluster's NATS server does not answer", "what is shown here is as it was; this page tries on"), "nats")
        else failing.delete("nats")
        this.refresh(0)
        break
      case "ready":
        if (!this.caughtUp) this.refresh(0) // a hidden tab hears it each time that it has asked
        this.caughtUp = true
        redraw()
        break
      case "reset":
        this.log.add(d)
        break
      case "":
        this.#latest = Date.parse(d.time) || this.#latest
        this.log.add(d)
        this.state.apply(d)
        if (d.event.type === "TEXT_MESSAGE_CHUNK" && !isSubagent(d.agent_id)) this.lastWords.set(d.agent_id, String(d.event.delta || "").slice(-600))
        this.refresh(d.event.type === "MAIL_SENT" ? 500 : 3000)
    }
  }

  #counts = (id: string) => !this.goal?.earlier_tasks?.includes(id)

  // refresh reads again what the feed does not have, after so many milliseconds.
  refresh(after: number) {
    if (this.#over || this.timers.soon) return
    this.timers.soon = setTimeout(() => {
      this.timers.soon = 0
      if (document.hidden && after) return
      this.#ask("/members?all=true", (d) => {
        this.agents = new Map((d.members || []).map((a: Agent) => [a.agent_id, a]))
      })
      this.#ask("/goal", (d) => {
        this.goal = d
        this.state.knowTasks([...this.state.tasks.values()], this.#counts)
      })
      this.#ask("", (d) => (this.record = d))
    }, after)
  }

  async #ask(what: string, take: (d: any) => void) {
    if (this.asking.has(what)) return
    this.asking.add(what)
    try {
      take(await get(path(this.id) + what))
      failing.delete(what)
      redraw()
    } catch (e) {
      const { status } = e as Problem
      if (this.#over) return
      if (status === 401 || status > 502) {
        lost(e, what)
        this.refresh(3000)
      } else if (status) failing.delete(what)
    } finally {
      this.asking.delete(what)
      if (!this.asking.size) settled()
    }
  }

  // known reports whether it is known what waits for a person: the past may be long, so that is asked for first.
  get known() {
    return this.caughtUp || !!(this.#early.question && this.#early.approval)
  }

  // waiting is what waits for a person, as far as that is known, the oldest first.
  waiting(): Waiting[] {
    const all: Waiting[] = []
    const s = this.state
    if (!this.caughtUp) all.push(...(this.#early.question || []), ...(this.#early.approval || []))
    else {
      for (const q of s.questions.values()) if (s.member(q.from).joined > 0) all.push(ofQuestion(q))
      for (const p of s.plans.values()) {
        const m = s.member(p.agent_id)
        const lost = p.kind === "respawn"
        if (asked(p) !== "user" || (!lost && m.joined === 0) || (lost && !m.lost)) continue
        const task = s.tasks.get(p.task || "")
        if (p.task && !lost && (task?.status !== "in_progress" || task.assignee !== p.agent_id)) continue // it has lost the task
        all.push(ofApproval(p))
      }
    }
    return all.filter((w) => !this.settled.has(w.id)).sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  }
}

const ofQuestion = (q: Message): Waiting => ({ id: q.id, kind: "question", from: q.from, task: q.task_id || "", at: q.created_at, question: q })
const ofApproval = (p: Approval): Waiting => ({ id: p.id, kind: isPlan(p) ? "plan" : p.kind || "permission", from: p.agent_id, task: p.task || "", at: p.created_at, approval: p })

export let team: OpenTeam | null = null

// openTeam has the page show a team; "" = none.
export function openTeam(id: string) {
  if ((team?.id ?? "") === id) return
  team?.close()
  failing.clear()
  team = id ? new OpenTeam(id) : null
}

// teams are all teams, while they are shown.
export const teams: { list: TeamStatus[] | null; why?: Problem } = { list: null }

export function watchTeams(): () => void {
  let over = false
  let timer: any
  const ask = async () => {
    try {
      const list: TeamStatus[] = []
      for (let page = ""; ; ) {
        const got = await get("/teams" + page)
        list.push(...got.teams)
        if (!got.next) break
        page = "?page=" + encodeURIComponent(got.next)
      }
      if (over) return
      teams.list = list
      teams.why = undefined
      live()
    } catch (e) {
      if (over) return
      teams.why = e as Problem
      lost(e, "teams")
    }
    timer = setTimeout(ask, document.hidden ? 15_000 : 3000)
  }
  ask()
  return () => {
    over = true
    clearTimeout(timer)
  }
}

// Notes are short reports of what was done, or was not.
export interface Note { text: string; bad: boolean; id: number }
export const notes: Note[] = []
let noted = 0

export function note(text: string, bad = false) {
  const n = { text, bad, id: ++noted }
  notes.push(n)
  if (notes.length > 4) notes.shift()
  setTimeout(() => dismiss(n), bad ? 12_000 : 5000)
  redraw()
}

export function dismiss(n: Note) {
  const i = notes.indexOf(n)
  if (i >= 0) notes.splice(i, 1)
  redraw()
}

const busy = new Set<string>()
export const isBusy = (id: string) => busy.has(id)

// act does what a person has asked for, once at a time under that id, and reports how it went. It
// returns whether it is done.
export async function act(id: string, what: () => Promise<unknown>, done = ""): Promise<boolean> {
  if (busy.has(id)) return false
  busy.add(id)
  const from = document.activeElement
  redraw()
  try {
    await what()
    if (done) note(done)
    return true
  } catch (e) {
    note(say(e), true)
    return false
  } finally {
    busy.delete(id)
    team?.refresh(300)
    redraw()
    if (from && from !== document.body) drawn(() => stay(from))
  }
}

// stay keeps the keyboard where it was, if what had it is gone: at what waits next, or at what is nearest above.
function stay(gone: Element) {
  if (gone.isConnected || (document.activeElement && document.activeElement !== document.body)) return
  document.querySelector<HTMLElement>(".ask.on, #waiting, #main")?.focus()
}

// ask reads something for the view that is shown; fail gets what it was not answered for. What comes
// once a person is elsewhere is for nobody.
export function ask(where: string, take: (d: any) => void, fail: (p: Problem) => void = () => {}) {
  const at = place()
  const here = <T>(f: (got: T) => void) => (got: T) => { if (place() === at) f(got) }
  return get(where).then(here(take), here(fail)).then(() => redraw())
}

// every calls f again and again while the page is seen, until what it returns is called.
export function every(ms: number, f: () => void): () => void {
  const timer = setInterval(() => { if (!document.hidden) f() }, ms)
  return () => clearInterval(timer)
}

// once sends a request under a key that stays the same until it has succeeded, so that a second try
// after no answer does nothing twice.
const keys = new Map<string, string>()
export async function once(id: string, where: string, body: unknown): Promise<any> {
  const name = id + where + JSON.stringify(body)
  if (!keys.has(name)) keys.set(name, newKey())
  const got = await api("POST", where, body, keys.get(name))
  keys.delete(name)
  return got
}

// What a person types is kept by the name of its box, also when another view is shown.
const drafts = new Map<string, string>()
export const typed = (id: string) => drafts.get(id) ?? ""
export function type(id: string, text: string) {
  if (text) drafts.set(id, text)
  else drafts.delete(id)
}
