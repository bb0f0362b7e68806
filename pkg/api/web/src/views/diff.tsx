// What tasks have changed, line by line, with a way to say something about a line.

import { h, redraw, type Child } from "../dom"
import { List, toRow } from "../list"
import { get, path, say, type Problem } from "../request"
import { once, team } from "../store"
import { line, plain, Time } from "../text"
import { Box, deaf, Empty, Jump, mayWrite, wakes, write } from "../ui"
import type { Diff as Patch } from "../api"

const sign: Record<string, string> = { more: "+", less: "-", same: " " }

interface Row { kind: "file" | "at" | "more" | "less" | "same" | "note"; text: string; old: number; now: number; file: string }

// One difference is shown at a time.
let shownOf = ""
let versionOf: unknown = null // that was asked for
let patch: Patch | null = null
let rows: Row[] = []
let why: Problem | undefined
let open = -1 // the row that is commented on
let read = 0 // when it was read

// load asks for a difference, if it is another than is shown or has another version; query is what of
// the team's. While a line is commented on nothing changes: lines would move under the comment. The
// next call asks again then, and after a failure.
export function load(id: string, query: string, version: unknown) {
  const mine = id + query
  if (mine !== shownOf) {
    shownOf = mine
    patch = null
    rows = []
    why = undefined
    open = -1
  } else if (version === versionOf || open >= 0) return
  versionOf = version
  const current = () => mine === shownOf && version === versionOf
  // Also what comes once a person is elsewhere is taken: it is here when they are back.
  get(path(id, "diff") + query).then((d) => {
    if (!current()) return
    if (open >= 0) return (versionOf = null)
    patch = d
    rows = parsed(d.diff || "")
    read = Date.now()
    why = undefined
  }, (e) => {
    if (!current()) return
    why = e
    versionOf = null
  }).then(() => redraw())
}

// unquoted is a name as it is, of how git writes it: one with odd characters stands between quotes, its
// bytes by their escapes. One that is no text stays as git writes it.
function unquoted(s: string): string {
  if (s[0] !== '"') return s
  s = s.slice(1, -1)
  try {
    return decodeURIComponent(encodeURIComponent(s).replace(/%5C(\d{3}|%..|.)/g, (_, c) => (c[0] === "%" ? c : "%" + (256 + (c[2] ? parseInt(c, 8) : 7 + "abtnvfr".indexOf(c))).toString(16).slice(1))))
  } catch {
    return s
  }
}

// nameOf is the name of a file for people: what would break its line is to be seen.
const nameOf = (s: string) => plain(s).replace(/[\t\n]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))

// parsed reads a patch as git writes it; what it does not know is shown as it is. A hunk has as many
// lines as its head says: what they look like, and what names look like, changes nothing.
export function parsed(text: string): Row[] {
  const all: Row[] = []
  let file = ""
  let old = 0
  let now = 0
  let less = 0 // lines that are left of the hunk
  let more = 0
  let head: Row | undefined // of the file, as long as lines of its head come
  const add = (kind: Row["kind"], t: string, o = 0, n = 0) => all.push({ kind, text: t, old: o, now: n, file })
  for (const l of text.replace(/\n$/, "").split("\n")) {
    const at = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))?/.exec(l)
    const name = /^(\+\+\+|---|rename to|copy to) (.+?)\t?$/.exec(l)
    if ((less > 0 || more > 0) && /^(?:[ +-]|$)/.test(l)) {
      if (l[0] !== "+") less--
      if (l[0] !== "-") more--
      if (l[0] === "+") add("more", l.slice(1), 0, now++)
      else if (l[0] === "-") add("less", l.slice(1), old++)
      else add("same", l.slice(1), old++, now++)
    } else if (l.startsWith("diff --git ")) {
      less = more = 0
      const both = l.slice(11) // the same name twice, or those of a renamed file, whose head names them again
      file = unquoted(both.slice((both.length + 1) / 2)).slice(2)
      add("file", file)
      head = all.at(-1)!
    } else if (at) {
      head = undefined
      old = +at[1]
      less = +(at[2] ?? 1)
      now = +at[3]
      more = +(at[4] ?? 1)
      add("at", l)
    } else if (head) {
      if (name && name[2] !== "/dev/null") {
        file = head.text = head.file = unquoted(name[2]).slice(/[+-]/.test(name[1]) ? 2 : 0)
        for (let i = all.length - 1; all[i] !== head; i--) all[i].file = file
      }
      if (!/^(index |---|\+\+\+)/.test(l)) add("note", l)
    } else if (l) add("note", l[0] === "\\" ? l.slice(2) : l)
  }
  return all
}

