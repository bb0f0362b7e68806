import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import type { OpenTeam } from "../store"
import { read, statusOf } from "../views/board"

const known = (id: string) => id === "T-004"

test("lines become tasks", () => {
  assert.deepEqual(read("Read it ! @coder\n  All of it.\n\tWith care.\n\nTest it !! < 1, t-004", known), [
    { name: "line 1", title: "Read it", description: "All of it.\nWith care.\n", priority: 1, role: "coder", dependencies: [] },
    { name: "line 2", title: "Test it", description: "", priority: 2, role: "", dependencies: ["line 1", "T-004"] },
  ])
  assert.deepEqual(read(" \n", known), [])
})

test("a title may have any sign", () => {
  const one = (text: string) => {
    const { title, priority, role, dependencies } = read(text, known)[0]
    return [title, priority, role, dependencies]
  }
  for (const text of ["Is a<b, or is it not!", "Check that a < b", "Check that 1 < 2", "Is x < T-005 @home", "Is 2 < 3 < 4", "Write <"]) assert.deepEqual(one(text).slice(0, 2).concat(one(text)[3]), [text.replace(" @home", ""), 0])
  assert.deepEqual(one("Write to \\@bob"), ["Write to @bob", 0, "", []])
  assert.deepEqual(one("Say it \\!"), ["Say it !", 0, "", []])
  assert.deepEqual(one("Is 0 \\< 1 ! < T-004"), ["Is 0 < 1", 1, "", ["T-004"]])
})

test("a description keeps its form", () => {
  assert.equal(read("Write it\n\n  As this:\n\n    if x {\n    }\n\n\nTest it", known)[0].description, "As this:\n\n  if x {\n  }\n")
})

// A team of which only what is given is known.
const team = (tasks: any[], agents: any[] = []) => ({ id: "red", state: { tasks: new Map(tasks.map((t) => [t.id, t])) }, agents: new Map(agents.map((a) => [a.agent_id, a])) }) as unknown as OpenTeam

test("a task is merging while its holder waits for the line with it", () => {
  const one = (status: string, more: any = {}) => ({ id: "T-001", title: "x", status, assignee: "coder-1", ...more })
  const waits = (task: string, more: any = {}) => [{ agent_id: "coder-1", task, waits_for: "merge", ...more }]
  const of = (task: any, agents: any[]) => statusOf(team([task], agents), task)
  assert.equal(of(one("in_progress"), waits("T-001")), "merging")
  assert.equal(of(one("in_progress"), waits("T-002")), "in_progress") // as it stood before
  assert.equal(of(one("in_progress"), waits("T-001", { waits_for: "person" })), "in_progress")
  assert.equal(of(one("in_progress", { assignee: "coder-2" }), waits("T-001")), "in_progress")
  assert.equal(of(one("completed"), waits("T-001")), "completed")
  assert.equal(of(one("pending", { dependencies: ["T-009"] }), waits("T-001")), "blocked")
})
