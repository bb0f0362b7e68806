package rehearsal

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"agentteam/pkg/team"
)

// Server is a listening endpoint; see [Listen].
type Server struct {
	listener net.Listener
	handler  http.Handler
}

// Listen opens addr, such as "127.0.0.1:0" for a free port, for an endpoint that
// plays s. Requests wait until [Server.Run]. A nil logger discards.
//
// Errors: [team.InvalidState] if the port is in use; [team.InvalidArgument] if
// addr cannot be listened on.
func Listen(addr string, s *Script, logger *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, team.Errorf(team.InvalidState, "the rehearsal endpoint cannot listen on %s: the port is in use", addr)
	case err != nil:
		return nil, team.Errorf(team.InvalidArgument, "the rehearsal endpoint cannot listen on %q: %w", addr, err)
	}
	return &Server{listener: l, handler: NewHandler(s, logger)}, nil
}

// URL returns the value for OPENAI_BASE_URL, such as http://127.0.0.1:4010/v1.
func (s *Server) URL() string {
	addr := s.listener.Addr().(*net.TCPAddr)
	host, port, _ := net.SplitHostPort(addr.String())
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/v1"
}

// Run serves until ctx ends and returns nil, or returns why it cannot serve. It breaks off requests a second after ctx
// ends. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the delays
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(s.listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if srv.Shutdown(bye) != nil {
		_ = srv.Close() // nothing is lost: the listener is closed already
	}
	<-served
	return nil
}
