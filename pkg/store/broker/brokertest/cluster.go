package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/shutdown"
)

// Cluster is a group of NATS servers that form a JetStream cluster on loopback; with size 1, a server outside any
// cluster. Each is a process, so that a test can kill, restart and freeze it as a real one. Not safe for concurrent use.
type Cluster struct {
	t     testing.TB
	nodes []*node
	js    jetstream.JetStream
}

// node is one server of a cluster, running or not.
type node struct {
	nodeConfig
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// settleTime is far longer than a cluster needs to form or to elect a leader.
const settleTime = time.Minute

// NewCluster starts size servers and returns once a stream that is replicated on all of them can be made. They stop when
// the test ends.
func NewCluster(t testing.TB, size int) *Cluster {
	t.Helper()
	return NewClusterIn(t, t.TempDir(), size)
}

// NewClusterIn is NewCluster with the stores in dir, which may be a separate disk.
func NewClusterIn(t testing.TB, dir string, size int) *Cluster {
	t.Helper()
	c, err := startCluster(dir, size, false)
	if err != nil {
		t.Fatal(err)
	}
	c.t = t
	t.Cleanup(c.stop)
	return c
}

func startCluster(dir string, size int, orphan bool) (c *Cluster, err error) {
	for range 3 { // another process may take a port that was free just now
		c = &Cluster{}
		ports := freePorts(2 * size)
		var routes []string
		for i := range size {
			if size > 1 {
				routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[2*i+1]))
			}
		}
		for i := range size {
			name := fmt.Sprintf("n%d", i+1)
			c.nodes = append(c.nodes, &node{nodeConfig: nodeConfig{
				Name: name, Dir: filepath.Join(dir, name), Port: ports[2*i], RoutePort: ports[2*i+1], Routes: routes, RemoveDir: orphan,
			}})
		}
		if err = c.start(); err == nil {
			return c, nil
		}
		c.stop()
		for _, n := range c.nodes {
			err = fmt.Errorf("%w\n%s: %s", err, n.Name, &n.stderr)
		}
	}
	return nil, err
}

func (c *Cluster) start() error {
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	nc, err := nats.Connect(c.URL(), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		return err
	}
	if c.js, err = jetstream.New(nc); err != nil {
		return err
	}
	return c.whole()
}

// whole waits until all servers take part.
func (c *Cluster) whole() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	const probe = "BROKERTEST"
	return c.repeat(ctx, "make a stream on all servers", func(ctx context.Context) error {
		if _, err := c.js.CreateStream(ctx, jetstream.StreamConfig{Name: probe, Replicas: len(c.nodes)}); err != nil {
			return err
		}
		return c.js.DeleteStream(ctx, probe)
	})
}

func (c *Cluster) repeat(ctx context.Context, what string, f func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if !shutdown.Sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("NATS cluster: %s: %w", what, err)
		}
	}
}

// URL returns the addresses of all servers, separated by commas.
func (c *Cluster) URL() string {
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", n.Port))
	}
	return strings.Join(urls, ",")
}

// Leader returns the index of the server that leads the stream; it waits for an election.
func (c *Cluster) Leader(stream string) (i int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), settleTime)
	defer cancel()
	err := c.repeat(ctx, "find the leader of "+stream, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		if info := s.CachedInfo(); info.Cluster != nil {
			i = slices.IndexFunc(c.nodes, func(n *node) bool { return n.Name == info.Cluster.Leader && n.cmd != nil })
		}
		if i < 0 {
			return fmt.Errorf("%s has no leader", stream)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return i
}

// Kill ends a server with SIGKILL.
func (c *Cluster) Kill(i int) {
	c.t.Helper()
	c.nodes[i].kill()
}

// Restart starts a killed server, on its ports and its store, and returns once all servers take part.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	err := c.nodes[i].start()
	if err == nil {
		err = c.whole()
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// Freeze stops a server with SIGSTOP: its connections stay and it sends nothing.
func (c *Cluster) Freeze(i int) {
	c.t.Helper()
	c.signal(i, syscall.SIGSTOP)
	// The kernel takes a moment to stop all threads, enough to answer a request.
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.nodes[i].cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		c.t.Fatalf("%s was not stopped: %v, %v", c.nodes[i].Name, status, err)
	}
}

// Thaw lets a frozen server run again.
func (c *Cluster) Thaw(i int) { c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, s syscall.Signal) {
	c.t.Helper()
	if err := c.nodes[i].cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) stop() {
	if c.js != nil {
		c.js.Conn().Close()
	}
	for _, n := range c.nodes {
		n.kill()
	}
}

// removeStreams removes all streams of the cluster.
func (c *Cluster) removeStreams() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	return c.repeat(ctx, "remove all streams", func(ctx context.Context) error {
		names := c.js.StreamNames(ctx)
		for name := range names.Name() {
			if err := c.js.DeleteStream(ctx, name); err != nil {
				return err
			}
		}
		// A server that has not removed its copy yet cannot make the stream again.
		for _, n := range c.nodes {
			left, err := filepath.Glob(filepath.Join(n.Dir, "jetstream", "*", "streams", "*"))
			if err = errors.Join(err, names.Err()); err != nil || len(left) > 0 {
				return fmt.Errorf("%s still has %v (%v)", n.Name, left, err)
			}
		}
		return nil
	})
}

func (n *node) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg, err := json.Marshal(n.nodeConfig)
	if err != nil {
		return err
	}
	n.stderr.Reset()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(cfg))
	cmd.Stderr = &n.stderr
	if _, err := cmd.StdinPipe(); err != nil { // the server sees the end of this process by its other end
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd = cmd
	return nil
}

func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.cmd = nil
}

// Port returns a port for a server that will be restarted on it: no process listens there, and the kernel gives it to no
// outgoing connection meanwhile.
func Port() int { return freePorts(1)[0] }

// freePorts returns ports on which no process listens, below the range that the kernel gives to outgoing connections, so
// that a killed server finds its own port free again.
func freePorts(n int) (ports []int) {
	for len(ports) < n {
		port := 10_000 + rand.N(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil || slices.Contains(ports, port) {
			continue
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	return ports
}
