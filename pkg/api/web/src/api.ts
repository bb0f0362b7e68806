// Code generated from the OpenAPI document of /v1; DO NOT EDIT.
// go test ./pkg/api/v1 -run PageTypes -update writes it.

export interface AddedTasks {
  existed: boolean
  tasks: TaskView[]
}

export interface Agent {
  about?: string
  agent_id: string
  alias?: string
  approver?: "" | "leader" | "human"
  asked?: string
  awaits?: string
  backend: "" | "pool" | "exec" | "person"
  call?: string
  claim?: SeatClaim
  cluster?: string
  color: string
  context?: number
  drains?: boolean
  host?: string
  idled?: boolean
  inbox_from: number
  incarnation: number
  jobs?: Job[] | null
  joined_at: string
  last_error?: string
  losses?: number
  model?: string
  obeys_from: number
  op: string
  pid?: number
  plan_mode?: boolean
  program?: string
  progress_at?: string
  project?: InstructionFile[] | null
  prompt?: string
  prompt_for?: number
  retry_at?: string
  revision: number
  role: string
  server?: string
  since?: string
  spawned_by?: string
  state: "created" | "joined" | "running" | "stalled" | "idle" | "waiting_answer" | "waiting_user" | "waiting_approval" | "waiting_model" | "waiting_budget" | "waiting_repair" | "lost" | "stopped" | "unknown" | "unreadable"
  storage?: string
  taken_back?: boolean
  task?: string
  tokens: number
  tool?: string
  trouble?: string
  turn: number
  updated_at: string
  v: number
  waits_for?: "" | "person" | "answer" | "plan" | "permission" | "budget" | "model" | "merge" | "job"
  window?: number
  workspace?: string
}

export interface Answered {
  answer: Message
  question: StoredMessage
}

export interface Approval {
  agent_id: string
  approver: "" | "leader" | "human"
  author?: string
  call?: AskedCall
  claimed_at?: string
  created_at: string
  decided_at?: string
  decided_by?: string
  ended_at?: string
  feedback?: string
  id: string
  incarnation: number
  kind?: "" | "plan" | "permission" | "respawn"
  op: string
  plan?: string
  plan_hash?: string
  scope?: "" | "once" | "task" | "always"
  status: "pending" | "approved" | "rejected" | "used"
  task?: string
  v: number
}

export interface Approvals {
  approvals: Plan[]
  next?: string
}

export interface Artifact {
  bytes: number
  digest: string
  path: string
}

export interface AskedCall {
  arguments: string
  digest: string
  dir: string
  number: number
  rule?: string
  tool: string
  why: string
}

export interface AssignOptions {
  as: string
  seat?: boolean
}

export interface AssignedTask {
  artifacts?: Artifact[] | null
  assignee: string
  attempts: number
  blocks: string[] | null
  check?: string
  claimed_at: string | null
  commit?: string
  completed_at: string | null
  created_at: string
  created_by: string
  declined?: Declined[] | null
  deliverable_digest?: string
  deliverable_path: string
  deliverable_required?: boolean
  dependencies: string[] | null
  description: string
  epoch: number
  gate?: "" | "leader" | "human"
  id: string
  incarnation: number
  is_blocked: boolean
  lapses?: boolean
  merging?: string
  metadata?: unknown
  op: string
  priority: 0 | 1 | 2
  reason?: string
  reserved_for?: string
  result_summary: string
  returned?: Try[] | null
  revision: number
  role?: string
  seat_created: boolean
  status: "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  supersedes?: string[] | null
  title: string
  undone?: string
  unmerged?: number
  updated_at: string
  updated_by: string
  v: number
  waiting_for: string[] | null
  why?: string
}

export interface Assignment {
  assignee: string
  seat?: boolean
}

export interface Audit {
  entries: AuditEntry[]
  next?: string
}

export interface AuditEntry {
  agent_id: string
  also?: Change[] | null
  arguments?: string
  at: string
  call_id?: string
  called?: string
  change?: Change
  code?: "permission_denied" | "conflict" | "blocked" | "busy" | "not_found" | "invalid_state" | "invalid_argument" | "budget_exceeded" | "unavailable"
  exit_code?: number
  grants?: Grant[] | null
  incarnation: number
  outcome: "ok" | "error" | "not_run" | "unknown" | "unreadable"
  result?: string
  rule?: string
  run_id?: string
  sandbox?: string
  seq: number
  task_id?: string
  tool?: string
}

