// What has happened in a team, however much that is. The newest entries are here whole; of the
// others there is a mark at every 200th, from which they are read again when somebody looks at
// them. So a page that is open for a day holds no more than one that was just opened.

import { Pages } from "./pages"
import { get, path } from "./request"
import { made } from "./made"
import type { Entry, Message } from "./types"

export const kinds = ["says", "tool", "mail", "task", "member", "trouble"] as const
export type Kind = (typeof kinds)[number]

// kindOf is under which kind people look for an entry; "" = it is not shown.
export function kindOf(e: Entry): Kind | "" {
  const b = e.event
  if (typeof b?.type !== "string") return "" // of the future
  switch (b.type) {
    case "TEXT_MESSAGE_CHUNK": return "says"
    case "TOOL_CALL_CHUNK": return "tool"
    case "MAIL_SENT": return "mail"
    case "RETRY": case "RUN_ERROR": case "MEMBER_LOST": case "MEMBER_PARKED": return "trouble"
    case "TOOL_CALL_RESULT": case "RUN_STARTED": case "RUN_FINISHED": return ""
    case "CUSTOM": return b.name === "task" ? "" : "member"
  }
  if (b.type.startsWith("TASK_")) return "task"
  if (b.type.startsWith("APPROVAL_")) return "mail"
  return "member"
}

const page = 200
export const mostMail = 5000 // messages
const long = 4000 // characters of a text that are kept of an entry in a list

// slim is a value without what no list shows: long texts are cut, and lists are left out.
function slim(v: any, deep = 0): any {
  if (typeof v === "string" && v.length > long) return v.slice(0, long) + "…"
  if (!v || typeof v !== "object") return v
  if (deep > 3 || Array.isArray(v)) return undefined
  const out: any = {}
  for (const k in v) if (k !== "description" && k !== "cursor") out[k] = slim(v[k], deep + 1)
  return out
}

export class Log {
  count = 0
  mail: Message[] = [] // the newest of it, for the threads; another list once some was dropped
  cut = false // there was more mail before
  #marks: string[] = [""] // the cursor behind which each page begins
  #kind: (Kind | "")[] = []
  #who: string[] = []
  #pages: Pages
  #views = new Map<string, { seen: number; rows: number[] }>()

  constructor(readonly team: string) {
    this.#pages = new Pages(page, 40, async (p) => { // 8,000 entries
      const after = this.#marks[p]
      return (await get(path(team) + "/events?limit=" + page + (after && "&after=" + encodeURIComponent(after)))).events.map((e: Entry) => slim(e))
    })
  }

  add(e: Entry) {
    this.#kind.push(kindOf(e))
    this.#who.push(e.agent_id)
    const s = slim(e)
    this.#pages.add(this.count++, s)
    if (this.count % page === 0) this.#marks.push(e.cursor)
    if (s.event?.type === "MAIL_SENT" && s.event.value?.id) {
      this.mail.push(s.event.value)
      if (this.mail.length > mostMail) {
        this.mail = this.mail.slice(mostMail / 5)
        this.cut = true
      }
    }
  }

  // rows are the numbers of the entries of these kinds and this member, in order; "" = all.
  rows(only: string, agent: string): number[] {
    const v = made(this.#views, only + "|" + agent, () => ({ seen: 0, rows: [] as number[] }), 8)
    for (; v.seen < this.count; v.seen++) {
      const k = this.#kind[v.seen]
      if (k && (!only || only.includes(k)) && (!agent || this.#who[v.seen] === agent)) v.rows.push(v.seen)
    }
    return v.rows
  }

  // entry is that of a number; undefined = it is being read.
  entry = (n: number) => this.#pages.get(n)
}
