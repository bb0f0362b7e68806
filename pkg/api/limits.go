package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"agentteam/pkg/api/access"
	"agentteam/pkg/api/problem"
	"agentteam/pkg/team"
)

// limits bound the resources of clients. Tests have smaller ones.
type limits struct {
	open       int           // connections, and requests that are being answered, streams among them
	each       int           // requests of one client that are being answered; with more connections than that open, none is kept without a request
	body       int64         // bytes of one
	headerWait time.Duration // until the header lines have come to their end, and before them the handshake of TLS
	bodyWait   time.Duration // until a body has come to its end, whether or not anybody wants it
	writeWait  time.Duration // until a client has taken what is written to it at once
	idleWait   time.Duration // until a connection has its next request
	keepAlive  time.Duration // until a silent stream shows that it lives; 0 is the default of package stream
}

var defaultLimits = limits{
	open: 4096, each: 2048, body: 1 << 20, headerWait: 5 * time.Second, bodyWait: 30 * time.Second, writeWait: 10 * time.Second, idleWait: 2 * time.Minute,
}

// spare connections beyond the limit get an answer; further ones are closed without one.
const spare = 128

// retryAfter is the Retry-After of refusals, in seconds.
const retryAfter = 5

// connState counts the open connections, and closes those beyond all limits. Each begins and ends once, since no
// handler hijacks any.
func (s *Server) connState(c net.Conn, now http.ConnState) {
	switch now {
	case http.StateNew:
		if s.open.Add(1) > int64(s.limits.open+spare) {
			c.Close()
		}
	case http.StateClosed:
		s.open.Add(-1)
	}
}

// places counts the requests in progress, of all clients and of each.
type places struct {
	mu  sync.Mutex
	all int
	by  map[string]int
}

// take takes a place, and returns how many are taken, this one included. The caller gives it back in any case.
func (p *places) take(client string) (all, own int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all++
	p.by[client]++
	return p.all, p.by[client]
}

func (p *places) giveBack(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.by[client]--; p.by[client] == 0 {
		delete(p.by, client)
	}
}

// clientOf returns the client of a request, as far as it is known: an address with one of the tokens. Many programs may
// share both, such as all on this machine.
func clientOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host + " " + access.By(r.Context())
}

// bounded passes requests to next while there is room, with their whole bodies: no handler waits for a slow client. One
// client cannot take all the room.
func (s *Server) bounded(next http.Handler) http.Handler {
	requests := places{by: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := clientOf(r)
		defer requests.giveBack(client)
		all, own := requests.take(client)
		open := s.open.Load()
		full, hint := "", "try again later, or ask another leader process"
		switch {
		case all > s.limits.open || open > int64(s.limits.open):
			full = "this process has as many clients as it takes"
		case own > s.limits.each:
			full, hint = "this client has as many requests and streams as one may have at once", "end some of them, or ask another leader process"
		}
		if full != "" {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
			s.refuse(w, http.StatusServiceUnavailable, team.Unavailable, full, hint)
			return
		}
		if open > int64(s.limits.each) { // places are short: none is held by a connection that asks nothing
			w.Header().Set("Connection", "close")
		}
		if r.ContentLength != 0 && !s.takeBody(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// takeBody reads the body, in the time that [Server.attended] has set. It reports whether it could; if not, it has
// answered.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.refuse(w, http.StatusRequestEntityTooLarge, team.InvalidArgument, "the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", "send less at once")
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.refuse(w, http.StatusRequestTimeout, team.InvalidArgument, "the body has not come to its end within "+s.limits.bodyWait.String(), "")
	case err != nil:
		s.refuse(w, http.StatusBadRequest, team.InvalidArgument, "the body could not be read to its end", "")
	default:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // every connection of ours can
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return err == nil
}

// refuse answers with a problem document and ends the connection.
func (s *Server) refuse(w http.ResponseWriter, status int, code team.Code, detail, hint string) {
	w.Header().Set("Connection", "close")
	problem.Document{Status: status, Code: code, Detail: detail, Hint: hint}.Write(w)
}
