package config_test

import (
	"testing"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
)

func TestCommandLimits(t *testing.T) {
	c, err := load(t, "command_limits: {memory_mib: 512, threads: 9000}\n", nil)
	if want := (sandbox.Limits{Memory: 512 << 20, Threads: 9000}); err != nil || c.Limits != want {
		t.Errorf("%+v, %v", c.Limits, err)
	}
	c, err = load(t, "command_limits: {threads: 9}\n", map[string]string{"AGENTTEAM_COMMAND_LIMITS": "{processes: 3}"})
	if want := (sandbox.Limits{Processes: 3}); err != nil || c.Limits != want {
		t.Errorf("of the environment: %+v, %v", c.Limits, err)
	}
	for text, want := range map[string]string{
		"command_limits: {threads: 0}\n":    `team.yaml:1:27: threads: "0" is not a whole number, 1 or more`,
		"command_limits: {thread: 5}\n":     `team.yaml:1:18: unknown key "thread" in command_limits; did you mean threads?`,
		"command_limits: {memory_mib: x}\n": `team.yaml:1:30: memory_mib: "x" is not a whole number, 1 or more`,
	} {
		if _, err := load(t, text, nil); err == nil || team.Line(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
