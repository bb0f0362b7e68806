package board_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// Two tasks, the second behind the first; two agents, of which one is first.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "board-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	conn, err := broker.Connect(ctx, broker.Options{URL: server.URL()})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	storage, err := conn.Make(ctx, "example")
	if err != nil {
		log.Fatal(err)
	}

	b := board.New(storage.Bucket, board.Options{})
	first, err := b.Create(ctx, team.Leader, team.NewTask{Title: "Read the code"})
	if err != nil {
		log.Fatal(err)
	}
	second, err := b.Create(ctx, team.Leader, team.NewTask{Title: "Write the report", Dependencies: []team.TaskID{first[0].ID}})
	if err != nil {
		log.Fatal(err)
	}
	coder := board.NewClaimSlot(ctx, b, team.Holder{Agent: "coder-1", Incarnation: 1})
	tester := board.NewClaimSlot(ctx, b, team.Holder{Agent: "tester-1", Incarnation: 1})

	task, _ := coder.Claim(ctx, first[0].ID)
	fmt.Println(task.Assignee, "has", task.ID)
	_, err = tester.Claim(ctx, first[0].ID)
	fmt.Println(team.CodeOf(err), "-", err)
	_, err = tester.Claim(ctx, second[0].ID)
	fmt.Println(errors.Is(err, team.Blocked), "-", err)

	task, _ = coder.Complete(ctx, first[0].ID, team.Done{Summary: "It is small and clear."})
	fmt.Println(task.ID, "is", task.Status)
	task, _ = tester.Claim(ctx, second[0].ID)
	fmt.Println(task.Assignee, "has", task.ID, "and is to write", task.DeliverablePath)
	// Output:
	// coder-1 has T-001
	// conflict - T-001 is held by coder-1
	// true - T-002 is blocked by T-001 (in_progress)
	// T-001 is completed
	// tester-1 has T-002 and is to write deliverables/T-002-write-the-report.md
}
