package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"agentteam/pkg/board"
	"agentteam/pkg/stored"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// keyed is the id of the message that a call with an idempotency key sends: the same for the
// same key, so that the message itself tells whether the call was made before. Nothing else is
// stored of a key. Errors: InvalidArgument.
func keyed(what string, as team.AgentID, key string) (id string, err error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(what + "\x00" + string(as) + "\x00" + key))
	return what + "-key-" + base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// checkKey returns InvalidArgument for what is no idempotency key.
func checkKey(key string) error {
	if key != "" && len(key) <= board.MaxKeyBytes {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "the idempotency key is %d bytes long; it has 1 to %d", len(key), board.MaxKeyBytes).
		WithHint("use a word of your own, such as the number of an order; a long one can be hashed")
}

// keyedFrom returns the message that a call with an idempotency key has sent, from a sequence
// on, and the sequence behind which it was not looked for. It reads only what that sender has
// written. Errors: NotFound; Unavailable.
func (t *Team) keyedFrom(ctx context.Context, id string, from uint64, as team.AgentID) (l Letter, last uint64, err error) {
	if last, err = t.team.Messages.LastSeq(ctx); err != nil {
		return l, 0, err
	}
	sender := cmp.Or(as, team.UserAgent)
	l, err = t.findOn(ctx, id, from, subject.Inbox(t.ID(), "*", sender), subject.Broadcast(t.ID(), sender))
	return l, last, err
}

// SendOnce is [Team.Send] for a caller that may have to repeat it. If an earlier call of the
// same sender had the same key, nothing is sent: existed is true, and the message is the one of
// that call. It reads all mail of that sender once. Errors: those of Send; Conflict if that call
// sent something else.
func (t *Team) SendOnce(ctx context.Context, key string, m Mail) (msg team.Message, to []team.AgentID, existed bool, err error) {
	id, err := keyed("mail", m.As, key)
	if err != nil {
		return msg, nil, false, err
	}
	before, last, err := t.keyedFrom(ctx, id, 1, m.As)
	if existed = err == nil; errors.Is(err, team.NotFound) {
		if m.ReplyTo != "" {
			_, err = t.find(ctx, m.ReplyTo)
		}
		if m.ReplyTo == "" || err == nil {
			// The server takes one message of an id within two minutes: of calls that race one
			// is stored, and all find that one.
			msg, to, err = t.send(ctx, m, id)
		}
		if err == nil {
			before, _, err = t.keyedFrom(ctx, id, last+1, m.As)
			existed = !before.CreatedAt.Equal(msg.CreatedAt)
		}
	} else if existed && before.To == team.Everyone {
		to, err = t.hearers(ctx, before)
	} else {
		to = []team.AgentID{before.To}
	}
	if err == nil {
		err = t.same(ctx, before, m.Text, m.To, m.ReplyTo, m.Urgent)
	}
	return before.Message, to, existed, err
}

// same returns nil if a letter says this. Errors: Conflict; Unavailable.
func (t *Team) same(ctx context.Context, l Letter, text string, to team.AgentID, replyTo string, urgent bool) error {
	content := l.Content
	if l.Stored != "" {
		var err error
		if content, err = stored.In(t.team.Files).Get(ctx, l.Stored); err != nil {
			return err
		}
	}
	if content != text || l.To != to || l.InReplyTo != replyTo || l.Urgent != urgent {
		return team.Errorf(team.Conflict, "the idempotency key was used before, for the message %s, which says something else", l.ID).
			WithHint("use another key for another message")
	}
	return nil
}

// NewGoal is a goal that is to be set.
type NewGoal struct {
	Text      string
	Workspace string // where the members work from now on; "" = as before
	Key       string // a word of the caller's that makes the call one that may be repeated; "" = it is not
	Add       bool   // mail the text to the leader of a team that is at work
}

// SetGoal is [Team.StartGoal], which a team that is at work refuses unless n.Add is set; one
// that is set another goal at the same moment gets the text as mail all the same.
//
// If an earlier call had the same key, existed is true, nothing is mailed again, and a goal
// that this call did not come to set is set now. With a key it reads all mail of the person
// before the team.
// Errors: those of StartGoal; Conflict if the team is at work, and if the earlier call had
// another text.
func (t *Team) SetGoal(ctx context.Context, n NewGoal) (g *Goal, existed bool, err error) {
	id, last := "", uint64(0)
	if n.Key != "" {
		if id, err = keyed("goal", "", n.Key); err != nil {
			return nil, false, err
		}
		var mail Letter
		if mail, last, err = t.keyedFrom(ctx, id, 1, ""); err == nil {
			g, err = t.repeatGoal(ctx, n, mail)
			return g, true, err
		}
		if !errors.Is(err, team.NotFound) {
			return nil, false, err
		}
	}
	if !n.Add {
		record, err := t.Record(ctx)
		if err != nil {
			return nil, false, err
		}
		if record.AtWork() {
			if id != "" { // another call with the key may have set it since
				if mail, _, err := t.keyedFrom(ctx, id, last+1, ""); !errors.Is(err, team.NotFound) {
					if err == nil {
						g, err = t.repeatGoal(ctx, n, mail)
					}
					return g, err == nil, err
				}
			}
			return nil, false, team.Errorf(team.Conflict, "team %s is at work: %s", t.ID(), team.Summarize(record.Goal)).
				WithHint("wait for its end, or stop it; with add the text goes to its leader as mail")
		}
	}
	g, sent, err := t.mailGoal(ctx, id, n.Text)
	if err != nil {
		return nil, false, err
	}
	var mail Letter
	if id != "" {
		if mail, _, err = t.keyedFrom(ctx, id, last+1, ""); err != nil {
			return nil, false, err
		}
		if !mail.CreatedAt.Equal(sent.CreatedAt) { // of calls that race one has mailed its text
			g, err = t.repeatGoal(ctx, n, mail)
			return g, true, err
		}
	}
	err = g.set(ctx, n.Text, n.Workspace)
	if err == nil && id != "" && setFor(g.record, n.Text, mail) { // by one that raced
		g.started = true
	}
	return g, false, err
}

// repeatGoal ends what the call that has sent mail began.
func (t *Team) repeatGoal(ctx context.Context, n NewGoal, mail Letter) (*Goal, error) {
	if err := t.same(ctx, mail, n.Text, team.Leader, "", false); err != nil {
		return nil, err
	}
	record, err := t.Record(ctx)
	if err != nil {
		return nil, err
	}
	// The mail comes before the goal. A goal that is younger than the mail is this one, or one
	// that came after it; so no goal is to be set, nor if the team is at work: then the mail is
	// what the call came to.
	since := record.GoalAt != nil && !record.GoalAt.Before(mail.StoredAt)
	own := setFor(record, n.Text, mail)
	if !since && !own && !record.AtWork() {
		if _, _, err := t.client.registry.StartGoal(ctx, t.team, n.Text, n.Workspace); err != nil {
			return nil, err
		}
		own = true
	}
	g, err := t.PresentGoal(ctx)
	if err == nil {
		g.started = own
	}
	return g, err
}

// setFor reports whether record has the goal of this text that the mail told of: it was set after
// that, by the clocks of servers.
func setFor(record team.Team, text string, mail Letter) bool {
	return record.Goal == text && record.GoalAt != nil && !record.GoalAt.Before(mail.StoredAt.Add(-margin))
}
