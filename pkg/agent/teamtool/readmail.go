package teamtool

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
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
	Whole     string           `json:"whole,omitempty"` // where the full text is, if content is only its head and tail
}

// mailPage is how many messages read_mail lists in one call.
const mailPage = 20

// readMail implements read_mail. A message is found by its number with one read, and by its id by
// reading all of the member's mail. Errors: NotFound; Unavailable.
func (t tools) readMail(ctx context.Context, in readMailArgs) (tool.Output, error) {
	if in.ID == "" {
		return t.listMail(ctx, in.After)
	}
	if prompt, ok := t.Self.PromptMail(); ok && (in.ID == prompt.ID || in.ID == "0") {
		return tool.Output{Value: readMessage{0, prompt.ID, prompt.From, prompt.Type, "", prompt.Content, ""}}, nil
	}
	d, err := t.find(ctx, in.ID)
	switch {
	case err != nil:
		return tool.Output{}, err
	case d == nil:
		return tool.Output{}, team.Errorf(team.NotFound, "you have no mail %q", in.ID).WithHint("give the number or the id as it was told; without id, read_mail lists your mail")
	}
	return tool.Output{Value: readMessage{d.Seq, d.ID, d.From, d.Type, d.InReplyTo, d.Content, d.Stored}}, nil
}

// find returns the message of the member's mail with this number, or this id, in full or short; nil
// if there is none. Error: Unavailable.
func (t tools) find(ctx context.Context, id string) (found *mailbox.Delivery, err error) {
	if number, err := strconv.ParseUint(id, 10, 64); err == nil {
		err := t.Mailbox.Read(ctx, t.Self.AgentID, max(number, 1), func(d mailbox.Delivery) error {
			if d.Seq == number {
				found = &d
			}
			return broker.ErrEnough
		})
		if err != nil || found != nil {
			return found, err
		}
	}
	err = t.Mailbox.Read(ctx, t.Self.AgentID, 1, func(d mailbox.Delivery) error {
		if d.ID != id && team.ShortID(d.ID) != id {
			return nil
		}
		found = &d
		return broker.ErrEnough
	})
	return found, err
}

// answered returns the full id of the message that a model answers by its [team.ShortID]; an id
// that is not in the member's mail stays as it is. Error: Unavailable.
func (t tools) answered(ctx context.Context, id string) (string, error) {
	if id == "" || team.ShortID(id) != id { // whole already
		return id, nil
	}
	d, err := t.find(ctx, id)
	if d == nil {
		return id, err
	}
	return d.ID, nil
}

// listMail lists the next messages after a number, each by its first words.
func (t tools) listMail(ctx context.Context, after uint64) (tool.Output, error) {
	var b strings.Builder
	n := 0
	if prompt, ok := t.Self.PromptMail(); ok && after == 0 {
		fmt.Fprintf(&b, "0 %s %s: %s\n", prompt.From, prompt.Type, prompt.Summary)
		n++
	}
	err := t.Mailbox.Read(ctx, t.Self.AgentID, after+1, func(d mailbox.Delivery) error {
		if n == mailPage {
			fmt.Fprintf(&b, "%d more; list them with after: %d\n", d.Pending+1, after)
			return broker.ErrEnough
		}
		fmt.Fprintf(&b, "%d %s %s: %s\n", d.Seq, d.From, d.Type, d.Summary)
		n, after = n+1, d.Seq
		return nil
	})
	if err != nil {
		return tool.Output{}, err
	}
	if n == 0 {
		return tool.Output{Value: "no mail behind that number"}, nil
	}
	return tool.Output{Value: strings.TrimSuffix(b.String(), "\n")}, nil
}
