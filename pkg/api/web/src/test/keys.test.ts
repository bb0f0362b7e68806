import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { press, spells } from "../keys"

// pressed is what keys do, in their order: each a name, or [name, what else its event has].
function pressed(...keys: (string | [string, object])[]): string {
  const done: string[] = []
  const offers = ["a", "Enter", "ArrowDown j", "g", "gt", "t"].map((keys) => ({ keys, does: "", run: (k: string) => done.push(keys.length === 2 ? keys : k) }))
  for (const k of keys) {
    const [key, more] = typeof k === "string" ? [k, {}] : k
    press({ key, timeStamp: 1e6, preventDefault() {}, target: {}, ...more } as any, () => offers)
  }
  return done.join(" ")
}

test("a key that is held acts once, one that moves goes on", () => {
  const held = { repeat: true }
  assert.equal(pressed("a", ["a", held], ["a", held]), "a")
  assert.equal(pressed("a", "a"), "a a")
  assert.equal(pressed("j", ["j", held], "ArrowDown", ["ArrowDown", held]), "j j ArrowDown ArrowDown")
})

test("g waits a moment for the key behind it", () => {
  assert.equal(pressed(["g", { timeStamp: 1000 }], ["t", { timeStamp: 1500 }]), "g gt")
  assert.equal(pressed(["g", { timeStamp: 10_000 }], ["t", { timeStamp: 15_000 }]), "g t")
})

test("keys in fields and with Ctrl are for others", () => {
  const within = (what: string) => ({ target: { closest: (s: string) => s.includes(what) } })
  assert.equal(pressed(["a", within("textarea")], ["a", { ctrlKey: true }], ["Enter", within("button")], ["a", within("button")]), "a")
})

test("a key that opens a field is not typed into it, however long it is held", () => {
  const field = { closest: () => ({}) }
  const typed = (key: string, target: object, repeat = false) => {
    let out = key
    const e = { key, repeat, timeStamp: 1e6, target, preventDefault() { out = "" } } as any
    press(e, () => [{ keys: "r", does: "", run() {} }])
    spells(e)
    return out
  }
  assert.deepEqual([typed("r", {}), typed("r", field, true), typed("r", field, true)], ["", "", ""])
  assert.deepEqual([typed("e", field), typed("r", field), typed("r", field, true)], ["e", "r", "r"])
})
