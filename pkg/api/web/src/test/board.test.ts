import { test } from "node:test"
import assert from "node:assert/strict"
import "./document"
import { read } from "../views/board"
import { parsed } from "../views/diff"

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
