package proxy

import (
	"net/netip"

	"agentteam/pkg/team"
)

// Check returns what of a host and a port is dialled, or looked up, under a network.
func Check(n team.Network, host, port string) (string, error) {
	t, err := (&Proxy{o: Options{Network: n}}).target(host, port)
	return t.String(), err
}

// SetMachine has a proxy take addresses for those of this machine.
func SetMachine(o *Options, all ...netip.Addr) {
	o.machine = func() ([]netip.Addr, error) { return all, nil }
}
