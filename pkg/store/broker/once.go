package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Call is the record of a repeatable call, under its idempotency key: the request and its result. The bucket keeps it as
// long as the team.
type Call struct {
	V       int            `json:"v"`
	Key     string         `json:"key"`
	Op      string         `json:"op,omitempty"`
	Kind    string         `json:"kind,omitempty"`    // each kind has keys of its own; "" = tasks
	As      team.AgentID   `json:"as,omitempty"`      // and so has each sender
	Request string         `json:"request,omitempty"` // digest of what was asked for
	State   string         `json:"state,omitempty"`   // "" = done; else begun or refused
	ID      string         `json:"id,omitempty"`      // of the message that it sends; members that it spawns carry it
	First   team.TaskID    `json:"first,omitempty"`   // of the tasks that it created
	Count   int            `json:"count,omitempty"`   // how many tasks those are
	Goal    int            `json:"goal,omitempty"`    // number of the goal that it set; 0 = the text was only mailed
	Members []team.AgentID `json:"members,omitempty"` // that it spawns, or that its message goes to
	Stored  string         `json:"stored,omitempty"`  // where the whole text of its message is

	revision uint64
	kept     team.Extra
}

const (
	callBegun   = "begun"   // the effect may be there, in part
	callRefused = "refused" // there is no effect: another request may take the key
)

const maxKeyBytes = 256

// NewCall returns the call of a kind and a sender with this key and request. Errors:
// InvalidArgument for a key of 0 or of more than 256 bytes.
func NewCall(kind string, as team.AgentID, key string, request ...any) (Call, error) {
	if key == "" || len(key) > maxKeyBytes {
		return Call{}, team.Errorf(team.InvalidArgument, "the idempotency key is %d bytes long; it has 1 to %d", len(key), maxKeyBytes).
			WithHint("use a word of your own, such as the number of an order; a long one can be hashed")
	}
	asked, err := codec.Marshal(request)
	sum := sha256.Sum256(asked)
	return Call{V: team.Protocol, Key: key, Kind: kind, As: as, Request: hex.EncodeToString(sum[:])}, err
}

// at returns the key of the call in the bucket.
func (c Call) at() string {
	if c.Kind == "" {
		return subject.KeyOnce(c.Key)
	}
	return subject.KeyOnce(c.Kind + "\x00" + string(c.As) + "\x00" + c.Key)
}

// calls stores calls; a [Bucket] is one.
type calls interface {
	Get(ctx context.Context, key string) (Entry, error)
	puts
}

// Find returns the stored call. Errors: NotFound; InvalidState; Unavailable.
func (c Call) Find(ctx context.Context, in calls) (found Call, err error) {
	e, err := in.Get(ctx, c.at())
	if err == nil {
		found.kept, err = e.Decode(&found, &found.V)
		found.revision = e.Revision
	}
	return found, err
}

// Store stores the call over the copy that Find returned, or as a new one. Errors: as of [Bucket.Put].
func (c Call) Store(ctx context.Context, in calls) error {
	_, err := Save(ctx, in, c.at(), c, c.kept, c.revision)
	return err
}

// ChangeCall has change make the next copy of the stored call under the key of c, as [Update] does. change gets the zero
// Call if there is none.
func (b *Bucket) ChangeCall(ctx context.Context, c Call, change func(have *Call) (bool, error)) (Call, error) {
	return Update(ctx, func(ctx context.Context) (Call, error) {
		have, err := c.Find(ctx, b)
		if errors.Is(err, team.NotFound) {
			err = nil
		}
		return have, err
	}, change, func(ctx context.Context, next Call) (Call, error) {
		next.Op = ulid.Make().String()
		return next, next.Store(ctx, b)
	})
}

// Once has do take effect once for the key of c. The call is stored before do runs, so a repetition completes the work of a
// killed caller: do then gets the stored call, and existed is true. do sets its result in the call. For a call that is done,
// do is not called.
//
// existed reports whether an earlier call had the key. After an error of do other than Unavailable, another request may take
// the key. Errors: those of do; Conflict if the earlier call was another request; Unavailable.
func (b *Bucket) Once(ctx context.Context, c Call, do func(c *Call, existed bool) error) (_ Call, existed bool, err error) {
	asked := c.Request
	c, err = b.ChangeCall(ctx, c, func(have *Call) (begins bool, err error) {
		if existed = have.ID != "" && have.State != callRefused; !existed {
			begins, c.revision, c.State, c.ID = true, have.revision, callBegun, ulid.Make().String()
			*have = c
		}
		if err == nil && have.Request != asked {
			err = team.Errorf(team.Conflict, "the idempotency key was used before, for something else").WithHint("use another key for another request")
		}
		return begins, err
	})
	if err != nil || c.State == "" {
		return c, existed, err
	}
	if err = do(&c, existed); err == nil {
		c.State = ""
	} else if code := team.CodeOf(err); code == team.Unavailable || code == "" {
		return c, existed, err // it may have taken effect
	} else {
		c.State = callRefused
	}
	_, unstored := b.ChangeCall(ctx, c, func(have *Call) (bool, error) {
		open := have.ID == c.ID && have.State != "" // else another caller has ended it
		c.revision = have.revision
		if open {
			*have = c
		}
		return open, nil
	})
	return c, existed, cmp.Or(err, unstored)
}
