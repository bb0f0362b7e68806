// Dark or light.

import { redraw } from "./dom"

const worn = document.documentElement.dataset

// theme is light, dark, or "" for that of the system.
export const theme = () => worn.theme || ""

// choose wears a theme from now on.
export function choose(to = "") {
  worn.theme = to
  try {
    localStorage.setItem("theme", to)
  } catch {
    // it holds until the page is left
  }
  redraw()
}

try {
  worn.theme = localStorage.getItem("theme") || ""
} catch {
  // the system's
}
