package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"agentteam/pkg/team"
)

const (
	quick = 30 * time.Second // a command that reads or writes a few objects
	slow  = 10 * time.Minute // a command that goes through all objects or files

	endWithin = 500 * time.Millisecond // from SIGTERM to SIGKILL

	mostOutput = 64 << 20 // bytes that a command may print, where its caller names no other limit
	mostStderr = 16 << 10
)

// The oldest git that has merge-tree --write-tree.
const oldestMajor, oldestMinor = 2, 38

// overrides take precedence over the config of any repository, its user and the machine. A repository can make git run
// programs by its config: none of these settings is left.
var overrides = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.pager=cat",
	"core.editor=false",
	"core.sshCommand=false",
	"core.askPass=",
	"core.alternateRefsCommand=true",
	"core.attributesFile=/dev/null",
	"core.untrackedCache=false",
	"core.splitIndex=false",
	"credential.helper=",
	"gpg.program=false",
	"commit.gpgSign=false",
	"log.showSignature=false",
	"submodule.recurse=false",
	"fetch.recurseSubmodules=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"protocol.allow=never",
	"protocol.file.allow=always",
	"protocol.version=2",
	// Without this setting, the empty tree, a later git reads the attributes of HEAD in a bare repository.
	"attr.tree=4b825dc642cb6eb9a060e54bf8d69288fbee4904",
	// git refuses names that mean .git on another system wherever it makes files.
	"core.protectHFS=true",
	"core.protectNTFS=true",
	// The caller that named the folder has decided whose files to trust.
	"safe.directory=*",
}

// environ is the whole environment of git on the host, except PATH.
var environ = append([]string{
	"HOME=/nonexistent", "LC_ALL=C", "TZ=UTC", "TERM=dumb",
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "GIT_PAGER=cat", "GIT_EDITOR=false",
	"GIT_OPTIONAL_LOCKS=0", "GIT_ADVICE=0",
	"GIT_ALLOW_PROTOCOL=file",
	"GIT_NO_LAZY_FETCH=1",      // a missing object would be fetched by a command of the config
	"GIT_NO_REPLACE_OBJECTS=1", // a hash names the original object
}, settings(overrides)...)

// settings returns the environment variables for entries of git's config, "name=value" each.
func settings(entries []string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(entries))}
	for i, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
}

// git is a git command to run.
type git struct {
	args   []string
	dir    string        // where it starts; default: the root
	env    []string      // beside environ
	whole  []string      // in place of environ
	stdin  io.Reader     // default: nothing
	out    io.Writer     // gets its output; default: run returns it
	most   int64         // bytes that it may print; default mostOutput
	within time.Duration // default quick
}

// ended is the exit status in a failure for a git that has crashed.
const ended = 1 << 8

// failure describes how a git command has failed.
type failure struct {
	name   string // of the command
	code   int    // its exit status; ended if a signal ended it; -1 if we did, or it did not start
	stderr string
	cause  error
}

func (f *failure) Error() string {
	why := f.stderr
	if why == "" || f.code < 0 {
		why = fmt.Sprint(f.cause)
	}
	return "git " + f.name + ": " + why
}

func (f *failure) Unwrap() error { return f.cause }

// exitCode returns the exit status of the git that err is about, 0 for nil, -1 if there is none.
func exitCode(err error) int {
	var f *failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.code
	}
	return -1
}

// messageOf reports whether git has failed with one of these words, in any case, on its standard error.
func messageOf(err error, words ...string) bool {
	var f *failure
	return errors.As(err, &f) && has(f.stderr, words...)
}

func has(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, strings.ToLower(w)) })
}

var errTooMuch = errors.New("it prints more than is allowed")

// run runs git, ends all processes that git has started, and returns its output. Errors: Unavailable without a git; *failure;
// the context's.
func (g git) run(ctx context.Context) ([]byte, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, noGit()
	}
	within := g.within
	if within == 0 {
		within = quick
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %v", within))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	cmd := exec.CommandContext(ctx, path, g.args...)
	cmd.Dir = g.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	if cmd.Env = g.whole; cmd.Env == nil {
		cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH")}, environ...), g.env...)
	}
	cmd.Stdin = g.stdin
	var printed bytes.Buffer
	out := g.out
	if out == nil {
		out = &printed
	}
	most := g.most
	if most == 0 {
		most = mostOutput
	}
	stderr := &head{most: mostStderr}
	cmd.Stdout = &bounded{out, most, func() { stop(errTooMuch) }}
	cmd.Stderr = stderr
	if err := runGroup(cmd); err != nil {
		f := &failure{name: verb(g.args), code: -1, stderr: stderr.line(), cause: err}
		if cause := context.Cause(ctx); cause != nil {
			f.cause = cause
		} else if cmd.ProcessState != nil {
			f.code = cmd.ProcessState.ExitCode()
			if f.code < 0 {
				f.code, f.stderr = ended, err.Error()
			}
		}
		return printed.Bytes(), f
	}
	return printed.Bytes(), nil
}

// runGroup is cmd.Run in a process group, which ends as a whole with the context of cmd: git may have started other processes.
// At SIGTERM git removes its locks; the processes that are left once git has ended and the pipes are closed, or after
// endWithin, get SIGKILL.
func runGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cancelled := false
	cmd.Cancel = func() error {
		cancelled = true
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	cmd.WaitDelay = endWithin
	err := cmd.Run()
	if cancelled {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// line runs git and returns its one line of output.
func (g git) line(ctx context.Context) (string, error) {
	out, err := g.run(ctx)
	return strings.TrimSuffix(string(out), "\n"), err
}

// verb returns the command's name in the arguments of git.
func verb(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c" || args[i] == "-C":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// bounded passes its input on, up to a limit. At the first write beyond the limit it calls over.
type bounded struct {
	to   io.Writer
	left int64
	over func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		_, _ = b.to.Write(p[:b.left])
		b.left = 0
		b.over()
		return 0, errTooMuch
	}
	b.left -= int64(len(p))
	return b.to.Write(p)
}

// head keeps the beginning of its input.
type head struct {
	most int
	kept []byte
}

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.most-len(h.kept))]...)
	return len(p), nil
}

// line returns the kept input as one line without control characters.
func (h *head) line() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, team.OneLine(strings.ToValidUTF8(string(h.kept), "?")))
}

func noGit() error {
	return team.Errorf(team.Unavailable, "there is no git here").
		WithHint("install git %d.%d or newer, or set `isolation: shared`", oldestMajor, oldestMinor)
}

// NeedGit returns an error unless git is installed and new enough. Errors: Unavailable.
func NeedGit(ctx context.Context) error {
	said, err := git{args: []string{"version"}}.line(ctx)
	if err != nil {
		return err
	}
	if !recent(said) {
		return team.Errorf(team.Unavailable, "%s is too old", said).
			WithHint("install git %d.%d or newer, or set `isolation: shared`", oldestMajor, oldestMinor)
	}
	return nil
}

// recent reports whether the output of git version names a git that is new enough.
func recent(said string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(said, "git version %d.%d", &major, &minor); n < 2 {
		return false
	}
	return major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}
