package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/local"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// standing is the state of the cluster that a command is to use.
type standing int

const (
	noCluster standing = iota // none was named, and none runs in this folder
	starting                  // one of this folder is not up yet
	standsBy                  // one can be used
)

// find returns the state of the settings' cluster. The file of a killed cluster is ignored.
func find(cfg config.Config) standing {
	if !cfg.ServerKnown() {
		return noCluster
	}
	for _, o := range cfg.Origins() {
		if o.Name != "server" || !strings.HasSuffix(o.Origin, "cluster.json") {
			continue
		}
		running, _ := local.Running(".")
		if !running {
			return noCluster
		}
		if cl, _, err := config.FindCluster("."); err == nil && cl.HTTP == "" {
			return starting
		}
	}
	return standsBy
}

// inUse is how long a cluster's data folder may be in use without a file of the cluster: while it starts, and
// while it ends.
const inUse = 15 * time.Second

// cluster finds the cluster for a goal, or starts one that end stops after the command. It waits for one that
// is starting, and for another run that is about to set its goal. Error: Conflict if that one has set the
// same team a goal meanwhile.
func (a *app) cluster(ctx context.Context, p *runRequest) (cfg config.Config, end func(), err error) {
	end = func() {}
	if cfg, err = a.settings(); err != nil {
		return cfg, end, err
	}
	if find(cfg) == noCluster {
		if err := a.mayStart(cfg, p); err != nil {
			return cfg, end, err
		}
		if err := a.apart(ctx, cfg); err != nil {
			return cfg, end, err
		}
	}
	over := a.waitsFor("the cluster of this folder, which another command is starting")
	defer over()
	if p.turn, err = a.takeTurn(ctx, cfg, p); err != nil {
		return cfg, end, err
	}
	for began := time.Now(); ; {
		if cfg, err = a.settings(); err != nil {
			return cfg, end, err
		}
		switch find(cfg) {
		case standsBy:
			p.turn.end() // no other run should wait for a question that this run may ask
			return cfg, end, nil
		case noCluster:
			if err := a.mayStart(cfg, p); err != nil {
				return cfg, end, err
			}
			over() // from here on it is this command's own
			p.own = true
			stop, err := a.ownCluster(ctx, cfg, p)
			if err == nil {
				cfg.Server = p.cluster.URL()
				return cfg, stop, nil
			}
			p.own = false
			if find(cfg) == noCluster && (!errors.Is(err, embedded.ErrInUse) || time.Since(began) > inUse) {
				return cfg, end, err
			}
		}
		if !shutdown.Sleep(ctx, pollAfter) {
			return cfg, end, ctx.Err()
		}
	}
}

// mayStart returns an error if a new cluster could not do what the flags require.
func (a *app) mayStart(cfg config.Config, p *runRequest) error {
	if p.detach {
		return team.Errorf(team.Unavailable, "no cluster runs here that could go on with the goal").WithHint("start one in the background: teamctl up -d")
	}
	if p.resume && !config.HasStore(cfg.DataDir) {
		return team.Errorf(team.NotFound, "no team has worked in this folder").WithHint("%s", goOn(cfg.Folder()))
	}
	workspace, err := workspaceOf(cfg)
	if err != nil {
		return err
	}
	if err := execenv.New(execenv.Options{Sandbox: cfg.Sandbox}).Check(a.cmd.Context(), cfg.Policy, workspace); err != nil {
		return err
	}
	return cfg.CheckModel()
}

// ownCluster starts a cluster in this folder for the duration of the command.
func (a *app) ownCluster(ctx context.Context, cfg config.Config, p *runRequest) (stop func(), err error) {
	log, err := openLog("run.log")
	if err != nil {
		return nil, err
	}
	over := a.waitsFor("the cluster of this run to be up; its log is " + log.Name())
	var first func(context.Context, string) error
	if p.resume {
		first = func(ctx context.Context, server string) error {
			cfg.Server = server
			return a.findFirst(ctx, cfg, p)
		}
	}
	c, err := a.startCluster(ctx, cfg, local.Options{Dir: ".", DataDir: cfg.DataDir, Standbys: defaultStandbys, Output: log, First: first})
	over()
	if err != nil {
		log.Close()
		if errors.Is(err, embedded.ErrInUse) {
			err = team.Errorf(team.InvalidState, "%w", err).WithHint("it may be another run, whose cluster ends with it; for several start one that stays: teamctl up -d")
		}
		return nil, err
	}
	for _, err := range cfg.Lacking() {
		fmt.Fprintln(a.err, team.Line(err))
	}
	p.started = "started a cluster for this run (its page: teamctl web); its log is " + log.Name()
	p.cluster = c
	return func() { c.Stop(); log.Close() }, nil
}

