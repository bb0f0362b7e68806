package execenv

import (
	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/team"
)

// CheckFolder refuses a workspace that is, contains, or is in a folder of secrets, at each level: file tools work outside of the
// sandbox. No trust and no setting allows it. The user's home always counts as such a folder: a member could create them. dir is
// absolute and may not exist. Error: InvalidArgument.
func CheckFolder(dir string) error {
	real := realOf(dir)
	refuse := func(how, what string) error {
		return team.Errorf(team.InvalidArgument, "the workspace %s %s %s: no team works there, trusted or not", dir, how, what).
			WithHint("work in a folder of the project alone: --workspace DIR, or change into it")
	}
	home, secrets, _ := toolchain.This().Secrets()
	if home != "" && below(realOf(home), real) {
		return refuse("holds the home of the user with all of its secrets,", home)
	}
	for _, s := range secrets {
		switch at := realOf(s); {
		case below(real, at):
			return refuse("lies in a folder of secrets,", s)
		case below(at, real):
			return refuse("holds secrets,", s)
		}
	}
	if at := toolchain.SecretsAt(real); at != "" {
		return refuse("lies in a folder of secrets,", at)
	}
	return nil
}
