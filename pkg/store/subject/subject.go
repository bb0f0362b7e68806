// Package subject makes and parses every name that agentteam uses in NATS:
// subjects, streams, buckets, keys, consumers. No other package spells one, so
// this file is the map of what is on the wire (docs/protocol.md shows it to
// people).
//
// It trusts its arguments: names are checked at the edge, by team.ParseTeamID
// and team.ParseAgentID.
package subject

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/team"
)

const root = "at"

// Pool is where standbys are asked to become a member; Queue is their group.
const (
	Pool  = root + ".pool.spawn"
	Queue = "standbys"
)

// PoolOf is where those standbys are asked, in the same group, that have the model
// alias; "" is [Pool] itself. An alias may hold what a subject must not: it is encoded.
func PoolOf(alias string) string {
	if alias == "" {
		return Pool
	}
	return Pool + "." + base64.RawURLEncoding.EncodeToString([]byte(alias))
}

// Storage is where a process tells all others that NATS does not store what it writes.
const Storage = root + ".storage"

// Service is the name of the micro service of a process of this kind (leader or
// teammate).
func Service(kind string) string { return "agentteam-" + kind }

// Heartbeat is where an agent's heartbeats are published.
func Heartbeat(t team.TeamID, a team.AgentID) string { return join(t, "hb", string(a)) }

// Beats matches the heartbeats of a whole team.
func Beats(t team.TeamID) string { return join(t, "hb", "*") }

// Live is where the text that an agent's model is writing is published.
func Live(t team.TeamID, a team.AgentID) string { return join(t, "live", string(a)) }

// LiveAll matches those of a whole team. The name of a subagent has a dot.
func LiveAll(t team.TeamID) string { return join(t, "live", ">") }

// Verb is a request to an agent's process rather than to its inbox.
type Verb string

// The verbs of process control.
const (
	Offer   Verb = "offer"   // a task for the taking; no right to it
	Assign  Verb = "assign"  // claim this task; answered with the task or the error
	Revoked Verb = "revoked" // the task you hold is no longer yours
	Compact Verb = "compact" // make your conversation shorter, at your next turn
	Stop    Verb = "stop"    // end at once
	Ping    Verb = "ping"    // answered with a beat
	Start   Verb = "start"   // to a leader's process: run this member as your child
)

// Control is where the process of an agent takes requests.
func Control(t team.TeamID, a team.AgentID, v Verb) string {
	return join(t, "ctl", string(a), string(v))
}

// Query is where the index of the process that leads the team answers questions
// for lists of tasks.
func Query(t team.TeamID) string { return join(t, "query") }

// Inbox is where from writes to to. The last token is the sender, set by code.
func Inbox(t team.TeamID, to, from team.AgentID) string {
	return join(t, "inbox", string(to), string(from))
}

// Broadcast is where from writes to everyone.
func Broadcast(t team.TeamID, from team.AgentID) string { return join(t, "all", string(from)) }

// Urgent is where a member's process is told that urgent mail stands in its inbox.
func Urgent(t team.TeamID, to team.AgentID) string { return join(t, "urgent", string(to)) }

// UrgentAll is where all are told so.
func UrgentAll(t team.TeamID) string { return join(t, "urgent", "all") }

// Dead is where a message goes that to could not read.
func Dead(t team.TeamID, to team.AgentID) string { return join(t, "dead", string(to)) }

// Mail returns what the member receives: its own inbox and all broadcasts.
func Mail(t team.TeamID, a team.AgentID) []string {
	return []string{join(t, "inbox", string(a), ">"), join(t, "all", ">")}
}

// Sender is the author of a message that came on subject s.
func Sender(s string) team.AgentID {
	return team.AgentID(s[strings.LastIndexByte(s, '.')+1:])
}

// Messages is the stream of a team's mail, and Subjects what it stores.
func Messages(t team.TeamID) (stream string, subjects []string) {
	return "AT_" + string(t) + "_MSG", []string{join(t, "inbox", ">"), join(t, "all", ">"), join(t, "dead", ">")}
}

// ParseMessages tells whose stream of mail this is; "" if it is nobody's.
func ParseMessages(stream string) team.TeamID {
	id, ok := strings.CutPrefix(stream, "AT_")
	if !ok || !strings.HasSuffix(id, "_MSG") {
		return ""
	}
	return team.TeamID(strings.TrimSuffix(id, "_MSG"))
}

// Consumer is the durable consumer of one incarnation of a member.
func Consumer(a team.AgentID, incarnation uint64) string {
	return fmt.Sprintf("%s-%d", a, incarnation)
}

// ParseConsumer tells whose consumer this is; the name is "" if it is nobody's.
func ParseConsumer(name string) (a team.AgentID, incarnation uint64) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", 0
	}
	incarnation, err := strconv.ParseUint(name[i+1:], 10, 64)
	if err != nil {
		return "", 0
	}
	return team.AgentID(name[:i]), incarnation
}

// Event is where an agent's events are stored.
func Event(t team.TeamID, a team.AgentID, typ team.EventType) string {
	return join(t, "evt", string(a), strings.ToLower(string(typ)))
}

// Events is the stream of a team's events, and what it stores.
func Events(t team.TeamID) (stream string, subjects []string) {
	return "AT_" + string(t) + "_EVT", []string{join(t, "evt", ">")}
}

