package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

func (a *app) chatCmd() *cobra.Command {
	return &cobra.Command{
		Use: "chat [NAME]", Short: "Talk to a member while it works; without NAME to the leader", Args: atMost(1),
		Long: "chat shows what a member says and does, and sends it each line that you type. A question of it is answered by the\n" +
			"next line. /help lists what else a line may be. Ctrl-C or /quit ends the chat; the team goes on.\n" +
			"Of lines from a pipe each is sent once the one before is answered, by a message to you or by the end of the\n" +
			"member's run, and the chat ends with the last answer.",
		ValidArgsFunction: first(completePresent),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := team.Leader
			if len(args) > 0 {
				var err error
				if name, err = a.member(args[0]); err != nil {
					return err
				}
			}
			return a.following(cmd.Context(), openTeam, func(ctx context.Context, t *client.Team) error { return a.chat(ctx, t, name) })
		},
	}
}

// chat is a conversation with a member.
type chat struct {
	app  *app
	team *client.Team
	with team.AgentID
	show func(client.Entry) error

	typed   bool            // input comes from a terminal, which already shows it; else from a pipe
	printed map[string]bool // ids of messages sent from here
	open    string          // id of the last message to the member while it has no answer
}

func (a *app) chat(ctx context.Context, t *client.Team, with team.AgentID) error {
	c := &chat{app: a, team: t, with: with, printed: map[string]bool{}}
	state, err := c.listens(ctx)
	if err != nil {
		return err
	}
	after, err := t.End(ctx)
	if err != nil {
		return err
	}
	p, err := a.openPrompt()
	if err != nil {
		return err
	}
	next := linesOf(a.cmd.InOrStdin())
	if p != nil {
		defer p.close()
		c.typed, next = true, p.editor.ReadLine
		a.note(fmt.Sprintf("%s is %s. /help lists what you can type; Ctrl-C ends the chat, not the team.", with.At(t.ID()), state))
	}
	print, err := a.orStream(ctx, t, a.followPrinter(), render.Options{Only: with, Mine: true, Answer: c.howToAnswer, Decide: c.howToDecide}, after)
	if err != nil {
		return err
	}
	if c.show = print.entry; a.forPeople() {
		err = c.showOpen(ctx)
	}
	if err == nil {
		err = c.run(ctx, after, chatLines(ctx, next))
	}
	return closed(err, print.end)
}

// listens returns the member's state, or the reason why it cannot be talked to.
func (c *chat) listens(ctx context.Context) (team.MemberState, error) {
	record, err := c.team.Record(ctx)
	if err != nil {
		return "", err
	}
	if record.Status != team.Active {
		return "", team.Errorf(team.InvalidState, "team %s is %s: nobody would answer", record.ID, record.Status).
			WithHint("%s sets it a goal", c.app.command("run GOAL", record.ID))
	}
	m, err := c.team.Members().Get(ctx, c.with)
	switch {
	case c.with == team.Leader && errors.Is(err, team.NotFound):
		return "on its way", nil
	case err != nil:
		return "", err
	case m.Backend == team.Person:
		return "", team.Errorf(team.InvalidArgument, "%s is a person, who does not read here", c.with).WithHint("teamctl send %s TEXT", c.with)
	case m.State == team.Stopped:
		return "", team.Errorf(team.InvalidState, "%s has left: nobody would answer", c.with).WithHint("teamctl send %s TEXT is kept until it is back", c.with)
	}
	return m.State, nil
}

// showOpen shows the open questions.
func (c *chat) showOpen(ctx context.Context) error {
	questions, err := c.team.Mail().Questions(ctx, team.UserAgent)
	for _, q := range questions {
		if err == nil && q.Open {
			err = c.show(q.Entry())
		}
	}
	if err != nil {
		return err
	}
	return c.showRequests(ctx)
}

// howToAnswer explains how to answer a question in this chat.
func (c *chat) howToAnswer(q team.Message) string {
	if q.From == c.with {
		return "your next line"
	}
	return "/msg " + string(q.From) + " " + q.AnswerUsage()
}

// linesOf returns a function that reads r line by line.
func linesOf(r io.Reader) func() (string, error) {
	b := bufio.NewReader(r)
	return func() (string, error) {
		line, err := b.ReadString('\n')
		if line != "" {
			err = nil // the last line may have no end
		}
		return line, err
	}
}

// chatLines sends what next reads, until next fails. Its goroutine ends with the process: a read from a
// terminal cannot be interrupted.
func chatLines(ctx context.Context, next func() (string, error)) <-chan string {
	all := make(chan string)
	go func() {
		defer close(all)
		for {
			line, err := next()
			if err != nil {
				return
			}
			select {
			case all <- strings.TrimRight(line, "\r\n"):
			case <-ctx.Done():
				return
			}
		}
	}()
	return all
}

// run handles lines until they end and, from a pipe, until the last one has an answer.
func (c *chat) run(ctx context.Context, after client.Cursor, lines <-chan string) error {
	o := client.FeedOptions{After: after, Follow: true}
	if !c.app.forPeople() {
		o.Agents = []team.AgentID{c.with, team.UserAgent}
	}
	entries := make(chan client.Entry)
	g, ctx := errgroup.WithContext(ctx)
	following, stop := context.WithCancel(ctx)
	g.Go(func() error {
		return c.team.Feed(following, o, func(e client.Entry) error {
			select {
			case entries <- e:
			case <-following.Done():
			}
			return nil
		})
	})
	g.Go(func() error {
		defer stop()
		return c.talk(ctx, entries, lines)
	})
	return g.Wait()
}

