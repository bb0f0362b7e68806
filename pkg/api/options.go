package api

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/api/access"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options state where the API listens, who may call it, and what it serves.
type Options struct {
	config.API // Addr is required, and TokenFile

	Client    *client.Client                 // required; the caller closes it, after the server has ended
	NewTeam   func() (client.NewTeam, error) // what teams are made with, their names aside; required
	Workspace string                         // the folder that /files shows; required

	Log     *slog.Logger          // default: discard
	Metrics prometheus.Registerer // default: none
}

func (o Options) withDefaults() (Options, error) {
	if o.Client == nil || o.NewTeam == nil || o.Workspace == "" {
		return o, errors.New("api: Options lack Client, NewTeam or Workspace")
	}
	o.Log = telemetry.OrDiscard(o.Log)
	return o, nil
}

// Check returns the error that [Listen] would return for these settings, except for an address in use.
func Check(a config.API) error {
	_, gate, err := read(a)
	if err == nil {
		_, err = access.New(gate)
	}
	return err
}

// read reads the files in the settings, and creates a missing token file. cert is nil without TLS. Errors:
// InvalidArgument; InvalidState for a file that cannot be created.
func read(o config.API) (cert *tls.Certificate, gate access.Options, err error) {
	if o.TokenFile == "" {
		return nil, gate, team.Errorf(team.InvalidArgument, "the API at %s has no token", o.Addr).
			WithHint("name a file by AGENTTEAM_API_TOKEN_FILE; it is made if it is not there")
	}
	if gate.Token, err = access.Token(o.TokenFile); err != nil {
		return nil, gate, err
	}
	if o.ReadTokenFile != "" {
		if gate.ReadToken, err = access.Token(o.ReadTokenFile); err != nil {
			return nil, gate, err
		}
	}
	gate.Origins, gate.Hosts = o.Origins, o.Hosts
	if o.Cert == "" && o.Key == "" {
		return nil, gate, checkReach(o)
	}
	if o.Cert == "" || o.Key == "" {
		return nil, gate, team.Errorf(team.InvalidArgument, "TLS for the API needs a certificate and its key").
			WithHint("set both AGENTTEAM_API_TLS_CERT and AGENTTEAM_API_TLS_KEY")
	}
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, gate, team.Errorf(team.InvalidArgument, "TLS for the API: %w", err).
			WithHint("AGENTTEAM_API_TLS_CERT and AGENTTEAM_API_TLS_KEY name PEM files that belong together")
	}
	return &pair, gate, nil
}

// checkReach refuses to serve without TLS beyond this machine, where the token could be read on the way, unless the
// setting allows it.
func checkReach(o config.API) error {
	if o.Insecure {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", o.Addr)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "the address of the API: %w", err).WithHint("give host:port, such as 127.0.0.1:8090")
	}
	if addr.IP.IsLoopback() {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "the API at %s can be reached from other machines, and has no TLS", o.Addr).
		WithHint("name the files of a certificate and its key by AGENTTEAM_API_TLS_CERT and AGENTTEAM_API_TLS_KEY, or allow it with --insecure, or listen on 127.0.0.1")
}

// ownHosts returns the names of an API that listens there: those in its setting and, at, in its URL, and beyond
// loopback the machine's.
func ownHosts(o config.API, at string) []string {
	host, _, _ := net.SplitHostPort(o.Addr)
	names := []string{host, at}
	if name, err := os.Hostname(); err == nil && !telemetry.IsLoopback(at) {
		names = append(names, name)
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
