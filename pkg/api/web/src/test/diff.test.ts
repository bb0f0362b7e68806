import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { answers, asked, until } from "./answers"
import { Diff, load, parsed } from "../views/diff"

const at = (hash: string) => ((globalThis as any).location.hash = hash)

test("a difference that is answered while a person is elsewhere is there when they are back", async () => {
  let late: (v: any) => void = () => {}
  answers["/teams/red/diff"] = () => new Promise((f) => (late = f))
  at("#/red/result")
  load("red", "", "c1")
  at("#/red/board")
  late({ diff: "", files: [] })
  await new Promise((go) => setImmediate(go))
  at("#/red/result")
  load("red", "", "c1")
  await until("the difference", () => JSON.stringify(Diff({ id: "red", to: () => "leader" })).includes("Nothing was changed"))
  assert.equal(asked.length, 1)
})

test("a patch is read line by line", () => {
  const rows = parsed("diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -3,3 +3,3 @@ func f()\n same\n-old\n+new\n--- no head\n\\ No newline at end of file\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
  assert.deepEqual(rows.map((r) => [r.kind, r.text, r.old, r.now]), [
    ["file", "x.go", 0, 0], ["at", "@@ -3,3 +3,3 @@ func f()", 0, 0], ["same", "same", 3, 3], ["less", "old", 4, 0], ["more", "new", 0, 4], ["less", "-- no head", 5, 0],
    ["note", " No newline at end of file".trim(), 0, 0], ["file", "gone", 0, 0], ["note", "deleted file mode 100644", 0, 0], ["at", "@@ -1 +0,0 @@", 0, 0], ["less", "x", 1, 0],
  ])
  assert.deepEqual(rows.filter((r) => r.file === "gone").length, 4)
})

test("a patch of any text is read", () => {
  for (const text of ["", "\n", "+++", "@@ -1 +1 @@", "diff --git", "<script>\n+<img onerror=x>", "Binary files a/x and b/x differ"]) parsed(text)
})

const patch = (...lines: string[]) => parsed(lines.join("\n") + "\n")

test("a file's name is read, whatever is in it", () => {
  for (const [head, name, ...more] of [
    ['"a/\\303\\244.txt" "b/\\303\\244.txt"', "ä.txt"],
    ['"a/ä\\n\\t\\r\\a\\b\\v\\f\\001\\177\\"\\\\.txt" "b/ä\\n\\t\\r\\a\\b\\v\\f\\001\\177\\"\\\\.txt"', 'ä\n\t\r\x07\b\v\f\x01\x7f"\\.txt'],
    ['"a/\\377" "b/\\377"', "\\377"], // no text
    ["a/my file b/x b/my file b/x", "my file b/x"],
    ["a/ b/ b/ b/", " b/"],
    ["a/x b/x", "x", "old mode 100644", "new mode 100755"],
    ["a/pic.png b/pic.png", "pic.png", "index 1..2 100644", "Binary files a/pic.png and b/pic.png differ"],
    ["a/gone b/gone", "gone", "deleted file mode 100644", "--- a/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-x"],
    ["a/my x b/my x", "my x", "--- a/my x\t", "+++ b/my x\t", "@@ -1 +1 @@", "-x", "+y"],
    ["a/old b/a much longer one", "a much longer one", "similarity index 100%", "rename from old", "rename to a much longer one"],
    ['a/old "b/n\\tew"', "n\tew", "similarity index 90%", "rename from old", 'rename to "n\\tew"', "--- a/old", '+++ "b/n\\tew"', "@@ -1 +1 @@", "-x", "+y"],
    ['"a/o\\tld" b/a new one', "a new one", "copy from x", "copy to a new one"],
    ["a/dev/null b/dev/null", "dev/null", "--- a/dev/null", "+++ b/dev/null", "@@ -1 +1 @@", "-x", "+y"],
  ]) {
    const rows = patch("diff --git a/before b/before", "@@ -1 +1 @@", "-x", "+y", "diff --git " + head, ...more)
    assert.deepEqual(rows.filter((r) => r.kind === "file").map((r) => r.text), ["before", name], head)
    assert.deepEqual(rows.slice(4).map((r) => r.file), rows.slice(4).map(() => name), head)
  }
})

test("a hunk ends by its numbers, whatever its lines look like", () => {
  const rows = patch("diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,2 +1,4 @@", "--- a/y", "+++ b/y", "+diff --git a/z b/z", "+@@ -1 +1 @@", " same", "coder was changed, and is another now", "-no line", "diff --git a/y b/y")
  assert.deepEqual(rows.map((r) => [r.kind, r.text]), [["file", "x"], ["at", "@@ -1,2 +1,4 @@"], ["less", "-- a/y"], ["more", "++ b/y"], ["more", "diff --git a/z b/z"], ["more", "@@ -1 +1 @@"], ["same", "same"],
    ["note", "coder was changed, and is another now"], ["note", "-no line"], ["file", "y"]])
})

test("a name that would break its line is shown in one", async () => {
  at("#/red/result")
  const name = 'a\nb\t"\u202e.txt'
  const row = '"b/a\\nb\\t\\"\u202e.txt"'
  answers["/teams/odd/diff"] = () => ({ diff: "diff --git " + row.replace("b/", "a/") + " " + row + "\n--- /dev/null\n+++ " + row + "\n@@ -0,0 +1 @@\n+x\n", files: [{ path: name, added: 1, deleted: 0 }, { path: "c", added: 1, deleted: 0 }] })
  load("odd", "", "c1")
  let drawn = ""
  await until("the difference", () => (drawn = JSON.stringify(Diff({ id: "odd", to: () => "leader" }))).includes("d-file"))
  const texts = [...drawn.matchAll(/a␊b␉\\"⟨202E⟩\.txt/g)]
  assert.equal(texts.length, 2) // its row, and the list of files
  assert.ok(drawn.includes(JSON.stringify(name).slice(1, -1))) // the value that is chosen is the name itself
})
