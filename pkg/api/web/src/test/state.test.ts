import { test } from "node:test"
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { Team } from "../state"

const cases = JSON.parse(readFileSync(process.env.CASES!, "utf8"))
const noon = Date.parse("2026-03-14T12:00:00Z")

// stand is what a case wants, of this fold. Go leaves out what is null of its own maps.
function stand(s: any) {
  const members: any = {}
  const calls: any = {}
  for (const m of s.members.values()) {
    members[m.id] = {
      Role: m.role, Colour: m.colour, State: m.state, Run: m.run, Task: m.task, Call: m.call?.id ?? "", Asks: m.asks, Trouble: m.trouble,
      Person: m.person, Here: m.here, Lost: m.lost, Idle: m.idle, Retried: m.retried, Parked: m.parked, Damaged: m.damaged,
      Incarnation: m.incarnation, Joined: m.joined, Refused: m.refused, Since: m.since,
    }
    const open = s.callsOf(m.id).map((c: any) => ({ ID: c.id, Name: c.name, Args: c.args, Over: c.over }))
    if (open.length) calls[m.id] = open
  }
  const tasks: any = {}
  for (const t of s.tasks.values()) tasks[t.id] = { Status: t.status, Assignee: t.assignee, Tokens: t.tokens, Earlier: t.earlier }
  const drafts = s.drafts().map((d: any) => ({ Agent: d.agent, Message: d.message, Text: d.text, From: d.from }))
  return { tokens: s.tokens, members, tasks, questions: list([...s.questions.keys()].sort()), plans: list([...s.plans.keys()].sort()), calls, drafts: list(drafts) }
}

const list = (a: any[]) => (a.length ? a : null)

for (const c of cases)
  test("fold: " + c.name, () => {
    const s = new Team()
    c.inputs.forEach((i: any, n: number) => {
      if (i.entry) for (let k = 0; k < (i.times ?? 1); k++) s.apply(JSON.parse(JSON.stringify(i.entry).replaceAll("#", String(k))))
      else if (i.delta) s.write(i.delta, noon)
      else if (i.members) s.knowMembers(i.members)
      else s.knowTasks(i.tasks, (id) => !i.earlier?.includes(id))
      if (i.want) assert.deepEqual(stand(s), i.want, "after input " + n)
    })
  })
