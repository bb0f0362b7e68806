package watchdog

import (
	"time"

	"agentteam/pkg/team"
)

// record is the watchdog's own state of a member, in addition to the roster.
type record struct {
	incarnation uint64              // of the present process
	seenAt      time.Time           // when that incarnation was first seen in the roster; zero: not yet judged
	silences    map[string]*silence // of that incarnation, by the kind of missing answer
	createdAt   time.Time           // since when the roster's record has revision created
	created     uint64              // revision of that record, while the member has no process
	respawned   uint64              // the lost incarnation for which a respawn was requested
	respawnedAt time.Time
	failures    failures  // of the tries to keep it, or to bring it back
	stalledAt   time.Time // its last progress when the leader was notified of its stall
}

// silence counts the unanswered requests of one kind in a row.
type silence struct {
	missed int
	marked bool // the leader was notified
}

// of returns the state of a member. The silences of an earlier incarnation are dropped.
func (w *Watchdog) of(m team.Member) *record {
	r := w.members[m.AgentID]
	if r == nil {
		r = &record{}
		w.members[m.AgentID] = r
	}
	if r.incarnation != m.Incarnation {
		r.incarnation, r.seenAt, r.silences = m.Incarnation, time.Time{}, nil
	}
	return r
}

// silence returns the count for one kind of missing answer.
func (r *record) silence(why string) *silence {
	if r.silences[why] == nil {
		if r.silences == nil {
			r.silences = map[string]*silence{}
		}
		r.silences[why] = &silence{}
	}
	return r.silences[why]
}

// The kinds of missing answers.
const (
	noPing  = "its process answers no ping"
	noInbox = "it reads no mail: its inbox is not there"
	noOffer = "it takes none of the tasks that it is offered"
)
