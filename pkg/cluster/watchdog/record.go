package watchdog

import (
	"time"

	"agentteam/pkg/team"
)

// record is what the watchdog knows of a member beside the roster.
type record struct {
	incarnation uint64              // of the present process
	seenAt      time.Time           // when that incarnation was first seen in the roster; zero: not yet judged
	silences    map[string]*silence // of that incarnation, by the way in which it does not answer
	createdAt   time.Time           // since when the roster's record is as created tells
	created     uint64              // revision of that record, while the member has no process
	respawned   uint64              // the lost incarnation that a respawn was asked for
	respawnedAt time.Time
	failures    failures  // to keep it, or to bring it back
	stalledAt   time.Time // its last progress when the leader was told of its stall
}

// silence counts the questions in a row that were left unanswered in one way.
type silence struct {
	missed int
	marked bool // the leader was told
}

// of returns what is known of a member. What was known of an earlier incarnation's silence goes.
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

// silence returns what is known of a way in which m does not answer.
func (r *record) silence(why string) *silence {
	if r.silences[why] == nil {
		if r.silences == nil {
			r.silences = map[string]*silence{}
		}
		r.silences[why] = &silence{}
	}
	return r.silences[why]
}

// The ways.
const (
	noPing  = "its process answers no ping"
	noInbox = "it reads no mail: its inbox is not there"
	noOffer = "it takes none of the tasks that it is offered"
)
