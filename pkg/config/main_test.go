package config_test

import (
	"fmt"
	"os"
	"testing"
)

// The tests trust files in a folder of theirs, not in that of the user.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "config-test-")
	if err == nil {
		err = os.Setenv("XDG_CONFIG_HOME", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
