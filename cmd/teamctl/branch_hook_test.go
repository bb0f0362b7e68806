package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// A goal longer than a variable may be does not keep the hook from being run; it gets whole characters.
func TestHookOfALongGoal(t *testing.T) {
	var err bytes.Buffer
	a := &app{cmd: &cobra.Command{}, err: &err}
	a.cmd.SetContext(t.Context())
	record := team.Team{ID: "crew", Goal: strings.Repeat("読", 100_000), Summary: "short"}
	hook := `LC_ALL=C.UTF-8; echo "${#AGENTTEAM_GOAL} ${AGENTTEAM_GOAL: -1} $AGENTTEAM_SUMMARY"`
	if err := a.runHook(hook, t.TempDir(), record, client.Diff{Branch: "agentteam/crew", Head: "a"}, "again"); err != nil {
		t.Fatal(err)
	}
	if want := "\n5461 読 short\n"; !strings.HasSuffix(err.String(), want) {
		t.Errorf("%q, want %q", err.String(), want)
	}
}
