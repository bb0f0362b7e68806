package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"agentteam/pkg/api/access"
	"agentteam/pkg/api/problem"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Server is the API, listening.
type Server struct {
	opt     Options
	ln      net.Listener
	open    atomic.Int64 // connections
	tls     bool
	http    *http.Server
	hub     *stream.Hub
	limits  limits
	metrics *metrics
}

// Listen opens the address. Callers connect but are not answered until [Server.Run]. Errors: InvalidArgument for wrong
// settings, such as an address beyond loopback without TLS, or a token file that others can read; InvalidState for an
// address in use.
func Listen(o Options) (*Server, error) { return listen(o, defaultLimits) }

func listen(o Options, l limits) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	cert, gate, err := read(o.API)
	if err != nil {
		return nil, err
	}
	hub := stream.New(o.Client, stream.HubOptions{Metrics: o.Metrics, Logger: o.Log, KeepAlive: l.keepAlive})
	s := &Server{opt: o, tls: cert != nil, hub: hub, limits: l, metrics: newMetrics(o.Metrics)}
	mux, err := s.mux()
	if err != nil {
		return nil, err
	}
	if s.ln, err = net.Listen("tcp", o.Addr); err != nil {
		return nil, team.Errorf(team.InvalidState, "the API cannot be served: %w", err).WithHint("choose another address with --api; port 0 is a free one")
	}
	host, _, _ := net.SplitHostPort(telemetry.HostPort(s.ln.Addr()))
	gate.Hosts = append(ownHosts(o.API, host), gate.Hosts...)
	handler, err := s.handler(gate, mux)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.http = &http.Server{
		Handler: handler, ConnState: s.connState, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: l.headerWait, MaxHeaderBytes: mostHeader - slack, IdleTimeout: l.idleWait,
		// Neither ReadTimeout nor WriteTimeout: both would cut event streams. Bodies and writes have separate limits.
		DisableGeneralOptionsHandler: true, // it answers OPTIONS * before anybody has asked who asks
	}
	if cert != nil {
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
	}
	return s, nil
}

// handler returns mux behind the common handlers.
func (s *Server) handler(o access.Options, mux http.Handler) (http.Handler, error) {
	gate, err := access.New(o)
	if err != nil {
		return nil, err
	}
	return s.attended(problem.Named(gate.Guard(s.bounded(mux)))), nil
}

// URL returns the base URL. A server that listens on all interfaces names the machine.
func (s *Server) URL() string {
	scheme := "http://"
	if s.tls {
		scheme = "https://"
	}
	return scheme + telemetry.HostPort(s.ln.Addr())
}

// Run serves until ctx ends, and stops within [shutdown.Close]: it notifies the readers of streams, ends the context of
// every request, waits for the handlers, and cuts off those that do not return. Then it returns nil, or the error that
// ended serving. Call it once.
func (s *Server) Run(ctx context.Context) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	served := make(chan error, 1)
	go func() {
		if s.tls {
			served <- s.http.ServeTLS(s.ln, "", "")
		} else {
			served <- s.http.Serve(s.ln)
		}
	}()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("serve the API: %w", err)
	case <-ctx.Done():
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown.Close)
	defer cancel()
	s.hub.Close() // before the requests end: its readers are told, and go on elsewhere
	end()
	if s.http.Shutdown(bye) != nil {
		s.http.Close()
	}
	if err == nil {
		<-served
	}
	return err
}

// Close releases the address, for a process that could not start after [Listen]; Run does it automatically.
func (s *Server) Close() error { return s.ln.Close() }

// slack is how far net/http exceeds its limit, in bytes.
const slack = 4 << 10

// mostHeader bounds the header lines of a request, its address included, in bytes.
const mostHeader = 16 << 10
