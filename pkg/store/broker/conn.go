package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options configure a connection to NATS.
type Options struct {
	URL      string                // one or more nats:// addresses, comma-separated; required without InProcess
	Name     string                // of the connection, as the server's monitoring shows it
	Wait     time.Duration         // how long to try the first connect; default 3 s
	Once     bool                  // a first connect that is refused is not tried again
	Ping     time.Duration         // a server that is silent is asked this often, and lost after three times; default [Ping]
	Replicas int                   // of the streams that this connection makes; default 1. Those that are there keep theirs
	Logger   *slog.Logger          // default: discard
	Metrics  prometheus.Registerer // default: none

	// InProcess is a server inside this process, used instead of URL; nil: none.
	InProcess InProcess

	// WaitForRoom makes writes wait while the server's storage is full, as they do while NATS is away; else they
	// fail ([ErrNoRoom]).
	WaitForRoom bool
}

// A client leaves a silent server, such as a frozen one, for another after [Silence]. With the time between two
// confirmations, a sixth of a lease, that is less than two thirds of a lease of 10 s: a member connected to that server
// does not even pause.
const (
	Ping    = time.Second
	pings   = 3 // without an answer
	Silence = (pings + 1) * Ping
)

// InProcess is a NATS server inside this process; InProcessConn returns a connection to it.
type InProcess interface{ InProcessConn() (net.Conn, error) }

// inProcess is the address shown for a server without one.
const inProcess = "nats://in-process"

// Conn is a connection to NATS. It reconnects for ever. While NATS is away a publish fails immediately instead of being
// buffered: a heartbeat that arrives a minute late is a lie, and a buffered write could not be told from a lost one. Safe
// for concurrent use.
type Conn struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	url      string
	replicas int
	metrics  metrics
	log      *slog.Logger
	restored *atomic.Pointer[time.Time] // when the connection was last made again; nil if never
	troubles troubles                   // writes that were not stored
	waits    bool                       // for room
	inboxes  inboxes
	opening  singleflight.Group // teams that are being opened, by id
	closed   chan struct{}      // closed with the connection
}

// Connect connects and checks that the server has JetStream. It gives up after o.Wait. Errors: Unavailable, in one line
// that names the address, such as [ErrNoJetStream]; InvalidArgument for a malformed address.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.Wait == 0 {
		o.Wait = 3 * time.Second
	}
	if o.Ping == 0 {
		o.Ping = Ping
	}
	if o.InProcess != nil {
		o.URL = inProcess
	}
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	deadline, _ := ctx.Deadline()

	c := &Conn{url: o.URL, replicas: max(o.Replicas, 1), waits: o.WaitForRoom, metrics: newMetrics(o.Metrics), log: o.Logger,
		restored: new(atomic.Pointer[time.Time]), closed: make(chan struct{})}
	handshake := min(5*time.Second, time.Until(deadline)) // a frozen server takes the connection and sends nothing
	opts := append(c.handlers(),
		nats.Name(o.Name),
		nats.MaxReconnects(-1), // the default gives up after 60
		nats.ReconnectWait(200*time.Millisecond),
		nats.ReconnectJitter(300*time.Millisecond, time.Second), // 50 agents must not return in one wave
		nats.ReconnectBufSize(-1),
		nats.PingInterval(o.Ping), // the default takes 6 minutes to see a silent partition
		nats.MaxPingsOutstanding(pings),
		nats.Timeout(handshake),
		nats.SetCustomDialer(&dialer{Dialer: net.Dialer{Timeout: handshake}}),
	)
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	var err error
	if c.nc, err = dial(ctx, o, opts); err != nil {
		return nil, err
	}
	c.metrics.connected.Set(1)
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(callTimeout)); err == nil {
		err = c.checkJetStream(ctx)
	}
	if err != nil {
		c.nc.Close()
		return nil, err
	}
	return c, nil
}

// dialer makes the connections of a nats.Conn, of which there is one at a time. nats.go (1.55) does not close a connection
// that the other side ended before it named itself as a server, as a proxy to a dead server does: it forgets it at its next
// try. So each try closes the connection of the try before it.
type dialer struct {
	net.Dialer
	last net.Conn
}

// Dial is called by nats.go under the lock of its connection.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	if d.last != nil {
		d.last.Close()
	}
	c, err := d.Dialer.Dial(network, address)
	d.last = c
	return c, err
}

// handlers returns the handlers for a lost, a restored and a closed connection.
func (c *Conn) handlers() []nats.Option {
	return []nats.Option{
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.metrics.connected.Set(0)
			if err != nil {
				c.log.Warn("nats connection lost", "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.restored.Store(new(time.Now()))
			c.metrics.connected.Set(1)
			c.metrics.reconnects.Inc()
			c.log.Info("nats connection restored", "url", redact(nc.ConnectedUrl()))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			// Refusals by permission arrive only here (the publish itself returned nil).
			if s != nil {
				c.log.Warn("nats error", "subject", s.Subject, "err", err)
				return
			}
			c.log.Warn("nats error", "err", err)
		}),
	}
}

