import { h } from "../dom"
import { words } from "../text"

const order = ["completed", "in_progress", "pending", "blocked", "failed", "cancelled"]

// Progress is how far the tasks are: a bar, and the numbers.
export function Progress(p: { tasks: Record<string, number> }) {
  const all = [...order, ...Object.keys(p.tasks).filter((s) => !order.includes(s))].filter((s) => p.tasks[s] > 0)
  const total = all.reduce((n, s) => n + p.tasks[s], 0)
  if (!total) return <div class="progress none dim">no tasks yet</div>
  return <div class="progress">
    <div class="barred" role="progressbar" aria-valuemin="0" aria-valuemax={total} aria-valuenow={p.tasks.completed || 0} aria-label={(p.tasks.completed || 0) + " of " + total + " tasks are completed"}>
      {all.map((s) => <span class={"t-" + s.replace(/\W/g, "")} style={{ "flex-grow": String(p.tasks[s]) }} key={s}></span>)}
    </div>
    <div class="legend">{all.map((s) => <span key={s}><i class={"t-" + s.replace(/\W/g, "")}></i>{p.tasks[s]} {words(s)}</span>)}</div>
  </div>
}
