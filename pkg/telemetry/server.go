package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// readyTimeout bounds a readiness probe: a probe that fails is more use to an operator than a probe that hangs.
const readyTimeout = time.Second

// Options configures a [Server].
type Options struct {
	Addr    string              // host:port to listen on; port 0 takes a free one; required
	Metrics prometheus.Gatherer // the source of /metrics; required

	// Ready returns nil if the process can do its work now; /readyz answers with its error, so the error must
	// not hold secrets. It is called from many goroutines and must return when its context ends, after 1 s at
	// most. Default: always ready.
	Ready func(context.Context) error

	Logger *slog.Logger // default: discard
}

// Server is the HTTP server of a process: /metrics for Prometheus, /livez (200
// "ok" while the process answers at all), /readyz (200 "ready", or 503 and the
// reason in one line), and the routes added with [Server.Handle].
type Server struct {
	ln    net.Listener
	mux   *http.ServeMux
	http  *http.Server
	ready func(context.Context) error
}

// Listen takes the address immediately, so that a port in use is known before anything else has started; the error
// then wraps the [*net.OpError] and suggests another address. Callers connect but get no answer until [Server.Run].
func Listen(opt Options) (*Server, error) {
	ln, err := net.Listen("tcp", opt.Addr)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address to listen on (port 0 takes a free one)", err)
	}
	log := OrDiscard(opt.Logger)
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	s := &Server{ln: ln, mux: http.NewServeMux(), ready: opt.Ready}
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(opt.Metrics, promhttp.HandlerOpts{ErrorLog: errorLog}))
	s.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	s.mux.HandleFunc("GET /readyz", s.readyz)
	s.mux.HandleFunc("/", notFound)
	s.http = &http.Server{
		Handler:  s.ownHost(s.mux),
		ErrorLog: errorLog,
		// No route here streams, and a client that stops halfway must not keep its connection.
		ReadTimeout:    5 * time.Second,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	return s, nil
}

// IsLoopback reports whether a Host header, as a browser or a program sends it, names loopback.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(host), "."), "["), "]")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ownHost refuses requests for other host names where the server listens on loopback only: a foreign page could
// resolve a name of its own to this machine (DNS rebinding) and read the answers.
func (s *Server) ownHost(next http.Handler) http.Handler {
	if !s.ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !IsLoopback(r.Host) { // no browser leaves it out
			w.Header().Set("Connection", "close")
			http.Error(w, "this server does not answer for this Host; use the address that it listens on", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// notFound answers 404 and closes the connection. When containers are recreated, the address of one may pass to
// another while a client connects to it; the client must then resolve the name again, and would get 404 for ever
// over a kept connection.
func notFound(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	http.NotFound(w, r)
}

// Handle adds a route, in the pattern language of [http.ServeMux]; it panics if
// the pattern is malformed or taken. It may be called while the server runs.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// URL returns the server's base URL, "http://host:port". A server that listens on
// all interfaces names the machine, so that the URL works from others too.
func (s *Server) URL() string { return "http://" + HostPort(s.ln.Addr()) }

// HostPort returns the host:port by which clients reach a TCP listener at addr; for a listener on all interfaces, the
// machine's name and the port.
func HostPort(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// Run serves until ctx ends, then stops within [shutdown.Close]: it ends the context of every
// request, waits for the handlers, and cuts off those that do not return. It
// returns nil after that, or the error that made serving impossible. Call it once.
func (s *Server) Run(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown.Close)
	defer cancel()
	if s.http.Shutdown(bye) != nil {
		s.http.Close()
	}
	<-served
	return nil
}

// Close gives the address back. It is for a process that could not start after [Listen]; Run does it automatically.
func (s *Server) Close() error { return s.ln.Close() }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := s.ready(ctx); err != nil {
			http.Error(w, team.Line(err), http.StatusServiceUnavailable)
			return
		}
	}
	io.WriteString(w, "ready\n")
}
