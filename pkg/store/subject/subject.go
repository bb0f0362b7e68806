// Package subject makes and parses every name that agentteam uses in NATS: subjects, streams, buckets, keys, consumers.
// No other package spells such a name, so this file is the map of the wire (docs/protocol.md shows it to people).
//
// It trusts its arguments: team.ParseTeamID and team.ParseAgentID check names at the edge.
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

// Pool is the subject on which standbys are asked to become a member; Queue is their queue group.
const (
	Pool  = root + ".pool.spawn"
	Queue = "standbys"
)

// PoolOf returns the subject for standbys that have the model alias, in the same group; [Pool] for "". An alias may hold
// characters that a subject must not: it is encoded.
func PoolOf(alias string) string {
	if alias == "" {
		return Pool
	}
	return Pool + "." + base64.RawURLEncoding.EncodeToString([]byte(alias))
}

// Storage is the subject on which a process reports to all others that NATS does not store its writes.
const Storage = root + ".storage"

// Service returns the name of the micro service of a process of this kind (leader or teammate).
func Service(kind string) string { return "agentteam-" + kind }

// Heartbeat returns the subject of an agent's heartbeats.
func Heartbeat(t team.TeamID, a team.AgentID) string { return join(t, "hb", string(a)) }

// Heartbeats returns the filter of the heartbeats of a whole team.
func Heartbeats(t team.TeamID) string { return join(t, "hb", "*") }

// Live returns the subject of the text that an agent's model is writing.
func Live(t team.TeamID, a team.AgentID) string { return join(t, "live", string(a)) }

// LiveAll returns the filter of those of a whole team. The name of a subagent has a dot.
func LiveAll(t team.TeamID) string { return join(t, "live", ">") }

// Verb is a request to an agent's process rather than to its inbox.
type Verb string

// The verbs of process control.
const (
	Offer   Verb = "offer"   // a task for the taking; no right to it
	Assign  Verb = "assign"  // claim this task; answered with the task or the error
	Revoked Verb = "revoked" // the task you hold is no longer yours
	Compact Verb = "compact" // make your conversation shorter, at your next turn
	Stop    Verb = "stop"    // end immediately
	Ping    Verb = "ping"    // answered with a heartbeat
	Start   Verb = "start"   // to a leader's process: run this member as your child
)

// Control returns the subject of requests to the process of an agent.
func Control(t team.TeamID, a team.AgentID, v Verb) string {
	return join(t, "ctl", string(a), string(v))
}

// Query returns the subject on which the leader's index answers queries for lists of tasks.
func Query(t team.TeamID) string { return join(t, "query") }

// Inbox returns the subject of mail from from to to. The last token is the sender, set by code.
func Inbox(t team.TeamID, to, from team.AgentID) string {
	return join(t, "inbox", string(to), string(from))
}

// Broadcast returns the subject of mail from from to everyone.
func Broadcast(t team.TeamID, from team.AgentID) string { return join(t, "all", string(from)) }

// Urgent returns the subject of notices to a member's process of urgent mail in its inbox.
func Urgent(t team.TeamID, to team.AgentID) string { return join(t, "urgent", string(to)) }

// UrgentAll returns the subject of such notices to all.
func UrgentAll(t team.TeamID) string { return join(t, "urgent", "all") }

// Dead returns the subject of messages that the member to could not read.
func Dead(t team.TeamID, to team.AgentID) string { return join(t, "dead", string(to)) }

// Mail returns the filters of a member's mail: its own inbox and all broadcasts.
func Mail(t team.TeamID, a team.AgentID) []string {
	return []string{join(t, "inbox", string(a), ">"), join(t, "all", ">")}
}

// Sender returns the author of a message on subject s.
func Sender(s string) team.AgentID {
	return team.AgentID(s[strings.LastIndexByte(s, '.')+1:])
}

// Messages returns the stream of a team's mail, and its subjects.
func Messages(t team.TeamID) (stream string, subjects []string) {
	return "AT_" + string(t) + "_MSG", []string{join(t, "inbox", ">"), join(t, "all", ">"), join(t, "dead", ">")}
}

// ParseMessages returns the team of a stream of mail; "" for any other stream.
func ParseMessages(stream string) team.TeamID {
	id, ok := strings.CutPrefix(stream, "AT_")
	if !ok || !strings.HasSuffix(id, "_MSG") {
		return ""
	}
	return team.TeamID(strings.TrimSuffix(id, "_MSG"))
}

// Consumer returns the name of the durable consumer of one incarnation of a member.
func Consumer(a team.AgentID, incarnation uint64) string {
	return fmt.Sprintf("%s-%d", a, incarnation)
}

// ParseConsumer returns the member and incarnation of a consumer; "" and 0 for any other name.
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

// Event returns the subject of an agent's events of a type.
func Event(t team.TeamID, a team.AgentID, typ team.EventType) string {
	return join(t, "evt", string(a), strings.ToLower(string(typ)))
}

