// The deliverable of a task.

import { h, redraw } from "../dom"
import { failed, path, Problem, say, silent } from "../request"
import { line, Text } from "../text"
import { Button } from "../ui"

const most = 1e6 // bytes that are shown; the whole is downloaded
const texts = new Map<string, string>() // of those that are shown now

// begins is how the file at an address begins; no more of it is fetched.
async function begins(at: string): Promise<string> {
  const r = await fetch(at)
  if (!r.ok) throw await failed(r)
  const reader = r.body!.getReader()
  const decoder = new TextDecoder()
  let text = ""
  while (text.length < most) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value, { stream: true })
    if (text.includes("\0")) break
  }
  reader.cancel()
  return text.includes("\0") ? "It is no text. Download it." : text + "\n… Download it for the rest."
}

async function toggle(at: string) {
  if (!texts.delete(at)) {
    texts.set(at, "Looking…")
    redraw()
    const text = await begins(at).catch((e) => say(e instanceof Problem ? e : silent()))
    if (texts.has(at)) texts.set(at, text)
  }
  redraw()
}

export function Deliverable(p: { team: string; task: string; path: string }) {
  const at = "/v1" + path(p.team, "tasks", p.task, "deliverable")
  return <span gone={() => texts.delete(at)}><bdi class="mono">{line(p.path, 200)}</bdi> <Button class="quiet" do={() => toggle(at)}>{texts.has(at) ? "Hide" : "Show"}</Button> <a href={at} download={p.path.split("/").pop()}>Download</a>
    {texts.has(at) && <Text id={at} of={texts.get(at)} mono />}</span>
}
