// Mail between members and with the person, in threads.

import { h, redraw, type Child } from "../dom"
import { List } from "../list"
import { Markdown } from "../markdown"
import { get, path } from "../request"
import { filter, picked, type Route, to } from "../route"
import { team } from "../store"
import { line, Time } from "../text"
import { key, type Key } from "../keys"
import { colour, memberNames, Who } from "../member"
import { Box, Button, Choice, Empty, Find, findKey, focus, has, mayWrite, moves, write } from "../ui"
import type { Letter, Message } from "../types"
import type { View } from "../view"
import { Delivery } from "./delivery"

interface Thread { id: string; mail: Message[]; who: Set<string>; last: number }

let threads: Thread[] = []
const of = new Map<string, Thread>() // by the id of each message
let seen = 0 // of the mail of the log
let from: unknown
const letters = new Map<string, Letter>()
const asked = new Set<string>()

// collect puts new mail into threads: an answer stands with what it answers. What the log holds no
// more is dropped here too.
function collect() {
  const { mail } = team!.log
  if (from !== mail) {
    threads = []
    of.clear()
    letters.clear()
    asked.clear()
    seen = 0
    from = mail
  }
  for (; seen < mail.length; seen++) {
    const m = mail[seen]
    if (of.has(m.id)) continue
    let t = m.in_reply_to ? of.get(m.in_reply_to) : undefined
    if (!t) threads.push((t = { id: m.id, mail: [], who: new Set(), last: 0 }))
    t.mail.push(m)
    t.last = seen
    t.who.add(m.from).add(m.to)
    of.set(m.id, t)
  }
}

const newest = (t: Thread) => t.mail.at(-1)!

function found(r: Route): Thread[] {
  collect()
  const words = picked("q")
  const who = picked("member")
  return threads.filter((t) => (!who || t.who.has(who)) && has(words, t.mail.map((m) => m.content + " " + m.summary + " " + m.from + " " + m.to).join(" ")))
    .sort((a, b) => b.last - a.last)
}

// letter is the whole message with its delivery, read when somebody looks at it.
function letter(id: string, m: Message): Letter | undefined {
  if (!asked.has(m.id)) {
    asked.add(m.id)
    get(path(id, "messages", m.id)).then((l) => {
      letters.set(m.id, l)
      if (l.fates?.some((f: any) => f.fate === "pending" || f.fate === "delivered")) setTimeout(() => asked.delete(m.id), 5000)
      redraw()
    }, () => setTimeout(() => asked.delete(m.id), 10_000))
  }
  return letters.get(m.id)
}

let selected = ""

function Detail(p: { r: Route; t: Thread }) {
  const { r, t } = p
  const last = newest(t)
  const back = last.from !== "user" ? last.from : last.to
  return <section class="thread" aria-label="Thread">
    <div class="tools"><Button class="quiet back" do={() => filter("thread", "")}>← All mail</Button></div>
    {t.mail.slice(-100).map((m) => {
      const l = letter(r.team, m)
      return <article class={"letter" + (m.from === "user" ? " mine" : "")} key={m.id}>
        <div class="head"><Who of={m.from} /> → <Who of={m.to} />{m.urgent && <b class="badge warn">urgent</b>}{m.await_reply && <span class="badge">asks</span>}<span class="gap"></span><Time at={m.created_at} /></div>
        <Markdown id={"m" + m.id} of={(l || m).content || (l || m).summary || ""} />
        {l && <div class="dim small"><Delivery of={l} /></div>}
      </article>
    })}
    {mayWrite() && back !== "*" && back !== "user" && team!.state.member(back).joined > 0 && <Box id={"reply-" + t.id} label={"Reply to " + line(back, 60)} button="Reply"
      send={(content) => write("reply-" + t.id, back, content, { in_reply_to: last.id })} done="Sent." />}
  </section>
}

function keys(r: Route): Key[] {
  if (!team) return []
  const all = found(r)
  return [
    ...moves("thread", all.map((t) => t.id), selected, (id) => (selected = id), ".threads .on"),
    key("Enter", "open the thread", () => selected && filter("thread", selected)),
    key("Escape", "back to all mail", () => filter("thread", "")),
    findKey("mail"),
    key("w", "write to everyone, or to a member", () => focus("write")),
  ]
}

export const mail: View = {
  name: "mail",
  label: "Mail",
  go: "m",
  keys,
  draw(r): Child {
    const all = found(r)
    const q = picked("q")
    const who = picked("member")
    const thread = picked("thread")
    const open = threads.find((t) => t.id === thread)
    const here = team!.state.present()
    return <div class={"cols mail" + (open ? " opened" : "")}>
      <section class="threads" aria-label="Threads">
        <div class="head tools">
          <h1>Mail</h1>
          <Find what="mail" />
          <Choice label="Only with" value={who} of={[["", "with everyone"], ["user", "with you"], ...memberNames()]} pick={(m) => filter("member", m)} />
        </div>
        {all.length === 0 && <Empty>{q || who ? "No mail fits." : "No mail was sent yet. Write to a member below, or on its page."}</Empty>}
        {all.length > 0 && <List id={"mail|" + r.team + "|" + q + "|" + who} count={all.length} estimate={64} label="Threads" keyOf={(i) => all[i].id} row={(i) => {
          const t = all[i]
          const m = newest(t)
          return <button class={"thread-row" + (t === open ? " open" : "") + (t.id === selected ? " on" : "")} onclick={() => { selected = t.id; filter("thread", t.id) }}>
            <span class="head"><b class={"c-" + colour(m.from)}><bdi>{m.from === "user" ? "you" : line(m.from, 40)}</bdi></b> → <bdi>{m.to === "user" ? "you" : m.to === "*" ? "everyone" : line(m.to, 40)}</bdi>
              {t.mail.length > 1 && <span class="dim">{t.mail.length} messages</span>}<span class="gap"></span><span class="dim"><Time at={m.created_at} /></span></span>
            <span class="sum dim" dir="auto">{line(m.summary || m.content, 200)}</span>
          </button>
        }} />}
        {team!.log.cut && <p class="dim small">Older mail is not listed.</p>}
        {mayWrite() && here.length > 0 && <div class="composer"><Box id="write" label="New message" placeholder="A new message  (w)" button="Send" done="Sent."
          send={(content) => write("write", (document.getElementById("write-to") as HTMLSelectElement).value, content)}
          extra={<Choice id="write-to" label="To" value="" of={[...here.map((m): [string, string] => [m.id, "to " + line(m.id, 40)]), ["*", "to everyone"]]} />} /></div>}
      </section>
      {open ? <Detail r={r} t={open} /> : <section class="thread"><Empty>Choose a thread, or press j and Enter.</Empty></section>}
    </div>
  },
}
