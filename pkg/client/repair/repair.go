// Package repair finds the unreadable records of a team and repairs them: a key of the bucket by
// its newest readable copy, of those that the bucket keeps; a journal by setting the record aside;
// a read position beyond the end of the mail by setting it back.
//
// It invents no data: content without a readable copy is lost. It judges no member by a damaged
// record; the team works without it until it is repaired.
package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Damage is an unreadable record, and its remedy.
type Damage struct {
	Key           string    `json:"key"`                      // of the bucket; "log.NAME" is the journal of a member, "inbox.NAME" its place in the mail
	Revision      uint64    `json:"revision"`                 // of the damaged copy; of a journal's record its sequence; of an inbox that of the newest message that was read
	Stored        time.Time `json:"stored_at"`                // when that was stored; of an inbox, when it was found
	Error         string    `json:"error"`                    // why it cannot be read
	Remedy        Remedy    `json:"remedy"`                   // what a repair does
	Copy          *Copy     `json:"copy,omitempty"`           // put_back: what is put back
	Lost          int       `json:"lost,omitempty"`           // put_back: copies over that one that cannot be read
	Last          uint64    `json:"last,omitempty"`           // set_back: where the message stream ends
	QuarantinedAs string    `json:"quarantined_as,omitempty"` // quarantine: its name in the object store of the team
	Repaired      bool      `json:"repaired,omitempty"`       // it was done
}

// Remedy is a way to repair a record.
type Remedy string

// The remedies.
const (
	PutBack    Remedy = "put_back"   // an earlier copy of the key is stored over it
	Quarantine Remedy = "quarantine" // it is taken out of the journal, and kept
	SetBack    Remedy = "set_back"   // its member reads on where the message stream ends
	Newer      Remedy = "newer"      // none unless it is named: a newer program has written it, and can read it
	NoRemedy   Remedy = "none"       // no copy can be read
)

// Copy is an earlier copy of a key.
type Copy struct {
	Revision uint64    `json:"revision"`
	Stored   time.Time `json:"stored_at"`

	entry broker.Entry
}

// Options are the parts of a Repairer.
type Options struct {
	Team    *broker.Storage                        // required
	Publish func(context.Context, team.Team) error // tells the list of all teams of the team's record; required
	Takes   journal.Takes                          // what a conversation takes; required
}

// Repairer repairs the records of one team. Safe for concurrent use, also from many processes: of
// several that repair one record, one does it, and the others find it repaired.
type Repairer struct{ o Options }

// New returns a repairer.
func New(o Options) *Repairer { return &Repairer{o} }

// Find returns all unreadable records, by key. It reads the whole board, and all journals as far as
// their agents would. Errors: Unavailable.
func (r *Repairer) Find(ctx context.Context) ([]Damage, error) {
	found := map[string]Damage{}
	bad := map[string]broker.Entry{}
	members := map[team.AgentID]bool{}
	err := r.o.Team.Bucket.Each(ctx, func(e broker.Entry) error {
		delete(bad, e.Key)
		if kind, name := subject.ParseKey(e.Key); kind == subject.Member {
			members[team.AgentID(name)] = true
		}
		if r.readable(ctx, e) != nil {
			bad[e.Key] = e
		}
		return nil
	}, ">")
	if err != nil {
		return nil, err
	}
	for key, e := range bad {
		if found[key], err = r.examine(ctx, e); err != nil {
			return nil, err
		}
	}
	all := slices.SortedFunc(maps.Values(found), func(a, b Damage) int { return cmp.Compare(a.Key, b.Key) })
	for _, a := range slices.Sorted(maps.Keys(members)) {
		records, err := journal.Damage(ctx, r.o.Team, a, r.o.Takes)
		if err != nil {
			return nil, err
		}
		all = append(all, ofJournal(a, records, false)...)
	}
	inboxes, err := r.Inboxes(ctx)
	return append(all, inboxes...), err
}