// neverLed is how long a team may have no leader, for a reason that a leader process has recorded, before its
// run ends: two attempts, with the elector's wait of two seconds between them at a lease of ten, and its pause of
// four after them. In all, a run ends within ten seconds.
const neverLed = 6 * time.Second

// whileLed returns a context that ends, with the reason as its cause (InvalidState), if no process of the
// run's own cluster can lead the team, or no longer can.
func (p *runRequest) whileLed(ctx context.Context, t *client.Team) (led context.Context, done func()) {
	led, end := context.WithCancelCause(ctx)
	if p.cluster == nil {
		return led, func() { end(nil) }
	}
	fails := func(why string) {
		err := team.Errorf(team.InvalidState, "no process can lead team %s: %s", t.ID(), why)
		if p.epilogue == "" { // else the cluster is thrown away
			err = err.WithHint("the goal is kept; once that is repaired, to continue: teamctl run --resume")
		}
		end(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var since time.Time // start of the time without a leader
		var seen uint64     // the incarnation of the leader that was there at the last look
		for tick := time.Tick(200 * time.Millisecond); ; {
			select {
			case <-led.Done():
				return
			case err := <-p.cluster.Broken():
				fails(team.Line(err))
			case <-tick:
				m, err := t.Leader(led)
				switch {
				case err != nil || m.Cluster != p.cluster.ID():
				case m.State != team.Lost:
					if m.Incarnation == seen { // else it may fail as the one before
						since = time.Time{}
					}
					seen = m.Incarnation
				case since.IsZero():
					since = time.Now()
				case time.Since(since) > neverLed:
					fails(m.LastError)
				}
			}
		}
	})
	return led, func() { end(nil); wg.Wait() }
}

// turn is a run's right to set its goal before the folder's other runs, in the cluster that it starts: if
// each started one, or set its goal in a cluster that ends with another run, all would fail. nil is a turn
// that has ended.
type turn struct{ file *os.File }

// goalSet is a run's message to those that waited for their turn meanwhile.
type goalSet struct {
	PID  int         `json:"pid"`
	Team team.TeamID `json:"team"`
	Goal string      `json:"goal"`
}

// takeTurn waits until no other run of the folder is about to set its goal. Error: Conflict if the run before
// has set the same team a goal.
func (a *app) takeTurn(ctx context.Context, cfg config.Config, p *runRequest) (*turn, error) {
	path := filepath.Join(team.ClusterDir, "run.lock")
	if file := cfg.ClusterFile(); file != "" {
		path = filepath.Join(filepath.Dir(file), "run.lock")
	} else if find(cfg) == standsBy { // whose goals are set from anywhere
		return nil, nil
	}
	f, err := openMade(path, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) && find(cfg) != noCluster { // a cluster of others, which may be used all the same
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := &turn{f}
	waited, err := t.wait(ctx)
	if err == nil && !waited {
		err = f.Truncate(0) // it contains an earlier goal
	}
	if err == nil && waited && !p.resume && !p.add {
		var s goalSet
		if json.NewDecoder(f).Decode(&s) == nil && s.Team == cfg.Team {
			err = a.atWork(team.Team{ID: s.Team, Goal: s.Goal}, p, fmt.Sprintf(", which process %d has just set", s.PID))
		}
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// wait returns once this run has the turn, and reports whether another run had it.
func (t *turn) wait(ctx context.Context) (waited bool, err error) {
	for {
		err := syscall.Flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return waited, err
		}
		waited = true
		if !shutdown.Sleep(ctx, pollAfter) {
			return waited, ctx.Err()
		}
	}
}

// set ends the turn with a goal.
func (t *turn) set(s goalSet) {
	if t == nil || t.file == nil {
		return
	}
	if data, err := json.Marshal(s); err == nil {
		_, _ = t.file.WriteAt(data, 0) // else those that wait find the goal in the team's record
	}
	t.end()
}

// end passes the turn to the next run.
func (t *turn) end() {
	if t != nil && t.file != nil {
		t.file.Close() // which unlocks it
		t.file = nil
	}
}
