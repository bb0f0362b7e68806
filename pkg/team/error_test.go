package team_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"agentteam/pkg/team"
)

func TestErrorCodes(t *testing.T) {
	plain := team.Errorf(team.Conflict, "%s is held by %s", "T-001", "coder-1")
	caused := team.Errorf(team.Unavailable, "store: %w", io.ErrUnexpectedEOF).WithHint("try %s", "again")
	for name, tt := range map[string]struct {
		err     error
		code    team.Code
		hint    string
		message string
	}{
		"plain":                     {plain, team.Conflict, "", "T-001 is held by coder-1"},
		"caused":                    {caused, team.Unavailable, "try again", "store: unexpected EOF"},
		"wrapped":                   {fmt.Errorf("claim: %w", caused), team.Unavailable, "try again", "claim: store: unexpected EOF"},
		"joined":                    {errors.Join(plain, io.EOF), team.Conflict, "", "T-001 is held by coder-1\nEOF"},
		"a code of its own":         {team.Busy, team.Busy, "", "busy"},
		"without code":              {io.EOF, "", "", "EOF"},
		"its code, not its cause's": {team.Errorf(team.InvalidState, "open: %w", plain), team.InvalidState, "", "open: T-001 is held by coder-1"},
	} {
		if team.CodeOf(tt.err) != tt.code || team.HintOf(tt.err) != tt.hint || tt.err.Error() != tt.message {
			t.Errorf("%s: code %q, hint %q, %q", name, team.CodeOf(tt.err), team.HintOf(tt.err), tt.err)
		}
		if tt.code != "" && !errors.Is(tt.err, tt.code) {
			t.Errorf("%s: errors.Is does not find its code", name)
		}
	}
	if !errors.Is(caused, io.ErrUnexpectedEOF) || errors.Is(caused, team.Conflict) {
		t.Error("the cause is found, another code is not")
	}
	if plain.WithHint("x"); plain.Hint != "" {
		t.Error("WithHint changed its receiver")
	}
	if team.CodeOf(nil) != "" || team.HintOf(nil) != "" {
		t.Error("no error has no code")
	}
}

// A model's hint is that for people, unless that names a command.
func TestModelHintOf(t *testing.T) {
	e := team.Errorf(team.NotFound, "no")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {e, ""}, {e.WithHint("look"), "look"}, {e.WithHint("see `teamctl tasks`"), ""},
		{e.WithHint("see `teamctl tasks`").WithModelHint("see list_tasks"), "see list_tasks"},
		{fmt.Errorf("x: %w", e.WithModelHint("wait")), "wait"},
	} {
		if got := team.ModelHintOf(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
