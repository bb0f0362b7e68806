package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"agentteam/pkg/client"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// matter is something that a person must answer: a question or, if question is nil, a plan or a call.
type matter struct {
	id       string
	at       time.Time
	question *client.StoredMessage
	approval team.Approval
}

// words returns the words that decide a plan or a call; none for a question.
func (m matter) words() []string {
	if m.question != nil {
		return nil
	}
	if m.approval.IsPlan() {
		return []string{"approve", "no"}
	}
	return append(team.Strings(m.approval.Scopes()...), "no")
}

// head returns the text before the input line: it names the matter.
func (m matter) head(more string) string {
	if q := m.question; q != nil {
		choices := ""
		if len(q.Choices) > 0 {
			choices = " [" + team.Clip(team.OneLine(strings.Join(q.Numbered(), ", ")), 60) + "]"
		}
		return fmt.Sprintf("%s asks%s%s: %s%s > ", q.From, q.For(), more, team.Clip(team.OneLine(q.Content), 80), choices)
	}
	p, what := m.approval, ""
	if p.IsPlan() {
		what = "plan "
	}
	return fmt.Sprintf("%s%s of %s%s: %s? ", what, p.ID[:min(4, len(p.ID))], p.AgentID, more, strings.Join(m.words(), ", "))
}

// asking lets a person answer the team's questions on the terminal, below a stream. A typed line goes to the
// matter that is shown before it, and is dropped if there is none. Safe for concurrent use.
type asking struct {
	app    *app
	team   *client.Team
	stream *stream
	ctx    context.Context
	stop   context.CancelFunc
	parts  sync.WaitGroup // goroutines for answers, and for queries of what is open
	stale  chan struct{}  // what is open may have changed

	mu      sync.Mutex
	open    []matter
	now     string // the id of the matter that is shown; "" = none
	since   time.Time
	typed   []rune
	sending bool            // an answer is being sent
	over    map[string]bool // matters answered here
	restore func()          // resets the terminal from single characters; nil: it was not changed
}

const (
	// settles is how long input is dropped after another matter is shown: it was meant for the one before.
	settles = 500 * time.Millisecond
	// relist is how long changes of what is open are collected.
	relist = 100 * time.Millisecond
	// background is how often a command in the background checks whether it has its terminal again.
	background = 500 * time.Millisecond
)

// foreground reports whether this command has stdin's terminal: a background process would be stopped on
// reading.
func foreground() bool {
	stdin := int(os.Stdin.Fd())
	group, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp() && term.IsTerminal(stdin)
}

// asks returns an asking below s, or nil where no person can type.
func (a *app) asks(ctx context.Context, t *client.Team, s *stream) (*asking, error) {
	if !foreground() || s.width() == 0 || s.rows() == 0 {
		return nil, nil
	}
	q := &asking{app: a, team: t, stream: s, stale: make(chan struct{}, 1), over: map[string]bool{}}
	open, err := q.list(ctx)
	if err != nil {
		return nil, err
	}
	if q.restore, err = singly(); err != nil {
		return nil, err
	}
	q.ctx, q.stop = context.WithCancel(ctx)
	signal.Ignore(syscall.SIGTTIN, syscall.SIGTTOU) // once in the background reading fails in place of stopping the command
	q.set(open)
	s.mu.Lock()
	s.ask = q.line
	s.mu.Unlock()
	q.parts.Go(q.follow)
	go q.read() // it ends with the process: a read from a terminal cannot be interrupted
	return q, nil
}

// list returns what waits for the user, oldest first.
func (q *asking) list(ctx context.Context) (open []matter, err error) {
	plans, err := q.team.Plans().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		if p.Waits() && p.Asks() == team.UserAgent {
			open = append(open, matter{id: p.ID, at: p.CreatedAt, approval: p.Approval})
		}
	}
	questions, err := q.team.Mail().Questions(ctx, team.UserAgent)
	for _, l := range questions {
		if l.Open {
			open = append(open, matter{id: l.ID, at: l.StoredAt, question: &l})
		}
	}
	slices.SortStableFunc(open, func(a, b matter) int { return a.at.Compare(b.at) })
	return open, err
}

