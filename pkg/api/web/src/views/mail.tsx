// Mail between members and with the person, in threads.

import { h, type Child } from "../dom"
import { List } from "../list"
import { Markdown } from "../markdown"
import { filter, picked, type Route } from "../route"
import { team } from "../store"
import { line, part, Time } from "../text"
import { key, type Key } from "../keys"
import { colour, OnlyMember, Who } from "../member"
import { Button, Choice, Empty, Find, findKey, focus, has, Mail, moves, write } from "../ui"
import type { Message } from "../types"
import type { View } from "../view"
import { Delivery, storedMessage } from "./delivery"

interface Thread { id: string; mail: Message[]; last: number }

let threads: Thread[] = []
const of = new Map<string, Thread>() // by the id of each message
let seen = 0 // of the mail of the log
let from: unknown

// collect puts new mail into threads: an answer stands with what it answers. What the log holds no
// more is dropped here too.
function collect() {
  const { mail } = team!.log
  if (from !== mail) {
    threads = []
    of.clear()
    seen = 0
    from = mail
  }
  for (; seen < mail.length; seen++) {
    const m = mail[seen]
    if (of.has(m.id)) continue
    let t = m.in_reply_to ? of.get(m.in_reply_to) : undefined
    if (!t) threads.push((t = { id: m.id, mail: [], last: 0 }))
    t.mail.push(m)
    t.last = seen
    of.set(m.id, t)
  }
}

const newest = (t: Thread) => t.mail.at(-1)!

function found(): Thread[] {
  collect()
  const words = picked("q")
  const who = picked("member")
  return threads.filter((t) => (!who || t.mail.some((m) => m.from === who || m.to === who)) && (!words || has(words, t.mail.map((m) => m.content + " " + m.summary + " " + m.from + " " + m.to).join(" "))))
    .sort((a, b) => b.last - a.last)
}

let selected = ""

const show = (id: string) => filter("thread", id, true)

function Detail(p: { t: Thread }) {
  const { t } = p
  const last = newest(t)
  const [some, more] = part("thread" + t.id, t.mail, -100)
  const back = last.from !== "user" ? last.from : last.to
  return <section class="thread" aria-label="Thread">
    <div class="tools"><Button class="quiet back" do={() => show("")}>← All mail</Button></div>
    {more}{some.map((m) => {
      const l = storedMessage(m.id)
      return <article class={"message" + (m.from === "user" ? " mine" : "")} key={m.id}>
        <div class="head"><Who of={m.from} /> → <Who of={m.to} />{m.urgent && <b class="badge warn">urgent</b>}{m.await_reply && <span class="badge">asks</span>}<span class="gap"></span><Time at={m.created_at} /></div>
        <Markdown id={"m" + m.id} of={(l || m).content || (l || m).summary || ""} />
        {l && <div class="dim small"><Delivery of={l} /></div>}
      </article>
    })}
    {back !== "*" && back !== "user" && <Mail id={"reply-" + t.id} to={back} label={"Reply to " + line(back, 60)} button="Reply"
      send={(content) => write("reply-" + t.id, back, content, { in_reply_to: last.id })} done="Sent." />}
  </section>
}

function keys(): Key[] {
  if (!team) return []
  const all = found()
  return [
    ...moves("thread", all.map((t) => t.id), selected, (id) => (selected = id), ".threads .on"),
    key("Enter", "open the thread", () => selected && show(selected)),
    key("Escape", "back to all mail", () => show("")),
    findKey("mail"),
    key("w", "write a message", () => focus("write")),
  ]
}

export const mail: View = {
  name: "mail",
  label: "Mail",
  go: "m",
  keys,
  draw(r): Child {
    const all = found()
    const q = picked("q")
    const who = picked("member")
    const thread = picked("thread")
    const open = threads.find((t) => t.id === thread)
    const here = team!.state.present().map((m) => m.id)
    return <div class={"cols mail" + (open ? " opened" : "")}>
      <section class="threads" aria-label="Threads">
        <div class="head tools">
          <h1>Mail</h1>
          <Find what="mail" />
          <OnlyMember />
        </div>
        {all.length === 0 && <Empty>{q || who ? "No mail fits." : "No mail was sent yet."}</Empty>}
        {all.length > 0 && <List id={"mail|" + r.team + "|" + q + "|" + who} count={all.length} estimate={64} label="Threads" keyOf={(i) => all[i].id} row={(i) => {
          const t = all[i]
          const m = newest(t)
          return <button class={"thread-row" + (t === open ? " open" : "") + (t.id === selected ? " on" : "")} onclick={() => show((selected = t.id))}>
            <span class="head"><b class={"c-" + colour(m.from)}><bdi>{m.from === "user" ? "you" : line(m.from, 40)}</bdi></b> → <bdi>{m.to === "user" ? "you" : m.to === "*" ? "everyone" : line(m.to, 40)}</bdi>
              {t.mail.length > 1 && <span class="dim">{t.mail.length} messages</span>}<span class="gap"></span><span class="dim"><Time at={m.created_at} /></span></span>
            <span class="sum dim" dir="auto">{line(m.summary || m.content, 200)}</span>
          </button>
        }} />}
        {team!.log.cut && <p class="dim small">Older mail is not listed.</p>}
        <Mail id="write" label="New message" placeholder="A new message  (w)" button="Send" done="Sent."
          send={(content) => write("write", (document.getElementById("write-to") as HTMLSelectElement).value, content)}
          extra={<Choice id="write-to" label="To" value="" of={[...new Set(["leader", ...here]), "*"].map((m): [string, string] => [m, "to " + (m === "*" ? "everyone" : line(m, 40))])} />} />
      </section>
      {open ? <Detail t={open} /> : <section class="thread"><Empty>Choose a thread, or press j and Enter.</Empty></section>}
    </div>
  },
}