func checkURL(s string) error {
	if _, ok := addresses(s); !ok {
		return team.Errorf(team.InvalidArgument, "%q is not the address of a NATS server", redact(s)).WithHint("an address looks like nats://127.0.0.1:4222")
	}
	return nil
}

// addresses parses a comma-separated list; ok is false if one part is not an address.
func addresses(s string) (all []*url.URL, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || u.Host == "" {
			return nil, false
		}
		all = append(all, u)
	}
	return all, true
}

// dial tries until ctx ends, since a server that is just starting refuses for a moment. It does not repeat a try with a
// wrong password.
func dial(ctx context.Context, o Options, opts []nats.Option) (*nats.Conn, error) {
	for {
		nc, err := nats.Connect(o.URL, opts...)
		if err == nil {
			return nc, nil
		}
		away := team.Errorf(team.Unavailable, "NATS is not to be reached at %s: %w", redact(o.URL), err).
			WithHint("start a cluster with `teamctl up`, or name a server with --server or AGENTTEAM_SERVER")
		switch {
		case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
			return nil, away.WithHint("check the user and password in the address")
		case o.Once && errors.Is(err, ErrNoServer):
			return nil, away
		}
		if !shutdown.Sleep(ctx, 100*time.Millisecond) {
			return nil, away
		}
	}
}

// redact returns a list of addresses without secrets: passwords, and user names, which are tokens where there is no
// password.
func redact(s string) string {
	all, ok := addresses(s)
	if !ok { // a password with a comma or a % in it cannot be parsed
		if at := strings.LastIndexByte(s, '@'); at >= 0 {
			return "xxxxx" + s[at:]
		}
		return s
	}
	shown := make([]string, len(all))
	for i, u := range all {
		if u.User != nil {
			u.User = url.User("xxxxx")
		}
		shown[i] = u.String()
	}
	return strings.Join(shown, ",")
}

// ErrNoServer: the address refuses connections, since no process listens there.
var ErrNoServer = nats.ErrNoServers

// ErrNoJetStream: the server answers, but has no storage.
var ErrNoJetStream = errors.New("no JetStream")

// checkJetStream distinguishes a server without JetStream from one whose JetStream is not ready yet (a replicated one that
// elects a leader).
func (c *Conn) checkJetStream(ctx context.Context) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := c.js.AccountInfo(attempt)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			return team.Errorf(team.Unavailable, "the NATS server at %s has %w", redact(c.url), ErrNoJetStream).
				WithHint("start nats-server with -js, or enable jetstream in its configuration")
		}
		if !shutdown.Sleep(ctx, 100*time.Millisecond) {
			return team.Errorf(team.Unavailable, "JetStream at %s does not answer: %w", redact(c.url), Unheard(err)).
				WithHint("a replicated server may be electing a leader: try again")
		}
	}
}

// ServerID returns the id of the server, which changes with each start; "" if it is part of a cluster, or not connected.
func (c *Conn) ServerID() string {
	if c.nc.ConnectedClusterName() != "" {
		return ""
	}
	return c.nc.ConnectedServerId()
}

// NATS returns the connection itself, for core messages and micro services.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Logger returns the logger of the connection and of its users.
func (c *Conn) Logger() *slog.Logger { return c.log }

// Server returns the address of the connected server, without credentials.
func (c *Conn) Server() string { return redact(c.nc.ConnectedUrl()) }

// Ready returns nil while NATS is connected, else Unavailable.
func (c *Conn) Ready(context.Context) error {
	if s := c.nc.Status(); s != nats.CONNECTED {
		return team.Errorf(team.Unavailable, "NATS is away (%s)", strings.ToLower(s.String()))
	}
	return nil
}

// Restored returns the time of the last reconnect; the zero time if the connection was never lost.
func (c *Conn) Restored() time.Time {
	if at := c.restored.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Follow calls f when the connection is lost and when it is restored, until ctx ends.
func (c *Conn) Follow(ctx context.Context, f func(connected bool)) {
	changed := c.nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
	defer c.nc.RemoveStatusListener(changed)
	for connected := true; ; {
		if connected && c.nc.Status() == nats.RECONNECTING { // also where it was lost before this was called
			connected = false
			f(false)
		}
		select {
		case <-ctx.Done():
			return
		case s := <-changed:
			if now := s == nats.CONNECTED; now != connected {
				connected = now
				f(now)
			}
		}
	}
}

// Move has the connection continue at another address, at which its server has come back. Reads under way continue
// automatically. Errors: InvalidArgument for a malformed address; Unavailable once the connection is closed.
func (c *Conn) Move(url string) error {
	if err := checkURL(url); err != nil {
		return err
	}
	err := c.nc.SetServerPool(strings.Split(url, ","))
	if err == nil {
		err = c.nc.ForceReconnect()
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "go on at %s: %w", redact(url), err)
	}
	return nil
}

// Flush waits until all published messages have reached the server.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout) // nats.go insists on a deadline
	defer cancel()
	return c.nc.FlushWithContext(ctx)
}

// Close ends the connection and every subscription on it.
func (c *Conn) Close() { c.nc.Close() }
