// A long list of entries, of which not all are here: the newest page is, and those that were wanted
// last. The others are read again when somebody looks at them.

import { redraw } from "./dom"
import type { Entry } from "./types"

export class Pages {
  #here = new Map<number, Entry[]>() // the page that was wanted last is the last
  #reading = new Map<number, Promise<Entry[]>>()
  #newest = 0

  // size is how many entries a page has, most how many pages are here, and again reads one.
  constructor(private readonly size: number, private readonly most: number, private readonly again: (page: number) => Promise<Entry[]>) {}

  // add puts the entry of a number behind those before.
  add(n: number, e: Entry) {
    this.#newest = Math.floor(n / this.size)
    const all = this.#here.get(this.#newest) ?? this.#put(this.#newest, [])
    all[n % this.size] = e
  }

  // get is the entry of a number; undefined = it is being read.
  get(n: number): Entry | undefined {
    const p = Math.floor(n / this.size)
    const all = this.#here.get(p)
    if (all) {
      this.#here.delete(p)
      this.#put(p, all)
    } else this.#read(p)
    return all?.[n % this.size]
  }

  // wait is get, once it has been read; with far, what is not here is read into that.
  async wait(n: number, far?: Pages): Promise<Entry | undefined> {
    const p = Math.floor(n / this.size)
    const all = this.#here.get(p)
    if (far && !all) return far.wait(n)
    return (all ?? (await this.#read(p)))[n % this.size]
  }

  #put(p: number, all: Entry[]): Entry[] {
    this.#here.set(p, all)
    for (const old of this.#here.keys()) if (this.#here.size > this.most && old !== this.#newest) this.#here.delete(old)
    return all
  }

  #read(p: number): Promise<Entry[]> {
    let r = this.#reading.get(p)
    if (!r) {
      this.#reading.set(p, (r = this.again(p).then((all) => this.#put(p, all))))
      const done = () => {
        this.#reading.delete(p)
        redraw()
      }
      r.then(done, () => setTimeout(done, 3000))
    }
    return r
  }
}
