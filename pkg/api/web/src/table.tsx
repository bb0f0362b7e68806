import { h, type Child } from "./dom"

// Table is rows below a head. It scrolls by itself where it is wider than its place.
export const Table = (p: { head: Child[]; class?: string; children?: Child }) => (
  <div class="scrolls"><table class={p.class}><thead><tr>{p.head.map((c) => <th>{c}</th>)}</tr></thead><tbody>{p.children}</tbody></table></div>
)
