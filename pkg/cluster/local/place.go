package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/team"
)

// Apart makes dir's .agentteam a symbolic link to a folder of the user's state, and moves its
// content there. A sandbox without a mount namespace cannot hide a folder inside of the commands'
// folder; the target of a link is out of their reach. It is called while no cluster runs in dir.
// Errors: InvalidState if the folder cannot be moved or made.
func Apart(dir string) error {
	at := filepath.Join(dir, team.ClusterDir)
	info, err := os.Lstat(at)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	failed := func(err error) error {
		return team.Errorf(team.InvalidState, "%s cannot be kept out of the workspace: %w", at, err).
			WithHint("move it to a folder elsewhere and leave a symbolic link to that, or install bubblewrap")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(err)
	}
	there := err == nil
	state, err := stateDir()
	if err != nil {
		return failed(err)
	}
	to := filepath.Join(state, ulid.Make().String())
	if there {
		err = os.Rename(at, to)
	} else {
		err = os.Mkdir(to, 0o700)
	}
	if err != nil {
		return failed(err)
	}
	err = os.Symlink(to, at)
	switch {
	case err == nil:
		return nil
	case there:
		err = errors.Join(err, os.Rename(to, at))
	default:
		_ = os.Remove(to) // it is empty
	}
	if errors.Is(err, syscall.EEXIST) { // another command of this folder was first
		return nil
	}
	return failed(err)
}

// stateDir returns the folder of the user's clusters that are kept apart from their workspaces.
func stateDir() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "agentteam", "clusters")
	return dir, os.MkdirAll(dir, 0o700)
}
