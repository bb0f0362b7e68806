package screen

import (
	"fmt"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
)

// longTimeline is one of 50 members that have been at 4,000 things each.
func longTimeline() timeline.Timeline {
	t := timeline.Timeline{From: began, To: at(4000)}
	for i := range 50 {
		l := timeline.Lane{AgentID: team.AgentID(fmt.Sprintf("coder-%d", i)), Seconds: map[timeline.Kind]float64{timeline.Model: 120_000, timeline.Tool: 120_000}}
		for n := range 4000 {
			l.Spans = append(l.Spans, timeline.Span{Kind: []timeline.Kind{timeline.Model, timeline.Tool}[n%2], From: at(n), To: at(n + 1)})
		}
		t.Lanes = append(t.Lanes, l)
	}
	return t
}

// BenchmarkFrame is a frame of a team of 50 members and 1,000 tasks, after ten entries of its feed,
// as at 100 entries a second. There are ten frames a second at most.
func BenchmarkFrame(b *testing.B) {
	for _, tab := range []pageKind{membersPage, boardPage, streamPage, timelinePage} {
		b.Run(tabNames[tab], func(b *testing.B) {
			p := newPlay(160, 50)
			p.show()
			l := p.room.snapshot
			tasks := make([]team.Task, 1000)
			for i := range tasks {
				tasks[i] = task(i+1, fmt.Sprintf("Do the part %d of the work", i+1), team.Pending)
				if i > 10 {
					tasks[i].Dependencies = []team.TaskID{team.MakeTaskID(i - 9)}
				}
			}
			p.room.state.KnowTasks(tasks, nil)
			p.room.groups = nil
			for i := range 45 {
				l.agents = append(l.agents, client.Agent{Member: member(team.AgentID(fmt.Sprintf("coder-%d", i)), "coder", team.Colour(i)), State: team.Running})
			}
			p.send(looked{1, l})
			p.tab = int(tab)
			p.send(charted{session: 1, timeline: longTimeline()})
			n := 0
			entries := func() (all []feed.Entry) {
				for range 10 {
					n++
					all = append(all, entry(9, team.AgentID(fmt.Sprintf("coder-%d", n%45)), team.EventBody{Type: team.TextChunk, MessageID: fmt.Sprint(n), Delta: fmt.Sprintf("I am at part %d, which takes a while, since its tests are slow.", n)}, nil))
				}
				return all
			}
			for range mostEntries / 10 {
				p.send(newEntries{session: 1, entries: entries(), at: at(10)})
			}
			b.ResetTimer()
			for b.Loop() {
				p.send(newEntries{session: 1, entries: entries(), at: at(10)})
				p.View()
			}
		})
	}
}
