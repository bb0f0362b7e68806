package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/team"
)

// member parses a member's name as typed, also as name@team, the form in tables and streams. The team then
// becomes the command's team, as with --team. Error: InvalidArgument if it contradicts --team.
func (a *app) member(s string) (team.AgentID, error) {
	name, id, err := team.ParseAddress(s)
	if err != nil || id == "" {
		return name, err
	}
	return name, a.ofTeam(s, id)
}

// conversation parses the name of a member or of a subagent, like [app.member].
func (a *app) conversation(s string) (team.AgentID, error) {
	name, id, err := team.ParseConversation(s)
	if err != nil || id == "" {
		return name, err
	}
	return name, a.ofTeam(s, id)
}

// ofTeam makes id the command's team, since what was typed names it.
func (a *app) ofTeam(typed string, id team.TeamID) error {
	flag := a.cmd.Flag("team")
	if flag.Changed && flag.Value.String() != string(id) {
		return team.Errorf(team.InvalidArgument, "%s is not of team %s, which the command is about", typed, flag.Value).
			WithHint("a command is about one team: leave out --team, or the part behind the @")
	}
	return a.cmd.Flags().Set("team", string(id))
}

// optionalMember is like member for a name that may be empty.
func (a *app) optionalMember(s string) (team.AgentID, error) {
	if s == "" {
		return "", nil
	}
	return a.member(s)
}

// memberFlag adds a flag for a member's name to cmd; complete offers names. The returned function parses it
// after the flags are parsed; "" if it is missing.
func (a *app) memberFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc, usage string) func() (team.AgentID, error) {
	name := cmd.Flags().String(flag, "", usage)
	completeFlags(cmd, map[string]cobra.CompletionFunc{flag: complete})
	return func() (team.AgentID, error) { return a.optionalMember(*name) }
}

// parseAll parses names or ids: each argument is one, or several separated by commas. Duplicates count once.
func parseAll[T comparable](args []string, parse func(string) (T, error)) (all []T, err error) {
	for _, s := range entries(args) {
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all, nil
}

// entries splits arguments that may be lists with commas.
func entries(args []string) (all []string) {
	for _, arg := range args {
		all = append(all, strings.Split(arg, ",")...)
	}
	return all
}
