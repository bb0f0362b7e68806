package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// asking has a person answer below a stream, on its terminal, whether calls may be made. Safe for
// concurrent use.
type asking struct {
	app    *app
	team   *client.Team
	stream *stream
	ctx    context.Context
	stop   context.CancelFunc
	parts  sync.WaitGroup // answers that are under way

	mu      sync.Mutex
	open    []team.Approval // that wait; the first is asked
	since   time.Time       // when the first became that
	typed   []rune
	restore func() // of the terminal, which is set to single characters; nil: it is not
	reads   bool   // somebody reads the terminal
}

// settles is how long what is typed is dropped once another call is asked: it was meant for the one
// before.
const settles = 500 * time.Millisecond

// asks returns what asks below s, or nil where nobody can type.
func (a *app) asks(ctx context.Context, t *client.Team, s *stream) (*asking, error) {
	stdin := int(os.Stdin.Fd())
	group, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() || !term.IsTerminal(stdin) || s.width() == 0 || s.rows() == 0 {
		return nil, nil // a command in the background would be stopped
	}
	plans, err := t.Plans().List(ctx)
	if err != nil {
		return nil, err
	}
	q := &asking{app: a, team: t, stream: s}
	q.ctx, q.stop = context.WithCancel(ctx)
	for _, p := range plans {
		if p.Call != nil && p.Waits() {
			q.open = append(q.open, p.Approval)
		}
	}
	s.mu.Lock()
	s.ask = q.line
	s.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.change()
	return q, nil
}

// entry takes in what became of calls.
func (q *asking) entry(e client.Entry) {
	var p team.Approval
	if b := e.Event.Event; !strings.HasPrefix(string(b.Type), "APPROVAL_") || json.Unmarshal(b.Value, &p) != nil || p.Call == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	known := slices.ContainsFunc(q.open, func(o team.Approval) bool { return o.ID == p.ID })
	switch pending := p.Status == team.PlanPending && p.EndedAt == nil; {
	case pending && !known:
		q.open = append(q.open, p)
		q.change()
	case !pending && known:
		q.forget(p.ID)
	}
}

func (q *asking) forget(id string) {
	q.open = slices.DeleteFunc(q.open, func(o team.Approval) bool { return o.ID == id })
	q.change()
}

// change readies the terminal for the first of the calls, or gives it back.
func (q *asking) change() {
	q.typed, q.since = nil, time.Now()
	switch {
	case len(q.open) > 0 && q.restore == nil && q.ctx.Err() == nil:
		restore, err := singly()
		if err != nil {
			return
		}
		q.restore = restore
		if !q.reads { // it ends with the process: nothing ends a reading of the terminal
			q.reads = true
			go q.read()
		}
	case len(q.open) == 0 && q.restore != nil:
		q.restore()
		q.restore = nil
	}
}

// close gives the terminal back.
func (q *asking) close() {
	if q == nil {
		return
	}
	q.stop()
	q.parts.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = nil
	q.change()
}

// line is what stands below the stream; "" if nothing is asked.
func (q *asking) line() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) == 0 {
		return ""
	}
	p, more := q.open[0], ""
	if n := len(q.open) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s of %s%s: %s? %s", p.ID[:min(4, len(p.ID))], p.AgentID, more, strings.Join(answersTo(p), ", "), printable(string(q.typed)))
}

// answersTo are the words by which a call is decided on.
func answersTo(p team.Approval) []string {
	return append(team.Strings(p.Scopes()...), "no")
}

// read takes what is typed.
func (q *asking) read() {
	in := make([]byte, 256)
	for {
		n, err := os.Stdin.Read(in)
		if err != nil {
			return
		}
		for _, r := range string(in[:n]) {
			q.key(r)
		}
	}
}

func (q *asking) key(r rune) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) == 0 || time.Since(q.since) < settles {
		return
	}
	switch r {
	case '\n', '\r':
		q.answer(q.open[0], strings.TrimSpace(string(q.typed)))
		q.typed = nil
	case '\b', 0x7f:
		q.typed = q.typed[:max(0, len(q.typed)-1)]
	case 0x15: // Ctrl-U
		q.typed = nil
	default:
		q.typed = append(q.typed, r)
	}
	q.stream.touch()
}

// answer decides on a call as somebody has typed: with a word, or its first letter, and what the
// member is told.
func (q *asking) answer(p team.Approval, text string) {
	word, words, _ := strings.Cut(text, " ")
	i := slices.IndexFunc(answersTo(p), func(w string) bool { return word != "" && (w == word || w[:1] == word) })
	if i < 0 {
		if text != "" {
			go q.app.tell("type " + strings.Join(answersTo(p), ", ") + "; behind it, what " + string(p.AgentID) + " is to know")
		}
		return
	}
	d := team.Decision{Approve: true, Scope: team.Scope(answersTo(p)[i]), Feedback: strings.TrimSpace(words)}
	if d.Scope == "no" {
		d.Approve, d.Scope = false, ""
	}
	q.parts.Go(func() {
		ctx, cancel := context.WithTimeout(q.ctx, 10*time.Second)
		defer cancel()
		if _, err := q.team.Plans().Decide(ctx, "", p.ID, d); err != nil {
			if q.ctx.Err() == nil {
				q.app.tell(team.Line(err))
			}
			if code := team.CodeOf(err); code != team.Conflict && code != team.NotFound {
				return // it is asked again
			}
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.forget(p.ID)
	})
}