export interface Bar {
  agent_id: string
  from: string
  status: "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  task: string
  title: string
  to: string
}

export interface BranchCommit {
  agent: string
  commit: string
  subject: string
  supersedes?: string[] | null
  task?: string
  time: string
  undoes?: string
}

export interface Budget {
  cost?: number
  tokens?: number
  turns?: number
  unpriced?: number
  wall_time?: number
}

export interface Budgets {
  goal?: Budget
  members?: Record<string, Budget>
  roles?: Record<string, Budget>
  tasks?: Record<string, Budget>
  team?: Budget
}

export interface Change {
  after: string
  before?: string
  new?: boolean
  path: string
}

export interface Choices {
  description?: string
  isolation?: string
  max_teammates?: number
  policies?: PolicyChoices
}

export interface Completion {
  as: string
  result_summary: string
}

export interface Count {
  at: string
  blocked: number
  cancelled: number
  done: number
  failed: number
  ready: number
  running: number
}

export interface Decision {
  approve: boolean
  as?: string
  feedback?: string
  scope?: "" | "once" | "task" | "always"
}

export interface Declined {
  by: string
  why?: string
}

export interface Deleted {
  ended: string[] | null
  open_tasks: number
  team: string
}

export interface Deliverable {
  digest?: string
  path: string
  status: "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  task: string
  title: string
}

export interface Deliverables {
  deliverables: Deliverable[]
  next?: string
}

export interface Delivery {
  agent_id: string
  dead_at?: string
  delivered_at?: string
  processed_at?: string
  reason?: string
  refused_at?: string
  status: "pending" | "delivered" | "processed" | "refused" | "dead"
}

export interface Delta {
  agent_id: string
  incarnation: number
  message_id: string
  offset: number
  run_id: string
  team_id: string
  text: string
}

export interface Diff {
  branch: string
  commits: BranchCommit[]
  diff: string
  files: File[]
  from: string
  head: string
  live?: boolean
  returned?: boolean
  team: string
  truncated: boolean
}

export interface Document {
  code?: "permission_denied" | "conflict" | "blocked" | "busy" | "not_found" | "invalid_state" | "invalid_argument" | "budget_exceeded" | "unavailable"
  detail?: string
  errors?: Fault[] | null
  hint?: string
  instance?: string
  status: number
  title: string
}

export interface Edge {
  from: string
  to: string
}

export interface Entry {
  agent_id: string
  cursor: string
  event: EventBody
  role_name: string
  run_id: string
  team_id: string
  time: string
}

export interface EventBody {
  code?: string
  content?: string
  delta?: string
  message?: string
  messageId?: string
  name?: string
  result?: unknown
  role?: string
  runId?: string
  threadId?: string
  timestamp: number
  tokens?: number
  toolCallId?: string
  toolCallName?: string
  type: "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | "CUSTOM" | "TEXT_MESSAGE_CHUNK" | "TOOL_CALL_CHUNK" | "TOOL_CALL_RESULT" | "RETRY" | "COMPACTION_FINISHED" | "MAIL_SENT" | "TASK_CREATED" | "TASK_UPDATED" | "TASK_CLAIMED" | "TASK_ASSIGNED" | "TASK_ADOPTED" | "TASK_RELEASED" | "TASK_COMPLETED" | "TASK_FAILED" | "TASK_CANCELLED" | "MEMBER_CREATED" | "MEMBER_JOINED" | "MEMBER_UPDATED" | "MEMBER_PARKED" | "MEMBER_RESUMED" | "MEMBER_LOST" | "MEMBER_STOPPED" | "MEMBER_REMOVED" | "APPROVAL_REQUESTED" | "APPROVAL_APPROVED" | "APPROVAL_REJECTED" | "APPROVAL_USED" | "APPROVAL_ENDED"
  value?: unknown
}

export interface Events {
  events: Entry[]
  more: boolean
  next: string
}

