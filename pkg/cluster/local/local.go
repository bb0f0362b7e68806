// Package local runs a cluster on this machine: an embedded NATS server in this process, and a
// leader and standby teammates as its children. A child that dies is restarted with backoff; all of
// them end when this process does, however it ends.
package local

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/api"
	"agentteam/pkg/client"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/config"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"

	"github.com/oklog/ulid/v2"
)

// Options configure a cluster.
type Options struct {
	Dir      string     // where .agentteam/cluster.json is written; "" = nowhere
	DataDir  string     // of the NATS server; required
	Port     int        // of the NATS server on 127.0.0.1; 0 = a free one
	HTTP     string     // of the leader; default 127.0.0.1:0
	API      config.API // of the leader; default 127.0.0.1:0; its TokenFile is required
	Standbys int        // teammate processes that wait for work
	Env      []string   // for the children, in addition to this process's environment
	Output   io.Writer
	Logger   *slog.Logger

	// First is called once the server at that address runs, before any process is started; its
	// error ends the start. nil: it is not called.
	First func(ctx context.Context, server string) error
}

// Cluster is a running cluster.
type Cluster struct {
	opt      Options
	server   *embedded.Server
	lifeline [2]*os.File // read end, given to children; write end, held open by us
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	id     string     // its processes know the cluster by this id
	broken chan error // receives why a child cannot start

	mu   sync.Mutex
	up   bool           // all have answered
	pids map[string]int // by the child's label
	// http and api are the addresses of the leader's pages and of its API, kept until its successor
	// reports its own; "" = none reported yet.
	http, api string
	apiPort   string // of the last leader's API; "" = it ended before it reported an address
}

// leader is the label of the child that leads.
const leader = "leader"

const (
	orphanWait   = time.Second      // for orphans, which had as long already
	readyWait    = 30 * time.Second // for the first process to answer, and for each further one
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 10 * time.Second
	steady       = 10 * time.Second // a child that ran for this long had started well
	mostTries    = 5                // of a child that ends early by its own error: with these backoffs 3 s
)

// Start starts a cluster and returns once its leader and all its standbys answer. The caller must
// Stop it. Errors: InvalidState for a port in use, a folder that cannot be written or is in use
// ([embedded.ErrInUse]), or a cluster that runs in o.Dir already; NotFound for programs that are
// not installed; ctx's cause.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o.HTTP, o.API.Addr = cmp.Or(o.HTTP, "127.0.0.1:0"), cmp.Or(o.API.Addr, "127.0.0.1:0")
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.Dir != "" {
		if running, pid := Running(o.Dir); running {
			return nil, team.Errorf(team.InvalidState, "a cluster runs here already (pid %d)", pid).WithHint("use it, or end it: teamctl down")
		}
	}
	if err := o.checkPages(); err != nil {
		return nil, err
	}
	bins := map[string]string{}
	for _, name := range []string{"leader", "teammate"} {
		bin, err := childproc.FindBinary(name)
		if err != nil {
			return nil, err
		}
		bins[name] = bin
	}
	c := &Cluster{opt: o, id: ulid.Make().String(), broken: make(chan error, 1), pids: map[string]int{}}
	c.opt.Env = append(slices.Clone(o.Env), childproc.OfCluster(c.id)...)
	var err error
	if c.server, err = embedded.Start(embedded.Options{Dir: o.DataDir, Port: o.Port, Logger: o.Logger}); err != nil {
		return nil, err
	}
	if o.First != nil {
		first, cancel := context.WithTimeout(ctx, readyWait)
		err = o.First(first, c.URL())
		cancel()
	}
	if err == nil {
		c.lifeline[0], c.lifeline[1], err = os.Pipe()
	}
	if err != nil {
		c.server.Shutdown()
		return nil, err
	}
	children, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.supervise(children, leader, bins["leader"], c.leaderArgs)
	for i := range o.Standbys {
		c.supervise(children, "teammate "+strconv.Itoa(i+1), bins["teammate"], func() []string { return []string{"--http", "127.0.0.1:0"} })
	}
	if err := c.ready(ctx); err != nil {
		c.Stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

// checkPages checks the addresses first, since the leader would fail at them again and again.
func (o Options) checkPages() error {
	l, err := net.Listen("tcp", o.HTTP)
	if err != nil {
		return team.Errorf(team.InvalidState, "the leader's pages cannot be served: %w", err).WithHint("choose another address with --http, or leave it out for a free port")
	}
	l.Close()
	if err := api.Check(o.API); err != nil {
		return err
	}
	if l, err = net.Listen("tcp", o.API.Addr); err != nil {
		return team.Errorf(team.InvalidState, "the API cannot be served: %w", err).WithHint("choose another address with --api or AGENTTEAM_API, or leave it out for a free port")
	}
	return l.Close()
}

// apiFlags returns the leader's flags for the API. The API's other settings reach it by the
// environment and by team.yaml, as they reached this process.
func (o Options) apiFlags() []string {
	flags := []string{"--api", o.API.Addr, "--api-token-file", o.API.TokenFile, "--insecure=" + strconv.FormatBool(o.API.Insecure)}
	if o.API.ReadTokenFile != "" {
		flags = append(flags, "--api-read-token-file", o.API.ReadTokenFile)
	}
	return flags
}

// leaderArgs returns the arguments of the next leader. Its API has the port of the last one's, so
// that clients find it again. If the last one reported no address, that port may have been the
// reason of its failure, and the next one begins with the configured address.
func (c *Cluster) leaderArgs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.opt
	if host, _, err := net.SplitHostPort(o.API.Addr); err == nil && c.apiPort != "" {
		o.API.Addr = net.JoinHostPort(host, c.apiPort)
	}
	c.apiPort = ""
	return append([]string{"--local-exec", "--http", o.HTTP}, o.apiFlags()...)
}

