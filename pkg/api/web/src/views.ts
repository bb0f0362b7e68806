import type { View } from "./view"
import { agent } from "./views/agent"
import { board } from "./views/board"
import { mail } from "./views/mail"
import { result } from "./views/result"
import { one } from "./views/task"
import { overview } from "./views/team"
import { all } from "./views/teams"
import { timeline } from "./views/timeline"

export const views: View[] = [all, overview, board, timeline, result, mail, agent, one]
