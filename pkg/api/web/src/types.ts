// What /v1 answers. Its types are in api.ts, which is made of the OpenAPI document; here is what
// streams have besides, and what the page takes as absent in an older process.

import type { Agent as Said, Approval as Asked, Member as Stored, Message as Mail, Task as Work, TeamStatus as Standing } from "./api"

export type { Delta, Goal, Job, StoredMessage } from "./api"

// Any field may be absent, and any word may be one of the future.
type Loose<T> = { [K in keyof T]?: T[K] extends string | undefined ? string : T[K] }

export type Agent = Loose<Said> & { agent_id: string; state: string; cost?: number; last_line?: string; reason?: string }
export type Approval = Loose<Omit<Asked, "call">> & { id: string; agent_id: string; status: string; created_at: string; call?: { tool: string; arguments: string; dir: string; why: string; rule?: string } }
export type Member = Loose<Stored> & { agent_id: string; role: string; state: string; incarnation: number }
export type Message = Loose<Mail> & { id: string; from: string; to: string; content: string; created_at: string }
export type Task = Loose<Work> & { id: string; title: string; status: string; assignee: string }
export type TeamStatus = Loose<Standing> & { id: string; status: string; goal: string }

export interface EventBody {
  type: string
  messageId?: string
  role?: string
  delta?: string
  toolCallId?: string
  toolCallName?: string
  content?: string
  message?: string
  code?: string
  name?: string
  value?: unknown
  tokens?: number
}

export interface Entry {
  cursor: string
  time: string
  agent_id: string
  role_name?: string
  run_id?: string
  event: EventBody
}
