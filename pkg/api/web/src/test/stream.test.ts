import { mock, test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, streamed, until } from "./answers"
import { follow } from "../stream"

let now = 0
let step = 0 // how much time passes between two looks at the clock
;(globalThis as any).performance = { now: () => (now += step) }
const connections = () => asked.filter((a) => a.path === "/s").length

// source follows /s and keeps what comes.
function source() {
  const got = { events: [] as string[], states: [] as string[], waits: [] as number[], restarts: 0, end: () => {} }
  asked.length = 0
  got.end = follow({
    url: () => "/v1/s",
    on: (name, data, id) => got.events.push([name, data, id].join("|")),
    state: (c, _, at) => { got.states.push(c); if (at) got.waits.push(at - Date.now()) },
    restart: () => got.restarts++,
  })
  return got
}

test("a stream goes on behind the last id, however it is cut into parts", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] })
  const parts = [["id: c1\nda", "ta: on", "e\n\n: keep-alive\n\nevent: delta\r\ndata: x\r\ndata: y\r\n\r\nid: c2\ndata: two\n\nid: c3\ndata: ha"], ["id: c3\ndata: three\n\n"]]
  answers["/s"] = () => streamed(parts[connections() - 1] ?? [], connections() < 2)
  const s = source()
  await until("the rest", () => { mock.timers.tick(100); return s.events.length === 4 })
  assert.deepEqual(s.events, ["|one|c1", "delta|x\ny|", "|two|c2", "|three|c3"])
  assert.deepEqual(asked.map((a) => a.headers["Last-Event-ID"]), [undefined, "c2"])
  s.end()
  mock.timers.reset()
})

test("the wait for a server that is away grows, but not after streams that have lasted", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] })
  answers["/s"] = () => streamed(["data: x\n\n"])
  const longest = async (lasts: number) => {
    step = lasts
    const s = source()
    for (let i = 1; i <= 6; i++) {
      await until("try " + i, () => s.waits.length === i)
      mock.timers.tick(40_000)
    }
    s.end()
    step = 0
    return Math.max(...s.waits)
  }
  assert.ok((await longest(0)) > 5000)
  assert.ok((await longest(20_000)) < 1000)
  mock.timers.reset()
})

test("a cursor that holds no more begins again", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] })
  const all = [() => streamed(["id: c1\ndata: one\n\n"]), () => new Response(JSON.stringify({ detail: "it is old" }), { status: 422 }), () => streamed(["id: d1\ndata: new\n\n"], false)]
  answers["/s"] = () => all[connections() - 1]()
  const s = source()
  await until("the new beginning", () => { mock.timers.tick(100); return s.events.length === 2 })
  assert.deepEqual([s.restarts, s.events[1], asked[2].headers["Last-Event-ID"]], [1, "|new|d1", undefined])
  s.end()
  mock.timers.reset()
})
