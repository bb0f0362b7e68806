package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// mostDiff limits a difference that is printed, in bytes.
const mostDiff = 8 << 20

func (a *app) diffCmd() *cobra.Command {
	var o client.DiffOptions
	var stat bool
	cmd := &cobra.Command{
		Use: "diff [TASK]", Short: "Show what completed tasks have changed", Args: atMost(1),
		Long: "diff shows what the team's line has changed since its present goal began: all of it, what one task has changed, or\n" +
			"what the tasks of one agent have. Of a task in progress it shows what its holder has written\n" +
			"so far, on the machine of that one; of a task whose work was not merged, or not finished, that work, until it is completed.\n" +
			"Colours are for terminals, where control characters in files are shown by their codes; into a pipe or a file it is a\n" +
			"patch as `git apply` takes it. Teams that share the workspace have no line.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool {
			_, stored := v.Work()
			return v.Commit != "" || v.Status == team.InProgress || stored
		}),
	}
	f := cmd.Flags()
	agent := a.memberFlag(cmd, "agent", completeMembers, "only what the tasks of this agent have changed, but for those undone")
	f.BoolVar(&o.All, "all", false, "also what earlier goals have changed")
	f.BoolVar(&stat, "stat", false, "a line for each file, and a summary")
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		if len(args) > 0 {
			if o.Task, err = team.ParseTaskID(args[0]); err != nil {
				return err
			}
		}
		if o.Agent, err = agent(); err != nil {
			return err
		}
		if o.Most = mostDiff; stat {
			o.Form = gitrepo.Stat
		}
		var d client.Diff
		err = a.withTeam(func(ctx context.Context, t *client.Team) (err error) {
			if err := areMembers(ctx, t, o.Agent); err != nil {
				return err
			}
			d, err = t.Branch().Diff(ctx, o)
			return err
		})
		if err != nil {
			return err
		}
		return a.printDiff(d)
	}
	return cmd
}

func (a *app) printDiff(d client.Diff) error {
	var names []string
	for _, f := range d.Files {
		names = append(names, printable(f.Path))
	}
	err := a.print(d, names, func() {
		if isTerminal(a.out) {
			painted(a.screen(), d.Text)
		} else {
			fmt.Fprint(a.out, d.Text)
		}
	})
	switch {
	case err != nil:
	case d.Returned:
		a.note("this work was not merged: the task's reason shows why, and a next holder begins with it")
	case d.Live && len(d.Files) == 0:
		a.note("its holder has changed nothing yet")
		return nil
	case d.Live:
		a.note("this is what its holder has written so far: the task is in progress")
	}
	if err == nil {
		a.printRun(d.Files)
	}
	switch {
	case err == nil && d.Cut && (d.Returned || d.Live):
		a.note(fmt.Sprintf("it has more than %d MiB: --stat names all files", mostDiff>>20))
	case err == nil && d.Cut:
		a.note(fmt.Sprintf("the rest is left out; the whole, after `teamctl land --publish`: git diff %s %s", d.From, d.Head))
	case err == nil && len(d.Files) == 0:
		where := d.Branch
		if where == "" { // what commands change there is not known
			where = "the shared folder by write_file or edit_file"
		}
		a.note("nothing has changed in " + where)
	}
	return err
}

// isTerminal reports whether w is a terminal of any kind.
func isTerminal(w io.Writer) bool {
	d, ok := w.(device)
	return ok && term.IsTerminal(d.Fd())
}

// painted writes a difference with colours. They are not git's: git's could not be distinguished from those
// in a file's content, and all control characters are shown as codes.
func painted(w io.Writer, diff string) {
	inks := map[byte]lipgloss.Style{'+': ink("2"), '-': ink("1"), '@': ink("6")}
	bold := lipgloss.NewStyle().Bold(true)
	hunk, head := false, false
	for l := range strings.Lines(diff) {
		l = team.Escaped(strings.TrimSuffix(l, "\n"))
		first := cmp.Or(l, "x")[0]
		switch {
		case strings.HasPrefix(l, "diff --git "):
			hunk, head = false, true
		case strings.HasPrefix(l, "@@ ") && (head || hunk):
			hunk, head = true, false
		case hunk && !strings.ContainsRune(`+- \`, rune(first)):
			hunk = false
		}
		switch style, ok := inks[first]; {
		case hunk && ok:
			l = style.Render(strings.ReplaceAll(l, "\t", "    ")) // lipgloss has its own idea of them
		case head:
			l = bold.Render(l)
		}
		fmt.Fprintln(w, l)
	}
}
