package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// A reader notes the cursor of what it has seen; another goes on there.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "feed-")
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
	if _, err := b.Create(ctx, team.Leader, team.NewTask{Title: "Read the code"}, team.NewTask{Title: "Write the report"}); err != nil {
		log.Fatal(err)
	}
	if _, err := b.Claim(ctx, "T-001", team.Holder{Agent: "coder-1", Incarnation: 1}); err != nil {
		log.Fatal(err)
	}

	enough := errors.New("enough")
	var seen feed.Cursor
	err = feed.Read(ctx, storage, feed.Options{}, func(e feed.Entry) error {
		fmt.Println("one:", e.AgentID, e.Event.Event.Type)
		seen = e.Cursor
		return enough
	})
	if !errors.Is(err, enough) {
		log.Fatal(err)
	}
	err = feed.Read(ctx, storage, feed.Options{After: seen}, func(e feed.Entry) error {
		fmt.Println("other:", e.AgentID, e.Event.Event.Type)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// one: leader TASK_CREATED
	// other: leader TASK_CREATED
	// other: coder-1 TASK_CLAIMED
}
