package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// memberJob is a job and its owner.
type memberJob struct {
	AgentID team.AgentID `json:"agent_id"` // its owner
	team.Job
}

func (a *app) agentsJobsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "jobs [NAME...]", Short: "List what members have under way beside their conversation",
		Long: "jobs lists the subagents of the members, or of those that are named, and their commands in the background.\n" +
			"A subagent's conversation is shown by teamctl agents transcript OWNER.ID.",
		ValidArgsFunction: completePresent,
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := parseAll(args, a.member)
			if err != nil {
				return err
			}
			return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
				agents, err := t.Members().List(ctx, false)
				if err != nil {
					return err
				}
				var jobs []memberJob
				for _, m := range agents {
					for _, j := range m.Jobs {
						jobs = append(jobs, memberJob{m.AgentID, j})
					}
				}
				if jobs, err = jobsOf(ctx, t, jobs, names); err != nil {
					return err
				}
				if len(jobs) == 0 {
					a.note("no subagents are at work, and no commands run in the background")
				}
				return a.printJobs(jobs)
			})
		},
	}
}

// jobsOf returns the jobs whose owners are in names; all jobs if names is empty. Error: NotFound for a name
// that no member has had.
func jobsOf(ctx context.Context, t *client.Team, jobs []memberJob, names []team.AgentID) ([]memberJob, error) {
	if len(names) == 0 {
		return jobs, nil
	}
	of := []memberJob{}
	for _, name := range names {
		if _, err := t.Members().Get(ctx, name); err != nil {
			return nil, err
		}
		for _, j := range jobs {
			if j.AgentID == name {
				of = append(of, j)
			}
		}
	}
	return of, nil
}

func (a *app) printJobs(jobs []memberJob) error {
	return printList(a, jobs, func(j memberJob) string { return j.ID }, func() table {
		t := table{columns: []column{{head: "OWNER", cut: true}, {head: "ID"}, {head: "KIND"}, {head: "STATE"}, {head: "SINCE", drop: 1}, {head: "WHAT", cut: true},
			{head: "TASK", drop: 2, wide: true}, {head: "TURNS", drop: 3, wide: true}, {head: "TOKENS", drop: 3, wide: true}}}
		for _, j := range jobs {
			kind := string(j.Kind)
			if j.Type != "" {
				kind += " (" + printable(j.Type) + ")"
			}
			t.add(string(j.AgentID), j.ID, kind, jobState(j.Job), age(j.Since), printable(j.About), orDash(string(j.Task)), turnsOf(j.Job), fmt.Sprint(j.Tokens))
		}
		return t
	})
}

// jobState describes a job's state in a few words.
func jobState(j team.Job) string {
	switch {
	case j.Ended != "":
		return "ended: " + printable(j.Ended)
	case j.Asked != "":
		return "waits for a person: " + printable(j.Asked)
	case j.Kind == team.JobCommand && j.Still >= int(silentShown/time.Second):
		return "silent for " + (time.Duration(j.Still) * time.Second).String()
	}
	return "running"
}

// silentShown is the time without output after which a command is shown as silent.
const silentShown = time.Minute

func turnsOf(j team.Job) string {
	if j.Kind != team.JobSubagent {
		return "-"
	}
	return fmt.Sprint(j.Turns)
}