// Repair repairs the record with that key, or the journal, and returns what it did: nothing if the
// record can be read. Errors: NotFound for an unknown key; InvalidState if no copy of it can be
// read; Unavailable.
func (r *Repairer) Repair(ctx context.Context, key string) ([]Damage, error) {
	if a, ok := journal.ParseKey(key); ok {
		records, err := journal.SkipUnreadable(ctx, r.o.Team, a, r.o.Takes)
		return ofJournal(a, records, true), err
	}
	if a, ok := parseInbox(key); ok {
		return r.setBack(ctx, a)
	}
	for {
		e, err := r.o.Team.Bucket.Get(ctx, key)
		if errors.Is(err, team.NotFound) {
			return nil, team.Errorf(team.NotFound, "there is no record %s", key).WithHint("`teamctl repair` lists what is damaged; a journal is called log.NAME, a place in the mail inbox.NAME")
		}
		if err != nil || r.readable(ctx, e) == nil {
			return nil, err
		}
		d, err := r.examine(ctx, e)
		if err == nil {
			err = r.putBack(ctx, d)
		}
		switch {
		case errors.Is(err, team.Conflict): // another process has repaired it, or it was damaged again
			continue
		case err != nil:
			return []Damage{d}, err
		}
		d.Repaired, d.Remedy = true, PutBack
		return []Damage{d}, nil
	}
}

// readable returns why the record in an entry cannot be read, or nil.
func (r *Repairer) readable(ctx context.Context, e broker.Entry) (err error) {
	switch kind, _ := subject.ParseKey(e.Key); {
	case !subject.Ours(e.Key):
	case kind == subject.Task:
		_, err = board.Decode(e)
	case kind == subject.Member:
		_, err = roster.Decode(e)
	case kind == subject.Plan:
		_, err = approval.Decode(e)
	case e.Key == subject.KeySequence:
		_, err = board.DecodeSequence(e)
	case e.Key == subject.KeyTeam:
		var t team.Team
		if t, err = registry.Decode(e); err == nil && t.ID != r.o.Team.ID {
			err = team.Errorf(team.InvalidState, "record %s %w: it is of team %q", e.Key, team.ErrUnreadable, t.ID)
		}
	case e.Key == subject.KeyBranch:
		err = r.branchReadable(ctx, e)
	default:
		var any struct {
			V int `json:"v"`
		}
		_, err = e.Decode(&any, &any.V)
	}
	return err
}

// branchReadable returns why the record of the integration branch cannot be used, or nil: it may have
// been set by hand to a commit that no host has.
func (r *Repairer) branchReadable(ctx context.Context, e broker.Entry) error {
	var h struct {
		V    int    `json:"v"`
		Head string `json:"head"`
	}
	if _, err := e.Decode(&h, &h.V); err != nil {
		return err
	}
	at, err := gitrepo.ParseHash(h.Head)
	if err == nil {
		_, err = r.o.Team.Files.Digest(ctx, subject.BranchBundle(string(at)))
	}
	if errors.Is(err, team.Unavailable) {
		return nil // a missing answer proves nothing
	}
	if err != nil {
		err = team.Errorf(team.InvalidState, "record %s %w: %w", e.Key, team.ErrUnreadable, err)
	}
	return err
}

// examine returns the remedy for the unreadable record of an entry.
func (r *Repairer) examine(ctx context.Context, e broker.Entry) (Damage, error) {
	d := Damage{Key: e.Key, Revision: e.Revision, Stored: e.Time, Remedy: PutBack}
	if bad := r.readable(ctx, e); bad != nil { // else it was repaired a moment ago
		d.Error = bad.Error()
	}
	last, over, err := r.o.Team.Bucket.Readable(ctx, e.Key, func(e broker.Entry) error { return r.readable(ctx, e) })
	switch {
	case errors.Is(err, team.NotFound):
		d.Remedy = NoRemedy
		return d, nil
	case err != nil:
		return d, err
	case newer(e):
		d.Remedy = Newer
	}
	d.Copy, d.Lost = &Copy{last.Revision, last.Time, last}, len(over)
	return d, nil
}

