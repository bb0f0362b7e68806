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
	slow  = 10 * time.Minute // one that goes through all objects or files

	endWithin = 500 * time.Millisecond // from SIGTERM to SIGKILL

	mostOutput = 64 << 20 // bytes that a command may print, where its caller names no other limit
	mostStderr = 16 << 10
)

// The oldest git that has merge-tree --write-tree.
const oldestMajor, oldestMinor = 2, 38

// overrides are above the config of any repository, its user and the machine. A repository
// has git run programs by its config: none of these is left.
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
	// A later git reads the attributes of HEAD in a bare repository, without this setting,
	// which is the empty tree.
	"attr.tree=4b825dc642cb6eb9a060e54bf8d69288fbee4904",
	// Names that mean .git on another system are refused wherever files are made.
	"core.protectHFS=true",
	"core.protectNTFS=true",
	// Whose files these are was decided by who named the folder.
	"safe.directory=*",
}

// environ is the whole environment of git on the host, but for PATH.
var environ = append([]string{
	"HOME=/nonexistent", "LC_ALL=C", "TZ=UTC", "TERM=dumb",
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "GIT_PAGER=cat", "GIT_EDITOR=false",
	"GIT_OPTIONAL_LOCKS=0", "GIT_ADVICE=0",
	"GIT_ALLOW_PROTOCOL=file",
	"GIT_NO_LAZY_FETCH=1",      // a missing object would be fetched by a command of the config
	"GIT_NO_REPLACE_OBJECTS=1", // an object is what its hash names
}, settings(overrides)...)

// settings returns the variables by which git takes entries of its config, "name=value" each.
func settings(entries []string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(entries))}
	for i, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
}

// git is a git command that may be run.
type git struct {
	args   []string
	dir    string        // where it starts; default: the root
	env    []string      // beside environ
	whole  []string      // in place of environ
	stdin  io.Reader     // default: nothing
	out    io.Writer     // gets what it prints; default: what run returns
	most   int64         // bytes that it may print; default mostOutput
	within time.Duration // default quick
}

// ended stands for an exit status in a failure, where a git has crashed.
const ended = 1 << 8

// failure is how a git command has failed.
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

// says reports if git has failed with one of these words, large or small, on its standard error.
func says(err error, words ...string) bool {
	var f *failure
	return errors.As(err, &f) && has(f.stderr, words...)
}

func has(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, strings.ToLower(w)) })
}

var errTooMuch = errors.New("it prints more than is allowed")

// run runs git, with all that it starts ended with it, and returns what it prints. Errors:
// Unavailable without a git; *failure; the context's.
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

// runGroup is cmd.Run in a process group, which ends as a whole if the context of cmd does: git may
// have started others. At SIGTERM it removes its locks; what is left once git has ended and the pipes are closed, or after endWithin, gets SIGKILL.
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

// line runs git and returns the one line that it prints.
func (g git) line(ctx context.Context) (string, error) {
	out, err := g.run(ctx)
	return strings.TrimSuffix(string(out), "\n"), err
}

// verb returns the name of the command in the arguments of git.
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

// bounded passes on what is written to it, up to a limit. Once more is written, it calls over.
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

// head keeps the beginning of what is written to it.
type head struct {
	most int
	kept []byte
}

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.most-len(h.kept))]...)
	return len(p), nil
}

// line returns what was written, as one line that moves no cursor.
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

// NeedGit checks that git is there and new enough. Errors: Unavailable.
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

// recent judges what git version prints.
func recent(said string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(said, "git version %d.%d", &major, &minor); n < 2 {
		return false
	}
	return major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}
