package worktree

import (
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/team"
)

// The bounds of a report, in bytes except the last two. A task's record has the report as its reason, and the next holder reads
// it with the task.
const (
	mostReport  = 23 << 10 // a record takes no reason of over 64 KiB, and paths and commands may be long
	mostDiffs   = 8 << 10  // all differences
	leastDiff   = 400      // the least part of one that is worth showing
	mostOutput  = 4 << 10  // of a check
	mostNames   = 2 << 10  // of the files in conflict
	mostSummary = 500      // characters of the purpose of work
	mostSince   = 10       // commits of the integration branch
)

// report returns an outcome as text for the next holder of the task: the purpose of the work and of the new commits, the files
// with both differences or the output of the check, and the place of the work. It names the command that shows any part which
// does not fit.
func report(id team.TaskID, epoch uint64, o mergequeue.Outcome) string {
	o = seen(o)
	var b strings.Builder
	b.WriteString(o.Reason + ".\n")
	if o.Commit != "" {
		branch := team.Try{Epoch: epoch}.Branch(id)
		fmt.Fprintf(&b, "The work is kept as commit %s. In a tree for this task `git show %s` shows it, if there is that branch.\n", o.Commit, branch)
		fmt.Fprintf(&b, "It is of %s: %s\n", o.Agent, intent(o.Title, o.Summary))
	}
	since(&b, o)
	conflicts(&b, id, epoch, o)
	if o.Output != "" {
		b.WriteString("The check prints:\n" + strings.TrimRight(cutMiddle(o.Output, mostOutput), "\n") + "\n")
	}
	switch o.Kind {
	case mergequeue.Conflicting:
		b.WriteString("A tree for this task now has the files of the line with this work in them. A file in conflict shows both sides: the line's lines between <<<<<<< and =======, then those of this work up to >>>>>>>. " +
			"Keep what the line has, bring in all that this work is for, and remove these markers.")
	case mergequeue.CheckFailed:
		b.WriteString("A tree for this task now has the files of the line with this work in them. Change them until the check passes.")
	}
	return strings.ToValidUTF8(cutMiddle(strings.TrimRight(b.String(), "\n"), mostReport), "\uFFFD") // a cut text may end within a character
}

// seen returns an outcome with characters escaped that a record cannot have: files and outputs of checks may have any.
func seen(o mergequeue.Outcome) mergequeue.Outcome {
	o.Reason, o.Output = team.Escaped(o.Reason), team.Escaped(o.Output)
	o.Conflicts = slices.Clone(o.Conflicts)
	for i, c := range o.Conflicts {
		o.Conflicts[i].Path, o.Conflicts[i].Ours, o.Conflicts[i].Theirs = team.Escaped(c.Path), team.Escaped(c.Ours), team.Escaped(c.Theirs)
	}
	return o
}

// intent returns the purpose of work: the title of its task, and its holder's summary.
func intent(title, summary string) string {
	title, summary = team.OneLine(title), team.Clip(team.OneLine(summary), mostSummary)
	if summary == "" || summary == title {
		return title
	}
	return title + " - " + summary
}

// since writes the newest commits that came into the integration branch meanwhile.
func since(b *strings.Builder, o mergequeue.Outcome) {
	all := slices.DeleteFunc(slices.Clone(o.Since), func(e mergequeue.Since) bool { return e.Task == "" })
	if left := len(all) - mostSince; left > 0 {
		fmt.Fprintf(b, "%d tasks came into the line before these: `git log %s..%s`\n", left, o.Base.Short(), o.Head.Short())
		all = all[left:]
	}
	for _, e := range all {
		fmt.Fprintf(b, "%s by %s came into the line meanwhile, as commit %s: %s\n", e.Task, e.Agent, e.Commit.Short(), intent(e.Subject, e.Summary))
	}
}

// conflicts writes the files in conflict, and then as many differences of both sides as fit: each whole if it fits.
func conflicts(b *strings.Builder, id team.TaskID, epoch uint64, o mergequeue.Outcome) {
	if len(o.Conflicts) == 0 {
		return
	}
	branch := team.Try{Epoch: epoch}.Branch(id)
	fmt.Fprintf(b, "In conflict (%d):", len(o.Conflicts))
	names := 0
	for i, c := range o.Conflicts {
		name := fmt.Sprintf(" %s (%s)", c.Path, c.Kind)
		if names += len(name); names > mostNames {
			fmt.Fprintf(b, " and %d more: `git grep -l '^<<<<<<< '`", len(o.Conflicts)-i)
			break
		}
		b.WriteString(name)
	}
	b.WriteString("\n")
	shown := o.Conflicts[:min(len(o.Conflicts), mostDiffs/leastDiff/2)]
	sizes := make([]int, 0, 2*len(shown))
	for _, c := range shown {
		sizes = append(sizes, len(c.Ours), len(c.Theirs))
	}
	most := share(sizes, mostDiffs)
	for _, c := range shown {
		side(b, "The line has", c, c.Ours, most, fmt.Sprintf("git diff %s %s -- %s", o.Base.Short(), o.Head.Short(), quoted(c.Path)))
		side(b, "This work has", c, c.Theirs, most, fmt.Sprintf("git diff %s %s -- %s", o.Base.Short(), branch, quoted(c.Path)))
	}
	if left := len(o.Conflicts) - len(shown); left > 0 {
		fmt.Fprintf(b, "The differences of %d more files: `git diff %s %s` and `git diff %[2]s %[4]s`, each with -- and the file.\n", left, o.Base.Short(), o.Head.Short(), branch)
	}
}

// side writes one side's changes of a file; whole is the command that shows all of them.
func side(b *strings.Builder, who string, c gitrepo.Conflict, diff string, most int, whole string) {
	if c.Cut && len(diff) <= most { // its end is not here
		diff += "[more: `" + whole + "`]\n"
	} else {
		diff = cutLines(diff, most, "more: `"+whole+"`")
	}
	fmt.Fprintf(b, "%s in %s:\n%s\n", who, c.Path, strings.TrimRight(diff, "\n"))
}

// share returns the bytes that each text may have, so that all together have at most total: the smaller ones stay whole, and the
// larger ones share the remainder.
func share(sizes []int, total int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	for i, size := range sizes {
		if each := total / (len(sizes) - i); size > each {
			return each
		}
		total -= size
	}
	return sizes[len(sizes)-1]
}

// cutLines returns the first lines of a text, in at most that many bytes, with a line about the left-out part, if any.
func cutLines(s string, most int, rest string) string {
	if len(s) <= most {
		return s
	}
	s = s[:most]
	s = s[:strings.LastIndexByte(s, '\n')+1]
	return s + "[" + rest + "]\n"
}

// cutMiddle returns the beginning and the end of a text, in about that many bytes.
func cutMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most/2] + fmt.Sprintf("\n[%d bytes are left out]\n", len(s)-most/2*2) + s[len(s)-most/2:]
}

// quoted returns a path quoted for a shell.
func quoted(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,@", r))
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
