// Package proxy is an HTTP proxy (CONNECT and plain HTTP) for a member's commands, on the listener that package sandbox takes out of
// the network of each command. It reaches the hosts of a [team.Network], at public addresses only: a name is looked up once, and the checked address
// is dialled. A refusal states the reason and the setting that would allow it, for the model.
//
// It does not inspect the data. Package sandbox ensures that nothing bypasses it.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// serve answers a request of a command.
func (p *session) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.connect(w, r)
		return
	}
	p.forward(w, r)
}

// connect opens a tunnel.
func (p *session) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.URL.Host)
	if err != nil || r.RequestURI != r.URL.Host || r.ContentLength != 0 {
		p.answer(w, r, http.StatusBadRequest, "CONNECT wants HOST:PORT and no body, not "+shown(r.RequestURI))
		return
	}
	t, err := p.target(host, port)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	conn, err := p.dial(r.Context(), t)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	defer conn.Close()
	p.count(r.Context(), allowed, t.host())
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // it is gone
	}
	defer p.end(client)
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	tunnel(r.Context(), client, conn, string(early))
}

// tunnel copies between a client and a host until the host ends, either fails, or ctx ends. early is the data that the client has sent
// already.
func tunnel(ctx context.Context, client, host net.Conn, early string) {
	defer context.AfterFunc(ctx, func() { client.Close(); host.Close() })()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(host, io.MultiReader(strings.NewReader(early), client)); err == nil {
			_ = host.(patient).CloseWrite() // more of the answer is still to come
			return
		}
		host.Close()
		_, _ = io.Copy(io.Discard, client)
	}()
	_, _ = io.Copy(client, host)
	farewell(client)
	<-sent
}

// farewell lets a program read an answer while it still sends: to close with unread bytes would take the answer back.
func farewell(client net.Conn) {
	if half, ok := client.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = client.SetReadDeadline(time.Now().Add(lastWords))
}

// end closes a connection that was hijacked.
func (p *session) end(client net.Conn) {
	client.Close()
	<-p.busy
}

// forward forwards a plain request.
func (p *session) forward(w http.ResponseWriter, r *http.Request) {
	if r.URL.Scheme != "http" || r.URL.Host == "" {
		p.answer(w, r, http.StatusBadRequest, "this is a proxy for http://HOST/PATH and CONNECT, not for "+shown(r.URL.Scheme+"://"+r.URL.Host))
		return
	}
	t, err := p.target(r.URL.Hostname(), cmp.Or(r.URL.Port(), "80"))
	if err != nil {
		p.failed(w, r, err)
		return
	}
	// The URL's host counts, for the connection and for the server: net/http has dropped the header. See RFC 9112, 3.2.2.
	r.URL.Host, r.Host = t.String(), t.authority()
	_ = http.NewResponseController(w).EnableFullDuplex() // or an answer would wait for the end of the request
	p.plain.ServeHTTP(w, r)
}

// rewrite leaves a request unchanged except for its hop-by-hop headers. Other protocols (Upgrade) need CONNECT.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Header.Del("Upgrade")
	r.Out.Header.Del("Connection")
}

// failed answers a request that is refused, or whose host was not reached.
func (p *session) failed(w http.ResponseWriter, r *http.Request, err error) {
	if why, ok := errors.AsType[refusal](err); ok {
		p.answer(w, r, http.StatusForbidden, string(why))
		return
	}
	p.answer(w, r, http.StatusBadGateway, shown(r.URL.Host)+" was not reached: "+fault(err), "err", err)
}

// fault returns the part of an error that a command may see: the error names addresses of this machine's network.
func fault(err error) string {
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no such host"
	case errors.As(err, &name):
		return "its name could not be looked up"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused there"
	}
	return "the connection failed"
}

// answer ends the connection with a line, which is also the reason phrase, and the notice for a command whose request is refused.
func (p *session) answer(w http.ResponseWriter, r *http.Request, status int, line string, more ...any) {
	outcome := refused
	if status == http.StatusBadGateway {
		outcome = failed
	}
	p.count(r.Context(), outcome, shown(r.URL.Host), append(more, "reason", line)...)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the answer has begun, and must not look whole
	}
	defer p.end(conn)
	_ = conn.SetWriteDeadline(time.Now().Add(headersWithin))
	text := "network: " + line
	p.notice(text)
	content := text + "\n"
	if r.Method == http.MethodHead {
		content = ""
	}
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s",
		status, text, strconv.Itoa(len(text)+1), content)
	farewell(conn)
	defer context.AfterFunc(r.Context(), func() { conn.Close() })()
	_, _ = io.Copy(io.Discard, conn)
}

// notice writes the reason of a refusal to the command's output, once.
func (p *session) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.said[text] && len(p.said) < mostNotices {
		p.said[text] = true
		fmt.Fprintln(p.output, text) // fails only if the command is gone
	}
}

// count counts and logs a request. It logs only the host: all else may be secret.
func (p *Proxy) count(ctx context.Context, outcome, host string, more ...any) {
	p.metrics.WithLabelValues(outcome).Inc()
	p.o.Logger.DebugContext(ctx, "network request "+outcome, append([]any{"host", host}, more...)...)
}
