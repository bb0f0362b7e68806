// Texts of models, tools, mail and files: shown as what they are, whatever they hold.

import { h, redraw, type Child } from "./dom"

// odd are controls, what Unicode calls ignorable, as it is drawn as nothing, and what breaks lines. A variation selector
// belongs to the character before it, and so does a joiner of emojis.
const odd = /(?![\t\n\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\p{Cc}\p{DI}\u2028\u2029\ufff9-\ufffb]|(?<![\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d/gu

// plain makes characters visible that would hide others, turn them round or move them.
export function plain(s: unknown): string {
  return String(s ?? "").replace(/\r\n/g, "\n").replace(odd, (c) => {
    const n = c.codePointAt(0)!
    return n < 32 ? String.fromCharCode(0x2400 + n) : "⟨" + n.toString(16).toUpperCase().padStart(4, "0") + "⟩"
  })
}

// line is the text in one line, of at most that many characters.
export function line(s: unknown, most = 300): string {
  const text = String(s ?? "").slice(0, most * 4).replace(/\s+/g, " ").trim()
  return plain(text.length > most ? text.slice(0, most) + "…" : text)
}

// Name is a name of a member, a task, a team or a file: nothing in it reaches beyond it.
export const Name = (p: { of: unknown }) => <bdi class="name">{line(p.of, 120)}</bdi>

const step = 4000
const more = new Map<string, number>()

// shownOf is how many characters of a long text are shown, and a button for more. id names the text.
export function cut(id: string, text: string, first = step): { text: string; more: Child } {
  const n = more.get(id) ?? first
  if (text.length <= n * 1.2) return { text, more: null }
  const rest = text.length - n
  return {
    text: text.slice(0, n),
    more: More(id, Math.min(text.length, n + 100_000), rest.toLocaleString() + " characters are left"),
  }
}

const More = (id: string, next: number, why: string) => <button class="more" onclick={() => { more.set(id, next); redraw() }}>{"Show more (" + why + ")"}</button>

// part is what is shown of a list: so many, the last ones with a number below 0, and a button for more, which
// says how many there are. id names the list.
export function part<T>(id: string, all: T[], first: number): [T[], Child] {
  const n = more.get(id) ?? Math.abs(first)
  return [first < 0 ? all.slice(-n) : all.slice(0, n), all.length > n && More(id, n + 300, "these are the " + (first < 0 ? "last " : "first ") + n + " of " + all.length)]
}

// Text is a text as it was written, in lines of its own.
export function Text(p: { id: string; of: unknown; first?: number; mono?: boolean }) {
  const c = cut(p.id, String(p.of ?? ""), p.first)
  return <div class={"text" + (p.mono ? " mono" : "")} dir="auto">{plain(c.text)}{c.more}</div>
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" })
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" })

const ms = (t: unknown) => (typeof t === "number" ? t : Date.parse(String(t ?? "")))

const stamp = (t: number, text: string) => <time datetime={new Date(t).toISOString()} title={exact.format(t)}>{text}</time>

// Time is a time of day here; the exact one is shown on hover.
export function Time(p: { at: unknown }) {
  const t = ms(p.at)
  return t > 0 ? stamp(t, (Date.now() - t < 18 * 3600_000 ? clock : day).format(t)) : <span class="dim">–</span>
}

// Ago is how long ago a time is.
export function Ago(p: { at: unknown }) {
  const t = ms(p.at)
  return t > 0 ? stamp(t, span((Date.now() - t) / 1000)) : null
}

// span is a number of seconds in words.
export function span(s: number): string {
  s = Math.max(0, Math.round(s))
  if (s < 60) return s + " s"
  if (s < 3600) return Math.floor(s / 60) + " min" + (s < 600 && s % 60 ? " " + (s % 60) + " s" : "")
  if (s < 172_800) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min"
  return Math.floor(s / 86_400) + " days"
}

// three is a number of three digits.
const three = (n: number) => +n.toPrecision(3)

// short is a number in at most four characters.
export function short(n: number): string {
  return n < 1000 ? "" + n : n < 999_500 ? three(n / 1000) + "k" : three(n / 1e6) + "M"
}

// price is what a use of models has cost; "" = that is not known.
export const price = (u: any, digits = 2) => (typeof u?.cost === "number" ? u.cost.toFixed(digits) + " " + line(u.currency, 8) : "")

// spent is what a use of models was: tokens, and the cost that is known.
export const spent = (u: any, digits?: number) => short(u?.total_tokens || 0) + " tokens " + price(u, digits)

// words is a value of the API for people: waiting_user is "waiting user"; what is not known is shown as it is.
export const words = (s: unknown) => line(s, 60).replace(/_/g, " ")

// State is how a goal or a team stands, in other words than the API's if there are some.
// State is a status, or how a goal has ended in words: some of its tasks may have failed.
export const State = (p: { of: string; as?: string | false; end?: string }) => <span class={"state s-" + (p.end && p.end !== p.of ? "mixed" : p.of.replace(/\W/g, ""))}>{p.as || p.end || words(p.of)}</span>
