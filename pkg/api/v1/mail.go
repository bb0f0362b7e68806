package v1

import (
	"context"
	"net/http"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

type sendIn struct {
	OfTeam
	Key  string `header:"Idempotency-Key" doc:"A key of at most 256 bytes of your choice. A request with the same key sends nothing and returns the first message with status 200. A different message under the same key is a conflict."`
	Body struct {
		To      string `json:"to" doc:"The name of a member, or * for everyone." example:"coder-1"`
		Content string `json:"content" doc:"The text of the message." example:"Use the cache"`
		Summary string `json:"summary,omitempty" doc:"Its first words; left out, taken from the content."`
		As      string `json:"as,omitempty" doc:"The person's seat that writes; left out, the user."`
		ReplyTo string `json:"in_reply_to,omitempty" doc:"The id of the message that this answers."`
		Urgent  bool   `json:"urgent,omitempty" doc:"It is read before anything else, and interrupts the reader."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"NewMessage"`
}

type sendOut struct {
	Status   int
	Location string `header:"Location"`
	Body     struct {
		MessageID   string         `json:"message_id"`
		DeliveredTo []team.AgentID `json:"delivered_to" nullable:"false" doc:"Who gets it."`
		Stored      string         `json:"stored,omitempty" doc:"Where the whole text is stored, if it is too long for a message."`
		Existed     bool           `json:"existed" doc:"An earlier request had the same Idempotency-Key."`
	} `nameHint:"Sent"`
}

type inboxIn struct {
	OfTeam
	Name string `path:"name" doc:"The name of a member, or user for the user." example:"user"`
	Paging
}

type messagesOut struct {
	Body struct {
		Messages []client.StoredMessage `json:"messages" nullable:"false"`
		Next     string                 `json:"next,omitempty" doc:"page of the next page; left out on the last."`
	} `nameHint:"Letters"`
}

type questionsIn struct {
	OfTeam
	As  string `query:"as" doc:"The person's seat that is asked; left out, the user."`
	All bool   `query:"all" doc:"Also questions that are answered, or whose sender has left."`
	Paging
}

// OfMessage is a message in a path.
type OfMessage struct {
	OfTeam
	ID string `path:"message" maxLength:"512" doc:"The id of a message." example:"01JD8RZ6M3T4V5W6X7Y8Z9ABCD"`
}

type answerIn struct {
	OfMessage
	Body struct {
		Content string `json:"content" doc:"The answer; of a question with choices, one of them or its number." example:"yes"`
		As      string `json:"as,omitempty" doc:"The person's seat that answers; left out, the user."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"NewAnswer"`
}

type answerOut struct {
	Body struct {
		Question client.StoredMessage `json:"question"`
		Answer   team.Message         `json:"answer"`
	} `nameHint:"Answered"`
}

const tagMail = "mail"

func (s *service) mail() {
	addOf(s, operation{
		id: "send-message", method: http.MethodPost, path: "/v1/teams/{team}/messages", tag: tagMail, summary: "Write to a member, or to everyone", status: http.StatusCreated, also: []int{http.StatusOK},
		doc: "A member reads it at its next turn, or when it is back.",
	}, send)
	addOf(s, operation{
		id: "get-message", method: http.MethodGet, path: "/v1/teams/{team}/messages/{message}", tag: tagMail, summary: "Show a message",
		doc: "With its whole text, and its delivery status for each receiver: pending, delivered, processed, refused or dead.",
	}, func(ctx context.Context, t *client.Team, in *struct{ OfMessage }) (*answer[client.StoredMessage], error) {
		l, err := t.Mail().Message(ctx, in.ID)
		return &answer[client.StoredMessage]{l}, err
	})
	addOf(s, operation{
		id: "answer-question", method: http.MethodPost, path: "/v1/teams/{team}/messages/{message}/answer", tag: tagMail, summary: "Answer a question", status: http.StatusCreated,
		doc: "However many answer at once, one answer is stored; a second one is a conflict. So there is no Idempotency-Key here.",
	}, answerQuestion)
	addOf(s, operation{
		id: "get-inbox", method: http.MethodGet, path: "/v1/teams/{team}/inbox/{name}", tag: tagMail, summary: "List the mail to a member or a person",
		doc: "Oldest first, each with its delivery status.",
	}, inbox)
	addOf(s, operation{
		id: "list-questions", method: http.MethodGet, path: "/v1/teams/{team}/questions", tag: tagMail, summary: "List what a person is asked",
		doc: "The questions that are open, oldest first.",
	}, questions)
}

func send(ctx context.Context, t *client.Team, in *sendIn) (*sendOut, error) {
	m := client.NewMail{To: team.Everyone, Text: in.Body.Content, Summary: in.Body.Summary, ReplyTo: in.Body.ReplyTo, Urgent: in.Body.Urgent}
	var err error
	if m.As, err = nameOf(in.Body.As); err != nil {
		return nil, err
	}
	if in.Body.To != string(team.Everyone) {
		if m.To, err = team.ParseAgentID(in.Body.To); err != nil {
			return nil, err
		}
	}
	var msg team.Message
	out := sendOut{Status: http.StatusCreated}
	if in.Key == "" {
		msg, out.Body.DeliveredTo, err = t.Mail().Send(ctx, m)
	} else if msg, out.Body.DeliveredTo, out.Body.Existed, err = t.Mail().SendOnce(ctx, in.Key, m); out.Body.Existed {
		out.Status = http.StatusOK
	}
	if err != nil {
		return nil, err
	}
	out.Body.DeliveredTo = append([]team.AgentID{}, out.Body.DeliveredTo...)
	out.Body.MessageID, out.Body.Stored = msg.ID, msg.Stored
	out.Location = "/v1/teams/" + string(t.ID()) + "/messages/" + msg.ID
	return &out, nil
}

func answerQuestion(ctx context.Context, t *client.Team, in *answerIn) (*answerOut, error) {
	as, err := nameOf(in.Body.As)
	if err != nil {
		return nil, err
	}
	var out answerOut
	out.Body.Question, out.Body.Answer, err = t.Mail().Answer(ctx, as, in.ID, in.Body.Content)
	return &out, err
}

func inbox(ctx context.Context, t *client.Team, in *inboxIn) (*messagesOut, error) {
	who := team.UserAgent
	from, err := in.from()
	if err == nil && in.Name != string(who) {
		who, err = team.ParseAgentID(in.Name)
	}
	if err != nil {
		return nil, err
	}
	var out messagesOut
	letters, more, err := t.Mail().InboxPage(ctx, who, from, in.Limit)
	if more {
		out.Body.Next = next(from + in.Limit)
	}
	out.Body.Messages = append([]client.StoredMessage{}, letters...)
	return &out, err
}

func questions(ctx context.Context, t *client.Team, in *questionsIn) (*messagesOut, error) {
	from, err := in.from()
	if err != nil {
		return nil, err
	}
	who, err := nameOf(in.As)
	if err != nil {
		return nil, err
	}
	if who == "" {
		who = team.UserAgent
	}
	letters, err := t.Mail().Questions(ctx, who)
	if err != nil {
		return nil, err
	}
	var out messagesOut
	out.Body.Messages, out.Body.Next = pageOf(letters, from, in.Limit, func(l client.StoredMessage) bool { return in.All || l.Open })
	return &out, nil
}
