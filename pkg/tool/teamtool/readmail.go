package teamtool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentteam/pkg/mailbox"
	"agentteam/pkg/team"
)

type readMailArgs struct {
	ID    string `json:"id,omitempty" jsonschema:"id or number of one"`
	After uint64 `json:"after,omitempty" jsonschema:"list the 20 that follow this number"`
}

// readMessage is one message as read_mail shows it.
type readMessage struct {
	Number    uint64           `json:"number"`
	ID        string           `json:"id"`
	From      team.AgentID     `json:"from"`
	Type      team.MessageType `json:"type"`
	InReplyTo string           `json:"in_reply_to,omitempty"`
	Content   string           `json:"content"`
	Whole     string           `json:"whole,omitempty"` // where the whole text is, if content is only its head and tail
}

// mailPage is how many messages read_mail lists at once.
const mailPage = 20

// errEnough ends the reading of mail.
var errEnough = errors.New("enough was read")

// readMail is the tool read_mail. A message is found by its number at once, and by its id by
// reading all that the member ever got. Errors: NotFound; Unavailable.
func (t tools) readMail(ctx context.Context, in readMailArgs) (any, error) {
	if in.ID == "" {
		return t.listMail(ctx, in.After)
	}
	if prompt, ok := t.Self.PromptMail(); ok && (in.ID == prompt.ID || in.ID == "0") {
		return readMessage{0, prompt.ID, prompt.From, prompt.Type, "", prompt.Content, ""}, nil
	}
	number, err := strconv.ParseUint(in.ID, 10, 64)
	byNumber := err == nil
	var found *readMessage
	err = t.Mailbox.Read(ctx, t.Self.AgentID, max(number, 1), func(d mailbox.Delivery) error {
		if d.ID == in.ID || byNumber && d.Seq == number {
			found = &readMessage{d.Seq, d.ID, d.From, d.Type, d.InReplyTo, d.Content, d.Stored}
		}
		if found != nil || byNumber {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	case found == nil:
		return nil, team.Errorf(team.NotFound, "you have no mail %q", in.ID).WithHint("give the number or the id as it was told; without id, read_mail lists your mail")
	}
	return *found, nil
}

// listMail lists the next messages behind a number, each by its first words.
func (t tools) listMail(ctx context.Context, after uint64) (any, error) {
	var b strings.Builder
	n := 0
	if prompt, ok := t.Self.PromptMail(); ok && after == 0 {
		fmt.Fprintf(&b, "0 %s %s: %s\n", prompt.From, prompt.Type, prompt.Summary)
		n++
	}
	err := t.Mailbox.Read(ctx, t.Self.AgentID, after+1, func(d mailbox.Delivery) error {
		if n == mailPage {
			fmt.Fprintf(&b, "%d more; list them with after: %d\n", d.Pending+1, after)
			return errEnough
		}
		fmt.Fprintf(&b, "%d %s %s: %s\n", d.Seq, d.From, d.Type, d.Summary)
		n, after = n+1, d.Seq
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if n == 0 {
		return "no mail behind that number", nil
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
