package modeltest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"agentteam/pkg/model"
	"agentteam/pkg/model/modeltest"
)

// In a test [modeltest.Server] is all it takes.
func ExampleHandler() {
	fault := modeltest.Faults()[0]
	srv := httptest.NewServer(modeltest.Handler(nil, func(n int, _ []byte) *modeltest.Fault {
		if n == 1 {
			return &fault
		}
		return nil
	}))
	defer srv.Close()
	client, err := model.New(model.Options{BaseURL: srv.URL + "/v1", Model: "any"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := model.Request{Messages: []*model.Message{{Role: "user", Content: "hello"}}}
	_, err = client.Complete(context.Background(), ask, nil)
	var refusal *model.Refusal
	fmt.Println(fault.Name, errors.As(err, &refusal) && refusal.Advice == model.Park)
	reply, err := client.Complete(context.Background(), ask, nil)
	fmt.Println(reply.Message.Content, err)
	// Output:
	// 401 true
	// fine <nil>
}
