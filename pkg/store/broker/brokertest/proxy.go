package brokertest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy is a connection path to a server that fails as networks do.
type Proxy struct {
	URL string // to connect to in place of the server's

	// Refused has an entry for recent connections that were accepted and closed immediately, since the proxy is closed.
	Refused chan struct{}

	server string
	mu     sync.Mutex
	closed bool
	lines  []*line
}

// line is one connection through the proxy.
type line struct {
	client, server net.Conn

	mu    sync.Mutex
	dead  bool   // data from the server is lost
	lost  []byte // the lost data
	until []byte
	seen  chan struct{} // closed once until is in lost
}

// NewProxy returns an open proxy to the server, or to the first of several. It ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, _, _ = strings.Cut(strings.TrimPrefix(server, "nats://"), ",")
	p := &Proxy{URL: "nats://" + l.Addr().String(), Refused: make(chan struct{}, 1), server: server}
	t.Cleanup(func() { l.Close(); p.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
	return p
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		client.Close()
		select {
		case p.Refused <- struct{}{}:
		default:
		}
		return
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	l := &line{client: client, server: server}
	p.lines = append(p.lines, l)
	for to, from := range map[io.WriteCloser]io.Reader{server: client, l: server} {
		go func() {
			_, _ = io.Copy(to, from)
			to.Close()
		}()
	}
}

// Write forwards the server's data to the client.
func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		return l.client.Write(b)
	}
	had := bytes.Contains(l.lost, l.until)
	l.lost = append(l.lost, b...)
	if !had && bytes.Contains(l.lost, l.until) {
		close(l.seen)
	}
	return len(b), nil
}

func (l *line) Close() error { return l.client.Close() }

// Open lets connections through again.
func (p *Proxy) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
}

// Close ends all connections, and later ones immediately.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, l := range p.lines {
		l.client.Close()
		l.server.Close()
	}
	p.lines = nil
}

// Swallow drops all later data from the server on the newest connection, as a link does that has died unnoticed. The
// returned channel is closed once the server has sent text.
func (p *Proxy) Swallow(text string) (said <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[len(p.lines)-1]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.until, l.seen = true, []byte(text), make(chan struct{})
	return l.seen
}
