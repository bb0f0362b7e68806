package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/client"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// stream prints a team's events for people, the same in run, attach and events. On a terminal it also draws
// lines below: texts that are being written, and a status line.
type stream struct {
	out   io.Writer
	width func() int             // of the terminal as it is now
	rows  func() int             // of it, for texts that are being written; 0: they are not shown
	begun time.Time              // of the goal, for the line of how things stand; zero: there is none
	since time.Time              // what was before is taken in for that line, and not shown
	ask   func(width int) string // what the person is asked, in the last line below; nil: nothing

	mu    sync.Mutex
	story *render.Story
	below []int     // cells of each of the lines below, as they stand there
	drawn time.Time // when they were drawn
	wrote bool      // a text that is being written has grown since then
	quiet bool      // nothing came since the last look
	err   error     // of writing

	touched atomic.Bool // what is asked has changed

	ctx   context.Context // ends with the stream
	stop  func()
	parts sync.WaitGroup
}

// maxDraft limits the texts that are being written on a terminal: one line of so many, and so many lines at
// most.
const maxDraft, draftPart = 8, 3

// pollAgain is how often the stream checks whether to draw its lines below, and how long events are held back
// that may be combined with others.
const pollAgain = 100 * time.Millisecond

// newStream returns a stream to out, which is closed once it has ended. begun is when the goal was set whose
// progress is shown on a terminal; zero shows none.
func (a *app) newStream(out io.Writer, o render.Options, begun time.Time) *stream {
	width := func() int { return widthOf(out) }
	if a.output == asWide {
		width = func() int { return 0 }
	}
	rows := func() int { return min(heightOf(out)/draftPart, maxDraft) }
	if !live(out) {
		begun, rows = time.Time{}, func() int { return 0 }
	}
	o.Width = width()
	s := &stream{out: colours(out), width: width, rows: rows, begun: begun, story: render.New(o), quiet: true}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.parts.Go(func() { shutdown.Every(s.ctx, pollAgain, func(context.Context) { s.refresh(time.Now()) }) })
	return s
}

// listen shows texts that these agents are writing, or all if none is named, on a terminal and until the
// stream is closed.
func (s *stream) listen(t *client.Team, agents ...team.AgentID) {
	if s.rows() > 0 {
		s.parts.Go(func() { _ = t.Live(s.ctx, agents, s.write) }) // without them the story is whole
	}
}

// write takes in a piece of a text.
func (s *stream) write(d team.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story.Write(d, time.Now())
	s.wrote = true
}

// know adds what existed before the first entry.
func (s *stream) know(members []team.Member, tasks []team.Task, counts func(team.TaskID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story.Know(members, tasks, counts)
}

// entry prints an entry. The error is a write error.
func (s *stream) entry(e client.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Time.Before(s.since) {
		s.story.Render(e)
		s.story.Flush()
		return s.err
	}
	s.quiet = false
	s.print(s.story.Render(e))
	return s.err
}

// close prints what was held back, and erases the lines below. The error is a write error.
func (s *stream) close() error {
	s.stop()
	s.parts.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(s.story.Flush())
	s.erase()
	return s.err
}

// refresh draws the lines below when they are outdated.
func (s *stream) refresh(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := s.width()
	s.story.Resize(width)
	if s.quiet {
		s.print(s.story.Flush())
	}
	s.quiet = true
	if width == 0 || len(s.below) > 0 && !s.wrote && !s.touched.Swap(false) && now.Sub(s.drawn) < time.Second {
		return
	}
	s.drawn, s.wrote = now, false
	lines := s.story.Drafts(s.rows())
	if !s.begun.IsZero() {
		if foot := s.story.Foot(now, s.begun, width-1); foot != "" { // in the last cell some terminals begin a line
			lines = append(lines, foot)
		}
	}
	if s.ask != nil {
		if line := s.ask(width - 1); line != "" {
			lines = append(lines, ink("3").Render(line))
		}
	}
	text := s.above()
	for _, l := range lines {
		s.below = append(s.below, ansi.StringWidth(l))
	}
	s.put(text + strings.Join(lines, "\n"))
}

// touch requests that the lines below are drawn again.
func (s *stream) touch() { s.touched.Store(true) }

func (s *stream) print(lines []string) {
	if len(lines) == 0 {
		return
	}
	s.put(s.above() + strings.Join(lines, "\n") + "\n")
}

// erase erases the lines below.
func (s *stream) erase() { s.put(s.above()) }

// above returns the control sequence that erases the lines below, and forgets them; on a terminal that has
// become narrower, one of them may occupy several.
func (s *stream) above() string {
	if len(s.below) == 0 {
		return ""
	}
	rows := len(s.below) - 1
	if width := s.width(); width > 0 {
		for _, cells := range s.below {
			rows += max(cells-1, 0) / width
		}
	}
	s.below = nil
	if rows == 0 {
		return "\r" + ansi.EraseScreenBelow
	}
	return "\r" + ansi.CursorUp(rows) + ansi.EraseScreenBelow
}

func (s *stream) put(text string) {
	if text == "" {
		return
	}
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = unwritten(err)
	}
}