// entry handles an entry after which something may be asked, or no longer.
func (q *asking) entry(e client.Entry) {
	q.mu.Lock()
	asked := len(q.open) > 0
	q.mu.Unlock()
	switch kind, _, _ := strings.Cut(string(e.Event.Event.Type), "_"); kind {
	case "APPROVAL", "MAIL":
	case "TASK", "MEMBER": // who asks may have lost its task, or left
		if !asked {
			return
		}
	default:
		return
	}
	select {
	case q.stale <- struct{}{}:
	default:
	}
}

// follow queries what is open whenever that may have changed.
func (q *asking) follow() {
	for shutdown.Sleep(q.ctx, relist) {
		select {
		case <-q.ctx.Done():
			return
		case <-q.stale:
		}
		ctx, cancel := context.WithTimeout(q.ctx, 10*time.Second)
		open, err := q.list(ctx)
		cancel()
		if err == nil { // else the next change brings it
			q.set(open)
		}
	}
}

// set replaces the matters, which are shown one after the other.
func (q *asking) set(open []matter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = slices.DeleteFunc(open, func(m matter) bool { return q.over[m.id] })
	q.turn(0)
}

// turn shows the matter that is places behind the current one; the first if that one is gone.
func (q *asking) turn(places int) {
	next := ""
	if n := len(q.open); n > 0 {
		i := slices.IndexFunc(q.open, func(m matter) bool { return m.id == q.now })
		if i < 0 {
			i, places = 0, 0
		}
		next = q.open[(i+places)%n].id
	}
	if next != q.now {
		q.now, q.typed, q.since = next, nil, time.Now()
	}
	q.stream.touch()
}

// asked returns the matter that is shown.
func (q *asking) asked() (m matter, ok bool) {
	i := slices.IndexFunc(q.open, func(m matter) bool { return m.id == q.now })
	if i < 0 {
		return m, false
	}
	return q.open[i], true
}

// close resets the terminal.
func (q *asking) close() {
	if q == nil {
		return
	}
	q.stop()
	q.parts.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.now = nil, ""
	if q.restore != nil && foreground() {
		q.restore()
	}
	q.restore = nil
	signal.Reset(syscall.SIGTTIN, syscall.SIGTTOU)
}

// line returns the line below the stream, at most width cells; "" if nothing is asked or typed.
func (q *asking) line(width int) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, ok := q.asked()
	typed := printable(string(q.typed))
	head := "nothing is asked: "
	switch n := len(q.open) - 1; {
	case !ok && typed == "":
		return ""
	case ok && n > 0:
		head = m.head(fmt.Sprintf(" (and %d more: Tab)", n))
	case ok:
		head = m.head("")
	}
	head = ansi.Truncate(printable(head), max(width-ansi.StringWidth(typed), width/2), "… ")
	if over := ansi.StringWidth(head) + ansi.StringWidth(typed) - width; over > 0 {
		typed = ansi.TruncateLeft(typed, over, "")
	}
	return head + typed
}

// read handles input until the command ends.
func (q *asking) read() {
	in := bufio.NewReader(os.Stdin)
	for {
		r, _, err := in.ReadRune()
		switch {
		case err != nil && foreground():
			return
		case err != nil:
			if !q.rest() {
				return
			}
		case r == 0x1a: // Ctrl-Z
			q.suspend()
		case r == 0x1b: // a key that types nothing
			skipKey(in)
		default:
			q.key(r)
		}
	}
}

