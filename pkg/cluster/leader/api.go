package leader

import (
	"context"
	"os"

	"agentteam/pkg/api"
	"agentteam/pkg/client"
	"agentteam/pkg/cluster/process"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
)

// openAPI opens the HTTP API of the process, on a separate connection, like any other client. serve
// serves it until its context ends; done closes it after that.
func openAPI(ctx context.Context, p *process.Process) (serve func(context.Context) error, done func(), err error) {
	workspace, err := p.Workspaces.Folder(team.Team{})
	if err != nil {
		return nil, nil, err
	}
	c, err := client.Connect(ctx, client.Options{URL: p.Config.Server, Replicas: p.Config.Replicas, Name: "agentteam api", Workspaces: p.Workspaces})
	if err != nil {
		return nil, nil, err
	}
	s, err := api.Listen(api.Options{
		API: p.Config.API, Client: c, NewTeam: newTeam(p.Config, workspace), Workspace: workspace, Log: p.Log, Metrics: p.Metrics,
	})
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	if err := p.AnnounceAPI(s.URL()); err != nil {
		s.Close()
		c.Close()
		return nil, nil, err
	}
	p.Log.Info("the API is served", "url", s.URL(), "token_file", p.Config.API.TokenFile)
	return s.Run, c.Close, nil
}

// newTeam returns the description of a team that the API makes: the same that teamctl would make in
// the same folder. It returns an error where agent teams are turned off.
func newTeam(cfg config.Config, workspace string) func() (client.NewTeam, error) {
	return func() (client.NewTeam, error) {
		if err := config.TeamsAllowed(os.LookupEnv); err != nil {
			return client.NewTeam{}, err
		}
		roles, err := role.Load(workspace)
		if err != nil {
			return client.NewTeam{}, err
		}
		if roles.All, err = cfg.Roles(roles.All); err != nil {
			return client.NewTeam{}, err
		}
		return client.NewTeam{Roles: roles.All, Lease: cfg.Lease, Stall: cfg.StallAfter, Policy: cfg.Policy, Choices: cfg.Choices, Workspace: workspace}, nil
	}
}