export interface Exchange {
  board_seq?: number
  held?: boolean
  n: number
  news?: boolean
}

export interface Fault {
  location?: string
  message: string
}

export interface File {
  added: number
  deleted: number
  path: string
}

export interface Goal {
  earlier_tasks?: string[] | null
  elapsed_seconds: number
  end?: string
  finished_at: string | null
  given_up?: string[] | null
  goal: string
  goal_at: string | null
  goal_number: number
  lost?: string
  reason?: string
  status: "active" | "finished" | "failed" | "stopped" | "deleting" | "saved" | "loading"
  summary: string
  team: string
  usage: Usage
}

export interface GoalBranch {
  begun?: string
  early?: boolean
  goal: number
  prefix?: string
  why?: string
}

export interface GoalSet {
  existed: boolean
  goal: Goal
  started: boolean
}

export interface Goals {
  goals: PastGoal[]
}

export interface Grant {
  approval: string
  by: string
}

export interface Graph {
  edges: Edge[] | null
  nodes: Node[] | null
}

export interface History {
  steps: Step[]
  whole: boolean
}

export interface InstructionFile {
  bytes: number
  faults?: number
  file: string
  left_out?: number
}

export interface Job {
  about: string
  asked?: string
  background?: boolean
  ended?: string
  id: string
  kind: "subagent" | "command"
  since: string
  still?: number
  task?: string
  tokens?: number
  turns?: number
  type?: string
}

export interface Lane {
  agent_id: string
  color: string
  role: string
  seconds: Record<string, number>
  spans: Span[]
}

export interface Letters {
  messages: StoredMessage[]
  next?: string
}

export interface Loaded {
  at: string
  copy?: boolean
  from: string
  save: string
}

export interface Member {
  agent_id: string
  approver?: "" | "leader" | "human"
  backend: "" | "pool" | "exec" | "person"
  call?: string
  claim?: SeatClaim
  cluster?: string
  color: string
  host?: string
  idled?: boolean
  inbox_from: number
  incarnation: number
  joined_at: string
  last_error?: string
  losses?: number
  model?: string
  obeys_from: number
  op: string
  pid?: number
  plan_mode?: boolean
  program?: string
  prompt?: string
  prompt_for?: number
  role: string
  server?: string
  spawned_by?: string
  state: "created" | "joined" | "running" | "stalled" | "idle" | "waiting_answer" | "waiting_user" | "waiting_approval" | "waiting_model" | "waiting_budget" | "waiting_repair" | "lost" | "stopped" | "unknown" | "unreadable"
  taken_back?: boolean
  updated_at: string
  v: number
  workspace?: string
}

export interface MemberStopped {
  forced: boolean
  member: Agent
}

export interface Members {
  members: Agent[]
}

export interface Membership {
  agent_id: string
  role: string
  team: string
}

export interface Message {
  approve?: boolean
  await_reply?: boolean
  choices?: string[] | null
  content: string
  created_at: string
  drain?: boolean
  exchange?: Exchange
  from: string
  id: string
  in_reply_to?: string
  request_id?: string
  stored?: string
  summary: string
  task_id?: string
  to: string
  type: "message" | "broadcast" | "user_message" | "shutdown_request" | "shutdown_response" | "plan_approval_request" | "plan_approval_response" | "task_assigned" | "idle_notification" | "watchdog" | "task_notification"
  urgent?: boolean
  v: number
}

export interface NewAnswer {
  as?: string
  content: string
}

export interface NewGoal {
  add?: boolean
  budget?: string
  goal: string
  workspace?: string
}

export interface NewMembers {
  agent_id?: string
  approver?: "" | "leader" | "human"
  count?: number
  model?: string
  plan_mode?: boolean
  prompt?: string
  role: string
}

export interface NewMessage {
  as?: string
  content: string
  in_reply_to?: string
  summary?: string
  to: string
  urgent?: boolean
}

export interface NewTask {
  assignee?: string
  check?: string
  deliverable_required?: boolean
  dependencies?: string[] | null
  description?: string
  metadata?: Record<string, unknown>
  name?: string
  priority?: 0 | 1 | 2 | "normal" | "high" | "critical"
  role?: string
  seat?: boolean
  supersedes?: string[] | null
  title: string
}

