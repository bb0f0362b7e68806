package process

import (
	"context"
	"os"
	"sync"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/config"
	"agentteam/pkg/model/router"
	"agentteam/pkg/shutdown"
)

// pollEvery is how often a process checks whether its settings file has changed.
const pollEvery = 2 * time.Second

// Models returns the aliases of this process's models, without further names of the same. The slice
// is the caller's.
func (p *Process) Models() []string { return p.models.Names() }

// Aliases returns every name that this process has for a model, its default first. The slice is the
// caller's.
func (p *Process) Aliases() []string { return p.models.Known() }

// ModelsChanged returns a channel that is closed when the process gets other models.
func (p *Process) ModelsChanged() <-chan struct{} { return p.models.Changed() }

// announceModels logs the faults of the models of cfg, which may work all the same.
func (p *Process) announceModels(cfg config.Config) {
	for _, err := range cfg.Lacking() {
		p.Log.Warn("model left out", "err", err)
	}
	if err := cfg.CheckModel(); err != nil {
		p.Log.Info("no model is configured; the process can only wait", "hint", err.Error())
	}
}

// announce announces the process with a change, in place of its last announcement.
func (p *Process) announce(change func(*control.Process)) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	next := p.announced
	change(&next)
	hide, err := control.Announce(p.Conn, next)
	if err != nil {
		return err
	}
	if p.hide == nil {
		p.stop = append(p.stop, func() { p.hide() })
	} else {
		p.hide()
	}
	p.hide, p.announced = hide, next
	return nil
}

// AnnounceAPI announces where this process serves the HTTP API.
func (p *Process) AnnounceAPI(url string) error {
	return p.announce(func(told *control.Process) { told.API = url })
}

// modelName returns the endpoint's name of the default model.
func modelName(routes router.Routes) string {
	for _, a := range routes.Aliases {
		if a.Name == routes.Default {
			return a.Options.Model
		}
	}
	return control.NoModel
}

// stamp is the state of a file; equal stamps are taken for the same content.
type stamp struct {
	changed time.Time
	size    int64
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// Decided returns the error of [config.Config.Decided] for a process as it starts. For a child, the
// command that started its cluster has decided on the place, the server and the sandbox. Each child
// decides on the models: after a file of the repository has changed, a restarted child continues
// with no other model.
func Decided(cfg config.Config) error {
	if childproc.Cluster() == "" {
		return cfg.Decided()
	}
	return cfg.Decided("base_url", "model", "profile", "models", "default_model")
}

// follow reads the models again whenever the settings file has changed, until stop is called. Its
// other settings take effect at the next start.
func (p *Process) follow(ctx context.Context, file string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	last := stampOf(file)
	var wg sync.WaitGroup
	wg.Go(func() {
		shutdown.Every(ctx, pollEvery, func(context.Context) {
			if now := stampOf(file); now != last {
				last = now
				p.reload()
			}
		})
	})
	return func() { cancel(); wg.Wait() }
}

// lessonWait bounds the wait for the lessons of others, without which a process can work.
const lessonWait = 2 * time.Second

// share exchanges lessons about model endpoints with other processes until stop is called. It returns once it has theirs:
// a call before that might be refused.
func (p *Process) share(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := p.lessons.Run(ctx, p.Conn, sync.OnceFunc(func() { close(ready) })); err != nil && ctx.Err() == nil {
			p.Log.Warn("lessons about model endpoints are not shared with other processes", "err", err)
		}
	}()
	select {
	case <-ready:
	case <-done:
	case <-time.After(lessonWait):
	}
	return func() { cancel(); <-done }
}

func (p *Process) reload() {
	cfg, err := p.Config.Reload()
	if err == nil {
		err = cfg.Decided() // a member may have changed the file
	}
	if err == nil {
		err = p.models.Reload(cfg.Routes())
	}
	if err != nil {
		p.Log.Error("the settings have changed and are not taken; the models stay as they were", "err", err)
		return
	}
	p.Log.Info("the models were read again", "aliases", p.Aliases())
	p.announceModels(cfg)
	if err := p.announce(func(told *control.Process) { told.Model, told.Aliases = modelName(cfg.Routes()), p.Aliases() }); err != nil {
		p.Log.Error("others are not told of the new models", "err", err)
	}
}
