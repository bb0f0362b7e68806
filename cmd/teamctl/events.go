package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) eventsCmd() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened in the team, and with --follow what happens", Args: atMost(0),
		Long: "events shows what the agents said and did, their mail, and what became of tasks and members,\n" +
			"in the order in which it happened.\n" +
			"With -o jsonl, or json and --follow, it is one entry a line, each with the cursor that --after takes.",
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with what comes, until Ctrl-C or --timeout")
	flags.StringVar(&f.after, "after", "", "go on behind this entry, by its cursor")
	flags.StringSliceVar(&f.agents, "agent", nil, "only events of these agents")
	flags.StringSliceVar(&f.types, "type", nil, "only events of these types, such as TASK_COMPLETED")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"agent": completeMembers, "type": fixed(eventTypeNames()...)})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := f.options()
		if err != nil {
			return err
		}
		if f.follow {
			return a.followEvents(cmd.Context(), o)
		}
		colours := map[team.AgentID]string{}
		print := a.pastPrinter(func() map[team.AgentID]string { return colours })
		err = a.readTeam(func(ctx context.Context, t *client.Team) error {
			colours = t.Colours(ctx)
			none := true
			err := t.Feed(ctx, o, func(e client.Entry) error { none = false; return print.entry(e) })
			if err == nil && none && len(f.agents) > 0 {
				a.note(fmt.Sprintf("team %s has no such event of %s", t.ID(), strings.Join(f.agents, " or ")))
			}
			return err
		})
		if err != nil {
			return err
		}
		return print.end()
	}
	return cmd
}

// eventFlags are the flags of events.
type eventFlags struct {
	follow        bool
	after         string
	agents, types []string
}

func (f eventFlags) options() (client.FeedOptions, error) {
	o := client.FeedOptions{Follow: f.follow, After: client.Cursor(f.after)}
	for _, s := range f.agents {
		a, err := team.AgentID(s), error(nil)
		if a != team.UserAgent && a != team.Watchdog { // who are no members, and send mail
			a, err = team.ParseAgentID(s)
		}
		if err != nil {
			return o, err
		}
		o.Agents = append(o.Agents, a)
	}
	for _, s := range f.types {
		t, err := team.ParseEventType(s)
		if err != nil {
			return o, err
		}
		o.Types = append(o.Types, t)
	}
	return o, nil
}

func eventTypeNames() (names []string) {
	for _, t := range team.EventTypes() {
		names = append(names, string(t))
	}
	return names
}

// followEvents prints each entry as it comes; it ends by the time limit, if one
// was given, or by an interrupt.
func (a *app) followEvents(ctx context.Context, o client.FeedOptions) error {
	return a.following(ctx, a.awaitTeam, func(ctx context.Context, t *client.Team) error {
		show := a.showEntries(func() map[team.AgentID]string { return t.Colours(ctx) })
		return t.Feed(ctx, o, func(e client.Entry) error {
			switch a.output {
			case asJSON, asJSONL:
				return writeJSON(a.out, e)
			case asYAML:
				if _, err := fmt.Fprintln(a.out, "---"); err != nil {
					return err
				}
				return writeYAML(a.out, e)
			case asName:
				_, err := fmt.Fprintln(a.out, e.Cursor)
				return err
			}
			return show(e)
		})
	})
}

// entryPrinter prints entries one by one, so that none is kept, and then what ends them.
type entryPrinter struct {
	entry func(client.Entry) error
	end   func() error
}

// pastPrinter prints entries as one list where the format has lists.
func (a *app) pastPrinter(colours func() map[team.AgentID]string) entryPrinter {
	none := true
	empty := func() error {
		if !none {
			return nil
		}
		_, err := fmt.Fprintln(a.out, "[]")
		return err
	}
	switch a.output {
	case asJSON:
		return entryPrinter{func(e client.Entry) error {
			lead := ","
			if none {
				lead, none = "[", false
			}
			if _, err := fmt.Fprint(a.out, lead); err != nil {
				return err
			}
			return writeJSON(a.out, e)
		}, func() error {
			if none {
				return empty()
			}
			_, err := fmt.Fprintln(a.out, "]")
			return err
		}}
	case asYAML:
		return entryPrinter{func(e client.Entry) error { none = false; return writeYAML(a.out, []client.Entry{e}) }, empty}
	case asJSONL:
		return entryPrinter{func(e client.Entry) error { return writeJSON(a.out, e) }, func() error { return nil }}
	case asName:
		return entryPrinter{func(e client.Entry) error { _, err := fmt.Fprintln(a.out, e.Cursor); return err }, func() error { return nil }}
	}
	return entryPrinter{a.showEntries(colours), func() error { return nil }}
}

