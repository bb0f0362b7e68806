package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/execenv/proxy"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// world is the names and the hosts of a test, which are servers on loopback under public addresses.
type world struct {
	mu      sync.Mutex
	names   map[string][]netip.Addr // with the dot at the end
	hosts   map[string]string       // an address with a port, and where its server is
	looked  []string
	dialled []string
}

func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, host)
	if all, ok := w.names[host]; ok {
		return all, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.2:53", IsNotFound: true}
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	at, ok := w.hosts[address]
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("nothing at %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, at)
}

// name gives a name addresses.
func (w *world) name(name string, addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range addrs {
		w.names[name+"."] = append(w.names[name+"."], netip.MustParseAddr(a))
	}
}

// serve puts a server at an address with a port.
func (w *world) serve(at string, server *httptest.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[at] = server.Listener.Addr().String()
}

func (w *world) seen() (looked, dialled []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.looked), slices.Clone(w.dialled)
}

// rig is a proxy that serves.
type rig struct {
	*testing.T
	world
	proxy  *proxy.Proxy
	socket string
	client *http.Client
	stop   func() // ends the proxy
}

func start(t *testing.T, network team.Network, change ...func(*proxy.Options)) *rig {
	t.Helper()
	r := &rig{T: t, world: world{names: map[string][]netip.Addr{}, hosts: map[string]string{}}}
	o := proxy.Options{Network: network, Resolver: &r.world, Dial: r.dial}
	for _, c := range change {
		c(&o)
	}
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "s") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	r.proxy, r.socket = p, l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool, 1)
	go func() { p.Serve(ctx, l, io.Discard); ended <- true }()
	r.stop = sync.OnceFunc(func() { cancel(); brokertest.Receive(t, "the proxy ends", ended) })
	t.Cleanup(r.stop)
	r.client = &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
			DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", r.socket) },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// page is a server that answers with a text.
func page(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s
}

// get returns the status of a page and its text.
func (r *rig) get(address string) (int, string) {
	r.Helper()
	answer, err := r.client.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// open connects to the proxy.
func (r *rig) open() net.Conn {
	r.Helper()
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		r.Fatal(err)
	}
	return conn
}

// raw sends bytes and returns the status and the text of what comes back.
func (r *rig) raw(request string) (status int, text string) {
	r.Helper()
	conn := r.open()
	if _, err := io.WriteString(conn, request); err != nil {
		r.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.Fatalf("%q: %v", request, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.StatusCode, ""
	}
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer.StatusCode, string(all)
}
