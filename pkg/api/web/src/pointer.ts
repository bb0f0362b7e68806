// What a pointer does while it is down: the mouse, a pen or a finger.

// drag calls move while the pointer that e reports goes along, and done where it is let go. A touch
// that the browser takes for scrolling is cancelled: then done is not called.
export function drag(e: PointerEvent, move: (m: PointerEvent) => void, done: (u: PointerEvent) => void = () => {}) {
  const stop = new AbortController()
  const on = (type: string, f: (e: PointerEvent) => void) =>
    addEventListener(type, (x) => { if ((x as PointerEvent).pointerId === e.pointerId) f(x as PointerEvent) }, { signal: stop.signal })
  on("pointermove", move)
  on("pointerup", (u) => { stop.abort(); done(u) })
  on("pointercancel", () => stop.abort())
}
