package mergequeue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// State is the state of an entry.
type State string

// The states. The entry of a completed or released task is removed.
const (
	Waiting   State = "waiting"
	Merged    State = "merged"    // it is in the integration branch; its task is completed once the task's record can be read
	Returned  State = "returned"  // its task is to be released, with the stored [Outcome]
	Withdrawn State = "withdrawn" // stays, so that a late Submit of this epoch is refused
)

// Entry is the submitted work of a task, and the record under its key.
type Entry struct {
	V           int             `json:"v"`
	Op          string          `json:"op"`
	Task        team.TaskID     `json:"task"`
	Epoch       uint64          `json:"epoch"` // of the hold under which it was done
	Incarnation uint64          `json:"incarnation,omitempty"`
	Agent       team.AgentID    `json:"agent,omitempty"`
	Base        gitrepo.Hash    `json:"base,omitempty"`               // the commit of the integration branch that the work builds on
	Bundle      string          `json:"bundle,omitempty"`             // the name of its file in the team's object store
	Digest      string          `json:"digest,omitempty"`             // of that file
	Check       string          `json:"check,omitempty"`              // the task's check
	Supersedes  []team.TaskID   `json:"supersedes,omitempty"`         // of the task
	Title       string          `json:"title,omitempty"`              // the subject of its commit
	Summary     string          `json:"summary,omitempty"`            // the body: the holder's summary
	Deliverable string          `json:"deliverable_digest,omitempty"` // of the task, as its holder has stored it
	Artifacts   []team.Artifact `json:"artifacts,omitempty"`          // of the task, the same
	Sandbox     team.Sandbox    `json:"sandbox,omitempty"`            // the level in which the holder's commands ran
	Links       []string        `json:"links,omitempty"`              // the files of the user's folder that the check has used
	Returned    []uint64        `json:"returned,omitempty"`           // the epochs under which earlier work of the task was returned
	Merged      gitrepo.Hash    `json:"merged,omitempty"`             // its commit in the integration branch, in state merged
	State       State           `json:"state"`
	At          time.Time       `json:"at"` // when it was submitted

	Revision uint64 `json:"-"` // of the bucket; the order of entries
	kept     team.Extra
}

// same reports whether two entries are of one hold of one task.
func (e Entry) same(id team.TaskID, epoch uint64) bool { return e.Task == id && e.Epoch == epoch }

// Head is the head of the integration branch and the lease of the queue that may move it: the record under the key line.
type Head struct {
	V      int          `json:"v"`
	Op     string       `json:"op"`
	Commit gitrepo.Hash `json:"head"`
	Begun  gitrepo.Hash `json:"begun"`          // the first head of the integration branch
	Last   []Merge      `json:"last,omitempty"` // the work that the last move brought, in order; its tasks may not be completed yet
	At     time.Time    `json:"at"`             // when the head was moved

	Process string `json:"process,omitempty"` // of the queue that holds the lease; "" = none
	Term    uint64 `json:"term"`              // grows each time that the lease is taken
	N       uint64 `json:"n,omitempty"`       // of the lease's renewals

	Revision uint64 `json:"-"`
	kept     team.Extra
}

// Merge is the work of a hold in the integration branch.
type Merge struct {
	Task   team.TaskID  `json:"task"`
	Epoch  uint64       `json:"epoch"`
	Commit gitrepo.Hash `json:"commit"`
}

// has reports whether the last move brought the hold's work.
func (h Head) has(id team.TaskID, epoch uint64) bool {
	return slices.ContainsFunc(h.Last, func(m Merge) bool { return m.Task == id && m.Epoch == epoch })
}

// Records stores a team's head and entries. Safe for concurrent use, also from many processes.
type Records struct {
	bucket *broker.Bucket
	files  *broker.Files
}

// New returns the records in the storage s of a team.
func New(s *broker.Storage) *Records { return &Records{s.Bucket, s.Files} }

// Head returns the stored head. Errors: NotFound if the team has no integration branch; [team.ErrUnreadable]; Unavailable.
func (r *Records) Head(ctx context.Context) (Head, error) {
	e, err := r.bucket.Get(ctx, subject.KeyBranch)
	if err != nil {
		return Head{}, err
	}
	return decodeHead(e)
}

// Get returns the entry of a task. Errors: NotFound; [team.ErrUnreadable]; Unavailable.
func (r *Records) Get(ctx context.Context, id team.TaskID) (Entry, error) {
	e, err := r.bucket.Get(ctx, subject.KeyMerge(id))
	if err != nil {
		return Entry{}, err
	}
	return decodeEntry(e)
}

