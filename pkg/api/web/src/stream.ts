// Server-sent events by fetch: other than an EventSource it can tell an expired login from a
// server that is away. It continues behind the last id that it has had, so nothing is missing
// and nothing comes twice.
//
// Browsers open six connections to one origin, over all tabs. So a tab that nobody sees holds
// none: it asks for what is new every few seconds, or waits until it is seen.

import { failed, get, Problem, silent } from "./request"

export type Conn = "connecting" | "live" | "lost" | "expired" | "missing"

export interface Source {
  url: () => string
  on: (name: string, data: string, id: string) => void
  state: (c: Conn, why?: Problem, retryAt?: number) => void
  restart: () => void // the cursor holds no more: what has come so far counts for nothing
  unseen?: (after: string) => string // of a page of the same, for a tab that nobody sees
}

// How long nobody has to have seen the tab, and how often it then asks, in milliseconds.
const left = 20_000
const rarely = 5000

// Without a word for this long, also none that keeps it alive, a stream is taken for lost.
const quiet = 40_000

// A stream that has lasted for so long was no failed try, in milliseconds.
const enough = 10_000

const ended = "the stream has ended"

const breath = () => new Promise<void>((go) => {
  const c = new MessageChannel()
  c.port1.onmessage = () => { c.port1.close(); go() }
  c.port2.postMessage(0)
})

// follow reads a stream until the function that it returns is called.
export function follow(s: Source): () => void {
  let over = false
  let last = ""
  let tries = 0
  let stop: AbortController
  let wake: () => void = () => {}

  async function once() {
    const mine = (stop = new AbortController())
    let connected = Infinity
    let timer: any
    const heard = () => {
      clearTimeout(timer)
      timer = setTimeout(() => mine.abort(), quiet)
    }
    heard()
    try {
      const r = await fetch(s.url(), { headers: { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) }, signal: mine.signal })
      if (!r.ok) throw await failed(r)
      s.state("live")
      connected = performance.now()
      const reader = r.body!.getReader()
      const text = new TextDecoder()
      let rest = ""
      let began = performance.now()
      for (;;) {
        const part = await reader.read()
        if (over) return
        if (part.done) break
        heard()
        rest += text.decode(part.value, { stream: true })
        const events = rest.split(/\r?\n\r?\n/)
        rest = events.pop()!
        for (const event of events) {
          const of = (field: string) => [...event.matchAll(RegExp("^" + field + ": ?(.*)", "gm"))].map((m) => m[1]).join("\n")
          const data = of("data")
          if (data) {
            if (of("event") === "problem") {
              const p = JSON.parse(data)
              throw new Problem(p.status || 0, p.detail || ended, p.hint)
            }
            last = of("id") || last
            s.on(of("event"), data, of("id"))
          }
          if (performance.now() - began > 8) { // the page is to be drawn in between
            await breath()
            if (over) return
            began = performance.now()
          }
        }
        began = performance.now()
      }
      throw new Problem(0, ended)
    } finally {
      if (performance.now() - connected > enough) tries = 0
      clearTimeout(timer)
      mine.abort()
    }
  }

  // pages reads what is new now and then, until the tab is seen or only a stream has what comes next.
  async function pages() {
    while (!over && unseen) {
      for (let more = !!s.unseen; more && !over; ) {
        const got = await get(s.unseen!(last))
        for (const e of got.events) {
          if (e.event?.name === "reset") {
            unseen = false
            return
          }
          s.on("", JSON.stringify(e), e.cursor)
          last = e.cursor
        }
        more = got.more
        s.state("live")
        if (!more) s.on("ready", "{}", "")
      }
      await sleep(rarely)
    }
  }

  const sleep = (ms: number) => new Promise<void>((go) => {
    wake = go
    setTimeout(go, ms)
  })

  async function run() {
    s.state("connecting")
    while (!over) {
      let why: Problem
      try {
        await (unseen && last ? pages() : once())
        continue
      } catch (e) {
        if (over) return
        if (unseen && e instanceof DOMException) continue // the tab was left
        why = e instanceof Problem ? e : silent()
      }
      if (why.status === 422 && last) {
        last = ""
        s.restart()
        if (tries++ === 0) continue
      }
      const wait = Math.min(30_000, 500 * 2 ** Math.min(tries++, 6)) * (0.75 + Math.random() / 2)
      s.state(why.status === 401 ? "expired" : why.status === 404 || why.status === 422 ? "missing" : "lost", why, Date.now() + wait)
      await sleep(wait)
    }
  }

  let unseen = false
  let timer: any
  const again = () => {
    clearTimeout(timer)
    if (!document.hidden) {
      unseen = false
      wake()
    } else timer = setTimeout(() => {
      unseen = true
      stop?.abort()
    }, left)
  }
  addEventListener("online", again)
  document.addEventListener("visibilitychange", again)
  run()
  return () => {
    over = true
    clearTimeout(timer)
    stop?.abort()
    wake()
    removeEventListener("online", again)
    document.removeEventListener("visibilitychange", again)
  }
}
