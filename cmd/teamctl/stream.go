package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/client"
	"agentteam/pkg/story"
	"agentteam/pkg/team"
)

// stream prints what happens in a team as people read it, the same in run, attach and
// events; and on a terminal, below that, one line of how things stand, which is drawn
// again and again.
type stream struct {
	out   io.Writer
	width func() int // of the terminal as it is now
	begun time.Time  // of the goal, for the line below; zero: there is none

	mu    sync.Mutex
	story *story.Story
	cells int       // of the line below as it stands there; 0: it does not
	drawn time.Time // when it was drawn
	quiet bool      // nothing came since the last look
	err   error     // of writing

	stop func()
	done chan struct{}
}

// lookAgain is how often the stream looks whether its line below is to be drawn, and how
// long what may be told together with something else is held back.
const lookAgain = 100 * time.Millisecond

// newStream returns a stream to out, which is closed once it has ended. begun is when the
// goal was set whose progress is shown on a terminal; zero shows none.
func (a *app) newStream(out io.Writer, o story.Options, begun time.Time) *stream {
	width := func() int { return widthOf(out) }
	if a.output == asWide {
		width = func() int { return 0 }
	}
	if !live(out) {
		begun = time.Time{}
	}
	o.Width = width()
	s := &stream{out: colours(out), width: width, begun: begun, story: story.New(o), quiet: true, done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.look(ctx)
	return s
}

// know makes known what was there before the first entry.
func (s *stream) know(members []team.Member, tasks []team.Task, counts func(team.TaskID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story.Know(members, tasks, counts)
}

// entry prints what an entry tells. The error is that of writing.
func (s *stream) entry(e client.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = false
	s.print(s.story.Tell(e))
	return s.err
}

// close prints what was held back and takes the line below away. The error is that of
// writing.
func (s *stream) close() error {
	s.stop()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(s.story.Flush())
	s.erase()
	return s.err
}

// look draws the line below when it is out of date.
func (s *stream) look(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.refresh(now)
		}
	}
}

func (s *stream) refresh(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := s.width()
	s.story.Resize(width)
	if s.quiet {
		s.print(s.story.Flush())
	}
	s.quiet = true
	if s.begun.IsZero() || width == 0 || s.cells > 0 && now.Sub(s.drawn) < time.Second {
		return
	}
	s.erase()
	foot := s.story.Foot(now, s.begun, width-1) // in the last cell some terminals begin a line
	s.write(foot)
	s.cells, s.drawn = ansi.StringWidth(foot), now
}

func (s *stream) print(lines []string) {
	if len(lines) == 0 {
		return
	}
	s.erase()
	s.write(strings.Join(lines, "\n") + "\n")
}

// erase takes the line below away; on a terminal that has become narrower, it is several.
func (s *stream) erase() {
	if s.cells == 0 {
		return
	}
	text := "\r"
	if width := s.width(); width > 0 {
		if rows := (s.cells - 1) / width; rows > 0 {
			text += ansi.CursorUp(rows)
		}
	}
	s.write(text + ansi.EraseScreenBelow)
	s.cells = 0
}

func (s *stream) write(text string) {
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = unwritten(err)
	}
}

// printable is a text as it may be shown on a terminal.
func printable(s string) string { return story.Printable(s) }

// show returns what shows each entry of a goal's work behind a place of the feed, and what
// ends that.
func (a *app) show(ctx context.Context, t *client.Team, g *client.Goal, v view, after client.Cursor) (entry func(client.Entry) error, hide func() error, err error) {
	none := func() error { return nil }
	switch {
	case a.output == asJSONL:
		return func(e client.Entry) error { return writeJSON(a.out, e) }, none, nil
	case v.quiet:
		entry, err := a.onlyQuestions(ctx, t)
		return entry, none, err
	}
	s, err := a.streamOf(ctx, t, a.streamTo(), v, after, g.Begun(), g.Has)
	if err != nil {
		return nil, nil, err
	}
	a.notes.under(s)
	hide = func() error { a.notes.under(nil); return s.close() }
	if v.panes == nil {
		return s.entry, hide, nil
	}
	return func(e client.Entry) error { v.panes.entry(e); return s.entry(e) },
		func() error { v.panes.close(); return hide() }, nil
}

// streamOf returns a stream of what happened in the team behind a place of its feed. begun
// is when the goal was set whose progress is shown, with the tasks that count; zero shows
// none. Names stand with their team where the cluster has several.
func (a *app) streamOf(ctx context.Context, t *client.Team, out io.Writer, v view, after client.Cursor, begun time.Time, counts func(team.TaskID) bool) (*stream, error) {
	members, tasks, err := t.Before(ctx, after)
	if err != nil {
		return nil, err
	}
	o := story.Options{Full: v.verbose, Only: v.agent, Mine: v.mine, Fold: v.fold, Journal: v.journal}
	if o.Answer, err = a.answers(ctx, t, members, v.answer); err != nil {
		return nil, err
	}
	if t.Siblings(ctx) {
		o.Team = t.ID()
	}
	s := a.newStream(out, o, begun)
	s.know(members, tasks, counts)
	return s, nil
}

// onlyQuestions returns what tells of each entry only whether somebody waits for the person.
func (a *app) onlyQuestions(ctx context.Context, t *client.Team) (func(client.Entry) error, error) {
	command, err := a.answers(ctx, t, nil, nil)
	return func(e client.Entry) error {
		q, ok := toUser(e)
		if !ok || !q.Asks() {
			return nil
		}
		if how := command(q); how != "" {
			a.tell(fmt.Sprintf("%s asks: %s%s; answer: %s", q.From.At(t.ID()), team.Clean(oneLine(q.Content), 200), among(q), how))
		}
		return nil
	}, err
}

// among are the choices of a question behind its text.
func among(q team.Message) string {
	if len(q.Choices) == 0 {
		return ""
	}
	return " (" + strings.Join(q.Numbered(), ", ") + ")"
}

// answers returns what tells how a question is answered, unless it is answered by now; how is nil
// for the command that does it.
func (a *app) answers(ctx context.Context, t *client.Team, members []team.Member, how func(team.Message) string) (func(team.Message) string, error) {
	people := []team.AgentID{team.UserAgent}
	for _, m := range members {
		if m.Backend == team.Person {
			people = append(people, m.AgentID)
		}
	}
	over := map[string]bool{}
	for _, who := range people {
		questions, err := t.Questions(ctx, who)
		if err != nil {
			return nil, err
		}
		for _, q := range questions {
			over[q.ID] = !q.Open
		}
	}
	return func(q team.Message) string {
		switch {
		case over[q.ID]:
			return ""
		case how != nil:
			return how(q)
		}
		return a.answerWith(t.ID(), q)
	}, nil
}

// notes is stderr: what is said there while a stream is shown does not land in the line
// below it. Safe for concurrent use.
type notes struct {
	io.Writer
	mu     sync.Mutex
	stream *stream // that is shown; nil: none
}

// under has s make room for each note, or nobody.
func (n *notes) under(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stream = s
}

// to has notes written to w.
func (n *notes) to(w io.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Writer = w
}

func (n *notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.stream; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.print(s.story.Flush())
		s.erase()
	}
	return n.Writer.Write(text)
}