// Waiting returns the entries that a queue has to merge, or whose task it has to release, in order, without unreadable
// ones. Errors: Unavailable.
func (r *Records) Waiting(ctx context.Context) (all []Entry, err error) {
	entries, err := r.bucket.Load(ctx, subject.AllMerges)
	for _, stored := range entries {
		if e, err := decodeEntry(stored); err == nil && e.State != Withdrawn {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, inOrder)
	return all, err
}

// Submit stores the work of a task, the bundle of [gitrepo.Tree.Commit], and puts it into the queue. The caller sets the
// fields of e from Task to Summary except Bundle and Digest. It is idempotent: an earlier submission of the same epoch is not
// replaced, but returned. From then on the task must not be freed without [Records.Withdraw], and its holder need not live.
//
// Errors: InvalidArgument; Conflict for a former epoch, and a withdrawn one; Unavailable, and then the outcome is unknown.
func (r *Records) Submit(ctx context.Context, e Entry, bundle []byte) (Entry, error) {
	if err := e.complete(bundle); err != nil {
		return Entry{}, err
	}
	e.Bundle, e.Digest = subject.MergeBundle(e.Task, e.Epoch), ""
	return broker.Update(ctx, r.reader(e.Task), func(have *Entry) (bool, error) {
		switch {
		case have.Epoch > e.Epoch:
			return false, team.Errorf(team.Conflict, "%s was submitted under epoch %d, which is later than %d", e.Task, have.Epoch, e.Epoch)
		case have.same(e.Task, e.Epoch) && have.State == Withdrawn:
			return false, team.Errorf(team.Conflict, "the work of %s under epoch %d was withdrawn", e.Task, e.Epoch)
		case have.same(e.Task, e.Epoch):
			return false, nil
		}
		if e.Digest == "" {
			var err error
			if e.Digest, err = r.files.Put(ctx, e.Bundle, bytes.NewReader(bundle)); err != nil {
				return false, err
			}
		}
		e.State, e.At, e.Revision = Waiting, time.Now().UTC(), have.Revision
		*have = e
		return true, nil
	}, r.put)
}

// complete returns an error if a submission lacks something.
func (e Entry) complete(bundle []byte) error {
	if _, err := team.ParseTaskID(string(e.Task)); err != nil {
		return err
	}
	if _, err := team.ParseAgentID(string(e.Agent)); err != nil && e.Agent != team.UserAgent {
		return err
	}
	if _, err := gitrepo.ParseHash(string(e.Base)); err != nil {
		return err
	}
	if e.Epoch == 0 || len(bundle) == 0 {
		return team.Errorf(team.InvalidArgument, "what is submitted for %s needs an epoch and a bundle", e.Task).
			WithHint("a task without changes is completed without the line")
	}
	return nil
}

// Withdraw takes the work of an epoch out of the queue, before the task is released or cancelled. Once it has returned nil,
// that work is not merged, and the epoch can submit none later. Without an integration branch it does nothing. It can be
// repeated.
//
// Errors: InvalidState if the work is in the branch: the task is about to be completed; Conflict if a later epoch has
// submitted; Unavailable, and then the outcome is unknown.
func (r *Records) Withdraw(ctx context.Context, id team.TaskID, epoch uint64) error {
	if h, err := r.notMerged(ctx, id, epoch); err != nil || h.Revision == 0 {
		return err
	}
	seen := false // a queue may have the entry under way
	_, err := broker.Update(ctx, r.reader(id), func(have *Entry) (bool, error) {
		seen = have.same(id, epoch)
		switch {
		case have.Epoch > epoch:
			return false, team.Errorf(team.Conflict, "%s was submitted under epoch %d, which is later than %d", id, have.Epoch, epoch)
		case seen && have.State == Merged:
			return false, mergedAs(id)
		case seen && have.State == Withdrawn:
			return false, nil
		case !seen:
			*have = Entry{Task: id, Epoch: epoch, At: time.Now().UTC(), Revision: have.Revision}
		}
		have.State = Withdrawn
		return true, nil
	}, r.put)
	if err != nil || !seen {
		return err
	}
	// A queue that has read the entry before may be about to move the head. So Withdraw writes the head's record again:
	// either that move came first, which shows here, or it fails, and the queue reads the entry once more.
	_, err = broker.Update(ctx, func(ctx context.Context) (Head, error) { return r.notMerged(ctx, id, epoch) },
		func(h *Head) (bool, error) { return h.Revision > 0, nil }, r.putHead)
	return err
}

// notMerged returns the head, the zero Head if there is no integration branch. Errors: InvalidState if this work was merged
// last.
func (r *Records) notMerged(ctx context.Context, id team.TaskID, epoch uint64) (Head, error) {
	h, err := r.Head(ctx)
	switch {
	case errors.Is(err, team.NotFound):
		return Head{}, nil
	case err == nil && h.has(id, epoch):
		err = mergedAs(id)
	}
	return h, err
}

func mergedAs(id team.TaskID) error {
	return team.Errorf(team.InvalidState, "the work of %s is in the line already: the task is about to be completed", id)
}

// Outcome returns the reason why the work of a hold was not merged. It is stored until the task is over. Errors: NotFound;
// Unavailable.
func (r *Records) Outcome(ctx context.Context, id team.TaskID, epoch uint64) (o Outcome, err error) {
	data, err := r.read(ctx, subject.MergeOutcome(id, epoch))
	if err == nil {
		err = codec.Unmarshal(data, &o)
	}
	return o, err
}

// read returns a file of the object store. Errors: NotFound; Unavailable.
func (r *Records) read(ctx context.Context, name string) ([]byte, error) {
	f, err := r.files.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// withdrawnFor bounds the time for which the task of withdrawn work may stay in progress: the caller of Withdraw puts it back
// next, unless it is killed in between.
const withdrawnFor = 5 * time.Second

// Over blocks until a task is no longer in progress under an epoch: its work was merged, returned or withdrawn. Errors: ctx's;
// Conflict if the work was withdrawn, and the task not put back; Unavailable.
func (r *Records) Over(ctx context.Context, id team.TaskID, epoch uint64) error {
	over := errors.New("the task is over")
	withdrawn := team.Errorf(team.Conflict, "the work of %s was withdrawn, and will not be merged", id).WithHint("give the task back")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := r.bucket.Watch(ctx, func(e broker.Entry) error {
		if e.Key == subject.KeyMerge(id) {
			if entry, err := decodeEntry(e); err == nil && entry.same(id, epoch) && entry.State == Withdrawn {
				time.AfterFunc(withdrawnFor, func() { cancel(withdrawn) })
			}
			return nil
		}
		t, err := board.Decode(e)
		if e.Deleted || err == nil && (t.Status != team.InProgress || t.Epoch != epoch) {
			return over
		}
		return nil // an unreadable record does not count
	}, nil, subject.KeyTask(id), subject.KeyMerge(id))
	switch {
	case errors.Is(err, over):
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%s waits to be merged: %w", id, err)
}

// reader returns a function that reads an entry for a change; the zero Entry if there is none.
func (r *Records) reader(id team.TaskID) func(context.Context) (Entry, error) {
	return func(ctx context.Context) (Entry, error) {
		e, err := r.Get(ctx, id)
		if errors.Is(err, team.NotFound) {
			err = nil
		}
		return e, err
	}
}

// put stores an entry if it is still at e.Revision.
func (r *Records) put(ctx context.Context, e Entry) (_ Entry, err error) {
	e.V, e.Op = team.Protocol, ulid.Make().String()
	e.Revision, err = broker.Save(ctx, r.bucket, subject.KeyMerge(e.Task), e, e.kept, e.Revision)
	return e, err
}

// putHead stores the head if it is still at h.Revision.
func (r *Records) putHead(ctx context.Context, h Head) (_ Head, err error) {
	h.V, h.Op = team.Protocol, ulid.Make().String()
	h.Revision, err = broker.Save(ctx, r.bucket, subject.KeyBranch, h, h.kept, h.Revision)
	return h, err
}

// remove removes an entry; an entry that was written again or removed since is not an error.
func (r *Records) remove(ctx context.Context, e Entry) error {
	err := r.bucket.Delete(ctx, subject.KeyMerge(e.Task), e.Revision)
	if errors.Is(err, team.Conflict) {
		return nil
	}
	return err
}

func decodeEntry(stored broker.Entry) (e Entry, err error) {
	e.kept, err = stored.Decode(&e, &e.V)
	e.Revision = stored.Revision
	return e, err
}

func decodeHead(stored broker.Entry) (h Head, err error) {
	h.kept, err = stored.Decode(&h, &h.V)
	h.Revision = stored.Revision
	if err == nil {
		if _, bad := gitrepo.ParseHash(string(h.Commit)); bad != nil { // it was written by hand
			err = team.Errorf(team.InvalidState, "record %s %w: %w", stored.Key, team.ErrUnreadable, bad).WithHint(team.RepairHint)
		}
	}
	return h, err
}
