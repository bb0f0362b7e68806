package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// hookTime bounds the command of branch_hook, which may push and open a pull request.
const hookTime = 5 * time.Minute

// mostHookText is how many bytes of the goal and of its summary the command gets: Linux refuses to start
// one with a variable of 128 KiB.
const mostHookText = 16 << 10

// hookPrelude has a command fail that reads from the terminal, as it cannot in the background: it would
// be stopped there until its time is up.
const hookPrelude = "trap '' TTIN TTOU\n"

// endHook runs the user's branch_hook at the end of a goal that has finished, or reports why it does not.
// The errors are those of [app.runHook].
func (a *app) endHook(l *lineEnd, record team.Team, cfg config.Config, p *runRequest) error {
	why := ""
	switch {
	case cfg.BranchHook == "" || record.Status != team.TeamFinished:
		return nil
	case p.land:
		why = "--land takes the work over"
	case l == nil || l.Commits > 0 && l.missing == nil:
		why = "there is no branch in a checkout here"
	case l.Commits == 0:
		why = "the goal has changed nothing"
	}
	if why != "" {
		a.tell("branch_hook is not run: " + why)
		return nil
	}
	return a.runHook(cfg.BranchHook, record.Workspace, record, *l.missing, a.command("land --publish", record.ID))
}

// runHook runs the user's branch_hook in the checkout dir, with what it prints on stderr, once the line's
// branch is there; nothing if no hook is set, and if the checkout lacks nothing, which it reports. It returns
// when the command has ended. again is the command that runs it once more. Errors: InvalidState if it has failed.
func (a *app) runHook(hook, dir string, record team.Team, missing client.Diff, again string) error {
	switch {
	case hook == "":
		return nil
	case missing.From == missing.Head:
		a.tell("branch_hook is not run: the checkout has all of " + missing.Branch)
		return nil
	}
	a.tellWhole("branch_hook: ", hook)
	env := slices.Concat([]string{"GIT_TERMINAL_PROMPT=0"}, os.Environ(), []string{ // the user's own: it needs credentials
		"AGENTTEAM_TEAM=" + string(record.ID), "AGENTTEAM_BRANCH=" + missing.Branch, "AGENTTEAM_BASE=" + string(missing.From), "AGENTTEAM_HEAD=" + string(missing.Head),
		"AGENTTEAM_GOAL=" + firstBytes(record.Goal), "AGENTTEAM_SUMMARY=" + firstBytes(record.Summary)})
	exit, err := command.Plain{}.Run(a.cmd.Context(), command.Command{Args: []string{"bash", "-c", hookPrelude + hook}, Dir: dir, Env: env, Output: a.err, Limit: hookTime})
	switch {
	case err != nil:
	case exit.Cause != nil:
		err = exit.Cause
	case exit.Code != 0:
		err = fmt.Errorf("it ended with %s", exit.How)
	default:
		return nil
	}
	return team.Errorf(team.InvalidState, "branch_hook: %w", err).WithHint("%s is there; to run it again: %s", missing.Branch, again)
}

// firstBytes is the beginning of a text that may be longer than a variable, in whole characters.
func firstBytes(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), mostHookText)], "")
}