// skipKey reads the characters that a key sends after an escape: all of them are there at the same time.
func skipKey(in *bufio.Reader) {
	for first := true; in.Buffered() > 0; first = false {
		switch r, _, err := in.ReadRune(); {
		case err != nil:
			return
		case first && (r == '[' || r == 'O'): // more of it follows
		case first || r >= '@' && r <= '~':
			return
		}
	}
}

// rest waits until the command has its terminal again, and reports whether there is more to read.
func (q *asking) rest() bool {
	for !foreground() {
		if !shutdown.Sleep(q.ctx, background) {
			return false
		}
	}
	return q.singly()
}

// singly sets the terminal to single characters again, unless the command ends.
func (q *asking) singly() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.restore == nil {
		return false
	}
	restore, err := singly()
	if err == nil {
		q.restore = restore
	}
	q.stream.touch()
	return err == nil
}

// suspend stops the command as Ctrl-Z does, with its terminal as it was before. It returns once the command continues.
func (q *asking) suspend() {
	q.mu.Lock()
	if q.restore == nil {
		q.mu.Unlock()
		return
	}
	q.restore()
	q.mu.Unlock()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(settles): // nothing stops where no shell could continue it
	}
	if foreground() {
		q.singly()
	}
}

func (q *asking) key(r rune) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sending || time.Since(q.since) < settles {
		return
	}
	switch {
	case r == '\n' || r == '\r':
		text := strings.TrimSpace(string(q.typed))
		q.typed = nil
		if text != "" {
			q.take(text)
		}
	case r == '\t':
		q.turn(1)
	case r == '\b' || r == 0x7f:
		q.typed = q.typed[:max(0, len(q.typed)-1)]
	case r == 0x15: // Ctrl-U
		q.typed = nil
	case !unicode.IsControl(r):
		q.typed = append(q.typed, r)
	}
	q.stream.touch()
}

// take sends a line to the matter that is shown. It never blocks.
func (q *asking) take(text string) {
	m, ok := q.asked()
	if !ok {
		q.since = time.Now() // of a text of many lines one is enough
		go q.app.notice("nothing is asked, so that the line is not sent; to write to a member: " + q.app.command("send NAME TEXT", q.team.ID()))
		return
	}
	send := func(ctx context.Context) error {
		_, _, err := q.team.Mail().Answer(ctx, "", m.id, text)
		return err
	}
	if m.question == nil {
		d, ok := m.decision(text)
		if !ok {
			go q.app.notice("type " + strings.Join(m.words(), ", ") + "; behind it, what " + string(m.approval.AgentID) + " is to know")
			return
		}
		send = func(ctx context.Context) error {
			_, err := q.team.Plans().Decide(ctx, "", m.id, d)
			return err
		}
	}
	q.sending = true
	q.parts.Go(func() { q.send(m, send) })
}

// send sends an answer. A matter whose answer is not accepted is shown again.
func (q *asking) send(m matter, send func(context.Context) error) {
	ctx, cancel := context.WithTimeout(q.ctx, 10*time.Second)
	defer cancel()
	err := send(ctx)
	if err != nil && q.ctx.Err() == nil {
		q.app.notice(team.Line(err))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = false
	if code := team.CodeOf(err); err == nil || code == team.Conflict || code == team.NotFound {
		q.over[m.id] = true
		q.open = slices.DeleteFunc(q.open, func(o matter) bool { return o.id == m.id })
	}
	q.turn(0)
}

// decision parses a person's line for a plan or a call: a word, or its first letter, and a text for the
// member.
func (m matter) decision(text string) (d team.Decision, ok bool) {
	word, words, _ := strings.Cut(text, " ")
	all := m.words()
	i := slices.IndexFunc(all, func(w string) bool { return w == word || w[:1] == word })
	if i < 0 {
		return d, false
	}
	d = team.Decision{Approve: all[i] != "no", Feedback: strings.TrimSpace(words)}
	if d.Approve && !m.approval.IsPlan() {
		d.Scope = team.Scope(all[i])
	}
	return d, true
}
