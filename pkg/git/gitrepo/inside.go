package gitrepo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// script runs inside the sandbox. It leaves the git dir of the tree aside, which its member may
// have written: see there.
//
//go:embed inside.sh
var script string

// mark begins the answer of the script.
const mark = "agentteam-line "

const commandLimit = 5 * time.Minute

// Commit commits all files of the tree, as one commit on Base, inside the member's sandbox, and
// returns it as a bundle for [Repo.Import]; nil if nothing differs from Base. The tree's own
// git dir stays as it is, so the member may go on if the work is not accepted. Commits
// that the member has made are in the files.
//
// Errors: InvalidState, with the message of git, if the files cannot be committed; BudgetExceeded
// beyond [Limits].Bundle.
func (t *Tree) Commit(ctx context.Context, in command.Runner, m Message) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return t.bundle(ctx, in, m, "commit", t.repo.limits.Bundle)
}

// bundle has the script make a bundle of at most so many bytes.
func (t *Tree) bundle(ctx context.Context, in command.Runner, m Message, how string, most int64, args ...string) ([]byte, error) {
	env := append(m.identity(t.repo.team), "LINE_MESSAGE="+m.text(t.repo.team))
	word, rest, err := t.run(ctx, in, env, most, append([]string{how, string(t.Base), strconv.FormatInt(most, 10)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("%s the tree %s: %w", how, t.name, err)
	}
	switch first, size, _ := strings.Cut(word, " "); first {
	case "nothing":
		return nil, nil
	case "large":
		return nil, tooBig("its bundle has %s bytes, at most %d", size, most)
	case "bundle":
		if strconv.Itoa(len(rest)) != size {
			return nil, fmt.Errorf("%s the tree %s: %w", how, t.name, damaged(errCutShort))
		}
		return rest, nil
	}
	return nil, fmt.Errorf("%s the tree %s: the sandbox answers %.80q", how, t.name, word)
}

// Forward brings the tree to another commit, inside the member's sandbox, if its files are
// those of same: Base, or what Commit made and was imported since. moved is false, and nothing
// changes, if the member has changed something.
func (t *Tree) Forward(ctx context.Context, in command.Runner, same, to Hash) (moved bool, err error) {
	if err := check(same, to); err != nil {
		return false, err
	}
	return t.move(ctx, in, to, "forward", string(same), string(to))
}

// Onto brings the tree to another commit, inside the member's sandbox, with files that are changes of that one: what
// [Repo.Merge] has made of it and same. The tree's files are those of same, else moved is false, and nothing changes.
func (t *Tree) Onto(ctx context.Context, in command.Runner, same, files, to Hash) (moved bool, err error) {
	if err := check(same, files, to); err != nil {
		return false, err
	}
	return t.move(ctx, in, to, "onto", string(same), string(files), string(to))
}

// move runs a script that brings the tree to another commit.
func (t *Tree) move(ctx context.Context, in command.Runner, to Hash, args ...string) (moved bool, err error) {
	word, _, err := t.run(ctx, in, nil, 0, args...)
	if err != nil {
		return false, fmt.Errorf("bring the tree %s to %s: %w", t.name, to.Short(), err)
	}
	if word != "moved" {
		return false, nil
	}
	return true, t.now(to)
}

// Reset brings the tree to another commit, inside the member's sandbox, whatever the member has
// done there. What it has changed is lost; what is ignored stays.
func (t *Tree) Reset(ctx context.Context, in command.Runner, to Hash) error {
	if err := check(to); err != nil {
		return err
	}
	moved, err := t.move(ctx, in, to, "reset", string(t.Base), string(to))
	if err == nil && !moved {
		err = fmt.Errorf("the tree %s is not at %s, and the sandbox does not give a reason", t.name, to.Short())
	}
	return err
}

// now notes that the tree has the files of a commit. Not before the files are there: with the new
// base and the old files, the next commit would take back what others have done meanwhile.
func (t *Tree) now(at Hash) error {
	if err := t.amend(func(n *note) { n.Base = at }); err != nil {
		return err
	}
	t.Base = at
	return nil
}

// ErrInterrupted is in the errors of what git could not do in a tree at this time: its time was up, it was
// killed, there was no room. What the member has changed is still there, and the same call may do it later.
var ErrInterrupted = errors.New("was interrupted")

// run runs the script and returns the first line of its answer, and the bytes that follow it, at most so many.
func (t *Tree) run(ctx context.Context, in command.Runner, env []string, most int64, args ...string) (word string, rest []byte, err error) {
	var out bytes.Buffer
	over := false
	c := command.Command{
		Args: append([]string{"bash", "-c", script, "line"}, args...),
		Dir:  t.Root, Output: &bounded{&out, most + mostStderr, func() { over = true }}, Limit: commandLimit,
		Env: slices.Concat(insideEnviron, env, []string{"LINE_OBJECTS=" + t.repo.objects()}),
	}
	exit, err := in.Run(ctx, c)
	if err != nil {
		return "", nil, err
	}
	_, answer, found := bytes.Cut(out.Bytes(), []byte(mark))
	line, rest, whole := bytes.Cut(answer, []byte("\n"))
	first, _, _ := strings.Cut(string(line), " ")
	switch {
	case exit.Cause != nil:
		return "", nil, team.Errorf(team.InvalidState, "git %w: %w", ErrInterrupted, exit.Cause)
	case over:
		return "", nil, tooBig("its bundle has more than %d bytes", most)
	case !found || !whole:
		h := head{most: 500}
		_, _ = h.Write(out.Bytes()) // never fails
		return "", nil, team.Errorf(team.InvalidState, "git %w: the sandbox gives no answer (%s): %s", ErrInterrupted, exit.How, h.line())
	case first == "failed":
		h := head{most: 2000}
		_, _ = h.Write(rest)
		if has(h.line(), noRoom...) {
			return "", nil, team.Errorf(team.InvalidState, "git %w: %s", ErrInterrupted, h.line())
		}
		return "", nil, t.refusal(h.line())
	}
	return string(line), rest, nil
}

// insideEnviron is what git in a sandbox gets beside the sandbox's environment.
var insideEnviron = append([]string{
	"LC_ALL=C", "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	"GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
}, settings(overrides)...)
