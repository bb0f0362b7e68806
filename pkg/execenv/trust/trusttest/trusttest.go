// Package trusttest lets tests use files that count as the person's own.
package trusttest

import (
	"os"
	"path/filepath"
)

// Own creates a configuration folder in dir by which all files below the folder of temporary files are the person's own, so that all
// their keys count, and returns it for XDG_CONFIG_HOME.
func Own(dir string) (config string, err error) {
	err = os.Symlink(os.TempDir(), filepath.Join(dir, "agentteam"))
	return dir, err
}