const where = (r: Row) => nameOf(r.file) + ":" + (r.now || r.old)

// Comment goes to who holds the task of the difference, or held it, if that member is there, else to the leader. A
// team that has ended reads no mail, but a task has it begin again.
function Comment(p: { row: Row; task: string; to: string }) {
  const r = p.row
  const ended = deaf()
  const left = !ended && deaf(p.to)
  const to = left ? "leader" : p.to
  const waits = p.task && !/failed|cancelled/.test(team!.state.tasks.get(p.task)?.status || "") // else it would for ever
  const quote = (text: string) => "On " + where(r) + (p.task ? " of " + p.task : "") + ":\n> " + sign[r.kind] + line(r.text, 300) + "\n\n" + text
  const done = () => { open = -1 }
  const id = "comment-" + p.task + where(r)
  let follow = false
  return <div class="comment">
    {(ended || left) && <p class="dim small">{ended || left}{left && " The leader gets it."}</p>}
    {wakes() && <Box id={id} label={"Comment on " + where(r)} rows={2} button={ended ? "Make it a task" : "Send to " + line(to, 40)} done="Said."
      send={async (text) => {
        if (follow || ended) await once(id, path(team!.id, "tasks"), { tasks: [{ title: line(text, 120), description: quote(text), ...(waits && { dependencies: [p.task] }) }] })
        else await write(id, to, quote(text))
        done()
      }} extra={[<button type="button" onclick={() => { done(); redraw() }}>Leave it</button>,
        !ended && <button type="button" onclick={(e: any) => { follow = true; e.target.closest("form").requestSubmit(); follow = false }}>Make it a task</button>]} />}
  </div>
}

// Diff shows what load has asked for. to is who gets a comment, as mail.
export function Diff(p: { id: string; task?: string; to: (file: string) => string }): Child {
  if (why && !patch) return <Empty>{why.status === 404 || why.status === 409 ? "There is no difference to show: " : ""}{say(why)}</Empty>
  if (!patch) return <Empty>Looking…</Empty>
  if (!rows.length) return <Empty>Nothing was changed.</Empty>
  const files = patch.files || []
  const id = "diff|" + shownOf
  return <div style={{ "--h": rows.length * 21 + (open < 0 ? 8 : 160) + "px" }}>
    <div class="head tools"><span class="dim">{files.length} {files.length === 1 ? "file" : "files"}, <b class="good">+{files.reduce((n, f) => n + f.added, 0)}</b> <b class="bad">−{files.reduce((n, f) => n + f.deleted, 0)}</b></span>
      {files.length > 1 && <Jump to="file" go={(f) => toRow(id, rows.findIndex((r) => r.kind === "file" && r.file === f))}
        of={files.map((f): [string, string] => [f.path, nameOf(f.path).slice(-80) + " +" + f.added + " −" + f.deleted])} />}
      <span class="dim">as of <Time at={read} /></span>
      {patch.truncated && <span class="badge warn">cut: teamctl diff shows the rest</span>}</div>
    <List id={id} class="patch" count={rows.length} estimate={20} label="Lines" row={(i) => {
      const r = rows[i]
      if (r.kind === "file") return <div class="d-file"><bdi>{nameOf(r.text)}</bdi></div>
      if (r.kind === "at" || r.kind === "note") return <div class="d-at"><span class="d-text">{line(r.text, 300)}</span></div>
      return <div class={"d-" + r.kind}><div class="d-line">
        {mayWrite() ? <button class="d-n" aria-expanded={"" + (open === i)} aria-label={"Comment on line " + sign[r.kind] + (r.now || r.old)} onclick={() => { open = open === i ? -1 : i; redraw() }}>{r.now || r.old}</button>
          : <span class="d-n">{r.now || r.old}</span>}
        <span aria-hidden="true">{sign[r.kind]}</span><span class="d-text">{plain(r.text.length > 2000 ? r.text.slice(0, 2000) + "…" : r.text) || " "}</span></div>
        {open === i && mayWrite() && <Comment row={r} task={p.task || ""} to={p.to(r.file) || "leader"} />}
      </div>
    }} />
  </div>
}
