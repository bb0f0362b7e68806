// Calls of tools, in words.

import { line } from "./text"

// pretty are the arguments of a call, a line each.
export function pretty(args: string): string {
  try {
    const a = Object.entries(JSON.parse(args))
    return a.map(([k, v]) => (a.length > 1 ? k + ": " : "") + (typeof v === "string" ? v : JSON.stringify(v, null, 2))).join("\n")
  } catch {
    return args
  }
}

// argument is what a call is about, out of its arguments.
export function argument(args: string): string {
  try {
    const a = JSON.parse(args)
    for (const k of ["command", "file_path", "path", "pattern", "to", "task_id", "id", "question", "title", "name", "content", "summary", "plan", "prompt"])
      if (typeof a[k] === "string" && a[k]) return line(a[k], 200)
    const all = JSON.stringify(a)
    return all === "{}" ? "" : line(all, 200)
  } catch {
    return line(args, 200)
  }
}