// printable returns a text that is safe to show on a terminal.
func printable(s string) string { return render.Printable(s) }

// show returns a function that shows each entry of a goal's work from a position of the feed, and one that
// ends that.
func (a *app) show(ctx context.Context, t *client.Team, g *client.Goal, v view, after client.Cursor) (entry func(client.Entry) error, hide func() error, err error) {
	none := func() error { return nil }
	switch {
	case a.output == asJSONL:
		return func(e client.Entry) error {
			if e.Time.Before(v.since) {
				return nil
			}
			return writeJSON(a.out, e)
		}, none, nil
	case v.quiet:
		entry, err := a.onlyPressing(ctx, t)
		return entry, none, err
	}
	s, err := a.streamOf(ctx, t, a.streamTo(), v.Options, after, g.Begun(), g.Has)
	if err != nil {
		return nil, nil, err
	}
	s.since = v.since
	if v.Only != "" {
		s.listen(t, v.Only)
	} else {
		s.listen(t)
	}
	a.notes.under(s)
	q, err := a.asks(ctx, t, s)
	if err != nil {
		return nil, nil, err
	}
	entry = s.entry
	if q != nil {
		entry = func(e client.Entry) error { q.entry(e); return s.entry(e) }
	}
	if v.panes != nil {
		told := entry
		entry = func(e client.Entry) error { v.panes.entry(e); return told(e) }
	}
	return entry, func() error {
		q.close()
		v.panes.close()
		a.notes.under(nil)
		return s.close()
	}, nil
}

// streamOf returns a stream of the team's events from a position of its feed. begun is when the goal was set
// whose progress is shown, with the tasks that count; zero shows none. Names include their team if the
// cluster has several; without o.Answer and o.Decide questions are answered, and calls allowed, by a command.
func (a *app) streamOf(ctx context.Context, t *client.Team, out io.Writer, o render.Options, after client.Cursor, begun time.Time, counts func(team.TaskID) bool) (*stream, error) {
	members, tasks, err := t.Before(ctx, after)
	if err != nil {
		return nil, err
	}
	o.Traits = runtime.Traits
	if o.Answer, err = a.answers(ctx, t, members, o.Answer); err != nil {
		return nil, err
	}
	if o.Decide, err = a.decides(ctx, t, o.Decide); err != nil {
		return nil, err
	}
	if t.Siblings(ctx) {
		o.Team = t.ID()
	}
	s := a.newStream(out, o, begun)
	s.know(members, tasks, counts)
	return s, nil
}