export interface NewTasks {
  tasks: NewTask[]
}

export interface NewTeam {
  description?: string
  id: string
  isolation?: string
  max_teammates?: number
  policies?: PolicyChoices
  workspace?: string
}

export interface Node {
  depth: number
  id: string
  place: number
  status: "pending" | "blocked" | "in_progress" | "merging" | "completed" | "failed" | "cancelled"
  title: string
}

export interface Page {
  by_status?: Record<string, number>
  next?: string
  quarantined?: Quarantined[] | null
  seq: number
  tasks: TaskView[] | null
  total: number
}

export interface Parked {
  agent_id: string
  cause: string
  retry_at?: string
  state: "created" | "joined" | "running" | "stalled" | "idle" | "waiting_answer" | "waiting_user" | "waiting_approval" | "waiting_model" | "waiting_budget" | "waiting_repair" | "lost" | "stopped" | "unknown" | "unreadable"
}

export interface PastGoal {
  end?: string
  ended_at?: string
  goal: string
  number: number
  reason?: string
  set_at?: string
  status: "active" | "finished" | "failed" | "stopped" | "deleting" | "saved" | "loading"
  summary?: string
  tasks?: string
}

export interface Paths {
  read?: string[] | null
  write?: string[] | null
}

export interface Permissions {
  allow?: string[] | null
  ask?: string[] | null
  deny?: string[] | null
  given?: Record<string, Grant>
}

export interface Plan {
  agent_id: string
  approver: "" | "leader" | "human"
  author?: string
  call?: AskedCall
  claimed_at?: string
  created_at: string
  decided_at?: string
  decided_by?: string
  ended_at?: string
  feedback?: string
  id: string
  incarnation: number
  kind?: "" | "plan" | "permission" | "respawn"
  op: string
  plan?: string
  plan_hash?: string
  scope?: "" | "once" | "task" | "always"
  status: "pending" | "approved" | "rejected" | "used"
  task?: string
  v: number
  void?: string
}

export interface Policies {
  approver: "" | "leader" | "human"
  check?: string
  create: "" | "all" | "leader"
  delegate?: boolean
  dialect?: "" | "native" | "claude"
  plan_mode?: boolean
  respawn: "" | "respawn" | "ask" | "release"
}

export interface Policy {
  credentials?: string[] | null
  isolation?: string
  network?: string[] | null
  on_edit?: string[] | null
  paths?: Paths
  permission_ask?: string
  permission_mode?: string
  permissions?: Permissions
  sandbox?: string
  worktree_links?: string[] | null
}

export interface PolicyChoices {
  approver?: "" | "leader" | "human"
  check?: string
  create?: "" | "all" | "leader"
  delegate?: boolean
  dialect?: "" | "native" | "claude"
  plan_mode?: boolean
  respawn?: "" | "respawn" | "ask" | "release"
}

export interface Process {
  aliases: string[] | null
  api?: string
  host: string
  id: string
  kind: "leader" | "teammate"
  memberships?: Membership[] | null
  metrics: string
  model: string
  pid: string
  sandbox: string
  version: string
}

export interface Quarantined {
  error: string
  key: string
  revision: number
}

export interface Reason {
  as?: string
  reason?: string
}

export interface Retrying {
  of: number
  tried: number
  wait_seconds: number
}

export interface Role {
  approver?: "" | "leader" | "human"
  auto_claim?: boolean
  background?: boolean
  color?: string
  description: string
  dialect?: "" | "native" | "claude"
  disallowed_tools?: string[] | null
  effort?: string
  idle_timeout_seconds?: number
  instructions: string
  max_instances?: number
  max_turns?: number
  mcp_servers?: string[] | null
  model?: string
  name: string
  plan_mode?: boolean
  policy?: Policy
  ready?: number
  skills?: string[] | null
  tools?: string[] | null
  turns_without_progress?: number
}

export interface Roles {
  roles: Role[]
}

export interface Saved {
  at: string
  file: string
  id: string
  status: "active" | "finished" | "failed" | "stopped" | "deleting" | "saved" | "loading"
}

