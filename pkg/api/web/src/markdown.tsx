// Markdown of models, as nodes of the document: headings, lists, code, quotes, tables, emphasis. A
// link is shown with its address and is opened only by whoever presses it. An image is named, and
// never fetched.

import { h, type Child, type VNode } from "./dom"
import { cut, line, plain } from "./text"

const kept = new Map<string, { text: string; node: VNode }>()

// Markdown shows a text. id names it: as long as the text is the same, nothing is done.
export function Markdown(p: { id: string; of: string; first?: number }) {
  const c = cut(p.id, p.of, p.first)
  const was = kept.get(p.id)
  if (was?.text === c.text) return was.node
  const node = <div class="md" dir="auto">{blocks(c.text.split(/\r?\n/), 0)}{c.more}</div>
  kept.set(p.id, { text: c.text, node })
  if (kept.size > 400) kept.delete(kept.keys().next().value!)
  return node
}

const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+([^]*)$/

function blocks(lines: string[], depth: number): Child[] {
  const all: Child[] = []
  let text: string[] = []
  const flush = (next?: Child) => {
    if (text.length) all.push(<p>{text.map((l, i) => [i > 0 && <br />, inline(l, 0)])}</p>)
    text = []
    if (next) all.push(next)
  }
  for (let i = 0; i < lines.length; i++) {
    const l = lines[i]
    const fence = /^\s*(```+|~~~+)/.exec(l)
    let m: RegExpExecArray | null
    if (fence) {
      const code: string[] = []
      for (i++; i < lines.length && !lines[i].trim().startsWith(fence[1]); i++) code.push(lines[i])
      flush(<pre tabindex="0"><code>{plain(code.join("\n"))}</code></pre>)
    } else if (!l.trim()) flush()
    else if ((m = /^ {0,3}(#{1,6})\s+([^]*)$/.exec(l))) {
      flush(<div class={"h h" + m[1].length} role="heading" aria-level={Math.min(6, m[1].length + 2)}>{inline(m[2], 0)}</div>)
    } else if (/^ {0,3}([-*_])( *\1){2,} *$/.test(l)) flush(<hr />)
    else if (/^ {0,3}>/.test(l) && depth < 4) {
      const inner: string[] = []
      for (; /^ {0,3}>/.test(lines[i]); i++) inner.push(lines[i].replace(/^ {0,3}> ?/, ""))
      i--
      flush(<blockquote>{blocks(inner, depth + 1)}</blockquote>)
    } else if ((m = item.exec(l)) && depth < 6) {
      flush()
      const inner = [m[3]]
      const deep = m[1].length
      for (let next; (next = lines[i + 1]) !== undefined; i++) {
        const indent = next.search(/\S/)
        if (indent >= 0 && indent <= deep) break
        inner.push(next.slice(Math.min(indent, deep + 2)))
      }
      const tag = /\d/.test(m[2]) ? "ol" : "ul"
      let list: any = all.at(-1)
      if (list?.tag !== tag) all.push((list = h(tag, { start: parseInt(m[2]) || undefined })))
      list.kids.push(<li>{inline(inner[0], 0)}{blocks(inner.slice(1), depth + 1)}</li>)
    } else if (l.includes("|") && cells(lines[i + 1] || "").every((c) => /^:?-+:?$/.test(c))) {
      const rows: string[][] = []
      for (i++; lines[i + 1]?.includes("|"); i++) rows.push(cells(lines[i + 1]))
      flush(<div class="scrolls" tabindex="0" role="region" aria-label="table"><table><thead><tr>{cells(l).map((c) => <th>{inline(c, 0)}</th>)}</tr></thead>
        <tbody>{rows.map((r) => <tr>{r.map((c) => <td>{inline(c, 0)}</td>)}</tr>)}</tbody></table></div>)
    } else text.push(l)
  }
  flush()
  return all
}

const cells = (l: string) => l.trim().replace(/^\||\|$/g, "").split("|").slice(0, 40).map((c) => c.trim())

function inline(s: string, depth: number): Child[] {
  if (s.length > 20_000 || depth > 4) return [plain(s)]
  const all: Child[] = []
  const ends = new Map<string, number>() // where each mark stands next, so that it is not looked for again and again
  let from = 0
  const close = (mark: string, at: number) => {
    let end = ends.get(mark) ?? 0
    if (end >= 0 && end < at) ends.set(mark, (end = s.indexOf(mark, at)))
    return end
  }
  const put = (i: number, child: Child, next: number) => {
    if (i > from) all.push(plain(s.slice(from, i)))
    if (child) all.push(child)
    from = next
    return next
  }
  for (let i = 0; i < s.length; ) {
    const c = s[i]
    let end: number
    if (c === "\\" && /[\\`*_[\]!#|]/.test(s[i + 1] || "")) {
      put(i, null, i + 1)
      i += 2
    } else if (c === "`") {
      const mark = /^`+/.exec(s.slice(i, i + 20))![0]
      end = close(mark, i + mark.length)
      i = end < 0 ? i + mark.length : put(i, <code>{plain(s.slice(i + mark.length, end))}</code>, end + mark.length)
    } else if ((c === "*" || c === "_") && (c === "*" || !/\w/.test(s[i - 1] || "")) && /\S/.test(s[i + (s[i + 1] === c ? 2 : 1)] || "")) {
      const mark = s[i + 1] === c ? c + c : c
      end = close(mark, i + mark.length + 1)
      if (end < 0 || /\s/.test(s[end - 1])) i += mark.length
      else i = put(i, h(mark.length > 1 ? "strong" : "em", null, inline(s.slice(i + mark.length, end), depth + 1)), end + mark.length)
    } else if (c === "[" && (end = close("](", i)) > 0 && end - i < 500 && close(")", end) > 0) {
      const shut = close(")", end)
      const image = s[i - 1] === "!"
      i = put(image ? i - 1 : i, link(s.slice(i + 1, end), s.slice(end + 2, shut), image), shut + 1)
    } else if (c === "h" && /^https?:\/\//.test(s.slice(i, i + 8)) && !/\w/.test(s[i - 1] || "")) {
      const url = /^[^\s<>"'`|)\]]+/.exec(s.slice(i, i + 2000))![0].replace(/[.,;:!?]+$/, "")
      i = put(i, link("", url, false), i + url.length)
    } else i++
  }
  put(s.length, null, s.length)
  return all
}

// link is a text with the address that it leads to; only those of the web lead anywhere.
function link(text: string, url: string, image: boolean): Child {
  const safe = /^https?:/i.test(url) && (URL as any).canParse(url) /* which tsc 4.8 does not know */ && new URL(url).href
  const what = <span>{image && "image: "}{plain(text)}{text && " "}</span>
  if (!safe) return <span>{what}<span class="url">({line(url)})</span></span>
  return <span>{what}<button class="url" role="link" title={"Open " + safe.slice(0, 500) + " in a new tab"} onclick={() => window.open(safe, "_blank", "noopener,noreferrer")}>
    {line(safe, 120)}</button></span>
}
