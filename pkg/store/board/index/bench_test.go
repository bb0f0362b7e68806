package index

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// loaded is a state of n tasks, each tenth blocked by the one before it, and as
// many agents, all idle.
func loaded(tasks, agents int) *state {
	s := newState()
	for n := range tasks {
		t := task(n+1, priority(n%3), role([]string{"", "coder", "tester"}[n%3]))
		t.Description = "Read the file, and say in one sentence what it is for."
		if n%10 == 9 {
			t.Dependencies = []team.TaskID{team.MakeTaskID(n)}
		}
		on(&s, t)
	}
	for n := range agents {
		s.hear(idle(agent(n), []string{"coder", "tester"}[n%2]), start)
	}
	return &s
}

func agent(n int) team.AgentID { return team.AgentID(fmt.Sprintf("agent-%d", n)) }

// The whole way of one task through the index: offered, claimed, completed, its
// agent idle again. What it costs must not depend on how much else there is.
func BenchmarkCycle(b *testing.B) {
	for _, size := range []struct{ tasks, agents int }{{1_000, 10}, {10_000, 100}, {100_000, 1_000}} {
		b.Run(fmt.Sprintf("%d tasks, %d agents", size.tasks, size.agents), func(b *testing.B) {
			s := loaded(size.tasks, size.agents)
			now := start
			beats := map[team.AgentID]uint64{}
			hear := func(a *asker, st team.MemberState) {
				beat := a.heartbeat
				beat.N, beat.State = beat.N+1, st
				beats[beat.AgentID] = beat.N
				s.hear(beat, now)
			}
			write := func(t team.Task, revision uint64) broker.Entry {
				data, err := json.Marshal(t)
				if err != nil {
					b.Fatal(err)
				}
				return broker.Entry{Key: subject.KeyTask(t.ID), Value: data, Revision: revision}
			}
			under := s.match(now) // all are at work; one of them is followed at a time
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				o := under[0]
				under = under[1:]
				t, a := o.node.task, o.agent
				b.StopTimer() // what the agent does
				t.Status, t.Assignee, t.Incarnation = team.InProgress, a.heartbeat.AgentID, 1
				claim := write(t, s.seq+1)
				t.Status = team.Completed
				done := write(t, s.seq+2)
				t.Status, t.Assignee = team.Pending, "" // so that there is always as much to do
				again := write(t, s.seq+3)
				b.StartTimer()
				for _, e := range []broker.Entry{claim, done, again} {
					if err := s.take(e, now); err != nil {
						b.Fatal(err)
					}
				}
				hear(a, team.Running)
				hear(a, team.Idle)
				under = append(under, s.match(now)...)
			}
		})
	}
}

// What the state itself costs, without reading the records.
func BenchmarkTransition(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := loaded(size, 0)
			n := s.nodes["T-009"]
			steps := []team.Task{n.task, n.task, n.task}
			steps[0].Status, steps[1].Status = team.InProgress, team.Completed
			for i := 0; b.Loop(); i++ {
				s.seq++
				t := steps[i%3]
				t.Revision = s.seq
				s.Show(t.ID, t)
			}
		})
	}
}

// One beat of an agent that waits.
func BenchmarkBeat(b *testing.B) {
	for _, size := range []int{10, 1_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := loaded(0, size)
			beat := idle(agent(size/2), "coder")
			for b.Loop() {
				beat.N++
				s.hear(beat, start)
				s.match(start)
			}
		})
	}
}

func BenchmarkLook(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := loaded(size, 0)
			for n := range 100 {
				s.setMember(team.Member{AgentID: agent(n)}, true)
				on(s, task(n+1, heldBy(agent(n))))
			}
			for b.Loop() {
				if l := s.snapshot(); len(l.Running) != 100 {
					b.Fatal(len(l.Running))
				}
			}
		})
	}
}

// A page of 100 out of 100,000 tasks, as it is answered.
func BenchmarkPage(b *testing.B) {
	s := loaded(100_000, 0)
	yes := true
	for name, q := range map[string]team.Query{
		"all":       {},
		"middle":    {After: "T-50000.0.0"},
		"claimable": {Claimable: &yes, Role: "coder"},
		"text":      {Text: "ONE SENTENCE"},
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				p, err := q.Fit(s.page(q), maxReply)
				if err == nil {
					_, err = json.Marshal(p)
				}
				if err != nil || len(p.Tasks) != 100 {
					b.Fatal(len(p.Tasks), err)
				}
				took = append(took, time.Since(begun))
			}
			report(b, took)
		})
	}
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// The same as a client has it: asked over NATS, and read.
func BenchmarkAsk(b *testing.B) {
	bt := brokertest.Team(b, "t")
	x := New(Options{Team: bt})
	x.state, x.ready = *loaded(100_000, 0), true
	ctx, cancel := context.WithCancel(b.Context())
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	if err := x.serve(ctx, &parts); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if p, err := Ask(ctx, bt, team.Query{}, 1); err != nil || p.Total != 100_000 {
			b.Fatal(p.Total, err)
		}
		took = append(took, time.Since(begun))
	}
	report(b, took)
}
