// Requests to /v1.

// Problem is why a request did not do what it was to do, in words for people.
export class Problem extends Error {
  constructor(readonly status: number, detail: string, readonly hint = "") {
    super(detail)
  }
}

// say is an error in a sentence or two.
export const say = (e: any): string => sentence(String(e?.message ?? e)) + (e?.hint ? " " + sentence(e.hint) : "")

function sentence(s: string) {
  s = s.trim()
  return s.charAt(0).toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? "" : ".")
}

export const expired = "Your login has ended: run teamctl web again, and open the address that it prints"

// hint is what a person can do; how a program does the same is left out.
const hint = (s: unknown) => (typeof s === "string" ? s.replace(/^by HTTP: .*?; in a shell: /s, "") : "")

// failed is what an answer that is none of success reports.
export async function failed(r: Response): Promise<Problem> {
  let d: any = null
  try {
    d = await r.json()
  } catch {
    // an answer of something between, or none
  }
  if (r.status === 401) return new Problem(401, expired)
  if (d && typeof d.detail === "string") return new Problem(r.status, d.detail, hint(d.hint))
  return new Problem(r.status, "the API answers with the status " + r.status, r.status >= 500 ? "it may be back soon; try again" : "")
}

export const silent = () => new Problem(0, "the API does not answer", "its process may be starting again; this page tries on")

// Key is an Idempotency-Key: a request that is sent again under it does nothing twice.
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("")

// api sends a request and returns the document of the answer. It waits for 40 s at most, and fails
// with a Problem.
export async function api(method: string, path: string, body?: unknown, key?: string): Promise<any> {
  const headers: Record<string, string> = { Accept: "application/json" }
  if (method !== "GET") headers["Content-Type"] = "application/json"
  if (key) headers["Idempotency-Key"] = key
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), 40_000)
  try {
    const r = await fetch("/v1" + path, { method, headers, body: JSON.stringify(body), signal: stop.signal })
    if (!r.ok) throw await failed(r)
    return r.status === 204 ? null : await r.json()
  } catch (e) {
    throw e instanceof Problem ? e : silent()
  } finally {
    clearTimeout(timer)
  }
}

export const get = (path: string) => api("GET", path)

// path is that of a team, or of what of it the parts name, whatever is in them.
export const path = (...parts: string[]) => ["teams", ...parts].map((p) => "/" + encodeURIComponent(p)).join("")
