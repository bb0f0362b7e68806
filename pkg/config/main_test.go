package config_test

import (
	"fmt"
	"os"
	"testing"

	"agentteam/pkg/execenv/trust/trusttest"
)

// The files of the tests are the person's own, unless a test is about trust.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "config-test-")
	if err == nil {
		_, err = trusttest.Own(dir)
	}
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
