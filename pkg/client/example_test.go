package client_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"agentteam/pkg/client"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A program that sets a team a goal and prints its result.
func Example() {
	url, stop := cluster() // of a cluster that is there: the address that teamctl up prints
	defer stop()
	ctx := context.Background()

	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	t, err := c.Make(ctx, client.NewTeam{ID: "docs"}) // made if it is not there yet
	if err != nil {
		log.Fatal(err)
	}
	goal, err := t.Goals().Start(ctx, "Count the pages of the manual.", "")
	if err != nil {
		log.Fatal(err)
	}
	end, err := goal.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Status, end.Summary)
	// Output: finished The manual has 12 pages.
}

// A goal is set once for its key, also by a caller that had to repeat the call.
func ExampleGoals() {
	ctx, t, stop := example()
	defer stop()

	order := client.NewGoal{Text: "Count the pages of the manual.", Key: "order-17"}
	goal, existed, err := t.Goals().Set(ctx, order)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := goal.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(goal.Started(), existed)

	_, existed, err = t.Goals().Set(ctx, order)
	fmt.Println(existed, err)
	// Output:
	// true false
	// true <nil>
}

// A person adds two tasks, takes the first and completes it, by which the second is free.
func ExampleBoard() {
	ctx, t, stop := example()
	defer stop()

	b := t.Board()
	draft, _, err := b.Add(ctx, "", team.NewTask{Title: "draft"})
	if err != nil {
		log.Fatal(err)
	}
	first := draft[0].ID
	if _, _, err := b.Add(ctx, "", team.NewTask{Title: "print", Dependencies: []team.TaskID{first}}); err != nil {
		log.Fatal(err)
	}
	if _, err := b.Seating("ann").Claim(ctx, first, "ann"); err != nil {
		log.Fatal(err)
	}
	if _, err := b.Complete(ctx, first, "ann", "draft.md"); err != nil {
		log.Fatal(err)
	}
	all, err := b.Tasks(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range all {
		fmt.Println(v.ID, v.Title, v.Status, v.IsBlocked)
	}
	// Output:
	// T-001 draft completed false
	// T-002 print pending false
}

// A person writes to a member and sees whether it has read that.
func ExampleMail() {
	ctx, t, stop := example()
	defer stop()
	if _, err := t.Goals().Start(ctx, "Write the manual.", ""); err != nil {
		log.Fatal(err)
	}

	sent, to, err := t.Mail().Send(ctx, client.NewMail{To: "coder-1", Text: "Which page is the longest?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("to", to)
	m, err := t.Mail().Message(ctx, sent.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Content, m.Deliveries[0].Status)
	// Output:
	// to [coder-1]
	// Which page is the longest? pending
}

// The members of a team, those that have left included.
func ExampleMembers() {
	ctx, t, stop := example()
	defer stop()

	all, err := t.Members().Records(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range all {
		fmt.Println(m.AgentID, m.Role, m.State)
	}
	// Output: coder-1 coder joined
}

// A person approves the plan of a member.
func ExamplePlans() {
	ctx, t, stop := example()
	defer stop()

	plans, err := t.Plans().List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range plans {
		decided, err := t.Plans().Decide(ctx, "", p.ID, team.Decision{Approve: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.AgentID, p.Plan, decided.Status)
	}
	// Output: coder-1 Read every page, and count. approved
}

// world is the cluster of an example: a server, and the team docs with the member coder-1. A
// process plays its leader, and ends the goal to count the pages.
type world struct {
	url  string
	stop func()
}

func cluster() (url string, stop func()) {
	w := newWorld()
	return w.url, w.stop
}

// example opens the team of a new cluster.
func example() (context.Context, *client.Team, func()) {
	w := newWorld()
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Options{URL: w.url})
	must(err)
	t, err := c.Open(ctx, "docs")
	must(err)
	return ctx, t, func() {
		c.Close()
		w.stop()
	}
}

func newWorld() *world {
	dir, err := os.MkdirTemp("", "client-")
	must(err)
	s, err := embedded.Start(embedded.Options{Dir: dir})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := broker.Connect(ctx, broker.Options{URL: s.URL()})
	must(err)
	reg, err := registry.Open(ctx, conn)
	must(err)
	storage, _, err := reg.Make(ctx, team.Team{ID: "docs", MaxTeammates: 1})
	must(err)
	members := roster.New(storage)
	coder := team.Member{AgentID: "coder-1", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Pool, PlanMode: true}
	_, err = members.Put(ctx, coder)
	must(err)
	submit(ctx, storage, coder)

	left := make(chan error, 1)
	go func() {
		left <- storage.Bucket.Watch(ctx, func(e broker.Entry) error {
			record, err := registry.Decode(e)
			if err == nil && record.AtWork() && record.Goal == "Count the pages of the manual." {
				_, err = reg.End(ctx, storage, team.Ending{Status: team.TeamFinished, Summary: "The manual has 12 pages."})
			}
			return err
		}, nil, subject.KeyTeam)
	}()
	return &world{s.URL(), func() {
		cancel()
		<-left
		conn.Close()
		s.Shutdown()
		os.RemoveAll(dir)
	}}
}

// submit has a member submit a plan.
func submit(ctx context.Context, storage *broker.Storage, m team.Member) {
	b, members := board.New(storage.Bucket, board.Options{}), roster.New(storage)
	plans := approval.New(storage.Bucket, approval.Options{Tasks: b, Members: members, Post: mailbox.New(storage, mailbox.Options{Members: members})})
	gate, err := plans.Gate(ctx, m, board.NewClaimSlot(ctx, b, m.Holder()))
	must(err)
	_, err = gate.Submit(ctx, "Read every page, and count.")
	must(err)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