func (c *chat) talk(ctx context.Context, entries <-chan client.Entry, lines <-chan string) error {
	for {
		next := lines
		if !c.typed && c.open != "" { // each is to be answered first
			next = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-entries:
			if err := c.hear(ctx, e); err != nil {
				return err
			}
		case line, more := <-next:
			if !more {
				return nil
			}
			if quit, err := c.take(ctx, line); quit || err != nil {
				return err
			}
		}
	}
}

// hear shows an entry, and notes whether the member has answered.
func (c *chat) hear(ctx context.Context, e client.Entry) error {
	b := e.Event.Event
	if !c.typed || b.Type != team.MailSent || !c.printed[b.MessageID] {
		if err := c.show(e); err != nil {
			return err
		}
	}
	if c.open == "" || e.AgentID != c.with {
		return nil
	}
	switch {
	case b.Type == team.MemberStopped && !c.typed:
		return team.Errorf(team.InvalidState, "%s has left and does not answer", c.with)
	case b.Type == team.RunFinished, b.Type == team.RunError:
	default:
		if _, ok := toUser(e); !ok {
			return nil
		}
	}
	// It may be what the member was at before it read the line.
	l, err := c.team.Mail().Message(ctx, c.open)
	if err != nil {
		return err
	}
	if at := l.Deliveries[0].ProcessedAt; at != nil && !e.Time.Before(*at) {
		c.open = ""
	}
	return nil
}

// toUser returns an entry's message; ok is false unless it is to the person.
func toUser(e client.Entry) (m team.Message, ok bool) {
	b := e.Event.Event
	return m, b.Type == team.MailSent && json.Unmarshal(b.Value, &m) == nil && m.To == team.UserAgent
}

const chatHelp = `A line is sent to %s; if it has asked you something, as the answer. Besides:
/msg NAME TEXT   write to another member, or answer it
/approve ID      allow a call, or approve a plan; /approve ID task or always: for the task, or by a rule
/reject ID TEXT  refuse a call, or reject a plan; TEXT is what is to be different
/tasks           list the tasks
/team            list the members
/quit            end the chat
A line that begins with a space is sent as it is.
`

// take executes a line. Errors in a typed line are printed, and the chat continues.
func (c *chat) take(ctx context.Context, line string) (quit bool, err error) {
	word, rest, _ := strings.Cut(line, " ")
	if to, isMail := strings.CutPrefix(strings.TrimSpace(rest), "msg "); word == "/team" && isMail { // as it is looked for
		word, rest = "/msg", to
	}
	switch {
	case strings.TrimSpace(line) == "":
	case !strings.HasPrefix(line, "/"):
		err = c.say(ctx, c.with, line)
	case word == "/quit":
		return true, nil
	case word == "/help":
		_, err = fmt.Fprintf(c.app.out, chatHelp, c.with.At(c.team.ID()))
	case word == "/tasks":
		err = c.listTasks(ctx)
	case word == "/team":
		err = c.listTeam(ctx)
	case word == "/msg":
		err = c.sayTo(ctx, rest)
	case word == "/approve", word == "/reject":
		err = c.decide(ctx, word == "/approve", rest)
	default:
		err = team.Errorf(team.InvalidArgument, "there is no %s here", word).WithHint("/help lists what there is; a line that begins with a space is sent as it is")
	}
	if err != nil && c.typed && ctx.Err() == nil {
		c.app.printError(err)
		err = nil
	}
	return false, err
}

// sayTo sends the text after /msg.
func (c *chat) sayTo(ctx context.Context, rest string) error {
	address, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if strings.TrimSpace(text) == "" {
		return team.Errorf(team.InvalidArgument, "/msg takes a NAME and a TEXT")
	}
	name, id, err := team.ParseAddress(address)
	switch {
	case err != nil:
		return err
	case id != "" && id != c.team.ID():
		return team.Errorf(team.InvalidArgument, "%s is not of team %s, which the chat is about", address, c.team.ID())
	}
	return c.say(ctx, name, text)
}

// say sends a text to a member, as the answer to its oldest open question if it has one.
func (c *chat) say(ctx context.Context, to team.AgentID, text string) error {
	questions, err := c.team.Mail().Questions(ctx, team.UserAgent)
	if err != nil {
		return err
	}
	var m team.Message
	if i := slices.IndexFunc(questions, func(q client.StoredMessage) bool { return q.Open && q.From == to }); i >= 0 {
		_, m, err = c.team.Mail().Answer(ctx, "", questions[i].ID, text)
	} else {
		m, _, err = c.team.Mail().Send(ctx, client.NewMail{To: to, Text: text})
	}
	if err != nil {
		return err
	}
	c.printed[m.ID] = true
	if to == c.with {
		c.open = m.ID
	} else {
		c.app.note("sent to " + to.At(c.team.ID()))
	}
	return nil
}

func (c *chat) listTasks(ctx context.Context) error {
	tasks, err := c.team.Board().Tasks(ctx)
	if err != nil {
		return err
	}
	if len(tasks) == 0 {
		c.app.note("the board is empty")
	}
	return c.app.printTasks(tasks)
}

func (c *chat) listTeam(ctx context.Context) error {
	agents, err := c.team.Members().List(ctx, false)
	if err != nil {
		return err
	}
	return c.app.printAgents(c.team.ID(), agents)
}
