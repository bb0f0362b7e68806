package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serve answers a request of a command.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.connect(w, r)
		return
	}
	p.forward(w, r)
}

// connect opens a tunnel.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
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
	p.serving.Add(1)
	defer p.serving.Done()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // it is gone
	}
	defer client.Close()
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	tunnel(r.Context(), p.moving(client), conn, string(early))
}

// tunnel copies between a client and a host until the host ends, either fails or is silent for too long, or ctx ends.
// early is what the client has sent already.
func tunnel(ctx context.Context, client, host moving, early string) {
	end := func() { client.Close(); host.Close() }
	defer context.AfterFunc(ctx, end)()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.Copy(host, io.MultiReader(strings.NewReader(early), client))
		if half, ok := host.Conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite() // more of the answer is still to come
			return
		}
		end()
	}()
	_, _ = io.Copy(client, host)
	end()
	<-sent
}

// moving is a connection that fails when no byte moves on it for a while.
type moving struct {
	net.Conn
	idle time.Duration
}

func (p *Proxy) moving(c net.Conn) moving {
	_ = c.SetDeadline(time.Now().Add(p.o.Idle))
	return moving{c, p.o.Idle}
}

func (m moving) moved(n int, err error) (int, error) {
	if n > 0 {
		_ = m.SetDeadline(time.Now().Add(m.idle))
	}
	return n, err
}

func (m moving) Read(b []byte) (int, error)  { return m.moved(m.Conn.Read(b)) }
func (m moving) Write(b []byte) (int, error) { return m.moved(m.Conn.Write(b)) }

// forward does a plain request.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	if r.URL.Scheme != "http" || r.URL.Host == "" {
		p.answer(w, r, http.StatusBadRequest, "this is a proxy for http://HOST/PATH and CONNECT, not for "+shown(r.URL.Scheme+"://"+r.URL.Host))
		return
	}
	t, err := p.target(r.URL.Hostname(), cmp.Or(r.URL.Port(), "80"))
	if err != nil {
		p.failed(w, r, err)
		return
	}
	// The host of the URL is the one that counts, for the connection and for the server: net/http
	// has dropped the header. See RFC 9112, 3.2.2.
	r.URL.Host, r.Host = t.String(), t.authority()
	_ = http.NewResponseController(w).EnableFullDuplex() // or an answer would wait for the end of the request
	p.plain.ServeHTTP(w, r)
}

// rewrite leaves a request as it is, without its hop-by-hop headers. Another protocol (Upgrade) is spoken by CONNECT.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Header.Del("Upgrade")
	r.Out.Header.Del("Connection")
}

// failed answers a request that is refused, or whose host was not reached.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if why, ok := errors.AsType[refusal](err); ok {
		p.answer(w, r, http.StatusForbidden, string(why))
		return
	}
	p.answer(w, r, http.StatusBadGateway, shown(r.URL.Host)+" was not reached: "+fault(err), "err", err)
}

// fault is what a command may see of an error, which names addresses of this machine's network.
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

// answer ends the connection with a line, which is also the reason behind the number, where the supervisor of a command looks for it.
func (p *Proxy) answer(w http.ResponseWriter, r *http.Request, status int, line string, more ...any) {
	outcome := refused
	if status == http.StatusBadGateway {
		outcome = failed
	}
	p.count(r.Context(), outcome, shown(r.URL.Host), append(more, "reason", line)...)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the answer has begun, and must not look whole
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(headersWithin))
	text := "network: " + line
	content := text + "\n"
	if r.Method == http.MethodHead {
		content = ""
	}
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s",
		status, text, strconv.Itoa(len(text)+1), content)
}

// count counts and logs a request. Nothing of it but its host is logged: all else may be secret.
func (p *Proxy) count(ctx context.Context, outcome, host string, more ...any) {
	p.metrics.WithLabelValues(outcome).Inc()
	p.o.Logger.DebugContext(ctx, "network request "+outcome, append([]any{"host", host}, more...)...)
}
