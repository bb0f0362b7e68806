// Package screen is a live screen of the teams of a cluster, for a terminal: the state of each member and its reason,
// the board, the stream of events, one agent's conversation, items that wait for the person, and actions on them.
//
//	keys, ticks ─────┐
//	package client ──┴──▶ model.Update ──▶ model.View ──▶ the terminal
//
// The model is pure: events arrive as messages, entries of the feed through the fold of package feed/state, and a
// person's actions leave it as values. View changes only the scroll position of a page and its cache of drawn lines.
// Texts of agents reach the terminal as plain text only (render.Printable).
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

// framesPerSecond bounds the output for a slow connection.
const framesPerSecond = 10

// Options state what is shown, and where.
type Options struct {
	Client  *client.Client
	Team    team.TeamID // to begin with; "" = the list of teams
	In, Out *os.File    // a terminal
	Env     []string    // shows which colours that has, and whether they are wanted
	Leave   Leave       // what leaving means

	// Traits returns what holds for the calls of the tool that is called so, as in package render.
	Traits func(name string) tool.Traits
}

// Leave states the effect of leaving the screen of a command that pursues a goal. For a command that only shows it is
// empty.
type Leave struct {
	Ask   string          // is asked before the goal has ended, whichever team is shown
	Ended <-chan struct{} // is closed when it has; with Ask
	Ends  bool            // the cluster lives in this process
}

// Run shows the screen until the person leaves it, and then returns nil, or until ctx ends, whose cause it returns. It
// restores the terminal in any case, also after a panic.
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

// show shows m, and runs beside in the background until that ends.
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
