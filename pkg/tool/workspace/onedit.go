package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/tool/command"
)

// The bounds of what an edit may have run after it.
const (
	onEditLimit  = 10 * time.Second
	onEditOutput = 4 << 10 // bytes
)

// onEdit runs the program of the settings for edited files, and returns what it reports, after a line end; "" if that is
// nothing. The edits stand, whatever comes of it. It runs without a shell: the name of a file is an argument.
func (w *Workspace) onEdit(ctx context.Context, names ...string) string {
	program := w.o.OnEdit()
	if len(program) == 0 || w.o.MayRun() != nil {
		return ""
	}
	defer w.o.Running()()
	ctx, cancel := context.WithTimeoutCause(ctx, onEditLimit, command.ErrTimeout)
	defer cancel()
	var said strings.Builder
	for _, name := range names {
		if strings.HasPrefix(name, "-") { // else it would be an option
			name = "./" + name
		}
		args := make([]string, len(program))
		for i, arg := range program {
			args[i] = strings.ReplaceAll(arg, "{file}", name)
		}
		said.WriteString(w.report(ctx, args))
		if slices.Equal(args, program) || said.Len() >= onEditOutput { // one run is for all
			break
		}
	}
	return said.String()
}

// report returns what a program after an edit reports. One that cannot be run is reported once, until another thing is
// wrong.
func (w *Workspace) report(ctx context.Context, args []string) string {
	var captured command.Capture
	exit, err := w.runner.Run(ctx, command.Command{Args: args, Dir: w.dir, Env: []string{"AGENTTEAM_WORKSPACE=" + w.dir}, Output: &captured, Limit: onEditLimit, Allowed: w.o.Allowed})
	output := captured.String()
	if len(output) > onEditOutput {
		output = strings.ToValidUTF8(output[:onEditOutput], "") + "\n[the rest is left out]"
	}
	failing := ""
	switch {
	case err != nil:
		failing = fmt.Sprintf("it could not be run: %v", err)
	case exit.Cause != nil && errors.Is(exit.Cause, command.ErrTimeout):
		failing = fmt.Sprintf("it was ended after %v", onEditLimit)
	case exit.Cause != nil:
		failing = exit.Cause.Error()
	case exit.Code != 0 && strings.TrimSpace(output) == "", exit.Code == 127:
		failing = exit.How
	}
	w.o.seen.mu.Lock()
	defer w.o.seen.mu.Unlock()
	again := failing != "" && failing == w.o.seen.failing
	w.o.seen.failing = failing
	output = strings.TrimRight(output, "\n")
	switch {
	case again, failing == "" && output == "":
		return ""
	case failing != "":
		return ended("", "\n[on_edit, %s: %s; the edit is made]", args[0], strings.Join(append(strings.Fields(failing), strings.Fields(output)...), " "))
	}
	return report(ended("", "\n[on_edit, %s]\n%s", args[0], output), exit)
}
