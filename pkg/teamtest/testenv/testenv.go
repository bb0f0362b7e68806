// Package testenv says what tests may ask of a machine: the time for a long test, a program, a feature
// of the kernel. On a person's machine a test is skipped where something is missing. In CI (the variable
// CI is set) it fails, since nobody would notice the skip there.
package testenv

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// AllEnv names the variable that lets long tests run. make test-all sets it.
const AllEnv = "AGENTTEAM_TEST_ALL"

// withoutEnv names the programs, parted by spaces, that CI could not install.
const withoutEnv = "CI_WITHOUT"

// All reports whether long tests run.
func All() bool { return os.Getenv(AllEnv) != "" }

// Long marks a test that takes over 20 s on two idle cores: it is skipped unless [All].
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("a long test: make test-all runs it, or " + AllEnv + "=1")
	}
}

// Program returns the path of the first of some programs that is installed. The test is skipped where
// none is; in CI it fails, unless CI_WITHOUT has the first name.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	why := names[0] + " is not installed"
	if inCI() && !slices.Contains(strings.Fields(os.Getenv(withoutEnv)), names[0]) {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// Need skips a test where err tells what this machine cannot do; in CI the test fails.
func Need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case inCI():
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

func inCI() bool { return os.Getenv("CI") != "" }
