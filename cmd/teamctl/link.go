package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// connect connects to the cluster that the settings name. Error: Unavailable, immediately if no server was named
// and no cluster runs in the folder.
func connect(ctx context.Context, cfg config.Config) (*client.Client, error) {
	if file := cfg.ClusterFile(); file != "" {
		if cl, err := config.ReadCluster(file); err == nil {
			if !cl.Alive() {
				return nil, down{dead(file, cl).WithHint("%s", goOn(cfg.Folder()))}
			}
			var stop func()
			ctx, stop = whileThere(ctx, file, cl)
			defer stop()
		}
	}
	c, err := client.Connect(ctx, optionsOf(cfg, nil))
	if cause := context.Cause(ctx); err != nil && team.CodeOf(cause) != "" {
		return nil, cause
	}
	if errors.Is(err, broker.ErrNoServer) && !cfg.ServerKnown() {
		return nil, down{team.Errorf(team.Unavailable, "no cluster runs in this folder, and no NATS server answers at %s", cfg.Server).WithHint("%s", goOn(cfg.Folder()))}
	}
	return c, err
}

// optionsOf returns how a command connects to the settings' cluster or, if stored is not nil, to a server of
// stored data.
func optionsOf(cfg config.Config, stored broker.InProcess) client.Options {
	return client.Options{URL: cfg.Server, Replicas: cfg.Replicas, Once: !cfg.ServerKnown(), Stored: stored,
		Workspaces: execenv.New(execenv.Options{Sandbox: cfg.Sandbox, Limits: cfg.Limits, Settings: cfg.File(), Data: cfg.DataDir})}
}

// whileThere returns a context that ends once the cluster cl of the file has ended or died. A server that is
// about to end still accepts connections.
func whileThere(ctx context.Context, file string, cl config.Cluster) (there context.Context, stop func()) {
	there, end := context.WithCancelCause(ctx)
	go shutdown.Every(there, pollAfter, func(context.Context) {
		switch now, fate := cl.StateNow(file); fate {
		case config.Ended:
			end(hasEnded(file))
		case config.Died:
			end(down{dead(file, now)})
		}
	})
	return there, func() { end(nil) }
}

// dead returns the error for a cluster that did not end properly.
func dead(file string, cl config.Cluster) *team.Error {
	return team.Errorf(team.Unavailable, "the cluster of %s has died: its process %d is gone", folderOf(file), cl.Owner())
}

// folderOf returns the folder of the cluster that has this file.
func folderOf(file string) string { return filepath.Dir(filepath.Dir(file)) }

// goOn explains how to start a cluster in the folder, and where the teams of its last cluster are.
func goOn(folder string) string {
	switch store := config.FindStore(folder); store {
	case "":
		return "start one: teamctl up; or name a server with --server or AGENTTEAM_SERVER"
	case folder:
		return "the teams of this folder are kept; to go on: teamctl up -d"
	default:
		return "the teams of " + store + " are kept; to go on, there: teamctl up -d"
	}
}

// Times after which a command reports the loss of its cluster. The file is checked so often that a short time
// without a cluster is not missed.
const (
	pollAfter  = 50 * time.Millisecond
	printAfter = time.Second // a server that is just restarted is not worth a word

	giveUpAfter = 2 * time.Second // for a command that only asks; with the time until the loss is seen 3 s
)

// linked runs f with a connection to the settings' cluster, and returns its error. If the cluster is lost
// meanwhile, linked prints that within 3 s, and a command that only queries ends (Unavailable). A cluster
// that was found by a folder's file is followed to its new address; once it was ended properly, f's context
// and the command end (Unavailable).
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

// errClusterEnded is in the error of a command whose cluster was ended properly.
var errClusterEnded = errors.New("was ended")

// link is a command's connection to its cluster.
type link struct {
	app     *app
	client  *client.Client
	server  string         // its address
	file    string         // of the cluster, if the server was found by it
	cluster config.Cluster // as in the file
	printed bool           // that it is away
}

// keep follows the cluster until ctx ends, then it returns nil, or until the cluster was ended properly.
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
	look := time.NewTicker(pollAfter)
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
			look.Reset(pollAfter)
		case <-look.C:
			if err := l.poll(time.Since(since)); err != nil {
				return err
			}
		}
	}
}

