package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/job"
)

// jobEnded records the end of a background job.
func (a *Agent) jobEnded(ctx context.Context, e job.Ended) error {
	err := a.engine.Record(ctx, journal.Record{Kind: journal.Note, Text: "In the background: " + neutral(e.Text), Jobs: []team.Job{e.Job}})
	if err == nil {
		e.Recorded()
		a.heartbeatAgain()
	}
	return err
}

// noteLostJobs notes for the model which background jobs ended with the previous process.
func (a *Agent) noteLostJobs(ctx context.Context) error {
	if len(a.conv.LostJobs) == 0 {
		return nil
	}
	lost := slices.Clone(a.conv.LostJobs)
	for i := range lost {
		lost[i].Ended = "lost with its owner's process"
	}
	return a.engine.Record(ctx, journal.Record{Kind: journal.Note, Jobs: lost,
		Text: "Your process was restarted. What you had in the background has ended with it:\n" + jobLines(lost) + "\nStart it again if you still need it."})
}

// jobLines lists jobs, a line each.
func jobLines(jobs []team.Job) string {
	lines := make([]string, len(jobs))
	for i, j := range jobs {
		lines[i] = fmt.Sprintf("- %s: %s", j.ID, neutral(j.About))
	}
	return strings.Join(lines, "\n")
}

// jobs takes in jobs that have begun or ended.
func (c *Conversation) jobs(all []team.Job) {
	for _, j := range all {
		at := func(o team.Job) bool { return o.ID == j.ID }
		listed := slices.ContainsFunc(c.Jobs, at) || slices.ContainsFunc(c.LostJobs, at)
		c.Jobs, c.LostJobs = slices.DeleteFunc(slices.Clone(c.Jobs), at), slices.DeleteFunc(slices.Clone(c.LostJobs), at)
		switch {
		case j.Ended == "":
			c.Jobs = append(c.Jobs, j)
		case listed || !j.Background: // else it is known already
			c.JobTokens += j.Tokens
		}
	}
}

// running lists the background jobs for a context that no longer contains them.
func (c *Conversation) running() string {
	if len(c.Jobs) == 0 {
		return ""
	}
	return "What you have in the background, of whose end you are told:\n" + jobLines(c.Jobs) + "\n"
}
