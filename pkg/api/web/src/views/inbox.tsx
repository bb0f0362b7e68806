// What waits for a person, answered where it stands.

import { h, redraw, type Child } from "../dom"
import { Markdown } from "../markdown"
import { api, path } from "../request"
import { act, OpenTeam, type Waiting } from "../store"
import { Ago, line, part, plain, Text } from "../text"
import { pretty } from "../call"
import { key, type Key } from "../keys"
import { Who } from "../member"
import { Box, Button, focus, mayWrite, moves, TaskLink } from "../ui"

let selected = "" // what the keys are for
let ready = 0 // when they begin to be
let mine = "" // what was answered from here last
let rejecting = ""

// shows takes note of what a person sees. If what was selected has gone without an answer from here,
// the keys wait until none was pressed for a moment: who types an answer just then means none of them.
function shows(all: Waiting[]) {
  if (all.some((w) => w.id === selected)) return
  if (selected && selected !== mine) ready = Date.now() + 500
  selected = all[0]?.id ?? ""
}

function choose(id: string) {
  selected = id
  ready = 0
}

async function settle(t: OpenTeam, w: Waiting, what: () => Promise<unknown>) {
  mine = w.id
  await what().catch((e) => { mine = ""; throw e })
  t.settled.add(w.id)
  if (rejecting === w.id) rejecting = ""
  redraw()
}

const answer = (t: OpenTeam, w: Waiting, content: string) =>
  settle(t, w, () => api("POST", path(t.id, "messages", w.id, "answer"), { content, ...(w.question!.to !== "user" && { as: w.question!.to }) }))

const decide = (t: OpenTeam, w: Waiting, approve: boolean, more: object = {}) =>
  settle(t, w, () => api("POST", path(t.id, "approvals", w.id, "decide"), { approve, ...more }))

const approve = (t: OpenTeam, w: Waiting, more: object = {}) => act(w.id, () => decide(t, w, true, more), w.kind === "plan" ? "Approved." : "Allowed.")

function reject(t: OpenTeam, w: Waiting) {
  if (w.kind !== "plan") return act(w.id, () => decide(t, w, false), "Refused.")
  rejecting = w.id
  redraw()
  focus("feedback-" + w.id)
}

export function inboxKeys(t: OpenTeam): Key[] {
  const all = t.waiting()
  if (!mayWrite() || all.length === 0) return []
  if (Date.now() < ready) {
    ready = Date.now() + 500
    return []
  }
  const keys = moves("that waits for you", all.map((w) => w.id), selected, choose, ".ask.on")
  const w = all.find((w) => w.id === selected)
  if (!w) return keys
  if (w.approval) {
    keys.push(key("a", "approve, or allow once", () => approve(t, w)), key("r", "reject", () => reject(t, w)))
    if (w.kind === "permission") keys.push(key("t", "allow for the task", () => approve(t, w, { scope: "task" })))
  } else {
    keys.push(key("a", "answer in words", () => focus("answer-" + w.id)))
    const choices = w.question!.choices || []
    if (choices.length) keys.push(key(choices.slice(0, 9).map((_, i) => i + 1).join(" "), "choose", (k) => act(w.id, () => answer(t, w, choices[+k - 1]), "Answered.")))
  }
  return keys
}

export function Inbox(p: { t: OpenTeam }) {
  const t = p.t
  const all = t.waiting()
  const newest = all.at(-1)
  const [some, more] = part("inbox" + t.id, all, 100)
  shows(all)
  return <section aria-label="Waiting for you">
    <h2 id="waiting" tabindex="-1">Waiting for you {all.length > 0 && <span class="count">{all.length}</span>}</h2>
    <p class="sr" aria-live="polite">{newest ? all.length + " waiting for you. The newest: " + line(newest.from + does(newest), 80) : t.known ? "Nothing waits for you." : ""}</p>
    {all.length === 0 && <p class="dim">{t.known ? "Nothing. The team goes on without you." : "Looking…"}</p>}
    {some.map((w) => <Ask t={t} w={w} on={w.id === selected} key={w.id} />)}{more}
  </section>
}