export interface SeatClaim {
  by?: string
  op: string
  revision: number
  take?: boolean
  task: string
}

export interface Sent {
  delivered_to: string[]
  existed: boolean
  message_id: string
  stored?: string
}

export interface Session {
  access: "read" | "write"
  version: string
}

export interface Span {
  for?: "" | "person" | "answer" | "plan" | "permission" | "budget" | "model" | "merge" | "job"
  from: string
  kind: "model" | "tool" | "wait" | "idle" | "unknown"
  task?: string
  to: string
  tool?: string
}

export interface SpawnedMembers {
  existed: boolean
  members: Agent[]
}

export interface Stage {
  after: "" | "dependency" | "member"
  agent_id: string
  from: string
  lag: number
  task: string
  to: string
}

export interface Status {
  leaders: Process[] | null
  model: string
  server: string
  standbys: Process[] | null
  storage?: string
  teammates: Process[] | null
  teams: TeamStatus[] | null
}

export interface Step {
  assignee: string
  at: string
  by: string
  epoch: number
  from: "" | "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  revision: number
  to: "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  what: string
  why: string
}

export interface StoredMessage {
  answer_to?: string
  approve?: boolean
  await_reply?: boolean
  choices?: string[] | null
  content: string
  created_at: string
  deliveries: Delivery[] | null
  drain?: boolean
  exchange?: Exchange
  from: string
  id: string
  in_reply_to?: string
  open?: boolean
  request_id?: string
  seq: number
  stored?: string
  stored_at: string
  summary: string
  task_id?: string
  to: string
  type: "message" | "broadcast" | "user_message" | "shutdown_request" | "shutdown_response" | "plan_approval_request" | "plan_approval_response" | "task_assigned" | "idle_notification" | "watchdog" | "task_notification"
  urgent?: boolean
  v: number
}

export interface Task {
  artifacts?: Artifact[] | null
  assignee: string
  attempts: number
  check?: string
  claimed_at: string | null
  commit?: string
  completed_at: string | null
  created_at: string
  created_by: string
  declined?: Declined[] | null
  deliverable_digest?: string
  deliverable_path: string
  deliverable_required?: boolean
  dependencies: string[] | null
  description: string
  epoch: number
  gate?: "" | "leader" | "human"
  id: string
  incarnation: number
  lapses?: boolean
  metadata?: unknown
  op: string
  priority: 0 | 1 | 2
  reason?: string
  reserved_for?: string
  result_summary: string
  returned?: Try[] | null
  role?: string
  status: "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  supersedes?: string[] | null
  title: string
  undone?: string
  unmerged?: number
  updated_at: string
  updated_by: string
  v: number
}

export interface TaskEdit {
  add_dependencies?: string[] | null
  as?: string
  description?: string
  metadata?: Record<string, unknown>
  priority?: 0 | 1 | 2 | "normal" | "high" | "critical"
  remove_dependencies?: string[] | null
  title?: string
}

export interface TaskView {
  artifacts?: Artifact[] | null
  assignee: string
  attempts: number
  blocks: string[] | null
  check?: string
  claimed_at: string | null
  commit?: string
  completed_at: string | null
  created_at: string
  created_by: string
  declined?: Declined[] | null
  deliverable_digest?: string
  deliverable_path: string
  deliverable_required?: boolean
  dependencies: string[] | null
  description: string
  epoch: number
  gate?: "" | "leader" | "human"
  id: string
  incarnation: number
  is_blocked: boolean
  lapses?: boolean
  merging?: string
  metadata?: unknown
  op: string
  priority: 0 | 1 | 2
  reason?: string
  reserved_for?: string
  result_summary: string
  returned?: Try[] | null
  revision: number
  role?: string
  status: "pending" | "in_progress" | "completed" | "failed" | "cancelled"
  supersedes?: string[] | null
  title: string
  undone?: string
  unmerged?: number
  updated_at: string
  updated_by: string
  v: number
  waiting_for: string[] | null
  why?: string
}

