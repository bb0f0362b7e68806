// Tables of any length.

import { drawn, h, type Child } from "./dom"

const shown = new Map<string, number>() // rows

// rowsOf is how many rows a table shows.
export const rowsOf = (id: string) => shown.get(id) ?? 100

// Table is a row for each of these below a head. It scrolls by itself where it is wider than its place. Of
// many the first are shown, and a button for more, which leads to the first of them.
export function Table<T>(p: { id: string; head: Child[]; of: T[]; row: (of: T) => Child; class?: string }) {
  const n = rowsOf(p.id)
  const more = (e: any) => {
    const rows = e.target.previousSibling.firstChild.rows // which grow
    shown.set(p.id, n + 300)
    drawn(() => {
      const row = rows[n + 1] // behind the head
      row.tabIndex = -1
      row.focus()
    })
  }
  return [<div class="scrolls"><table class={p.class}><thead><tr>{p.head.map((c) => <th>{c}</th>)}</tr></thead><tbody>{p.of.slice(0, n).map(p.row)}</tbody></table></div>,
    p.of.length > n && <button class="more" onclick={more}>Show more ({p.of.length - n} are left)</button>]
}
