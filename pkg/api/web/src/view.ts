import type { Child } from "./dom"
import type { Route } from "./route"
import type { Key } from "./keys"

// View is one of the views of the page. A new one is a file in views and a line in views.ts.
export interface View {
  name: string // the part of the address behind the team; "" = the team itself
  label?: string // in the row of views; a view without one is reached by links
  go?: string // the key behind g that leads to it
  top?: boolean // it is of no team
  draw: (r: Route) => Child // unless it is of no team, the team is there

  // open is called when the view begins to be shown, with another team, view or id than before. It
  // returns what is to be called when that ends.
  open?: (r: Route) => (() => void) | void

  keys?: (r: Route) => Key[] // that do something now
}
