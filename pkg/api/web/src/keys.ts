// The keys of the page: which of those that are offered just now one is, and that it is done.

// Key is a key that does something in a view. It is a letter, a digit, Enter or a name of the kind
// of ArrowDown; several with spaces between do the same.
export interface Key { keys: string; does: string; run: (key: string) => void }
export const key = (keys: string, does: string, run: Key["run"]): Key => ({ keys, does, run })

// Keys that only move go on while they are held. Any other acts once for each press: who holds one
// down has not decided twice.
const moving = /^(Arrow.*|[hjklHL+=-])$/

// How long a g waits for the key behind it, in milliseconds.
const leads = 1500

let led = -leads
let handled = "" // the key that was handled last, until the next press of a key

// press does what a key does in a page that offers these.
export function press(e: KeyboardEvent, all: () => Key[]) {
  const at = e.target as HTMLElement
  if (e.repeat && e.key === handled && !moving.test(e.key)) return e.preventDefault()
  handled = ""
  if (e.ctrlKey || e.metaKey || e.altKey || at.closest?.("input, textarea, select, dialog")) return
  const second = e.timeStamp - led < leads
  led = !second && e.key === "g" ? e.timeStamp : -leads
  const k = all().find((k) => k.keys.split(" ").includes((second ? "g" : "") + e.key))
  if (!k || ((e.key === "Enter" || e.key === " ") && at.closest?.("a, button, summary"))) return
  e.preventDefault()
  handled = e.key
  if (!e.repeat || moving.test(e.key)) k.run(e.key)
}

// spells keeps the character of a key that was handled out of the field that the key has opened.
export const spells = (e: KeyboardEvent) => { if (e.key === handled) e.preventDefault() }
