package workspace

import (
	"bytes"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// note explains a refusal of a sandbox that the output of programs shows.
type note struct {
	holds func(command.Exit) bool
	words []string // in lower case
	near  []string // one of these stands near the word; none: anything
	text  string
}

// far is how many bytes before and behind a word count as near: Python has some lines between.
const far = 400

var (
	forbidden = []string{"permission denied", "operation not permitted", "cross-device link", "eacces", "eperm", "exdev"}
	ofSockets = []string{"socket", "connect", "listen", "bind"}
)

// The notes apply in order. Words that one has explained do not count for the next.
var notes = []note{
	{func(e command.Exit) bool { return e.Sandbox == team.Confined }, []string{"operation not permitted", "eperm"}, ofSockets,
		"commands make no socket in this sandbox, not even on loopback; a person can install bubblewrap"},
	{func(e command.Exit) bool { return e.Offline }, []string{"operation not permitted", "eperm"}, ofSockets, noNetwork},
	// The words of curl, git, Go, Node and Python.
	{func(e command.Exit) bool { return e.Offline }, []string{"could not resolve", "name resolution", "name or service not known", "no such host", "network is unreachable",
		"eai_again", "enotfound", "dns error", "unable to resolve"}, nil, noNetwork},
	{func(e command.Exit) bool { return e.Divided }, forbidden, nil,
		"here commands make, rename and remove nothing directly in the workspace's folder, so that .git is kept: make it with write_file, or in a folder below; a person can install bubblewrap"},
	{func(e command.Exit) bool { return e.Sandbox != "" && e.Sandbox != team.Unconfined }, append([]string{"read-only file system", "erofs"}, forbidden...), nil,
		`the sandbox may have refused this: commands write the workspace, $HOME and $TMPDIR, and read these, programs and what a person has named by "paths" of the role or the team`},
}

const noNetwork = `commands have no network here; a person can allow hosts by "network" of the role or the team`

// explained returns shown, a part of a command's output, with the notes that explain the refusals in all of it.
func explained(shown, all string, exit command.Exit) string {
	text := bytes.ToLower([]byte(all))
	last := ""
	for _, n := range notes {
		if n.holds(exit) && n.take(text) && n.text != last {
			shown, last = ended(shown, "[%s]\n", n.text), n.text
		}
	}
	return shown
}

// take reports whether one of the words is in text, and removes all of them.
func (n note) take(text []byte) (found bool) {
	for _, word := range n.words {
		for from := 0; ; {
			i := bytes.Index(text[from:], []byte(word))
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(word)
			if n.isNear(text[max(0, at-far):min(len(text), from+far)]) {
				found = true
				copy(text[at:from], bytes.Repeat([]byte(" "), len(word)))
			}
		}
	}
	return found
}

func (n note) isNear(text []byte) bool {
	for _, word := range n.near {
		if bytes.Contains(text, []byte(word)) {
			return true
		}
	}
	return len(n.near) == 0
}
