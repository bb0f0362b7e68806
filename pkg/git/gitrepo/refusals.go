package gitrepo

import (
	"path/filepath"
	"regexp"

	"agentteam/pkg/team"
)

// leave is the rest of a hint on a file that git does not accept.
const leave = "or remove it, or have .gitignore name it"

// ownRepository returns the hint for a git repository within a tree.
func ownRepository(path string) string {
	return "if its files belong to the project, remove " + path + "/.git, so that they are taken in as files; else have .gitignore name " + path + "/"
}

// refusals are git's error texts for a file that it does not accept, each with our text and hint. The first group is the path.
var refusals = []struct {
	words *regexp.Regexp
	what  string
	hint  func(path string) string
}{
	{regexp.MustCompile(`'(.+?)/?' does not have a commit checked out`), "%s is a separate git repository, without a commit", ownRepository},
	{regexp.MustCompile(`(?:open\("|unable to stat ')(.+?)["']\)?: Permission denied`), "%s cannot be read",
		func(path string) string { return "chmod u+rwX " + path + ", " + leave }},
	{regexp.MustCompile(`(?:BOM is (?:required|prohibited) in|failed to encode) '(.+?)'`), "%s is not in the working-tree-encoding that .gitattributes states for it",
		func(path string) string { return "write it in that encoding, or change .gitattributes" }},
	{regexp.MustCompile(`invalid path '(.+?)'`), "%s is a name that some systems take for git's own", func(path string) string { return "rename it, " + leave }},
	{regexp.MustCompile(`(?:file changed before we could read|short read while indexing|read error while indexing) '?([^'?]+)`), "%s changed while git read it",
		func(path string) string { return "end the program that writes it, " + leave + "; then try again" }},
}

// refusal returns the error for files that git does not store, by git's own text. It names the path as a command in the member's
// folder would, with a hint.
func (t *Tree) refusal(said string) error {
	for _, r := range refusals {
		if m := r.words.FindStringSubmatch(said); m != nil {
			path := t.seen(m[1])
			return team.Errorf(team.InvalidState, "the files cannot be stored: "+r.what, path).WithHint("%s", r.hint(path))
		}
	}
	return team.Errorf(team.InvalidState, "git cannot store the files: %s", said).
		WithHint("repair the file that git names, " + leave)
}

// seen returns a path from the tree's root as a path from the member's folder.
func (t *Tree) seen(path string) string {
	if rel, err := filepath.Rel(t.Dir, filepath.Join(t.Root, path)); err == nil {
		return rel
	}
	return path
}
