package team

import (
	"errors"
	"fmt"
	"strings"
)

// Code classifies an error for its reader: a model in a tool result, a program in teamctl's JSON, a person by
// the exit status. A Code is itself an error, so errors.Is(err, team.Conflict) works on any error that
// carries it.
type Code string

// The codes. They are part of the protocol and never renamed.
const (
	PermissionDenied Code = "permission_denied" // not yours to do
	Conflict         Code = "conflict"          // somebody else was first; nothing changed
	Blocked          Code = "blocked"           // a dependency is not completed
	Busy             Code = "busy"              // you hold, or are claiming, another task
	NotFound         Code = "not_found"         // no such task, member, role or team
	InvalidState     Code = "invalid_state"     // not possible from the present status
	InvalidArgument  Code = "invalid_argument"  // the request itself is wrong
	BudgetExceeded   Code = "budget_exceeded"   // the next call would pass a limit
	Unavailable      Code = "unavailable"       // NATS, the pool or the model cannot be reached
)

// Error makes a Code usable as the target of errors.Is.
func (c Code) Error() string { return string(c) }

var (
	// ErrSuperseded ends a process: a later incarnation has the agent's name, another process began first as
	// the same incarnation, or the member's record is gone.
	ErrSuperseded = errors.New("this incarnation was superseded")
	// ErrUnreadable (InvalidState): a record is damaged, or of another protocol. It implies nothing about the
	// record's subject; a valid write repairs it.
	ErrUnreadable = errors.New("cannot be read")
	// ErrRevision (Conflict): a change was bound to a revision of a task, and the task has been written since.
	// Nothing changed.
	ErrRevision = errors.New("written since")
)

// RepairHint is the hint of an error that wraps [ErrUnreadable].
const RepairHint = "`teamctl repair` shows what can be put back"

// HoldLost reports whether err, from reading or writing a held task, means that the hold is over. An
// unreadable record does not: it may be repaired.
func HoldLost(err error) bool {
	return errors.Is(err, Conflict) || errors.Is(err, NotFound) || errors.Is(err, InvalidState) && !errors.Is(err, ErrUnreadable)
}

// Error is an error with a code and, if there is one, a hint how to react.
type Error struct {
	Code    Code
	Message string // what was wrong and where; one line
	Hint    string // what to do; may be empty
	model   string // what a model is to do, where a person has a command for it
	cause   error
}

// Errorf makes an *Error. A %w verb in format is kept as the cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: err.Error()}
	switch err.(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		e.cause = err
	}
	return e
}

// WithHint returns a copy of e with a hint how to react.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithModelHint returns a copy of e with a hint for models in place of the hint for people: a model has
// tools, and no commands of teamctl.
func (e *Error) WithModelHint(format string, args ...any) *Error {
	c := *e
	c.model = fmt.Sprintf(format, args...)
	return &c
}

func (e *Error) Error() string { return e.Message }

// Unwrap lets errors.Is find both the code and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.cause}
}

// CodeOf returns the code that err carries, or "" if it carries none.
func CodeOf(err error) Code {
	var c Code
	errors.As(err, &c)
	return c
}

// HintOf returns the hint that err carries, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// ModelHintOf returns the hint of err for a model, or "". The hint for people serves unless it names teamctl.
func ModelHintOf(err error) string {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return ""
	case e.model != "":
		return e.model
	case strings.Contains(e.Hint, "teamctl"):
		return ""
	}
	return e.Hint
}
