// What became of a message, for each who gets it.

import { h, redraw } from "../dom"
import { get, path } from "../request"
import { team } from "../store"
import { line, Time, words } from "../text"
import type { Letter } from "../types"

const letters = new Map<string, Letter>()
const asked = new Set<string>()

// letter is a whole message with its delivery, read when somebody looks at it, and again until that has ended.
export function letter(id: string): Letter | undefined {
  const at = path(team!.id, "messages", id)
  if (!asked.has(at)) {
    if (asked.size > 5e3) asked.clear()
    if (letters.size > 5e3) letters.clear()
    asked.add(at)
    get(at).then((l) => {
      letters.set(at, l)
      return l.fates?.some((f: any) => f.fate === "pending" || f.fate === "delivered") && 3000
    }, () => 10_000).then((ms) => {
      if (ms) setTimeout(() => { asked.delete(at); redraw() }, ms)
      redraw()
    })
  }
  return letters.get(at)
}

export function Delivery(p: { of: Letter }) {
  const all = p.of.fates || []
  if (!all.length) return <span class="dim">not delivered to anybody</span>
  return <span>{all.map((f) => <span class={"fate-" + f.fate.replace(/\W/g, "")} key={f.agent_id}>
    {all.length > 1 && line(f.agent_id, 40) + " "}{words(f.fate)} {f.fate !== "pending" && <Time at={f.processed_at || f.delivered_at} />}{f.reason && ": " + line(f.reason, 200)} </span>)}</span>
}
