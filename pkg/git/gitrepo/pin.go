package gitrepo

import (
	"context"
	"strings"
)

// pins is the prefix of refs for commits that no branch has. git gc would remove them without a ref.
const pins = "refs/agentteam/pins/"

// Pin has the repository keep a commit that no branch has, under a name with the syntax of a branch. It can be repeated.
// Errors: those of git.
func (r *Repo) Pin(ctx context.Context, name string, h Hash) error {
	if err := check(h); err != nil {
		return err
	}
	_, err := r.git("update-ref", "--no-deref", pins+name, string(h)).run(ctx)
	return r.gone(err)
}

// Pins returns the commits that Pin keeps, by name.
func (r *Repo) Pins(ctx context.Context) (map[string]Hash, error) {
	out, err := r.git("for-each-ref", "--format=%(objectname) %(refname)", pins).run(ctx)
	if err != nil {
		return nil, r.gone(err)
	}
	all := map[string]Hash{}
	for l := range strings.Lines(string(out)) {
		h, name, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " "+pins)
		all[name] = Hash(h)
	}
	return all, nil
}

// Unpin undoes Pin; an unknown name is not an error.
func (r *Repo) Unpin(ctx context.Context, name string) error {
	_, err := r.git("update-ref", "--no-deref", "-d", pins+name).run(ctx)
	return r.gone(err)
}
