// What pointers do while they are down on a drawing: the mouse, a pen or fingers.

const down = new Map<number, PointerEvent>()
const apart = (a: PointerEvent, b: PointerEvent) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1

// grip has a drawing follow the pointers from the one that e reports on: move gets by how much they go along,
// and stretch by how much two of them go apart, and their middle. done is called where the last is let go. A
// touch that the browser takes for scrolling is cancelled: then done is not called.
export function grip(e: PointerEvent, move: (dx: number, dy: number) => void, stretch: (by: number, x: number, y: number) => void, done: (u: PointerEvent) => void = () => {}) {
  if (e.button) return // of a mouse, which opens a menu
  const first = !down.size
  down.set(e.pointerId, e)
  if (!first) return
  const stop = new AbortController()
  const on = (type: string, f: (m: PointerEvent, was: PointerEvent) => void) => addEventListener(type, (m: any) => {
    const was = down.get(m.pointerId)
    if (was) f(m, was)
  }, { signal: stop.signal })
  const up = (u: PointerEvent) => {
    down.delete(u.pointerId)
    if (down.size) return
    stop.abort()
    if (u.type === "pointerup") done(u)
  }
  on("pointermove", (m, was) => {
    down.set(m.pointerId, m)
    move((m.clientX - was.clientX) / down.size, (m.clientY - was.clientY) / down.size)
    for (const [id, o] of down) if (id !== m.pointerId) stretch(apart(m, o) / apart(was, o), (m.clientX + o.clientX) / 2, (m.clientY + o.clientY) / 2)
  })
  on("pointerup", up)
  on("pointercancel", up)
}
