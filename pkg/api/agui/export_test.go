package agui

import (
	"agentteam/pkg/api/stream"
	"agentteam/pkg/team"
)

// Tell tells a goal in which this happens, and its end.
func Tell(items []stream.Item, tasks []team.Task, write func(any) error) error {
	r := newRun("thread", "run", write)
	err := r.begin(team.Team{ID: "red"}, tasks)
	for _, i := range items {
		if err == nil {
			err = r.take(i)
		}
	}
	if err == nil {
		err = r.finish(team.Team{Status: team.TeamFinished})
	}
	return err
}