// poll checks the state of a cluster that has been away for this long.
func (l *link) poll(away time.Duration) error {
	gone := team.Errorf(team.Unavailable, "NATS is away at %s", l.server)
	why, until := gone, "; waiting until it is back"
	if l.file != "" {
		now, fate := l.cluster.StateNow(l.file)
		switch fate {
		case config.Ended:
			return hasEnded(l.file)
		case config.Died:
			why, until = dead(l.file, now), "; waiting until it is back (there: teamctl up -d)"
		case config.Moved:
			if err := l.client.Move(now.NATS); err != nil {
				return err
			}
			l.cluster = now
		}
	}
	switch {
	case l.app.brief && away > giveUpAfter:
		return why.WithHint("whether the command took effect is not known; look once the server is back")
	case !l.app.brief && away > printAfter && !l.printed:
		l.printed = true
		l.app.notice(team.Line(why) + until)
	}
	return nil
}

func (l *link) back() {
	if now := l.client.Server(); l.printed || now != l.server {
		l.app.notice("NATS is back at " + now)
		l.server = now
	}
	l.printed = false
}

// askTrouble is how often a command that follows a goal checks for problems that may keep the team from
// working.
const askTrouble = 3 * time.Second

// trouble is a problem that keeps a team from working while its query returns an error of a kind.
type trouble struct {
	ask  func(context.Context) error
	kind error
	then string // printed after the error
	over string // printed when the problem is over
}

// printTroubles prints when the server stores nothing, the team's record cannot be read, or no process can
// lead the team, and when that is over, until stop is called: meanwhile the team can do nothing. A run in its
// own cluster does not wait for a leader; see [runRequest.whileLed].
func (a *app) printTroubles(ctx context.Context, c *client.Client, t *client.Team, own bool) (stop func()) {
	all := []trouble{
		{c.Storage, broker.ErrNoRoom, "; the team waits until the server stores again", "the server stores again, and the team continues"},
		{func(ctx context.Context) error { _, err := t.Record(ctx); return err }, team.ErrUnreadable,
			"; the goal cannot end before the record is repaired: " + a.command("repair --all", t.ID()), "the team's record can be read again"},
	}
	if !own {
		all = append(all, trouble{func(ctx context.Context) error { return unled(ctx, t) }, errUnled,
			"; the goal waits for a process that can lead it; to end it: " + a.command("stop", t.ID()), "a process leads the team"})
	}
	return a.printOf(ctx, all...)
}

// errUnled is the kind of the errors of unled.
var errUnled = errors.New("is lost")

// unled returns why no process can lead the team, if a process has tried and recorded that.
func unled(ctx context.Context, t *client.Team) error {
	why, err := t.Unled(ctx)
	if err == nil && why != "" {
		err = fmt.Errorf("%s %w: %s", team.Leader.At(t.ID()), errUnled, team.OneLine(why))
	}
	return err
}

// printOf prints when each problem begins and ends, until stop is called.
func (a *app) printOf(ctx context.Context, all ...trouble) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, t := range all {
		wg.Go(func() {
			told := false
			shutdown.Every(ctx, askTrouble, func(ctx context.Context) {
				asked, over := context.WithTimeout(ctx, askTrouble)
				err := t.ask(asked)
				over()
				switch {
				case errors.Is(err, t.kind) && !told:
					told = true
					a.notice(team.Line(err) + t.then)
				case err == nil && told:
					told = false
					a.notice(t.over)
				}
			})
		})
	}
	return func() { cancel(); wg.Wait() }
}

// hasEnded returns the error of a command whose cluster was ended properly.
func hasEnded(file string) error {
	return down{team.Errorf(team.Unavailable, "the cluster of %s %w", folderOf(file), errClusterEnded).WithHint("its teams are kept; to go on, there: teamctl up -d")}
}

// patience is how long a command waits before it prints what it waits for.
const patience = 3 * time.Second

// waitsFor prints what the command waits for after a while, unless over is called before.
func (a *app) waitsFor(what string) (over func()) {
	said := make(chan struct{})
	t := time.AfterFunc(patience, func() {
		defer close(said)
		a.notice("waiting for " + what)
	})
	return sync.OnceFunc(func() {
		if !t.Stop() { // what follows is not printed in between
			<-said
		}
	})
}

// notice prints a status line beside the output.
func (a *app) notice(line string) { fmt.Fprintln(a.err, printable(line)) }
