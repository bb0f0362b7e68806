package team

import (
	"context"
	"errors"
)

// ExitCode returns the exit status of all of agentteam's programs for an error.
func ExitCode(err error) int {
	switch CodeOf(err) {
	case InvalidArgument:
		return 2
	case NotFound:
		return 3
	case Conflict, Blocked, Busy:
		return 4
	case Unavailable:
		return 5
	case PermissionDenied:
		return 6
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.DeadlineExceeded):
		return 124
	case errors.Is(err, context.Canceled):
		return 130
	}
	return 1 // failed, invalid_state, budget_exceeded, and whatever has no code
}

// Branch returns an error as programs print it: one line, with the hint behind it.
func Line(err error) string {
	s := OneLine(err.Error())
	if h := HintOf(err); h != "" {
		s += " (" + h + ")"
	}
	return s
}
