package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
)

// A message waits for its receiver, who acknowledges it once it is recorded.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "mailbox-")
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

	// In the product the members come from a *roster.Roster.
	box := mailbox.New(storage, mailbox.Options{Members: members{{AgentID: "coder-1", State: team.Joined}}})
	_, to, err := box.Send(ctx, team.Message{Type: team.MsgMessage, From: team.Leader, To: "coder-1", Content: "Which file is the largest?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("delivered to", to)
	_, _, err = box.Send(ctx, team.Message{Type: team.MsgMessage, From: team.Leader, To: "coder-7", Content: "Hello?"})
	fmt.Printf("%v; %s\n", err, team.HintOf(err))

	enough := errors.New("enough")
	err = box.Receive(ctx, "coder-1", 1, mailbox.Mark{}, func(d mailbox.Delivery) error {
		fmt.Printf("%s from %s: %s\n", d.Type, d.From, d.Content)
		d.Ack()
		return enough
	})
	fmt.Println(errors.Is(err, enough))
	// Output:
	// delivered to [coder-1]
	// there is no member "coder-7" to send to; members are: coder-1
	// message from leader: Which file is the largest?
	// true
}