// onlyPressing returns a function that prints only entries about what stops the team's work: somebody waits
// for the person, and once that a model gives no answer.
func (a *app) onlyPressing(ctx context.Context, t *client.Team) (func(client.Entry) error, error) {
	command, err := a.answers(ctx, t, nil, nil)
	if err != nil {
		return nil, err
	}
	decide, err := a.decides(ctx, t, nil)
	fails := map[team.AgentID]bool{}
	return func(e client.Entry) error {
		switch b := e.Event.Event; b.Type {
		case team.Retry:
			if !fails[e.AgentID] {
				a.notice(e.AgentID.At(t.ID()) + ": model: " + team.Clean(team.OneLine(b.Message), 200))
			}
			fails[e.AgentID] = true
		case team.TextChunk, team.ToolCallChunk:
			delete(fails, e.AgentID)
		case team.ApprovalRequested:
			if p, ok := requested(e); ok {
				if how := decide(p); how != "" {
					a.notice(fmt.Sprintf("%s asks whether it may make the call %s in %s; %s", p.AgentID.At(t.ID()), p.Brief(), team.Escaped(p.Call.Dir), how))
				}
			}
		}
		q, ok := toUser(e)
		if !ok || !q.Asks() {
			return nil
		}
		if how := command(q); how != "" {
			a.notice(fmt.Sprintf("%s asks%s: %s%s; answer: %s", q.From.At(t.ID()), q.For(), team.Clean(team.OneLine(q.Content), 200), among(q), how))
		}
		return nil
	}, err
}

// among returns a question's choices, to print after its text.
func among(q team.Message) string {
	if len(q.Choices) == 0 {
		return ""
	}
	return " (" + strings.Join(q.Numbered(), ", ") + ")"
}

// answers returns a function that explains how a question is answered, unless it is already answered; a nil
// how means the command for it.
func (a *app) answers(ctx context.Context, t *client.Team, members []team.Member, how func(team.Message) string) (func(team.Message) string, error) {
	people := []team.AgentID{team.UserAgent}
	for _, m := range members {
		if m.Backend == team.Person {
			people = append(people, m.AgentID)
		}
	}
	over := map[string]bool{}
	for _, who := range people {
		questions, err := t.Mail().Questions(ctx, who)
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
		return a.answerWith(t.ID(), q, string(q.From))
	}, nil
}

// notes is stderr: output while a stream is shown does not land in the lines below it, nor after an
// unanswered question, and is wrapped at words. Safe for concurrent use.
type notes struct {
	io.Writer
	mu     sync.Mutex
	stream *stream  // that is shown; nil: none
	asking bool     // the last line has no end: the user is to answer
	list   *listing // printed above a note; nil: none
}

// under makes s make room for each note; nil: no stream does.
func (n *notes) under(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stream = s
}

// to writes notes to w.
func (n *notes) to(w io.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Writer = w
}

func (n *notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.list != nil {
		_ = n.list.buf.Flush() // the error is returned again at its end
	}
	if s := n.stream; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.print(s.story.Flush())
		s.erase()
	}
	said := string(text)
	if !strings.HasPrefix(said, "{") { // that is for programs
		said = ""
		for line := range strings.Lines(string(text)) {
			whole, end := strings.CutSuffix(line, "\n")
			if said += wrapped(whole, lineWidth(n.Writer)); end {
				said += "\n"
			}
		}
	}
	if n.asking && !strings.HasPrefix(said, "\n") {
		said = "\n" + said
	}
	n.asking = !strings.HasSuffix(said, "\n")
	if _, err := io.WriteString(n.Writer, said); err != nil {
		return 0, err
	}
	return len(text), nil
}

// begin starts a list that is printed to w, or returns nil if one exists.
func (n *notes) begin(w io.Writer) *listing {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.list != nil {
		return nil
	}
	n.list = &listing{n, bufio.NewWriterSize(w, pipeSize)}
	return n.list
}

// pipeSize is the capacity of a pipe: pipe(7).
const pipeSize = 64 << 10

// listing is output that is written in one piece, unless a note comes in between: then what was printed
// before is above it.
type listing struct {
	notes *notes
	buf   *bufio.Writer
}

func (l *listing) Write(p []byte) (int, error) {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	return l.buf.Write(p)
}

// end writes the rest.
func (l *listing) end() error {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	l.notes.list = nil
	return l.buf.Flush()
}

// answered records that the user has ended a question's line.
func (n *notes) answered() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asking = false
}
