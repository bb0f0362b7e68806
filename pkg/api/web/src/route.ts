// Where the page is stands in its address, behind the #: /TEAM/VIEW/ID?filter=value.

export interface Route {
  team: string
  view: string
  id: string
  query: URLSearchParams
}

export function route(): Route {
  const [where, query = ""] = location.hash.replace(/^#/, "").split("?", 2)
  const [team = "", view = "", ...rest] = where.split("/").filter(Boolean).map(decoded)
  return { team, view, id: rest.join("/"), query: new URLSearchParams(query) }
}

// picked is a part of the query; "" = it is not there.
export const picked = (name: string) => route().query.get(name) || ""

// place is where the person is: the view and what it is of, whatever of it is filtered.
export function place(): string {
  const r = route()
  return [r.team, r.view, r.id].join("/")
}

function decoded(s: string) {
  try {
    return decodeURIComponent(s)
  } catch {
    return s
  }
}

// to is the address of a view.
export function to(team = "", view = "", id = "", query: Record<string, string> = {}): string {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v)).toString()
  return "#/" + [team, view, id].filter(Boolean).map(encodeURIComponent).join("/") + (q ? "?" + q : "")
}

export function go(address: string) {
  location.hash = address
}

// filter sets a part of the query; "" takes it away. What narrows leaves no trace in the browser's history;
// with opens it is a step, from which Back returns.
export function filter(name: string, value: string, opens = false) {
  const r = route()
  const at = to(r.team, r.view, r.id, { ...Object.fromEntries(r.query), [name]: value })
  if (opens) return go(at)
  history.replaceState(null, "", at)
  dispatchEvent(new Event("hashchange"))
}
