// Package proxy is an HTTP proxy (CONNECT and plain HTTP) for a member's commands, on the listener that package sandbox takes out of
// the network of each command. It reaches the hosts of a [team.Network], at public addresses only: a name is looked up once, and the checked address
// is dialled. A refusal states the reason and the setting that would allow it, for the model.
//
// It does not inspect the data. Package sandbox ensures that nothing bypasses it.
package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// The bounds of a proxy, for one command.
const (
	mostConnections = 256 // more wait
	mostNotices     = 20
	mostHeaders     = 64 << 10
	mostAnswer      = 1 << 20 // of headers
	headersWithin   = 10 * time.Second
	nextWithin      = time.Minute // the next request on a connection
	dialWithin      = 15 * time.Second
	lastWords       = 5 * time.Second // for a program to read an answer while it still sends
	defaultIdle     = 5 * time.Minute
)

// Proxy serves one member's commands. Safe for concurrent use.
type Proxy struct {
	o       Options
	metrics *prometheus.CounterVec
}

// New returns a proxy. Error: InvalidArgument for an invalid network.
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
	return &Proxy{o, newMetrics(o.Registry)}, nil
}

// session is a proxy that serves one command.
type session struct {
	*Proxy
	plain *httputil.ReverseProxy
	busy  chan struct{} // has an element for each connection

	mu     sync.Mutex
	output io.Writer       // of the command
	said   map[string]bool // refusals that it has
}

// Serve serves a command's connections until ctx ends, and returns once all are closed. The reason of a refusal is also written to
// output, once: most programs print only its number.
func (p *Proxy) Serve(ctx context.Context, l net.Listener, output io.Writer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{Proxy: p, busy: make(chan struct{}, mostConnections), output: output, said: map[string]bool{}}
	transport := &http.Transport{
		DialContext: p.dialHost, DisableCompression: true, MaxResponseHeaderBytes: mostAnswer,
		IdleConnTimeout: nextWithin, MaxIdleConns: 16, ExpectContinueTimeout: time.Second,
	}
	defer transport.CloseIdleConnections()
	log := slog.NewLogLogger(p.o.Logger.Handler(), slog.LevelDebug)
	s.plain = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			p.count(answer.Request.Context(), allowed, answer.Request.URL.Host)
			return nil
		},
		ErrorHandler: s.failed, ErrorLog: log,
	}
	server := &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headersWithin, IdleTimeout: nextWithin, MaxHeaderBytes: mostHeaders,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // the next one is accepted after this
				s.busy <- struct{}{}
			case http.StateClosed:
				<-s.busy
			}
		},
		ErrorLog: log,
	}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); ctx.Err() == nil {
		p.o.Logger.Error("commands have no network", "err", err)
	}
	cancel()
	for range mostConnections { // none is left
		s.busy <- struct{}{}
	}
}

// Outcomes of a request.
const (
	allowed = "allowed"
	refused = "refused"
	failed  = "failed" // allowed, but the host was not reached
)

// newMetrics registers the metric that all proxies of a process share.
func newMetrics(reg prometheus.Registerer) *prometheus.CounterVec {
	m := telemetry.Counters(reg, "agentteam_network_requests_total", "Requests of commands to the network: allowed, refused or failed.", "outcome")
	for _, outcome := range []string{allowed, refused, failed} {
		m.WithLabelValues(outcome)
	}
	return m
}
