package main

import (
	"context"
	"fmt"
	"os"

	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// rig is what is measured on: a NATS server in this process, its store in a folder
// of its own.
type rig struct {
	server *embedded.Server
	dir    string
	bin    string // folder of the built programs
}

func newRig(bin string, o embedded.Options) (*rig, error) {
	dir, err := os.MkdirTemp("", "agentteam-bench-*")
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	server, err := embedded.Start(o)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &rig{server, dir, bin}, nil
}

func (r *rig) close() {
	r.server.Shutdown()
	os.RemoveAll(r.dir)
}

// connect opens a connection like that of a process of its own.
func (r *rig) connect(ctx context.Context) (*broker.Conn, error) {
	return broker.Connect(ctx, broker.Options{URL: r.server.URL(), Name: "bench"})
}

// makeTeam makes a team and returns it as opened over conn.
func (r *rig) makeTeam(ctx context.Context, conn *broker.Conn, id team.TeamID) (*broker.Storage, error) {
	roles, err := role.Load(r.dir)
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	bt, _, err := reg.Make(ctx, team.Team{
		ID: id, Roles: roles.All, LeaseSeconds: 30, MaxTeammates: team.DefaultMaxTeammates, Workspace: r.dir, CreatedBy: team.UserAgent,
	})
	return bt, err
}

// progress tells the waiting person what is being measured; stdout is the result's.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
