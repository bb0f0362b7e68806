package hands

import (
	"context"
	"os"
	"path/filepath"

	"agentteam/pkg/proxy"
	"agentteam/pkg/team"
)

// reach serves the way to a network until end is called, and returns the socket where it begins.
func (s *Source) reach(n team.Network) (socket string, end func(), err error) {
	dir, err := os.MkdirTemp("", "agentteam-proxy-") // of this user only
	if err != nil {
		return "", nil, team.Errorf(team.Unavailable, "the network of commands: %w", err)
	}
	socket = filepath.Join(dir, "s")
	p, err := proxy.New(socket, proxy.Options{Network: n, Never: s.o.Never, Logger: s.o.Logger, Registry: s.o.Metrics})
	if err != nil {
		os.RemoveAll(dir) // a socket at most
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			s.o.Logger.Error("commands have no network", "err", err)
		}
	}()
	return socket, func() {
		cancel()
		<-done
		os.RemoveAll(dir) // the socket is gone already
	}, nil
}
