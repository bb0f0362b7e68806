// Windows above the page: a question, a sheet, the keys.

import { h, redraw, type Child } from "./dom"
import type { Key } from "./keys"

// The one question that is open, before what cannot be undone.
let question: { text: string; button: string; bad: boolean; answer: (yes: boolean) => void } | null = null

// sure asks before something that cannot be undone.
export function sure(text: string, button: string, bad = true): Promise<boolean> {
  question?.answer(false)
  return new Promise((answer) => {
    question = { text, button, bad, answer }
    redraw()
  })
}

const shut = (yes: boolean) => {
  question?.answer(yes)
  question = null
  redraw()
}

// Sheet is a window above the page, with a name and a way out.
export function Sheet(p: { name: string; leave?: string; shut: () => void; wide?: boolean; children?: Child }) {
  return <dialog key={p.name} class={p.wide ? "wide" : undefined} each={modal} gone={close} aria-label={p.name} oncancel={(e: Event) => { e.preventDefault(); p.shut() }} onclick={(e: Event) => { if (e.target === e.currentTarget) p.shut() }}>
    <div class="acts"><b dir="auto">{p.name}</b><button type="button" onclick={p.shut}>{p.leave || "Close"}<kbd aria-hidden="true">Esc</kbd></button></div>
    {p.children}
  </dialog>
}

const modal = (el: any) => { if (!el.open) el.showModal() }
const close = (el: any) => el.close() // which puts the focus back to where it was

export function Question() {
  const q = question
  return q && <Sheet name={q.text} leave="Leave it" shut={() => shut(false)}>
    <div class="acts"><button class={q.bad ? "bad" : "main"} onclick={() => shut(true)}>{q.button}</button></div>
  </Sheet>
}

let helped = false
export function toggleHelp() {
  helped = !helped
  redraw()
}

// Help lists the keys.
export function Help(p: { groups: () => [string, Key[]][] }) {
  return helped && <Sheet name="Keys" shut={toggleHelp}>
    {p.groups().map(([name, keys]) => keys.length > 0 && <section><h3>{name}</h3><dl class="keys">
      {keys.map((k) => [<dt>{k.keys.split(" ").map((x) => <kbd>{named[x] || x}</kbd>)}</dt>, <dd>{k.does}</dd>])}
    </dl></section>)}
  </Sheet>
}

const named: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" }
