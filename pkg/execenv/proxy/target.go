package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// refusal states why a request is refused, and the setting that would allow it. It is one line of ASCII.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// target is a host that may be reached by its name.
type target struct {
	name string     // in lower case, without a dot at its end; "" for an address
	addr netip.Addr // public
	port uint16
}

// host returns the name or the address.
func (t target) host() string {
	if t.name != "" {
		return t.name
	}
	return t.addr.String()
}

func (t target) String() string { return net.JoinHostPort(t.host(), strconv.Itoa(int(t.port))) }

// authority returns t as in a Host header.
func (t target) authority() string {
	if t.port != 80 {
		return t.String()
	}
	if t.addr.Is6() {
		return "[" + t.addr.String() + "]"
	}
	return t.host()
}

// parse parses a host and a port, whether it may be reached or not. Other forms of addresses (2130706433, 0x7f.1, 127.1) are not
// names either: the last part of a public host's name begins with a letter.
func parse(host, port string) (target, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return target{}, refuse("%s is no port", shown(port))
	}
	t := target{port: uint16(n)}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" && !addr.Is4In6() {
		t.addr = addr
		return t, nil
	}
	// By hand: strings.ToLower turns some other characters into ASCII letters.
	name := strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, strings.TrimSuffix(host, "."))
	if strings.HasPrefix(name, "*") || team.CheckHost(name) != nil {
		return target{}, refuse("%s is not the name of a public host", shown(host))
	}
	t.name = name
	return t, nil
}

// shown returns text from a program in a form that is safe in an answer and a terminal.
func shown(text string) string { return strconv.QuoteToASCII(team.Clip(text, 80)) }

// target returns the target of a host and a port if the network allows it. It looks up no name: that would send data to its owner.
func (p *Proxy) target(host, port string) (target, error) {
	t, err := parse(host, port)
	if err != nil {
		return target{}, err
	}
	const setting = `"network" of the role or the team`
	full := p.o.Network.Full()
	switch {
	case len(p.o.Network) == 0:
		return target{}, refuse("%s is refused: no host is allowed; a person can name it in %s", t.host(), setting)
	case t.name == "" && !full:
		return target{}, refuse("%s is refused: it is an address, and %s allows names", t.host(), setting)
	case t.name == "" && !public(t.addr):
		return target{}, refuse("%s is refused: it is not a public address, and no setting allows others", t.host())
	case !p.o.Network.Allows(t.name):
		return target{}, refuse("%s is refused: allowed are %s; a person can add it to %s", t.host(), team.Clip(p.o.Network.String(), 200), setting)
	case !full && t.port != 80 && t.port != 443:
		return target{}, refuse("%s is refused: of listed hosts ports 80 and 443 are allowed; a person can set %s to full", t, setting)
	}
	return t, nil
}

// inner are the ranges of IANA's special-purpose registries, of providers' own services, and of IPv4 in IPv6.
var inner = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure's host, to its machines
	"2001::/23",        // Teredo, ORCHID and others
	"2001:db8::/32", "2002::/16", "3fff::/20",
)

// global contains all IPv6 addresses of public hosts.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// public reports whether an address belongs to a public host.
func public(a netip.Addr) bool {
	return a.Zone() == "" && (a.Is4() || global.Contains(a)) &&
		!slices.ContainsFunc(inner, func(p netip.Prefix) bool { return p.Contains(a) })
}

// own returns the addresses of this machine: a NATS server may listen on a public one too.
func own() (all []netip.Addr, err error) {
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for _, n := range nets {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			all = append(all, prefix.Addr().Unmap().WithZone(""))
		}
	}
	return all, nil
}

// mostAddresses bounds the addresses of a name that are tried.
const mostAddresses = 4

// addresses looks a target up, once, and returns the addresses that may be dialled.
func (p *Proxy) addresses(ctx context.Context, t target) (all []netip.AddrPort, err error) {
	found := []netip.Addr{t.addr}
	if t.name != "" {
		// With its dot the name is complete: no domain of this machine is appended.
		if found, err = p.o.Resolver.LookupNetIP(ctx, "ip", t.name+"."); err != nil {
			return nil, fmt.Errorf("look up %s: %w", t.name, err)
		}
	}
	machine, err := p.o.machine()
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		at := netip.AddrPortFrom(a.Unmap(), t.port)
		if public(at.Addr()) && !slices.Contains(machine, at.Addr()) && !p.o.Never(at) {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return nil, refuse("%s is refused: it has no public address, and no setting allows others", t)
	}
	return all[:min(len(all), mostAddresses)], nil
}

// dial connects to a target.
func (p *Proxy) dial(ctx context.Context, t target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	all, err := p.addresses(ctx, t)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, at := range all {
		conn, err := func() (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialWithin/time.Duration(len(all)))
			defer cancel()
			return p.o.Dial(ctx, "tcp", at.String())
		}()
		if err == nil {
			return patient{conn, time.AfterFunc(p.o.Idle, func() { conn.Close() }), p.o.Idle}, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// patient is a connection to a host that is closed once nothing moves on it.
type patient struct {
	net.Conn
	timer *time.Timer
	idle  time.Duration
}

func (p patient) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.moved(n)
	return n, err
}

func (p patient) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	p.moved(n)
	return n, err
}

func (p patient) moved(n int) {
	if n > 0 {
		p.timer.Reset(p.idle)
	}
}

// CloseWrite ends what is sent, or all where that is not possible.
func (p patient) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return p.Close()
}

func (p patient) Close() error {
	p.timer.Stop()
	return p.Conn.Close()
}

// dialHost is dial for the transport. It checks again, whatever the transport makes of a request.
func (p *Proxy) dialHost(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	t, err := p.target(host, port)
	if err != nil {
		return nil, err
	}
	return p.dial(ctx, t)
}
