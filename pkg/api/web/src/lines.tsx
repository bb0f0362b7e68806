// Entries of the feed as lines of a stream.

import { h, type Child } from "./dom"
import { kindOf } from "./log"
import { line, Time, words } from "./text"
import { argument } from "./call"
import { Who } from "./member"
import { TaskLink } from "./ui"
import type { Entry } from "./types"

// what says what an entry reports.
export function what(e: Entry): Child {
  const b = e.event
  const v: any = b.value ?? {}
  switch (b.type) {
    case "TEXT_MESSAGE_CHUNK": return line(b.delta, 600)
    case "TOOL_CALL_CHUNK": return b.toolCallName === "finish_team" || b.toolCallName === "TeamDelete" ? "ends the goal" : [<b class="tool">{words(b.toolCallName)}</b>, " ", <code>{argument(b.delta || "")}</code>]
    case "MAIL_SENT": return ["to ", <Who of={v.to || ""} />, ": ", line(v.content || v.summary, 600)]
    case "RETRY": return [v.tried ? "tries its model again: " : "got no turn: ", line(b.message, 400)]
    case "RUN_ERROR": return ["stops: ", line(b.message || b.code, 400)]
    case "COMPACTION_FINISHED": return "has shortened its conversation"
    case "CUSTOM":
      if (b.name === "reset") return "Earlier entries are not stored any more"
      return [words(b.name), " ", line(b.message || v.title, 300)]
  }
  const [kind, ...rest] = b.type.split("_")
  const verb = rest.join(" ").toLowerCase()
  switch (kind) {
    case "TASK": return [<TaskLink of={v.id || ""} />, " " + verb + ": ", line(v.title, 300), v.reason && [" (", line(v.reason, 200), ")"]]
    case "MEMBER": return [verb, v.last_error && [": ", line(v.last_error, 300)]]
    case "APPROVAL": return [v.call ? "leave for " + line(v.call.tool, 60) : "plan", " " + verb, v.task && [" for ", <TaskLink of={v.task} />], v.feedback && [": ", line(v.feedback, 300)]]
  }
  return words(b.type) // of a kind that this page does not know
}

// Line is an entry in one or two lines.
export function Line(p: { of?: Entry }) {
  const e = p.of
  if (!e) return <div class="line dim">…</div>
  return <div class={"line k-" + (kindOf(e) || "run")}>
    <Time at={e.time} /> <Who of={e.agent_id} /> <span class="what" dir="auto">{what(e)}</span>
  </div>
}
