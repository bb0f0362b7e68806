package gitrepo

import (
	"regexp"

	"agentteam/pkg/team"
)

// Hash names an object of git, in most places a commit: 40 hexadecimal digits.
type Hash string

// emptyTree is the tree without files, known to every git.
const emptyTree Hash = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// nothing is the hash that git uses for an absent ref.
const nothing Hash = "0000000000000000000000000000000000000000"

var hashPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)

// ParseHash checks s. Error: InvalidArgument.
func ParseHash(s string) (Hash, error) {
	if !hashPattern.MatchString(s) {
		return "", team.Errorf(team.InvalidArgument, "%.60q is no hash of git", s).WithHint("want 40 hexadecimal digits")
	}
	return Hash(s), nil
}

// check refuses a malformed hash: git would read it as an option or a path.
func check(hashes ...Hash) error {
	for _, h := range hashes {
		if _, err := ParseHash(string(h)); err != nil {
			return err
		}
	}
	return nil
}

// Short returns the first digits of h, for people.
func (h Hash) Short() string { return string(h[:min(len(h), 10)]) }
