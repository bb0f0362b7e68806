package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Errors of a command line have our own texts, with a hint: those of the libraries call arguments commands,
// and name parsers instead of what is expected.

// exactly is cobra's ExactArgs with an error that names what is missing.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		given := explain.Counted(len(args), "argument")
		if len(args) == 0 {
			given = "no argument"
		}
		err := team.Errorf(team.InvalidArgument, "%s takes %s; it was given %s", cmd.CommandPath(), what, given)
		switch {
		case len(args) < n:
			return err.WithHint("usage: %s", cmd.UseLine())
		case len(args) > n:
			return err.WithHint("quote texts with spaces")
		}
		return nil
	}
}

// atMost is cobra's MaximumNArgs with an error that shows what is too much.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		takes := "no arguments"
		if n > 0 {
			takes = "one argument"
		}
		return team.Errorf(team.InvalidArgument, "%s takes %s; %q is too much", cmd.CommandPath(), takes, args[n]).
			WithHint("usage: %s", cmd.UseLine())
	}
}

// elsewhere maps other programs' words to our commands.
var elsewhere = map[string]string{
	"ps": "teamctl agents, or teamctl status -o wide for the processes", "ls": "teamctl tasks, teamctl agents or teamctl teams", "list": "teamctl tasks, teamctl agents or teamctl teams",
	"get": "teamctl tasks get ID, or teamctl agents get NAME", "show": "teamctl tasks get ID, or teamctl agents get NAME", "describe": "teamctl tasks get ID, or teamctl agents get NAME",
	"logs": "teamctl events --follow", "log": "teamctl events --follow", "tail": "teamctl events --follow", "watch": "teamctl events --follow, or teamctl tasks --watch",
	"start": "teamctl up", "kill": "teamctl stop NAME --force", "rm": "teamctl stop NAME, or teamctl teams rm NAME", "delete": "teamctl stop NAME, or teamctl teams rm NAME",
	"create": "teamctl tasks add, teamctl spawn ROLE or teamctl teams add NAME", "add": "teamctl tasks add, teamctl spawn ROLE or teamctl teams add NAME", "tell": "teamctl send NAME TEXT", "mail": "teamctl inbox [NAME], or teamctl send NAME TEXT", "reply": "teamctl answer TEXT, or teamctl send NAME TEXT --reply-to ID", "ask": "teamctl send NAME TEXT", "members": "teamctl agents", "usage": "teamctl cost",
}

// flagError explains cobra's error about the flags of cmd.
func flagError(cmd *cobra.Command, err error) error {
	if ours, ok := errors.AsType[*team.Error](err); ok { // of a flag's own Set
		return ours
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if like := team.Similar(unknown.GetSpecifiedName(), names); like != "" {
			return team.Errorf(team.InvalidArgument, "%w", err).WithHint("did you mean --%s? %s --help lists its flags", like, cmd.CommandPath())
		}
	}
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return team.Errorf(team.InvalidArgument, "%w", err).WithHint("%s --help lists its flags", cmd.CommandPath())
	}
	bad := team.Errorf(team.InvalidArgument, "--%s %q is not valid", value.GetFlag().Name, value.GetValue())
	switch value.GetFlag().Value.Type() {
	case "int":
		return bad.WithHint("give a whole number, such as 5")
	case "duration":
		return bad.WithHint("give a time with its unit, such as 90s or 5m")
	case "bool":
		return bad.WithHint("leave the value out, or give true or false")
	}
	return bad.WithHint("%s --help tells what it takes", cmd.CommandPath())
}

// given is a flag's value that must not be empty: a script with an unset variable would else omit a condition
// unnoticed.
type given struct {
	pflag.Value
	flag string
}

func (g given) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return team.Errorf(team.InvalidArgument, "--%s is empty", g.flag).WithHint("give it a value, or leave it out")
	}
	return g.Value.Set(s)
}

// refuseEmpty makes cmd, and all commands below it, reject empty flags. Only a description may be empty: an
// edit can remove it.
func refuseEmpty(cmd *cobra.Command) {
	check := func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "string", "stringSlice", "stringArray":
			if _, done := f.Value.(given); !done && f.Name != "description" {
				f.Value = given{f.Value, f.Name}
				f.DefValue = strings.Trim(f.DefValue, "[]") // help knows no list but its own to be empty
			}
		}
	}
	cmd.Flags().VisitAll(check)
	cmd.PersistentFlags().VisitAll(check)
	for _, below := range cmd.Commands() {
		refuseEmpty(below)
	}
}

// format is the value of --output.
type format string

// The formats of --output.
const (
	asTable format = "table"
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asJSONL format = "jsonl"
	asName  format = "name"
)

var formats = []string{string(asTable), string(asWide), string(asJSON), string(asYAML), string(asJSONL), string(asName)}

// choice is the value of a flag that accepts only some words.
type choice[T ~string] struct {
	to    *T
	flag  string
	words []string
}

func (c choice[T]) String() string { return string(*c.to) }
func (c choice[T]) Type() string   { return "string" }

func (c choice[T]) Set(s string) error {
	if !slices.Contains(c.words, s) {
		last := len(c.words) - 1
		return team.Errorf(team.InvalidArgument, "--%s %q is not known", c.flag, s).WithHint("use %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.to = T(s)
	return nil
}
