import { h } from "../dom"
import { Legend } from "../drawing"
import { words } from "../text"

const order = ["completed", "in_progress", "merging", "pending", "blocked", "failed", "cancelled"]

// colourOf is the class of a status, also of one of the future.
const colourOf = (s: string) => "t-" + s.replace(/\W/g, "")

// Progress is how far the tasks are: a bar, and the numbers.
export function Progress(p: { tasks: Record<string, number> }) {
  const all = [...new Set([...order, ...Object.keys(p.tasks)])].filter((s) => p.tasks[s] > 0)
  const done = p.tasks.completed || 0
  const total = all.reduce((n, s) => n + p.tasks[s], 0)
  if (!total) return <div class="progress dim">no tasks yet</div>
  return <div class="progress">
    <div class="barred" role="progressbar" aria-valuemin="0" aria-valuemax={total} aria-valuenow={done} aria-label={done + " of " + total + " tasks are completed"}>
      {all.map((s) => <span class={colourOf(s)} style={{ "flex-grow": String(p.tasks[s]) }} key={s}></span>)}
    </div>
    <Legend of={all.map((s) => [colourOf(s), p.tasks[s] + " " + words(s)])} />
  </div>
}
