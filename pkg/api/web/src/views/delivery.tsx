import { h } from "../dom"
import { line, Time, words } from "../text"
import type { Letter } from "../types"

// Delivery is the delivery status of a message, for each who gets it.
export function Delivery(p: { of: Letter }) {
  const all = p.of.fates || []
  if (!all.length) return <span class="dim">not delivered to anybody</span>
  return <span>{all.map((f) => <span class={"fate-" + f.fate.replace(/\W/g, "")} key={f.agent_id}>
    {all.length > 1 && line(f.agent_id, 40) + " "}{words(f.fate)} {f.fate !== "pending" && <Time at={f.processed_at || f.delivered_at} />}{f.reason && ": " + line(f.reason, 200)} </span>)}</span>
}