// Running reports whether the cluster in dir's file runs, and the process that owns it. The file
// may be of a cluster that was killed, and its process id reused since, so the server must answer
// too.
func Running(dir string) (bool, int) {
	cl, _, err := config.FindCluster(dir)
	if err != nil || !cl.Alive() {
		return false, 0
	}
	u, err := url.Parse(cl.NATS)
	if err != nil {
		return false, 0
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false, 0
	}
	conn.Close()
	return true, cl.Owner()
}

// Ended reports whether no process of that owner's cluster is left.
func Ended(dir string, owner int) bool {
	cl, _, err := config.FindCluster(dir)
	return err != nil || cl.Owner() != owner || !cl.Alive()
}

// URL returns the address of the NATS server.
func (c *Cluster) URL() string { return c.server.URL() }

// ID returns the cluster's name in the member records of its processes.
func (c *Cluster) ID() string { return c.id }

// Broken receives, once, why the leader cannot start again after several tries: a fault of the
// program, its settings or its environment. Further tries follow.
func (c *Cluster) Broken() <-chan error { return c.broken }

// supervise keeps one child running until ctx ends, then stops it. Each start calls args.
func (c *Cluster) supervise(ctx context.Context, label, bin string, args func() []string) {
	c.wg.Go(func() {
		tries := 0 // in a row that the child has ended early by its own error
		for backoff := firstBackoff; ctx.Err() == nil; {
			begun, output, said := time.Now(), c.opt.Output, (*lastLine)(nil)
			if tries == mostTries-1 { // not before: output through this process ends with it
				said = &lastLine{to: output}
				output = said
			}
			p, err := childproc.Start(bin, append([]string{"--server", c.server.URL()}, args()...), c.opt.Env, c.lifeline[0], output)
			if err != nil {
				c.opt.Logger.Error("child not started", "child", label, "err", err)
			} else {
				c.note(label, p.PID())
				alive, ended := context.WithCancel(ctx)
				if label == leader {
					c.wg.Go(func() { c.learnPages(alive, p.PID()) })
				}
				wanted := c.watchChild(ctx, p)
				ended()
				if wanted {
					return
				}
				err = p.Err()
				c.opt.Logger.Warn("child ended; it is started again", "child", label, "pid", p.PID(), "err", err, "in", backoff)
			}
			if tries++; time.Since(begun) > steady || !faulty(err) {
				tries = 0
			}
			if tries == mostTries {
				c.breaks(label, said.reason(err))
			}
			if time.Since(begun) > steady {
				backoff = firstBackoff
			}
			shutdown.Sleep(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
		}
	})
}

// watchChild waits until the child has ended, and reports whether that was intended.
func (c *Cluster) watchChild(ctx context.Context, p *childproc.Process) bool {
	select {
	case <-p.Done():
		return ctx.Err() != nil
	case <-ctx.Done():
	}
	p.Terminate()
	select {
	case <-p.Done():
	case <-time.After(shutdown.Within):
		p.Kill()
		<-p.Done()
	}
	return true
}

// note keeps the cluster file up to date with the children's process ids.
func (c *Cluster) note(label string, pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids[label] = pid
	c.write()
}

// write writes the cluster file; c.mu is held.
func (c *Cluster) write() {
	if c.opt.Dir == "" {
		return
	}
	pids := []int{os.Getpid()} // the owner comes first
	for _, p := range c.pids {
		pids = append(pids, p)
	}
	if err := config.WriteCluster(c.opt.Dir, config.Cluster{NATS: c.server.URL(), HTTP: c.http, API: c.api, APITokenFile: c.opt.API.TokenFile, PIDs: pids}); err != nil {
		c.opt.Logger.Error("cluster file not written", "err", err)
	}
}

// learnPages asks the leader with this process id for its addresses until it reports them. Each
// leader's pages have another address, unless a port is configured.
func (c *Cluster) learnPages(ctx context.Context, pid int) {
	cl, err := c.connect(ctx)
	if err != nil {
		return
	}
	defer cl.Close()
	for ctx.Err() == nil {
		s, err := cl.Processes(ctx)
		if err != nil {
			continue // no leader answered within the wait
		}
		for _, p := range s.Leaders {
			if p.PID == strconv.Itoa(pid) && p.API != "" {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.api = p.API
				if u, err := url.Parse(p.API); err == nil {
					c.apiPort = u.Port()
				}
				c.http = strings.TrimSuffix(p.Metrics, "/metrics")
				c.write()
				return
			}
		}
	}
}

// connect connects to the cluster's own server until ctx ends. While a dozen processes start on two
// cores, a running server may take longer than a client waits.
func (c *Cluster) connect(ctx context.Context) (*client.Client, error) {
	for {
		cl, err := client.Connect(ctx, client.Options{URL: c.server.URL()}) // each try takes as long as it needs, up to 3 s
		if err == nil || ctx.Err() != nil {
			return cl, err
		}
	}
}

// knowsPages reports whether the leader has reported its addresses.
func (c *Cluster) knowsPages() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.http != ""
}

