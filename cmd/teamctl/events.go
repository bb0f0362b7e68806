package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

func (a *app) eventsCmd() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened in the team, and with --follow what happens from now on", Args: atMost(0),
		Long: "events shows what the agents said and did, their mail, and what became of tasks and members,\n" +
			"in the order in which it happened.\n" +
			"With -o jsonl, or json and --follow, it is one entry a line, each with the cursor that --after takes.",
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "continue with what comes, until Ctrl-C or --timeout")
	flags.StringVar(&f.after, "after", "", "continue behind this entry, by its cursor")
	flags.Var(&f.since, "since", "begin at this time, such as 10m (ago), 14:30 or 2026-11-22T14:30:00Z")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show calls and results as they are, and all that is otherwise left out")
	cmd.MarkFlagsMutuallyExclusive("after", "since")
	flags.StringSliceVar(&f.agents, "agent", nil, "only events of these agents")
	flags.StringSliceVar(&f.types, "type", nil, "only events of these types, such as TASK_COMPLETED")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"agent": completeMembers, "type": fixed(team.Strings(team.EventTypes()...)...)})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := f.options(a)
		if err != nil {
			return err
		}
		if f.follow {
			return a.followEvents(cmd.Context(), o, f)
		}
		return a.atOnce(func() error { return a.pastEvents(o, f) })
	}
	return cmd
}

// pastEvents prints what has happened so far.
func (a *app) pastEvents(o client.FeedOptions, f eventFlags) error {
	print := a.pastPrinter()
	return a.readTeam(print.end, func(ctx context.Context, t *client.Team) (err error) {
		if err := areMembers(ctx, t, o.Agents...); err != nil {
			return err
		}
		if o.After, err = f.from(ctx, t); err != nil {
			return err
		}
		p, err := a.orStream(ctx, t, print, render.Options{Full: f.verbose, Dated: true}, o.After)
		if err != nil {
			return err
		}
		none := true
		err = t.Feed(ctx, o, func(e client.Entry) error { none = false; return p.entry(e) })
		if err == nil && none && len(f.agents) > 0 {
			a.note(fmt.Sprintf("team %s has no such event of %s", t.ID(), strings.Join(f.agents, " or ")))
		}
		return closed(err, p.end)
	})
}

// areMembers returns an error for names that no member has or had; "" is ignored.
func areMembers(ctx context.Context, t *client.Team, names ...team.AgentID) error {
	if !slices.ContainsFunc(names, func(name team.AgentID) bool { return name != "" }) {
		return nil
	}
	members, err := t.Members().Records(ctx)
	for _, name := range names {
		is := func(m team.Member) bool { return m.AgentID == name }
		if err == nil && name != "" && name != team.UserAgent && name != team.Watchdog && name != team.Leader && !slices.ContainsFunc(members, is) {
			_, err = t.Members().Get(ctx, name) // in the words of every other command
		}
	}
	return err
}

// closed calls end, and returns err or, if that is nil, end's error.
func closed(err error, end func() error) error {
	if eerr := end(); err == nil {
		return eerr
	}
	return err
}

// eventFlags are the flags of events.
type eventFlags struct {
	follow, verbose bool
	after           string
	since           moments
	agents, types   []string
}

// from returns the position in the team's feed at which to begin.
func (f eventFlags) from(ctx context.Context, t *client.Team) (client.Cursor, error) {
	if f.since.IsZero() {
		return client.Cursor(f.after), nil
	}
	return t.FeedAt(ctx, f.since.Time)
}

func (f eventFlags) options(app *app) (o client.FeedOptions, err error) {
	o.Follow = f.follow
	if o.Agents, err = parseAll(f.agents, func(s string) (team.AgentID, error) {
		if a := team.AgentID(s); a == team.UserAgent || a == team.Watchdog { // who are no members, and send mail
			return a, nil
		}
		return app.member(s)
	}); err != nil {
		return o, err
	}
	o.Types, err = parseAll(f.types, team.ParseEventType)
	return o, err
}

// followEvents prints each entry as it comes, until the time limit, if there is one, or an interrupt.
func (a *app) followEvents(ctx context.Context, o client.FeedOptions, f eventFlags) error {
	return a.following(ctx, a.awaitTeam, func(ctx context.Context, t *client.Team) error {
		err := areMembers(ctx, t, o.Agents...)
		if err != nil {
			return err
		}
		if o.After, err = f.from(ctx, t); err != nil {
			return err
		}
		if !a.forPeople() {
			return t.Feed(ctx, o, a.followPrinter().entry)
		}
		s, err := a.plainStream(ctx, t, render.Options{Full: f.verbose, Dated: true}, o.After)
		if err != nil {
			return err
		}
		if len(o.Types) == 0 || slices.Contains(o.Types, team.TextChunk) {
			s.listen(t, o.Agents...)
		}
		return closed(t.Feed(ctx, o, s.entry), s.close)
	})
}

// entryPrinter prints entries one by one, without keeping them; a second function ends the output. For people
// entry is nil: they see a stream.
type entryPrinter struct {
	entry func(client.Entry) error
	end   func() error
}

// followPrinter returns a printer of single entries.
func (a *app) followPrinter() entryPrinter {
	return entryPrinter{oneByOne(a, func(e client.Entry) string { return string(e.Cursor) }), func() error { return nil }}
}

// orStream returns p or, for people, a stream of the team from a position of its feed.
func (a *app) orStream(ctx context.Context, t *client.Team, p entryPrinter, o render.Options, after client.Cursor) (entryPrinter, error) {
	if p.entry != nil {
		return p, nil
	}
	s, err := a.plainStream(ctx, t, o, after)
	if err != nil {
		return p, err
	}
	return entryPrinter{s.entry, s.close}, nil
}

// plainStream returns a stream on stdout without a goal's progress.
func (a *app) plainStream(ctx context.Context, t *client.Team, o render.Options, after client.Cursor) (*stream, error) {
	return a.streamOf(ctx, t, a.out, o, after, time.Time{}, func(team.TaskID) bool { return true })
}

// pastPrinter returns a printer that prints entries as one list where the format has lists.
func (a *app) pastPrinter() entryPrinter {
	begun := false
	closing := func(last string) func() error {
		return func() error {
			if !begun {
				last = "[]\n"
			}
			_, err := io.WriteString(a.out, last)
			return err
		}
	}
	switch a.output {
	case asJSON:
		return entryPrinter{func(e client.Entry) error {
			lead := ","
			if !begun {
				lead, begun = "[", true
			}
			if _, err := fmt.Fprint(a.out, lead); err != nil {
				return err
			}
			return writeJSON(a.out, e)
		}, closing("]\n")}
	case asYAML:
		return entryPrinter{func(e client.Entry) error { begun = true; return writeYAML(a.out, []client.Entry{e}) }, closing("")}
	}
	return a.followPrinter()
}

// awaitTeam opens the team. A missing default team is no error: awaitTeam waits until it is created.
func (a *app) awaitTeam(ctx context.Context, c *client.Client, id team.TeamID) (*client.Team, error) {
	for told := false; ; told = true {
		t, err := c.Open(ctx, id)
		if !errors.Is(err, team.NotFound) || id != team.DefaultTeam {
			return t, err
		}
		if !told {
			a.note(team.Line(team.Errorf(team.NotFound, "%w; waiting for it", err).WithHint("%s", team.HintOf(err))))
		}
		if !shutdown.Sleep(ctx, pollEvery) {
			return nil, ctx.Err()
		}
	}
}

// pollEvery is how often events --follow checks whether the default team exists.
const pollEvery = 300 * time.Millisecond
