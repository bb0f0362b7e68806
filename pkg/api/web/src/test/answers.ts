// An API for tests: what it answers stands under the paths of requests, and it keeps what it was asked.

export interface Asked { method: string; path: string; headers: Record<string, string>; body: any }
export const asked: Asked[] = []
export const answers: Record<string, (a: Asked) => any> = {}

// streamed is an answer that is a stream: parts of it, and then its end, or none.
export function streamed(parts: string[], ends = true): Response {
  return new Response(new ReadableStream({
    start(c) {
      for (const p of parts) c.enqueue(new TextEncoder().encode(p))
      if (ends) c.close()
    },
  }))
}

;(globalThis as any).fetch = async (url: string, o: any = {}) => {
  const a = { method: o.method ?? "GET", path: url.replace(/^\/v1/, ""), headers: o.headers ?? {}, body: o.body && JSON.parse(o.body) }
  asked.push(a)
  const answer = answers[a.method + " " + a.path] ?? answers[a.path.split("?")[0]]
  const got = answer ? await answer(a) : new Response(JSON.stringify({ detail: "nothing is here" }), { status: 404 })
  return got instanceof Response ? got : new Response(JSON.stringify(got))
}

// until waits until something holds, by a clock that no test stops.
export async function until(what: string, holds: () => unknown) {
  for (const late = process.hrtime.bigint() + 60_000_000_000n; !holds(); ) {
    if (process.hrtime.bigint() > late) throw new Error("waited in vain: " + what)
    await new Promise((go) => setImmediate(go))
  }
}