// ready waits until the leader and every standby answer, and gives up once no further process has
// answered for readyWait: many processes on a busy machine need time.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	giveUp := time.AfterFunc(readyWait, cancel)
	defer giveUp.Stop()
	cl, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	var leaders, standbys int
	for {
		s, err := cl.Processes(ctx)
		up := len(s.Standbys) + len(s.Members) // one may have been taken already
		if err == nil && up >= c.opt.Standbys && c.knowsPages() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.up = true
			return nil
		}
		select {
		case err := <-c.broken:
			return err
		default:
		}
		if up > standbys || len(s.Leaders) > leaders {
			giveUp.Reset(readyWait)
		}
		leaders, standbys = max(leaders, len(s.Leaders)), max(standbys, up)
		if ctx.Err() != nil {
			return team.Errorf(team.Unavailable, "the cluster did not come up: %d leader and %d of %d teammate processes answer, and no further one within %v",
				leaders, standbys, c.opt.Standbys, readyWait).WithHint("their log lines say why")
		}
	}
}

// Stop ends the children, then the server, and removes its own cluster file. It returns within
// about six seconds, when no process of the cluster is left.
func (c *Cluster) Stop() {
	c.cancel()
	// The lifeline ends the teammates that the leader started as well, and makes the leader wait
	// for them.
	c.lifeline[1].Close()
	c.wg.Wait()
	endOrphans(c.lifeline[0], orphanWait)
	c.lifeline[0].Close()
	url := c.server.URL()
	c.server.Shutdown()
	if c.opt.Dir == "" {
		return
	}
	// Another cluster may have written its own file there.
	if cl, _, err := config.FindCluster(c.opt.Dir); err != nil || cl.NATS != url || cl.Owner() != os.Getpid() {
		return
	}
	if err := config.RemoveCluster(c.opt.Dir); err != nil {
		c.opt.Logger.Warn("cluster file not removed", "err", err)
	}
}
