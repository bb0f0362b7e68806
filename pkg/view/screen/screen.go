// Package screen is a live screen of the teams of a cluster, for a terminal: how each member
// stands and why, the board, what happens, one agent's conversation, what waits for the person,
// and what a person can do about it.
//
//	keys, ticks ─────┐
//	package client ──┴──▶ model.Update ──▶ model.View ──▶ the terminal
//
// The model is pure: what happens comes as messages, of the feed by the fold of package
// feed/state, and what a person wants done leaves it as a value. View changes no more of it than
// how far a page is scrolled, and what it has drawn and draws again. Nothing that an agent wrote
// reaches the terminal as anything but text (render.Printable).
//
// It draws at most ten times a second, and nothing while nothing has changed. It stores nothing.
package screen

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// framesPerSecond bounds what is sent over a slow line.
const framesPerSecond = 10

// Options are what is shown, and where.
type Options struct {
	Client  *client.Client
	Team    team.TeamID // to begin with; "" = the list of teams
	In, Out *os.File    // a terminal
	Env     []string    // shows which colours that has, and whether they are wanted
	Leave   Leave       // what leaving means

	// Traits returns what holds for the calls of the tool that is called so, as in package render.
	Traits func(name string) tool.Traits
}

// Leave is what it means to leave the screen of a command that pursues a goal. Of one that only
// shows it is empty.
type Leave struct {
	Ask   string          // is asked before the goal has ended, whichever team is shown
	Ended <-chan struct{} // is closed when it has; with Ask
	Ends  bool            // the cluster lives in this process
}

// Run shows the screen until the person leaves it, and then returns nil, or until ctx ends,
// whose cause it returns. However it ends, also by a panic, the terminal is as it was before.
func Run(ctx context.Context, o Options) error {
	b := &backend{client: o.Client}
	m := newModel(b, o.Traits, time.Local, o.Leave)
	m.wants, m.now = o.Team, time.Now()
	return b.show(ctx, m, o, func(ctx context.Context) {
		b.run(ctx, func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-o.Leave.Ended:
				b.send(ended{})
			}
		})
		b.client.Connection(ctx, func(connected bool) { b.send(linked(connected)) })
	})
}

// show shows m, and has something done beside it until that ends.
func (b *backend) show(ctx context.Context, m tea.Model, o Options, beside func(context.Context)) error {
	var stop context.CancelFunc
	b.ctx, stop = context.WithCancel(ctx)
	defer stop()
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env),
		tea.WithColorProfile(colorprofile.Detect(o.Out, o.Env)), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())
	b.send, b.quit = p.Send, p.Quit
	// Not by the program's own context: it would leave its reader of the terminal behind.
	defer context.AfterFunc(ctx, p.Quit)()
	b.run(b.ctx, beside)
	_, err := p.Run()
	stop()
	b.parts.Wait()
	if v := b.panicked.Load(); v != nil {
		panic(*v) // where the terminal can show it
	}
	if err == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
