package process_test

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"agentteam/pkg/cluster/process"
	"agentteam/pkg/team"
)

// What is wrong with the arguments is the user's mistake, exit status 2.
func TestCommandRefuses(t *testing.T) {
	for _, args := range [][]string{{"--nope"}, {"--http"}, {"now"}, {"completion"}, {"health", "now"}, {"health", "--server", "x"}} {
		cmd := process.Command("leader", "Lead")
		cmd.RunE = func(*cobra.Command, []string) error { return nil }
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, team.InvalidArgument) {
			t.Errorf("leader %q = %v, want InvalidArgument", args, err)
		}
	}
}
