// Parts of drawings.

import { h } from "./dom"
import { key } from "./keys"

// Legend says what colours mean: classes, each with its text.
export const Legend = (p: { of: [string, string][] }) => <div class="legend">{p.of.map(([name, text]) => <span key={name}><i class={name}></i>{text}</span>)}</div>

// Bar is a bar of parts, each with its class, of which most fills it.
export const Bar = (p: { of: [string, number][]; most: number }) => {
  let x = 0
  return <svg class="bar-chart" viewBox={"0 0 " + p.most + " 1"} preserveAspectRatio="none" aria-hidden="true">{p.of.map(([name, n]) => <rect class={name} x={(x += n) - n} width={n} height="1" />)}</svg>
}

// curve is a line from the right of one thing to the left of another, as the path of an SVG has it.
export const curve = (x1: number, y1: number, x2: number, y2: number) => "M" + x1 + " " + y1 + "C" + (x1 + 20) + " " + y1 + " " + (x2 - 20) + " " + y2 + " " + x2 + " " + y2

// zoomKeys and Zoom are the keys and the buttons of a drawing; closer gets by how much.
export const zoomKeys = (closer: (by: number) => void, whole: () => void) => [key("+ =", "closer", () => closer(1.3)), key("-", "farther", () => closer(1 / 1.3)), key("0", "all of it", whole)]
export const Zoom = (p: { closer: (by: number) => void; whole: () => void }) => [<button aria-label="Closer" onclick={() => p.closer(1.5)}>+</button>, <button aria-label="Farther" onclick={() => p.closer(1 / 1.5)}>−</button>, <button onclick={p.whole}>All</button>]