// newer reports whether a record is of a protocol that this program does not know yet.
func newer(e broker.Entry) bool {
	var any struct {
		V int `json:"v"`
	}
	_, err := codec.Decode(e.Value, &any)
	return err == nil && any.V > team.Protocol
}

// putBack stores the copy over the damaged one. Errors: Conflict if the key was written since;
// InvalidState if there is no copy.
func (r *Repairer) putBack(ctx context.Context, d Damage) (err error) {
	bt := r.o.Team
	switch {
	case d.Copy == nil:
		return team.Errorf(team.InvalidState, "none of the copies of %s that the bucket keeps can be read", d.Key).WithHint("%s", without(d.Key))
	case d.Key == subject.KeySequence:
		// A goal may have ended meanwhile, which no process could write there.
		record, damaged, err := registry.Shown(ctx, bt)
		if err != nil {
			return err
		}
		if damaged != nil {
			return team.Errorf(team.InvalidState, "whether the team's goal has ended is not known: %w", damaged).WithHint("repair the record %s first", subject.KeyTeam)
		}
		return board.New(bt.Bucket, board.Options{}).RestoreSequence(ctx, d.Copy.entry, record.Status != team.Active, d.Revision)
	}
	if _, err = bt.Bucket.Put(ctx, d.Key, d.Copy.entry.Value, d.Revision); err != nil || d.Key != subject.KeyTeam {
		return err
	}
	record, err := registry.Record(ctx, bt)
	if err == nil {
		err = r.o.Publish(ctx, record)
	}
	return err
}

// without returns the instructions if no copy can be restored.
func without(key string) string {
	const backup = "restore a backup of the NATS server"
	switch kind, name := subject.ParseKey(key); {
	case kind == subject.Task:
		return backup + ", or add a new task (teamctl tasks add); the board works without this one"
	case kind == subject.Member:
		return backup + ", or spawn a member of another name; the team works without " + name
	}
	return backup + ", or go on in a new team; what the members wrote is in the workspace, or, where tasks have trees, in agentteam/lines of the user's cache folder"
}

// ofJournal returns the damage of an agent's journal.
func ofJournal(a team.AgentID, records []*journal.Bad, mended bool) (all []Damage) {
	for _, b := range records {
		all = append(all, Damage{Key: journal.Key(a), Revision: b.Seq, Stored: b.At, Error: b.Error(), Remedy: Quarantine, QuarantinedAs: b.Kept(a), Repaired: mended})
	}
	return all
}

// Text describes in a line the damage and its repair.
func (d Damage) Text() string {
	damaged := fmt.Sprintf("stored %s: %s", d.Stored.Local().Format(time.DateTime), strings.TrimSpace(d.Error))
	switch d.Remedy {
	case PutBack:
		verb := "is to be put back"
		if d.Repaired {
			verb = "was put back"
		}
		return fmt.Sprintf("the copy of %s (revision %d) %s; lost is what %d unreadable copies held, the last %s", d.Copy.Stored.Local().Format(time.DateTime), d.Copy.Revision, verb, d.Lost, damaged)
	case Quarantine:
		verb := "is to be set aside"
		if d.Repaired {
			verb = "was set aside"
		}
		return fmt.Sprintf("record %d %s, kept as %s; %s", d.Revision, verb, d.QuarantinedAs, damaged)
	case SetBack:
		verb := "is to read on"
		if d.Repaired {
			verb = "reads on"
		}
		return fmt.Sprintf("%s behind message %d; %s", verb, d.Last, d.Error)
	case Newer:
		return "a newer program wrote it and can read it; a repair that names it puts an older copy back; " + damaged
	}
	return "no copy can be read; " + damaged
}
