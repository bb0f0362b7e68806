package main

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/api/access"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

func (a *app) webCmd() *cobra.Command {
	var stay bool
	var at string
	cmd := &cobra.Command{
		Use: "web", Short: "Open the team's page in a browser, logged in", Args: atMost(0),
		Long: "web prints the address of the page that the cluster's HTTP API serves, and opens it in a browser if there is a display.\n" +
			"The address holds for a minute and for one browser, which is logged in by it for twelve hours.\n" +
			"The token is read from the file of this folder's cluster, or from AGENTTEAM_API_TOKEN_FILE.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.clientSettings()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("team") && at == "" { // else nothing here may reach it
				if err := a.withTeam(func(context.Context, *client.Team) error { return nil }); err != nil {
					return err
				}
			}
			base, file, err := a.findAPI(cfg, at)
			if err != nil {
				return err
			}
			token, err := access.ReadToken(file)
			if err != nil {
				return err
			}
			address := base + "/login?" + url.Values{"code": {access.NewCode(token, time.Now())}}.Encode()
			if a.forPeople() && !stay {
				a.browse(address)
			}
			return a.printLine(map[string]string{"url": address}, address, address)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&stay, "no-open", false, "only print the address")
	f.StringVar(&at, "url", "", "base URL of the API, where it is published under another one than its own")
	return cmd
}

// findAPI returns the base URL of the cluster's API, and the path of its token file. at is the URL if the
// user named it.
func (a *app) findAPI(cfg config.Config, at string) (base, file string, err error) {
	file = cfg.API.TokenFile
	if path := cfg.ClusterFile(); path != "" {
		cl, err := config.ReadCluster(path)
		if err != nil {
			return "", "", err
		}
		if !cl.Alive() {
			return "", "", dead(path, cl).WithHint("%s", goOn(cfg.Folder()))
		}
		base, file = cl.API, cmp.Or(file, cl.APITokenFile)
	}
	if at != "" {
		if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", "", team.Errorf(team.InvalidArgument, "--url %.80q is not the URL of an API", at).WithHint("give one such as http://127.0.0.1:8090")
		}
		base = strings.TrimRight(at, "/")
	}
	if base == "" {
		err = a.connected(func(ctx context.Context, c *client.Client, _ config.Config) (err error) {
			base, err = servedAPI(ctx, c)
			return err
		})
	}
	if err == nil && file == "" {
		err = team.Errorf(team.InvalidArgument, "the API's token is not known here").WithHint("name its file by AGENTTEAM_API_TOKEN_FILE")
	}
	return base, file, err
}

// servedAPI returns the API of any leader process; they are equal.
func servedAPI(ctx context.Context, c *client.Client) (string, error) {
	s, err := c.Processes(ctx)
	for _, p := range s.Leaders {
		if p.API != "" {
			return p.API, nil
		}
	}
	if err == nil {
		err = team.Errorf(team.NotFound, "no leader process serves the API").WithHint("start one with --api 127.0.0.1:8090 and AGENTTEAM_API_TOKEN_FILE, or use teamctl up")
	}
	return "", err
}

// browse opens the address in a browser, if there is one. Without one people can read it.
func (a *app) browse(address string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if err := exec.Command(program, address).Start(); err != nil {
		a.note("no browser was opened: " + err.Error())
	}
}
