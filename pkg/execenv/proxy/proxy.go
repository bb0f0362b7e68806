// Package proxy is an HTTP proxy (CONNECT and plain HTTP) for a member's commands, on a unix socket that package sandbox exposes
// inside a box. It reaches the hosts of a [team.Network], at public addresses only: a name is looked up once, and the checked address
// is dialled. A refusal states the reason and the setting that would allow it, for the model.
//
// It does not inspect the data. Package sandbox ensures that nothing bypasses it.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options state which hosts a proxy reaches, and how.
type Options struct {
	Network team.Network // the hosts; empty: every request is refused

	// Never reports addresses that no command may reach although they are public: those of the
	// team's own services. Default: none.
	Never func(netip.AddrPort) bool

	Resolver Resolver                                                             // default: the machine's
	Dial     func(ctx context.Context, network, address string) (net.Conn, error) // of an address and a port; default: a [net.Dialer]
	Idle     time.Duration                                                        // after that without a byte a connection is closed; default 5 min
	Logger   *slog.Logger                                                         // hosts at debug, never paths or headers; default: discard
	Registry prometheus.Registerer                                                // may be nil

	machine func() ([]netip.Addr, error) // own, but in tests
}

// Resolver looks up names; [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// The bounds of a proxy.
const (
	mostConnections = 256 // more wait
	mostHeaders     = 64 << 10
	mostAnswer      = 1 << 20 // of headers
	headersWithin   = 10 * time.Second
	nextWithin      = time.Minute // the next request on a connection
	dialWithin      = 15 * time.Second
	defaultIdle     = 5 * time.Minute
)

// Proxy serves one member's commands.
type Proxy struct {
	o         Options
	socket    net.Listener
	transport *http.Transport
	plain     *httputil.ReverseProxy
	metrics   *prometheus.CounterVec
	serving   sync.WaitGroup // connections and tunnels
}

// New returns a proxy that listens on a unix socket in a new private folder. [Proxy.Run] serves and removes it. Errors:
// InvalidArgument for an invalid network; Unavailable if the socket cannot be created.
func New(o Options) (*Proxy, error) {
	if err := (team.Policy{Network: o.Network}).Validate(); err != nil {
		return nil, err
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Never == nil {
		o.Never = func(netip.AddrPort) bool { return false }
	}
	if o.machine == nil {
		o.machine = own
	}
	if o.Idle == 0 {
		o.Idle = defaultIdle
	}
	o.Logger = telemetry.OrDiscard(o.Logger)
	dir, err := os.MkdirTemp("", "agentteam-proxy-")
	if err != nil {
		return nil, team.Errorf(team.Unavailable, "the network of commands: %w", err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		os.RemoveAll(dir) // nothing is in it
		return nil, team.Errorf(team.Unavailable, "the network of commands: %w", err)
	}
	p := &Proxy{o: o, socket: netutil.LimitListener(l, mostConnections), metrics: newMetrics(o.Registry)}
	p.transport = &http.Transport{
		DialContext: p.dialHost, DisableCompression: true, MaxResponseHeaderBytes: mostAnswer,
		IdleConnTimeout: nextWithin, MaxIdleConns: 16, ExpectContinueTimeout: time.Second,
	}
	p.plain = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: p.transport, FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			p.count(answer.Request.Context(), allowed, answer.Request.URL.Host)
			return nil
		},
		ErrorHandler: p.failed, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// Socket returns the path of the socket.
func (p *Proxy) Socket() string { return p.socket.Addr().String() }

// Run serves until ctx ends, closes all connections, removes the socket and returns nil, or the error that ended it. It is called once.
func (p *Proxy) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headersWithin, IdleTimeout: nextWithin, MaxHeaderBytes: mostHeaders,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				p.serving.Add(1)
			case http.StateClosed, http.StateHijacked:
				p.serving.Done()
			}
		},
		ErrorLog: slog.NewLogLogger(p.o.Logger.Handler(), slog.LevelDebug),
	}
	context.AfterFunc(ctx, func() { server.Close() })
	err := server.Serve(p.socket)
	cancel()
	p.serving.Wait()
	p.transport.CloseIdleConnections()
	os.RemoveAll(filepath.Dir(p.Socket())) // the socket is gone already
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
