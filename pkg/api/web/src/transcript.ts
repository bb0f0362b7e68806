// The conversation of a member, however long that is.

import { Pages } from "./pages"
import { get } from "./request"
import type { Entry } from "./types"

const page = 100 // entries, of which each is here whole

// textOf is what is looked through in an entry.
const textOf = (e?: Entry) => {
  const b = e?.event
  const v: any = b?.value
  return [b?.delta, b?.message, b?.toolCallName, b?.content, v?.content, v?.title].join("\n")
}

export class Transcript {
  rows: number[] = [] // the entry that begins each row: a call and its result are one
  given: { row: number; id: string; title: string }[] = []
  #calls = new Map<string, number>() // without a result so far
  #results = new Map<number, number>() // the entry that is the result of a call
  #entries: Pages

  constructor(private readonly where: string) {
    this.#entries = this.#pages(page, 20)
  }

  #pages(size: number, most: number) {
    return new Pages(size, most, async (p) => (await get(this.where + "?limit=" + size + "&page=" + p * size)).entries)
  }

  // add puts the entry of a number behind those before.
  add(n: number, e: Entry) {
    this.#entries.add(n, e)
    const b = e.event
    if (!b?.type) return // of a future kind
    const id = b.toolCallId || ""
    const call = this.#calls.get(id)
    if (b.type === "TOOL_CALL_RESULT" && call !== undefined) {
      this.#results.set(call, n)
      this.#calls.delete(id)
      return
    }
    if (b.type === "TOOL_CALL_CHUNK") this.#calls.set(id, n)
    const v: any = b.value
    if (b.type === "CUSTOM" && b.name === "task") this.given.push({ row: this.rows.length, id: v?.id, title: v?.title })
    this.rows.push(n)
  }

  // row is what a row shows; undefined = it is being read.
  row(i: number): { n: number; e?: Entry; result?: Entry } {
    const n = this.rows[i]
    const r = this.#results.get(n)
    return { n, e: this.#entries.get(n), result: r === undefined ? r : this.#entries.get(r) }
  }

  // find returns the next row behind one, or with by = -1 before it, that has a text in small letters;
  // -1 = none, or it is wanted no more. It reads what is not here.
  async find(text: string, from: number, by: number, wanted: () => boolean): Promise<number> {
    const all = this.rows.length
    const far = this.#pages(1000, 3)
    for (let i = 1; i <= all; i++) {
      const at = (from + by * i + all * 2) % all
      for (const n of [this.rows[at], this.#results.get(this.rows[at])]) {
        const e = n === undefined ? n : await this.#entries.wait(n, far)
        if (!wanted()) return -1
        if (textOf(e).toLowerCase().includes(text)) return at
      }
    }
    return -1
  }
}
