package main

import (
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/team"
)

// The line of `run` shows that commands are not confined, what network they have, and what is different for roles.
func TestPolicyLine(t *testing.T) {
	none := control.Process{Sandbox: string(team.Unconfined)}
	boxed := control.Process{Sandbox: "bubblewrap 0.8.0"}
	const unconfined = "none (commands may do whatever the user of the process may, and reach any network)"
	for _, tt := range []struct {
		record team.Team
		procs  []control.Process
		want   string
	}{
		{team.Team{}, []control.Process{none, none}, "sandbox: " + unconfined},
		{team.Team{}, []control.Process{boxed}, "sandbox: bubblewrap 0.8.0; network: none"},
		{team.Team{}, []control.Process{boxed, none}, "sandbox: bubblewrap 0.8.0; " + unconfined + "; network: none"},
		{team.Team{Policy: team.Policy{Sandbox: team.Confined}}, []control.Process{boxed}, "sandbox: confined, on processes with bubblewrap 0.8.0; network: none"},
		{team.Team{Policy: team.Policy{Network: team.Network{team.FullNetwork}}, Roles: map[string]team.Role{"coder": {Name: "coder", Policy: team.Policy{Network: team.Network{"a.org"}}}}},
			[]control.Process{boxed}, "sandbox: bubblewrap 0.8.0; network: full, coder: a.org"},
	} {
		if got := policyLine(tt.record, tt.procs); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// Without --verbose the level alone is shown, and what keeps a level from working at all.
func TestInBrief(t *testing.T) {
	for full, want := range map[string]string{
		"confined (Landlock ABI 7) (bubblewrap: /usr/bin/bwrap is not there)": "confined",
		"bubblewrap 0.8.0":                        "bubblewrap 0.8.0",
		control.NoSandbox + ": (Landlock) is off": control.NoSandbox + ": (Landlock) is off",
		string(team.Unconfined):                   string(team.Unconfined),
	} {
		if got := inBrief([]control.Process{{Sandbox: full}}); got[0].Sandbox != want {
			t.Errorf("%q is %q, want %q", full, got[0].Sandbox, want)
		}
	}
}