// awaitTeam opens the team. The default one has nothing to tell, rather than being
// unknown, until somebody makes it.
func (a *app) awaitTeam(ctx context.Context, c *client.Client, id team.TeamID) (*client.Team, error) {
	for told := false; ; told = true {
		t, err := c.Open(ctx, id)
		if !errors.Is(err, team.NotFound) || id != team.DefaultTeam {
			return t, err
		}
		if !told {
			a.note(team.Line(team.Errorf(team.NotFound, "%w; waiting for it", err).WithHint("%s", team.HintOf(err))))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// lookEvery is how soon events --follow sees that the default team was made.
const lookEvery = 300 * time.Millisecond

// showEntries returns what prints an entry as a line for people.
func (a *app) showEntries(colours func() map[team.AgentID]string) func(client.Entry) error {
	s, width := newStream(a.out, colours), a.width()
	if a.output == asWide {
		width = 0
	}
	return func(e client.Entry) error {
		text, aside := what(e)
		line := faint.Render(e.Time.Local().Format(time.TimeOnly)) + " "
		if e.AgentID != "" { // a word of the feed itself is nobody's
			line += s.name(e.Event) + " "
		}
		line += printable(text) + faint.Render(printable(aside))
		if width > 0 {
			line = ansi.Truncate(line, width, "…")
		}
		_, err := fmt.Fprintln(s.w, line)
		return err
	}
}

// what says in one line what happened; aside is what is only looked at if need be.
func what(e client.Entry) (text, aside string) {
	b := e.Event.Event
	switch b.Type {
	case team.RunStarted:
		return "", "began a run"
	case team.RunFinished:
		return "", "ended its run"
	case team.RunError:
		return "! " + oneLine(b.Message), ""
	case team.TextChunk:
		return oneLine(b.Delta), ""
	case team.ToolCallChunk:
		return "→ " + b.ToolCallName + " ", oneLine(b.Delta)
	case team.ToolCallResult:
		return "", "← " + oneLine(b.Content)
	case team.Retry:
		return "! no turn: " + oneLine(b.Message), ""
	case team.Compacted:
		return "", "made its conversation shorter"
	case team.MailSent:
		var m team.Message
		if json.Unmarshal(b.Value, &m) == nil {
			return "→ " + addressee(m.To) + ": " + oneLine(m.Content), " (" + string(m.Type) + ")"
		}
	case team.Custom:
		return b.Name, " " + oneLine(string(b.Value))
	}
	kind, verb, _ := strings.Cut(string(b.Type), "_")
	verb = strings.ToLower(verb)
	switch kind {
	case "TASK":
		var t team.Task
		if json.Unmarshal(b.Value, &t) == nil {
			return fmt.Sprintf("%s %s: %s", t.ID, verb, t.Title), why(t)
		}
	case "MEMBER":
		var m team.Member
		if json.Unmarshal(b.Value, &m) == nil {
			return "member " + verb, " " + oneLine(m.Role+" "+m.LastError)
		}
	}
	return string(b.Type), " " + oneLine(string(b.Value))
}

// addressee is how whoever gets a message is shown.
func addressee(a team.AgentID) string {
	if a == team.Everyone {
		return "all"
	}
	return string(a)
}

// why is the reason of a task's last change, or its result.
func why(t team.Task) string {
	switch {
	case t.Status == team.Completed:
		return " (" + oneLine(t.ResultSummary) + ")"
	case t.Reason != "":
		return " (" + oneLine(t.Reason) + ")"
	}
	return ""
}