const does = (w: Waiting) => (w.question ? " asks" : w.kind === "plan" ? " submits a plan" : w.kind === "respawn" ? " is lost: is it to come back?" : " asks for leave")

function Ask(p: { t: OpenTeam; w: Waiting; on: boolean }) {
  const { t, w } = p
  return <article class={"ask" + (p.on ? " on" : "")} aria-label={line(w.from + does(w), 100)} onfocusin={() => { if (selected !== w.id) { choose(w.id); redraw() } }} tabindex="-1">
    <div class="head"><Who of={w.from} /><span>{does(w)} {w.question && w.question.to !== "user" && <Who of={w.question.to} />}</span>{w.task && <TaskLink of={w.task} />}<span class="gap"></span><span class="dim"><Ago at={w.at} /></span></div>
    <div class="body">{body(w)}</div>
    {mayWrite() && (w.question ? answers(t, w, p.on) : decisions(t, w, p.on))}
  </article>
}

function body(w: Waiting): Child {
  if (w.question) return <Markdown id={"q" + w.id} of={w.question.content || w.question.summary || ""} first={1500} />
  const a = w.approval!
  if (!a.call) return <Markdown id={"p" + w.id} of={a.plan || ""} first={1500} />
  if (w.kind === "respawn") return <p>{line(a.call.why, 600)}</p>
  return [<p class="dim">{line(a.call.why, 300)}</p>, <div><b class="tool">{line(a.call.tool, 60)}</b><Text id={"c" + w.id} of={pretty(a.call.arguments)} mono first={1500} /></div>,
    <p class="dim">in <bdi class="mono">{plain(a.call.dir)}</bdi></p>]
}

function answers(t: OpenTeam, w: Waiting, on: boolean): Child {
  const choices = w.question!.choices || []
  if (choices.length) return <div class="acts left">{choices.map((c, i) =>
    <Button id={w.id} hint={on && i < 9 ? String(i + 1) : undefined} do={() => act(w.id, () => answer(t, w, c), "Answered.")}><bdi>{line(c, 200)}</bdi></Button>)}</div>
  return <Box id={"answer-" + w.id} label={"Answer to " + line(w.from, 60)} placeholder={on ? "Answer  (a)" : "Answer"} button="Answer" rows={1} send={(text) => answer(t, w, text)} done="Answered." />
}

function decisions(t: OpenTeam, w: Waiting, on: boolean): Child {
  const a = w.approval!
  const hint = (k: string) => (on ? k : undefined)
  if (rejecting === w.id) return <Box id={"feedback-" + w.id} label="What is to be different" button="Reject" send={(feedback) => decide(t, w, false, { feedback })} done="Rejected."
    extra={<button type="button" onclick={() => { rejecting = ""; redraw() }}>Back</button>} />
  if (w.kind === "plan") return <div class="acts left">
    <Button id={w.id} class="main" hint={hint("a")} do={() => approve(t, w)}>Approve</Button><Button id={w.id} hint={hint("r")} do={() => reject(t, w)}>Reject…</Button></div>
  return <div class="acts left">
    <Button id={w.id} class="main" hint={hint("a")} do={() => approve(t, w)}>{w.kind === "respawn" ? "Bring it back" : "Allow once"}</Button>
    {w.kind === "permission" && <Button id={w.id} hint={hint("t")} title="The same call, as long as it has this task" do={() => approve(t, w, { scope: "task" })}>For the task</Button>}
    {w.kind === "permission" && a.call?.rule && <Button id={w.id} title={"Adds the rule " + line(a.call.rule, 200)} do={() => approve(t, w, { scope: "always" })}>Always: <bdi class="mono">{line(a.call.rule, 60)}</bdi></Button>}
    <Button id={w.id} hint={hint("r")} do={() => reject(t, w)}>{w.kind === "respawn" ? "Leave it" : "Refuse"}</Button></div>
}
