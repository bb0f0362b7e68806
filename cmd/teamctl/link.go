package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/hands"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// connect connects to the cluster that the settings name. Where no server was named, and
// no cluster runs in the folder, it says so at once. Errors: Unavailable.
func connect(ctx context.Context, cfg config.Config) (*client.Client, error) {
	if file := cfg.ClusterFile(); file != "" {
		if cl, err := config.ReadCluster(file); err == nil {
			if !cl.Alive() {
				return nil, dead(file, cl).WithHint("%s", goOn(cfg.Folder()))
			}
			var stop func()
			ctx, stop = whileThere(ctx, file, cl)
			defer stop()
		}
	}
	c, err := client.Connect(ctx, client.Options{URL: cfg.Server, Replicas: cfg.Replicas, Once: !cfg.ServerKnown(),
		Workspaces: hands.New(hands.Options{Sandbox: cfg.Sandbox, Settings: cfg.File(), Data: cfg.DataDir})})
	if cause := context.Cause(ctx); err != nil && team.CodeOf(cause) != "" {
		return nil, cause
	}
	if errors.Is(err, broker.ErrNoServer) && !cfg.ServerKnown() {
		return nil, team.Errorf(team.Unavailable, "no cluster runs in this folder, and no NATS server answers at %s", cfg.Server).WithHint("%s", goOn(cfg.Folder()))
	}
	return c, err
}

// whileThere returns a context that ends once the cluster that the file tells of as cl has
// ended or died. A server that is about to end still takes connections.
func whileThere(ctx context.Context, file string, cl config.Cluster) (there context.Context, stop func()) {
	there, end := context.WithCancelCause(ctx)
	go shutdown.Every(there, lookAfter, func(context.Context) {
		switch now, fate := cl.Fate(file); fate {
		case config.Ended:
			end(hasEnded(file))
		case config.Died:
			end(dead(file, now))
		}
	})
	return there, func() { end(nil) }
}

// dead is the error of a cluster that has not ended in order.
func dead(file string, cl config.Cluster) *team.Error {
	return team.Errorf(team.Unavailable, "the cluster of %s has died: its process %d is gone", folderOf(file), cl.Owner())
}

// folderOf is the folder of the cluster that has this file.
func folderOf(file string) string { return filepath.Dir(filepath.Dir(file)) }

// goOn says how to get a cluster in the folder, and where the teams are that one of it
// has kept.
func goOn(folder string) string {
	switch store := config.FindStore(folder); store {
	case "":
		return "start one: teamctl up; or name a server with --server or AGENTTEAM_SERVER"
	case folder:
		return "the teams of this folder are kept; to see them and go on: teamctl up -d"
	default:
		return "the teams of " + store + " are kept; to see them and go on, there: teamctl up -d"
	}
}

// How a command learns of a cluster that went away. The file is looked at so often that
// the moment between two clusters, when there is none, is not missed.
const (
	lookAfter = 50 * time.Millisecond
	tellAfter = time.Second // a server that is just restarted is not worth a word
)

// linked runs f with a connection to the cluster that the settings name, and ends with
// its error. If the cluster goes away meanwhile, it says so within 3 s. One that was found
// by the file of a folder is followed to its new address; once it has been ended in
// order, f's context ends, and so does the command (Unavailable).
func (a *app) linked(ctx context.Context, cfg config.Config, f func(ctx context.Context, c *client.Client) error) error {
	c, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, end := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end(nil)
	l := &link{app: a, client: c, file: cfg.ClusterFile(), server: c.Server()}
	if l.file != "" {
		l.cluster, err = config.ReadCluster(l.file)
		if errors.Is(err, team.NotFound) {
			err = hasEnded(l.file)
		}
		if err != nil {
			return err
		}
	}
	wg.Go(func() {
		if err := l.keep(ctx); err != nil {
			end(err)
		}
	})
	err = f(ctx, c)
	cause := context.Cause(ctx)
	if err == nil || errors.Is(err, errUnwritten) || team.CodeOf(cause) == "" || errors.Is(err, cause) { // it is done, or ended for another reason, or has more to say
		return err
	}
	return cause
}

