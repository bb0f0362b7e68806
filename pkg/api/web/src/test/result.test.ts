import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, until } from "./answers"
import { route } from "../route"
import { openTeam, team } from "../store"
import { result } from "../views/result"

const all = (v: any, tag: string): any[] => (Array.isArray(v) ? v.flatMap((x) => all(x, tag)) : !v?.kids ? [] : [...(v.tag === tag ? [v] : []), ...all(v.kids, tag)])
const says = (v: any): string => (Array.isArray(v) ? v.map(says).join(" ") : v?.kids ? v.text + says(v.kids) : "")

test("what the goal has cost is shown by member and model, and deliverables of any number are", async (t) => {
  const used = (name: string, cost: number | null, parts: any[] = []) => ({ name, model_calls: 1, prompt_tokens: 5, completion_tokens: 5, total_tokens: 10, cost, currency: "USD", parts })
  answers["/teams/red/goal"] = () => ({ goal: "Port it", goal_number: 3, status: "active", usage: { total_tokens: 1200, cost: 6, currency: "USD" } })
  answers["/teams/red/deliverables"] = () => ({ deliverables: Array.from({ length: 450 }, (_, i) => ({ task: "T-" + i, path: "out-" + i })) })
  let priced = true
  answers["/teams/red/usage"] = () => ({ by: "agent", rows: priced ? [used("coder-1", 4, [used("strong", 3), used("cheap", 1)]), used("leader", 2, [used("cheap", 2)])] : [used("coder-1", null, [used("cheap", null)])] })
  ;(globalThis as any).location.hash = "#/red/result"
  openTeam("red")
  let end: any = result.open!(route())
  t.after(() => { end(); openTeam("") })
  await until("the goal", () => team!.goal)
  const drawn = () => result.draw(route())
  const bars = () => all(drawn(), "svg").filter((v) => v.props.class === "bar-chart")
  await until("the cost", () => bars().length)
  assert.deepEqual(asked.filter((a) => a.path.includes("/usage")).map((a) => a.path), ["/teams/red/usage?split=alias&by=agent&goal=-1"])
  assert.deepEqual(bars().map((b) => [b.props.viewBox, ...b.kids.map((r: any) => [r.props.class, r.props.x, r.props.width])]), [["0 0 4 1", ["c-blue", 0, 3], ["c-yellow", 3, 1]], ["0 0 4 1", ["c-yellow", 0, 2]]])
  assert.match(says(drawn()), /strong.*cheap/)
  assert.match(says(drawn()), /1.2k tokens 6.00 USD for this goal/)

  assert.match(says(drawn()), /Show more \(350 are left\)/)
  assert.ok(!says(drawn()).includes("out-100"))

  priced = false // then tokens are what is compared
  end()
  ;(globalThis as any).location.hash = "#/red/result?all=1"
  end = result.open!(route())
  await until("the cost of all goals", () => bars().length === 1)
  assert.equal(asked.filter((a) => a.path.includes("/usage")).at(-1)!.path, "/teams/red/usage?split=alias&by=agent")
  assert.deepEqual(bars()[0].kids.map((r: any) => r.props.width), [10])
})
