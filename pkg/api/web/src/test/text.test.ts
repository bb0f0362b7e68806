import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { Markdown } from "../markdown"
import { line, plain, short, span } from "../text"
import { argument } from "../call"

// flat is what a tree of nodes holds, in one line: tags and texts.
function flat(v: any): string {
  if (v === null || v === undefined) return ""
  if (v.tag === "#") return v.text
  const kids = v.kids.map(flat).join("")
  return "<" + v.tag + ">" + kids + "</" + v.tag + ">"
}

let n = 0
const md = (s: string) => flat(Markdown({ id: "t" + n++, of: s })).replace(/^<div>|<\/div>$/g, "")

test("characters that hide or turn others are shown", () => {
  assert.equal(plain("a\u202Egnp.exe"), "a⟨202E⟩gnp.exe")
  assert.equal(plain("ad\u200Bmin"), "ad⟨200B⟩min")
  assert.equal(plain("\u001b[31mred"), "␛[31mred")
  assert.equal(plain("x\u2066y\u2069"), "x⟨2066⟩y⟨2069⟩")
  assert.equal(plain("👩\u200D💻"), "👩\u200D💻", "a joined picture is whole")
  assert.equal(plain("a\u200Db"), "a⟨200D⟩b")
  assert.equal(plain("a\u{E0041}b\uFFA0c\u3164"), "a⟨E0041⟩b⟨FFA0⟩c⟨3164⟩")
  assert.equal(plain("❤\uFE0F 葛\u{E0100}"), "❤\uFE0F 葛\u{E0100}", "a character keeps its variant")
  assert.equal(plain("one\r\ntwo\tthree"), "one\ntwo\tthree")
  assert.equal(plain(undefined), "")
})

test("lines are cut", () => {
  assert.equal(line("a\n b\t c"), "a b c")
  const long = line("x".repeat(1 << 20), 100)
  assert.equal(long, "x".repeat(100) + "…")
})

test("Markdown", () => {
  assert.equal(md("# Title\ntext **bold** and *soft* `co*de*`"), "<div>Title</div><p>text <strong>bold</strong> and <em>soft</em> <code>co*de*</code></p>")
  assert.equal(md("- a\n- b\n  - c\n\n1. x\n2. y"), "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><ol><li>x</li><li>y</li></ol>")
  assert.equal(md("```go\nif a < b {\n```\nafter"), "<pre><code>if a < b {</code></pre><p>after</p>")
  assert.equal(md("> said\n> twice"), "<blockquote><p>said<br></br>twice</p></blockquote>")
  assert.equal(md("| a | b |\n|---|---|\n| 1 | 2 |"), "<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>")
  assert.equal(md("snake_case_name and 2 * 3 * 4"), "<p>snake_case_name and 2 * 3 * 4</p>")
})

test("markup of others stays text", () => {
  assert.equal(md("<img src=x onerror=alert(1)><script>x</script>"), "<p><img src=x onerror=alert(1)><script>x</script></p>")
})

test("only addresses of the web lead anywhere, and images nowhere by themselves", () => {
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example", "file:///etc/passwd", "\u0001javascript:x"])
    assert.ok(!md("[press](" + bad + ")").includes("<button>"), bad)
  assert.ok(md("[press](https://example.org/x)").includes("<button>https://example.org/x</button>"))
  const image = md("![logo](https://evil.example/x.png)")
  assert.ok(!image.includes("<img") && image.includes("image: logo"), image)
  assert.ok(md("see https://example.org/a.").includes("<button>https://example.org/a</button>"))
})

test("hostile Markdown is quick", () => {
  const began = performance.now()
  for (const s of ["*".repeat(40_000), "[".repeat(40_000), "`".repeat(39_999), "**a ".repeat(10_000), "[a](".repeat(10_000), "> ".repeat(20_000), "- ".repeat(20_000), "_a".repeat(20_000), "|-".repeat(20_000), " ".repeat(40_000) + "x"])
    Markdown({ id: "h" + n++, of: s, first: 100_000 })
  assert.ok(performance.now() - began < 20_000, "it took " + (performance.now() - began) + " ms")
})

test("numbers", () => {
  assert.deepEqual([0, 999, 1000, 28_512, 999_700, 1_200_000].map(short), ["0", "999", "1k", "28.5k", "1M", "1.2M"])
  assert.deepEqual([0, 59, 61, 3600, 90_000].map(span), ["0 s", "59 s", "1 min 1 s", "1 h 0 min", "25 h 0 min"])
})

test("what a call is about", () => {
  assert.equal(argument('{"command":"ls -la","x":1}'), "ls -la")
  assert.equal(argument("{}"), "")
  assert.equal(argument("not json"), "not json")
  assert.equal(argument('{"command":{"a":1}}'), '{"command":{"a":1}}')
})

test("no text takes long to read", () => {
  const size = 200_000
  const many = (s: string, of = size) => s.repeat(of / s.length)
  for (const text of ["a|b\n" + many(" ") + "x", "a|b\n" + many("| "), "-" + many(" ") + "x\rx", "#" + many(" ") + "x\rx", "---" + many(" ") + "x", many("- "), many("> "), many("  - a\n"), many("`a ``b "), many("|"),
    many(many("[", 19_000) + "](\n"), many(many("[](", 18_000) + "\n"), many(many("*a **b _c ", 19_000) + "\n"), many(many("http://a!!", 19_000) + "\n")]) {
    const began = performance.now()
    Markdown({ id: "long" + n++, of: text, first: 2 * size })
    const took = performance.now() - began
    assert.ok(took < 3000, JSON.stringify(text.slice(0, 20)) + " took " + took + " ms")
  }
})