// Events returns the stream of a team's events, and its subjects.
func Events(t team.TeamID) (stream string, subjects []string) {
	return "AT_" + string(t) + "_EVT", []string{join(t, "evt", ">")}
}

// Log returns the subject of an agent's conversation.
func Log(t team.TeamID, a team.AgentID) string { return join(t, "log", string(a)) }

// LogsBelow returns the filter of the conversations of an agent's subagents.
func LogsBelow(t team.TeamID, a team.AgentID) string { return Log(t, a) + ".*" }

// Author returns the agent whose conversation is on subject s, see [Log].
func Author(s string) team.AgentID {
	parts := strings.SplitN(s, ".", 4)
	return team.AgentID(parts[len(parts)-1])
}

// Logs returns the stream of a team's conversations, and its subjects.
func Logs(t team.TeamID) (stream string, subjects []string) {
	return "AT_" + string(t) + "_LOG", []string{join(t, "log", ">")}
}

// Files returns the name of the object store of a team's deliverables and oversize texts.
func Files(t team.TeamID) string { return root + "-" + string(t) + "-files" }

// Bucket returns the name of the key-value bucket of a team's state.
func Bucket(t team.TeamID) string { return root + "-" + string(t) }

// Registry is the bucket of all teams.
const Registry = "atteams"

// Keys of a team's bucket.
const (
	KeyTeam       = "team"     // the Team record
	KeySequence   = "seq.task" // the next task number, and tasks about to appear
	KeyGraph      = "graph"    // guard of dependency edits
	KeyWatchdog   = "watchdog" // the notices that the leader got
	KeyBranch     = "branch"   // the head of the integration branch, and the queue that moves it now
	KeyBudget     = "budget"   // what model calls have used, and the slices drawn of budgets
	prefixSlice   = "budget."
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

// KeyTask returns the key of a task.
func KeyTask(id team.TaskID) string { return prefixTask + string(id) }

// KeyOnce returns the key of a repeatable call by its idempotency key, which may hold any text: it is hashed.
func KeyOnce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return prefixOnce + hex.EncodeToString(sum[:16])
}

// KeyMember returns the key of a member.
func KeyMember(a team.AgentID) string { return prefixMember + string(a) }

// KeySlice returns the key under which a member records its use of a slice of the budgets.
func KeySlice(a team.AgentID) string { return prefixSlice + string(a) }

// KeyPlan returns the key of a plan that was submitted for approval.
func KeyPlan(id string) string { return prefixPlan + id }

// KeyMerge returns the key of a completed task that waits in the merge queue.
func KeyMerge(id team.TaskID) string { return prefixMerge + string(id) }

// MergeBundle returns the name of the file with the work of a task in the hold of that epoch.
func MergeBundle(id team.TaskID, epoch uint64) string {
	return fmt.Sprintf("merge/%s/%d", id, epoch)
}

// MergeOutcome returns the name of the file with the reason why that work was not merged.
func MergeOutcome(id team.TaskID, epoch uint64) string { return MergeBundle(id, epoch) + "/outcome" }

// BranchBundle returns the name of the file by which another host gets a head of the integration branch.
func BranchBundle(commit string) string { return "branch/" + commit }

// KeyRegistered returns the key of a team in the registry.
func KeyRegistered(t team.TeamID) string { return prefixTeam + string(t) }

// KeyLead returns the key of the leader's lease in the registry.
func KeyLead(t team.TeamID) string { return prefixLead + string(t) }

// Ours reports whether agentteam writes this key of a team's bucket.
func Ours(key string) bool {
	switch key {
	case KeyTeam, KeySequence, KeyGraph, KeyWatchdog, KeyBranch, KeyBudget:
		return true
	}
	return slices.ContainsFunc([]string{prefixTask, prefixMember, prefixOnce, prefixPlan, prefixMerge, prefixSlice}, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Kind is the type of the value under a key.
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

// ParseKey returns the kind of a key and its name: Task "T-001", Member "coder-1", Plan "9f0c…", Merge "T-001".
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

// names matches the names that this package makes and NATS derives from them, except keys, which people know from
// repairs; and addresses of NATS.
var names = regexp.MustCompile(`\b(?:nats|tls)://[^\s;,"()]*[^\s;,"():]|\$(?:KV|O|JS)\.[^\s:;,"()]+|\b(?:KV|OBJ)_at[^\s:;,"()]*|\bAT_[a-z0-9-]+_(?:MSG|EVT|LOG)\b|` +
	`\bat\.[a-z0-9-]+\.(?:hb|live|ctl|query|inbox|all|urgent|dead|evt|log|spawn)\b[^\s:;,"()]*`)

// Hidden returns text without such names, for readers that they do not concern.
func Hidden(text string) string { return names.ReplaceAllString(text, "(internal)") }
