package gitrepo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// script runs inside the sandbox. It does not use the git dir of the tree, which its member may have written: see there.
//
//go:embed inside.sh
var script string

// mark is the beginning of the script's answer.
const mark = "agentteam-line "

const commandLimit = 5 * time.Minute

// Commit commits all files of the tree, as one commit on Base, inside the member's sandbox, and returns it as a bundle for
// [Repo.Import]; nil if nothing differs from Base. The tree's own git dir stays as it is, so the member may continue if the
// work is not accepted. The files include those of commits that the member has made.
//
// leftOut names, with its size, each new ignored file or folder and each submodule with files: no commit has them. It leaves out
// caches, files lent by the user, and files that are stored elsewhere, given by their paths from Dir.
//
// Errors: InvalidState, with the message of git, if the files cannot be committed; BudgetExceeded beyond [Limits].Bundle.
func (t *Tree) Commit(ctx context.Context, in command.Runner, m Message, stored ...string) (bundle []byte, leftOut []string, err error) {
	if err := m.check(); err != nil {
		return nil, nil, err
	}
	bundle, names, err := t.bundle(ctx, in, m, "commit", t.repo.limits.Bundle)
	if err != nil {
		return nil, nil, err
	}
	n, err := t.read()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range stored {
		n.UserFiles = append(n.UserFiles, path.Join(n.Prefix, name))
	}
	all, err := t.weigh(slices.DeleteFunc(names, func(l string) bool { return cached(l[min(1, len(l)):]) }), n.UserFiles, cached)
	for _, w := range all {
		if w.files > 0 || w.cannot != "" {
			leftOut = append(leftOut, w.String())
		}
	}
	return bundle, leftOut, err
}

// mostLeftOut bounds the names that the script adds to a commit, in bytes.
const mostLeftOut = 1000 * 4097

// bundle has the script make a bundle of at most that many bytes; nil if there is nothing to store.
func (t *Tree) bundle(ctx context.Context, in command.Runner, m Message, how string, most int64, args ...string) (bundle []byte, names []string, err error) {
	env := append(m.identity(t.repo.team), "LINE_MESSAGE="+m.text(t.repo.team))
	word, rest, err := t.run(ctx, in, env, most+mostLeftOut, append([]string{how, string(t.Base), strconv.FormatInt(most, 10)}, args...)...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s the tree %s: %w", how, t.name, err)
	}
	switch first, sizes, _ := strings.Cut(word, " "); first {
	case "heavy":
		var files []string
		for _, f := range fields(rest) {
			bytes, name, _ := strings.Cut(f, "\t")
			size, _ := strconv.ParseInt(bytes, 10, 64)
			files = append(files, weight{name: name, bytes: size}.String())
		}
		return nil, nil, tooBig("a file may have at most %d bytes, and all new and changed ones %d; the largest: %s", most, 2*most, strings.Join(files, ", "))
	case "large":
		return nil, nil, tooBig("its bundle has %s bytes, at most %d", sizes, most)
	case "nothing", "bundle":
		var size, more uint32
		if n, _ := fmt.Sscanf(sizes, "%d %d", &size, &more); n != 2 || uint64(size)+uint64(more) != uint64(len(rest)) {
			return nil, nil, fmt.Errorf("%s the tree %s: %w", how, t.name, damaged(errCutShort))
		}
		if first == "bundle" {
			bundle = rest[:size:size]
		}
		return bundle, fields(rest[size:]), nil
	}
	return nil, nil, fmt.Errorf("%s the tree %s: the sandbox answers %.80q", how, t.name, word)
}

// Forward moves the tree to another commit, inside the member's sandbox, if its files are those of same: Base, or the imported
// commit of Commit. moved is false, and nothing changes, if the member has changed something.
func (t *Tree) Forward(ctx context.Context, in command.Runner, same, to Hash) (moved bool, err error) {
	if err := check(same, to); err != nil {
		return false, err
	}
	return t.move(ctx, in, to, "forward", string(same), string(to))
}

// Onto moves the tree to another commit, inside the member's sandbox, with the tree of files as uncommitted changes on it: the
// result of [Repo.Merge] of to and same. If the tree's files are not those of same, moved is false, and nothing changes.
func (t *Tree) Onto(ctx context.Context, in command.Runner, same, files, to Hash) (moved bool, err error) {
	if err := check(same, files, to); err != nil {
		return false, err
	}
	return t.move(ctx, in, to, "onto", string(same), string(files), string(to))
}

// move runs the script to move the tree to another commit.
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

// Reset moves the tree to another commit, inside the member's sandbox, in any state of the tree. The member's changes are
// lost; ignored files stay.
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

// now records that the tree has the files of a commit, after the files are there: with the new base and the old files, the
// next commit would undo the work of others in between.
func (t *Tree) now(at Hash) error {
	if err := t.amend(func(n *note) { n.Base = at }); err != nil {
		return err
	}
	t.Base = at
	return nil
}

// ErrInterrupted is in the error of a git call in a tree that did not finish for a temporary reason: its time was up, it was
// killed, there was no room. The member's changes are still there, and the same call may succeed later.
var ErrInterrupted = errors.New("was interrupted")

// run runs the script and returns the first line of its answer, and the bytes that follow it, at most that many.
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

// insideEnviron is the environment that git in a sandbox gets in addition to the sandbox's own.
var insideEnviron = append([]string{
	"LC_ALL=C", "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	"GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
}, settings(overrides)...)
