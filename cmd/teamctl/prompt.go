package main

import (
	"io"
	"os"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// prompt is a terminal on which a line can be typed while output is printed above it. Safe for concurrent
// use.
type prompt struct {
	*os.File // where it prints
	editor   *term.Terminal
	restore  func()

	mu    sync.Mutex
	width int // of the terminal, as the editor knows it
}

// openPrompt redirects the command's output to above a line that is typed, until the prompt is closed; nil if
// stdin and stdout are no terminal that supports this. Ctrl-C interrupts as usual.
func (a *app) openPrompt() (*prompt, error) {
	out, ok := a.out.(*output)
	if !ok || !a.forPeople() || !live(out) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, nil
	}
	restore, err := singly()
	if err != nil {
		return nil, err
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
		restore()
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

// close removes the prompt.
func (p *prompt) close() {
	p.restore()
	_, _ = p.File.WriteString("\r" + ansi.EraseScreenBelow)
}
