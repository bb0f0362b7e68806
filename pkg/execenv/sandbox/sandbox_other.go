//go:build !linux

package sandbox

import (
	"context"
	"errors"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// find finds no sandbox: only Linux has the parts for one.
func find(_ context.Context, level team.Sandbox) (Sandbox, error) {
	if level == team.Unconfined {
		return Sandbox{level: level, name: string(level)}, nil
	}
	return Sandbox{}, errors.New("it needs Linux")
}

func (Sandbox) runner(Box) (command.Runner, error) { return command.Plain{}, nil }

// InstallCommand returns "": bubblewrap needs Linux.
func InstallCommand() string { return "" }