// Log is where an agent's conversation is appended.
func Log(t team.TeamID, a team.AgentID) string { return join(t, "log", string(a)) }

// LogsBelow matches the conversations of an agent's subagents.
func LogsBelow(t team.TeamID, a team.AgentID) string { return Log(t, a) + ".*" }

// Author is the agent whose conversation is on subject s, see [Log].
func Author(s string) team.AgentID {
	parts := strings.SplitN(s, ".", 4)
	return team.AgentID(parts[len(parts)-1])
}

// Logs is the stream of a team's conversations, and what it stores.
func Logs(t team.TeamID) (stream string, subjects []string) {
	return "AT_" + string(t) + "_LOG", []string{join(t, "log", ">")}
}

// Files is the object store of a team's deliverables and oversize texts.
func Files(t team.TeamID) string { return root + "-" + string(t) + "-files" }

// Bucket is the key-value bucket of a team's state.
func Bucket(t team.TeamID) string { return root + "-" + string(t) }

// Registry is the bucket of all teams.
const Registry = "atteams"

// Keys of a team's bucket.
const (
	KeyTeam       = "team"     // the Team record
	KeySequence   = "seq.task" // the next task number, and tasks about to appear
	KeyGraph      = "graph"    // guard of dependency edits
	KeyWatchdog   = "watchdog" // what the leader was told
	KeyLine       = "line"     // the head of the team's line, and who moves it now
	prefixOnce    = "once."
	prefixTask    = "task."
	prefixMember  = "member."
	prefixPlan    = "approval."
	prefixMerge   = "merge."
	prefixTeam    = "team."
	prefixLead    = "lead."
	AllTasks      = prefixTask + ">"
	AllMembers    = prefixMember + ">"
	KeyProbe      = "probe" // in the registry: written to see whether anything can be
	AllPlans      = prefixPlan + ">"
	AllMerges     = prefixMerge + ">"
	AllOfRegistry = ">"
)

// KeyTask is the key of a task.
func KeyTask(id team.TaskID) string { return prefixTask + string(id) }

// KeyOnce is the key of a call that may come again, under its idempotency key,
// which may hold anything: it is hashed.
func KeyOnce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return prefixOnce + hex.EncodeToString(sum[:16])
}

// KeyMember is the key of a member.
func KeyMember(a team.AgentID) string { return prefixMember + string(a) }

// KeyPlan is the key of a plan that was submitted for approval.
func KeyPlan(id string) string { return prefixPlan + id }

// KeyMerge is the key of a completed task that is to be merged into the line.
func KeyMerge(id team.TaskID) string { return prefixMerge + string(id) }

// MergeBundle is the file that has the work of a task, as its holder of that epoch has done it.
func MergeBundle(id team.TaskID, epoch uint64) string {
	return fmt.Sprintf("merge/%s/%d", id, epoch)
}

// MergeOutcome is the file that has why that work was not merged.
func MergeOutcome(id team.TaskID, epoch uint64) string { return MergeBundle(id, epoch) + "/outcome" }

// LineBundle is the file by which another host gets a head of the line.
func LineBundle(commit string) string { return "line/" + commit }

// KeyRegistered is the key of a team in the registry.
func KeyRegistered(t team.TeamID) string { return prefixTeam + string(t) }

// KeyLead is the key of the leader's lease in the registry.
func KeyLead(t team.TeamID) string { return prefixLead + string(t) }

// Ours reports whether a key of a team's bucket is one that agentteam writes.
func Ours(key string) bool {
	switch key {
	case KeyTeam, KeySequence, KeyGraph, KeyWatchdog, KeyLine:
		return true
	}
	return slices.ContainsFunc([]string{prefixTask, prefixMember, prefixOnce, prefixPlan, prefixMerge}, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Kind describes what a key of a bucket holds, and the rest of the key behind it.
type Kind int

// The kinds of keys.
const (
	Other Kind = iota
	Task
	Member
	Plan
	Registered
	Lead
	Merge
)

// ParseKey returns what a key holds and its name: Task "T-001", Member "coder-1", Plan "9f0c…", Merge "T-001".
func ParseKey(key string) (Kind, string) {
	prefix, name, dot := strings.Cut(key, ".")
	if !dot {
		return Other, key
	}
	switch prefix + "." {
	case prefixTask:
		return Task, name
	case prefixMember:
		return Member, name
	case prefixPlan:
		return Plan, name
	case prefixMerge:
		return Merge, name
	case prefixTeam:
		return Registered, name
	case prefixLead:
		return Lead, name
	}
	return Other, key
}

func join(t team.TeamID, kind string, rest ...string) string {
	return strings.Join(append([]string{root, string(t), kind}, rest...), ".")
}

// names matches what this package makes and NATS makes of it, but keys, which people know from
// repairs; and addresses of NATS.
var names = regexp.MustCompile(`\b(?:nats|tls)://[^\s;,"()]*[^\s;,"():]|\$(?:KV|O|JS)\.[^\s:;,"()]+|\b(?:KV|OBJ)_at[^\s:;,"()]*|\bAT_[a-z0-9-]+_(?:MSG|EVT|LOG)\b|` +
	`\bat\.[a-z0-9-]+\.(?:hb|live|ctl|query|inbox|all|urgent|dead|evt|log|spawn)\b[^\s:;,"()]*`)

// Hidden returns a text without such names, for those whose business they are not.
func Hidden(text string) string { return names.ReplaceAllString(text, "(internal)") }