// errClusterEnded is in the error of a command whose cluster was ended in order.
var errClusterEnded = errors.New("was ended")

// link is a command's connection to its cluster.
type link struct {
	app     *app
	client  *client.Client
	server  string         // its address
	file    string         // of the cluster, if the server was found by it
	cluster config.Cluster // as the file told of it
	told    bool           // that it is away
}

// keep follows the cluster until ctx ends, and then returns nil, or until it has ended
// in order.
func (l *link) keep(ctx context.Context) error {
	changed := make(chan bool)
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		l.client.Connection(ctx, func(connected bool) {
			select {
			case changed <- connected:
			case <-ctx.Done():
			}
		})
	})
	look := time.NewTicker(lookAfter)
	defer look.Stop()
	look.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case connected := <-changed:
			if connected {
				look.Stop()
				l.back()
				continue
			}
			since = time.Now()
			look.Reset(lookAfter)
		case <-look.C:
			if err := l.look(time.Since(since)); err != nil {
				return err
			}
		}
	}
}

// look sees what has become of a cluster that has been away for so long.
func (l *link) look(away time.Duration) error {
	why := "NATS is away at " + l.server + "; waiting until it is back"
	if l.file != "" {
		now, fate := l.cluster.Fate(l.file)
		switch fate {
		case config.Ended:
			return hasEnded(l.file)
		case config.Died:
			why = team.Line(dead(l.file, now)) + "; waiting until it is back (there: teamctl up -d)"
		case config.Moved:
			if err := l.client.Move(now.NATS); err != nil {
				return err
			}
			l.cluster = now
		}
	}
	if away > tellAfter && !l.told {
		l.told = true
		l.app.tell(why)
	}
	return nil
}

func (l *link) back() {
	if now := l.client.Server(); l.told || now != l.server {
		l.app.tell("NATS is back at " + now)
		l.server = now
	}
	l.told = false
}

// askRoom is how often a command that follows a goal asks whether the server still stores.
const askRoom = 3 * time.Second

// tellRoom says when the server has no room left, and when it has some again, until stop is
// called: meanwhile nothing happens in the team that could be shown.
func (a *app) tellRoom(ctx context.Context, c interface{ Storage(context.Context) error }) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		full := false
		shutdown.Every(ctx, askRoom, func(ctx context.Context) {
			asked, over := context.WithTimeout(ctx, askRoom)
			err := c.Storage(asked)
			over()
			switch {
			case errors.Is(err, broker.ErrNoRoom) && !full:
				full = true
				a.tell(team.Line(err) + "; the team waits until there is room")
			case err == nil && full:
				full = false
				a.tell("there is room again, and the team goes on")
			}
		})
	})
	return func() { cancel(); wg.Wait() }
}

// hasEnded is the error of a command whose cluster was ended in order.
func hasEnded(file string) error {
	return team.Errorf(team.Unavailable, "the cluster of %s %w", folderOf(file), errClusterEnded).WithHint("its teams are kept; to go on, there: teamctl up -d")
}

// patience is how long a command waits for something before it says what for.
const patience = 3 * time.Second

// waitsFor says what the command waits for, once that has taken a while, unless it is
// over by then.
func (a *app) waitsFor(what string) (over func()) {
	said := make(chan struct{})
	t := time.AfterFunc(patience, func() {
		defer close(said)
		a.tell("waiting for " + what)
	})
	return sync.OnceFunc(func() {
		if !t.Stop() { // what follows is not printed in between
			<-said
		}
	})
}

// tell says beside the output how things stand.
func (a *app) tell(line string) { fmt.Fprintln(a.err, printable(line)) }
