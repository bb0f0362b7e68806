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

// hookTime limits the branch_hook command, which may push and open a pull request.
const hookTime = 5 * time.Minute

// mostHookText limits the bytes of the goal and of its summary for the hook: Linux does not start a command
// with a variable of 128 KiB.
const mostHookText = 16 << 10

// hookPrelude makes a command fail that reads from the terminal in the background: it would be stopped until
// its time limit.
const hookPrelude = "trap '' TTIN TTOU\n"

// endHook runs the user's branch_hook at the end of a goal that has finished, or reports why it does not.
// The errors are those of [app.runHook].
func (a *app) endHook(l *branchEnd, record team.Team, cfg config.Config, p *runRequest) error {
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
		a.notice("branch_hook is not run: " + why)
		return nil
	}
	return a.runHook(cfg.BranchHook, record.Workspace, record, *l.missing, a.command("land --publish", record.ID))
}

// runHook runs the user's branch_hook in the checkout dir, its output on stderr, once the integration branch
// exists, and returns when it has ended. Without a hook, or if the checkout lacks nothing, which it prints,
// it does nothing. again is the command that reruns it. Error: InvalidState if the hook fails.
func (a *app) runHook(hook, dir string, record team.Team, missing client.Diff, again string) error {
	switch {
	case hook == "":
		return nil
	case missing.From == missing.Head:
		a.notice("branch_hook is not run: the checkout has all of " + missing.Branch)
		return nil
	}
	a.printWhole("branch_hook: ", hook)
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

// firstBytes returns the beginning of a text that may be too long for a variable, in whole characters.
func firstBytes(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), mostHookText)], "")
}