export interface Team {
  branch?: GoalBranch
  budgets?: Budgets
  created_at: string
  created_by: string
  description: string
  end?: string
  end_seq?: number
  finished_at?: string
  given_up?: string[] | null
  goal: string
  goal_at?: string
  goal_number: number
  goal_seq?: number
  id: string
  lease_seconds: number
  loaded?: Loaded
  max_teammates: number
  names?: string[] | null
  past_goals?: PastGoal[] | null
  policies: Policies
  policy?: Policy
  reason?: string
  roles: Record<string, Role>
  saved?: Saved
  session_id?: string
  stall_seconds?: number
  status: "active" | "finished" | "failed" | "stopped" | "deleting" | "saved" | "loading"
  summary?: string
  updated_at: string
  user_id?: string
  v: number
  with_changes?: number
  workspace: string
}

export interface TeamShown {
  branch?: GoalBranch
  branch_head?: string
  budgets?: Budgets
  created_at: string
  created_by: string
  description: string
  end?: string
  end_seq?: number
  finished_at?: string
  given_up?: string[] | null
  goal: string
  goal_at?: string
  goal_number: number
  goal_seq?: number
  id: string
  lease_seconds: number
  loaded?: Loaded
  max_teammates: number
  names?: string[] | null
  past_goals?: PastGoal[] | null
  policies: Policies
  policy?: Policy
  reason?: string
  roles: Record<string, Role>
  saved?: Saved
  session_id?: string
  stall_seconds?: number
  status: "active" | "finished" | "failed" | "stopped" | "deleting" | "saved" | "loading"
  summary?: string
  updated_at: string
  user_id?: string
  v: number
  with_changes?: number
  workspace: string
}

export interface TeamStatus {
  damaged?: Quarantined[] | null
  description?: string
  end?: string
  goal: string
  id: string
  leader: string
  lost?: Trouble[] | null
  members: Record<string, number>
  parked?: Parked[] | null
  plans?: Plan[] | null
  questions?: StoredMessage[] | null
  requests?: Plan[] | null
  silent?: Trouble[] | null
  status: "active" | "finished" | "failed" | "stopped" | "deleting" | "saved" | "loading"
  storage?: string
  tasks: Record<string, number>
  unread?: number
  usage?: Usage
  waiting?: number
  work?: Work[] | null
}

export interface Teams {
  next?: string
  teams: TeamStatus[]
}

export interface Timeline {
  begun: string
  counts: Count[]
  critical: Stage[]
  edges: Edge[]
  ended: string
  from: string
  goal: number
  lanes: Lane[]
  sentence: string
  tasks: Bar[]
  to: string
  whole: boolean
}

export interface Transcript {
  entries: Entry[]
  next?: string
}

export interface Trouble {
  agent_id: string
  why: string
}

export interface Try {
  base?: string
  by: string
  commit?: string
  epoch?: number
  host?: string
  ignored?: string
  left_out?: string
  reason?: string
  unfinished?: boolean
}

export interface Undoing {
  as?: string
}

export interface Usage {
  cached_tokens: number
  completion_tokens: number
  cost: number | null
  currency: string
  estimated: boolean
  model_calls: number
  prompt_tokens: number
  reasoning_tokens: number
  total_tokens: number
  unpriced_calls: number
  wasted_tokens: number
}

export interface UsageRow {
  cached_tokens: number
  completion_tokens: number
  cost: number | null
  currency: string
  estimated: boolean
  model_calls: number
  name: string
  parts?: UsageRow[] | null
  prompt_tokens: number
  reasoning_tokens: number
  total_tokens: number
  unpriced_calls: number
  wasted_tokens: number
}

export interface UsageTable {
  by: "agent" | "role" | "alias" | "task"
  rows: UsageRow[]
  total: Usage
}

export interface Work {
  agent_id: string
  asked?: string
  awaits?: string
  drains?: boolean
  jobs?: Job[] | null
  person?: boolean
  progress_at?: string
  since?: string
  state: "created" | "joined" | "running" | "stalled" | "idle" | "waiting_answer" | "waiting_user" | "waiting_approval" | "waiting_model" | "waiting_budget" | "waiting_repair" | "lost" | "stopped" | "unknown" | "unreadable"
  task?: string
  tool?: string
  trouble?: string
}
