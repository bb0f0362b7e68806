package main

import (
	"io"
	"os"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"agentteam/pkg/team"
)

// prompt is a terminal on which a line can be typed while others are printed above it. Safe
// for concurrent use.
type prompt struct {
	*os.File // where it prints
	editor   *term.Terminal
	restore  func()

	mu    sync.Mutex
	width int // of the terminal, as the editor knows it
}

// openPrompt has the command print above a line that is typed, until the prompt is closed; nil
// if stdin and stdout are no terminal on which that can be done. Ctrl-C interrupts as usual.
func (a *app) openPrompt() (*prompt, error) {
	out, ok := a.out.(*output)
	if !ok || !a.forPeople() || !live(out) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, nil
	}
	fd := int(os.Stdin.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, team.Errorf(team.InvalidState, "the terminal cannot be read: %w", err)
	}
	// As x/term sets it, except that signals and line ends stay as they are. A stopped process
	// would leave the terminal to its shell without an echo.
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO | unix.ECHONL | unix.IEXTEN
	now.Cc[unix.VMIN], now.Cc[unix.VTIME], now.Cc[unix.VSUSP] = 1, 0, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &now); err != nil {
		return nil, team.Errorf(team.InvalidState, "the terminal cannot be set: %w", err)
	}
	p := &prompt{File: out.File, editor: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{os.Stdin, out}, "> ")}
	before, notes := a.out, a.notes.Writer
	a.out = p
	if live(notes) {
		a.notes.to(p)
	}
	p.restore = func() {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was)
		a.out = before
		a.notes.to(notes)
	}
	return p, nil
}

// Write prints above the line that is typed.
func (p *prompt) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := widthOf(p.File); w != p.width && w > 0 {
		p.width = w
		if err := p.editor.SetSize(w, 1); err != nil {
			return 0, err
		}
	}
	return p.editor.Write(text)
}

// close takes the prompt away.
func (p *prompt) close() {
	p.restore()
	_, _ = p.File.WriteString("\r" + ansi.EraseScreenBelow)
}
