package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) eventsCmd() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened in the team, and with --follow what happens", Args: atMost(0),
		Long: "events shows what the agents said and did, merged with what became of tasks and members.\n" +
			"With -o jsonl, or json and --follow, it is one entry a line.",
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C or --timeout")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if follow {
			return a.followEvents(cmd.Context())
		}
		var all []client.Entry
		var colours map[team.AgentID]string
		err := a.readTeam(func(ctx context.Context, t *client.Team) error {
			colours = t.Colours(ctx)
			return t.Feed(ctx, false, func(e client.Entry) error { all = append(all, e); return nil })
		})
		if err != nil {
			return err
		}
		items, cursors := make([]any, len(all)), make([]string, len(all))
		for i, e := range all {
			items[i], cursors[i] = e, e.Cursor
		}
		return a.print(items, items, cursors, func(io.Writer, bool) error {
			show := a.showEntries(func() map[team.AgentID]string { return colours })
			for _, e := range all {
				if err := show(e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// followEvents prints each entry as it comes; it ends by the time limit, if one
// was given, or by an interrupt.
func (a *app) followEvents(ctx context.Context) error {
	return a.following(ctx, a.awaitTeam, func(ctx context.Context, t *client.Team) error {
		show := a.showEntries(func() map[team.AgentID]string { return t.Colours(ctx) })
		return t.Feed(ctx, true, func(e client.Entry) error {
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
		line := faint.Render(e.Time.Local().Format(time.TimeOnly)) + " " + s.name(e.Event) + " " + printable(text) + faint.Render(printable(aside))
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
			return "member " + verb, " " + strings.TrimSpace(m.Role+" "+m.LastError)
		}
	}
	return string(b.Type), " " + oneLine(string(b.Value))
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
