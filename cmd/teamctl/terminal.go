package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"agentteam/pkg/team"
)

// device is a writer that may be a terminal; *os.File is one.
type device interface {
	io.Writer
	Fd() uintptr
}

// live reports whether w is a terminal on which the cursor can be moved.
func live(w io.Writer) bool {
	d, ok := w.(device)
	kind := os.Getenv("TERM")
	return ok && kind != "" && kind != "dumb" && term.IsTerminal(d.Fd())
}

// widthOf returns how many cells a line of w may take: the terminal's, else COLUMNS, else 0 for no limit.
func widthOf(w io.Writer) int {
	if d, ok := w.(device); ok {
		if w, _, err := term.GetSize(d.Fd()); err == nil && w > 0 {
			return w
		}
	}
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// heightOf returns how many lines w shows, 0 if it is no terminal.
func heightOf(w io.Writer) int {
	if d, ok := w.(device); ok {
		if _, h, err := term.GetSize(d.Fd()); err == nil {
			return h
		}
	}
	return 0
}

// wrapped breaks a line between words into lines of at most width cells, indented like the first; 0 is no
// limit. A longer word gets a line of its own.
func wrapped(line string, width int) string {
	if width == 0 || ansi.StringWidth(line) <= width {
		return line
	}
	const noBreakHyphen = "\u2011" // names and flags are not broken at their hyphens; one of the text becomes a hyphen, too
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	text = ansi.Wordwrap(strings.ReplaceAll(text, "-", noBreakHyphen), max(width-len(indent), 1), "")
	return indent + strings.NewReplacer(noBreakHyphen, "-", "\n", "\n"+indent).Replace(text)
}

// lineWidth returns how many cells a line of wrapped text may take: a terminal's width. Other outputs are not
// wrapped; 0 is no limit.
func lineWidth(w io.Writer) int {
	if !live(w) {
		return 0
	}
	return widthOf(w)
}

// singly switches stdin's terminal to single characters without an echo, until restore is called.
func singly() (restore func(), err error) {
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
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }, nil
}

// colours returns w without the colours that it cannot show, or that the user does not want.
func colours(w io.Writer) io.Writer { return colorprofile.NewWriter(w, colourEnv()) }

// colourEnv returns the environment for colorprofile, which accepts only some values of these variables:
// https://no-color.org means any value, https://bixense.com/clicolors any but 0. No colour takes precedence
// over forced colours.
func colourEnv() []string {
	env, force := os.Environ(), os.Getenv("CLICOLOR_FORCE")
	switch { // the last value of a name counts
	case os.Getenv("NO_COLOR") != "":
		return append(env, "NO_COLOR=1", "CLICOLOR_FORCE=0")
	case force != "" && force != "0":
		return append(env, "CLICOLOR_FORCE=1")
	}
	return env
}

// output is stdout. It records write errors, which most callers ignore.
type output struct {
	*os.File
	mu     sync.Mutex
	failed error
}

func (o *output) Write(text []byte) (int, error) {
	n, err := o.File.Write(text)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failed == nil {
			o.failed = unwritten(err)
		}
	}
	return n, err
}

// err returns why not everything was written, or nil.
func (o *output) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// errUnwritten ends a command unchanged, whatever else has ended meanwhile.
var errUnwritten = errors.New("the output cannot be written")

func unwritten(err error) error {
	return team.Errorf(team.InvalidState, "%w: %w", errUnwritten, err)
}
