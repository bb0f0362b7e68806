// The delivery of a message to each of its recipients.

import { h, redraw } from "../dom"
import { get, path } from "../request"
import { team } from "../store"
import { line, Time, words } from "../text"
import type { StoredMessage } from "../types"

const messages = new Map<string, StoredMessage>()
const asked = new Set<string>()

// storedMessage returns a whole message with its deliveries. It is read when it is first shown, and again until each delivery has ended.
export function storedMessage(id: string): StoredMessage | undefined {
  const at = path(team!.id, "messages", id)
  if (!asked.has(at)) {
    if (asked.size > 5e3) asked.clear()
    if (messages.size > 5e3) messages.clear()
    asked.add(at)
    get(at).then((l) => {
      messages.set(at, l)
      return l.deliveries?.some((f: any) => f.status === "pending" || f.status === "delivered") && 3000
    }, () => 10_000).then((ms) => {
      if (ms) setTimeout(() => { asked.delete(at); redraw() }, ms)
      redraw()
    })
  }
  return messages.get(at)
}

export function Delivery(p: { of: StoredMessage }) {
  const all = p.of.deliveries || []
  if (!all.length) return <span class="dim">not delivered to any member</span>
  return <span>{all.map((f) => <span class={"delivery-" + f.status.replace(/\W/g, "")} key={f.agent_id}>
    {all.length > 1 && line(f.agent_id, 40) + " "}{words(f.status)} {f.status !== "pending" && <Time at={f.processed_at || f.delivered_at} />}{f.reason && ": " + line(f.reason, 200)} </span>)}</span>
}
