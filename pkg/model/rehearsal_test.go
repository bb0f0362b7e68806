package model_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/model/rehearsal/stricttest"
	"agentteam/pkg/store/broker/brokertest"
)

// overResponses serves the script as OpenAI's Responses and returns a client of it.
func overResponses(t testing.TB, script string, o model.Options) *model.Client {
	t.Helper()
	s, err := rehearsal.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(stricttest.NewHandler("openai", s, nil))
	t.Cleanup(server.Close)
	o.BaseURL = server.URL + "/v1"
	c, err := model.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rehearse serves the script until the test ends and returns a client of it.
func rehearse(t testing.TB, script string, o model.Options) *model.Client {
	t.Helper()
	s, err := rehearsal.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := rehearsal.Listen("127.0.0.1:0", s, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := brokertest.Receive(t, "the endpoint ends", ended); err != nil {
			t.Error(err)
		}
	})
	o.BaseURL = srv.URL()
	c, err := model.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The client and the strict endpoint get on with each other through a whole run,
// whatever the endpoint does wrong on the way, over either wire.
func TestRunThroughEveryFault(t *testing.T) {
	t.Run("chat completions", func(t *testing.T) {
		t.Parallel()
		runThroughEveryFault(t, rehearse(t, everyFault, model.Options{Model: "rehearsal"}))
	})
	t.Run("responses", func(t *testing.T) {
		t.Parallel()
		runThroughEveryFault(t, overResponses(t, everyFault, model.Options{Model: "gpt-5.6", Profile: "openai"}))
	})
}

var anyObject = []byte(`{"type":"object","properties":{}}`)

const everyFault = `
agents:
- rules:
  - name: work
    steps:
    - say: "我看看 🔍"
      calls: [{tool: bash, args: {command: "echo <1>"}}, {tool: list_tasks}]
      fault: {status: 500}
    - {calls: [{tool: bash, args: {command: "echo 2"}}], fault: {malformed: true}}
    - {calls: [{tool: list_tasks}], fault: {cut: true}}
    - {say: 'It was {{result "work" 1}}.', fault: {status: 429}}
`

func runThroughEveryFault(t *testing.T, c *model.Client) {
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	conv := []*model.Message{
		{Role: "system", Content: "You are coder-1, role coder, in team red."},
		{Role: "user", Content: "go"},
	}
	var turns []string
	for len(turns) < 10 {
		r, err := c.Complete(t.Context(), model.Request{
			Messages: conv,
			Tools:    []model.ToolSpec{{Name: "bash", Schema: anyObject}, {Name: "list_tasks", Schema: anyObject}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// One try breaks off; what it costs is our own guess.
		if u := r.Usage; u.Estimated != (u.WastedPrompt > 0) || u.PromptTokens == 0 || u.Estimated != (len(turns) == 3) {
			t.Errorf("turn %d: usage %+v, want the endpoint's", len(turns), u)
		}
		turn := r.FinishReason + ": " + r.Message.Content
		conv = append(conv, &r.Message)
		for _, call := range r.Message.ToolCalls {
			turn += " " + call.Name + call.Arguments
			conv = append(conv, &model.Message{Role: "tool", ToolCallID: call.ID, Content: "done " + call.Name})
		}
		turns = append(turns, turn)
		if len(r.Message.ToolCalls) == 0 {
			break
		}
	}
	want := `tool_calls: 我看看 🔍 bash{"command":"echo <1>"} list_tasks{}
tool_calls:  bash{"command"
tool_calls:  bash{"command":"echo 2"}
tool_calls:  list_tasks{}
stop: It was done bash.`
	if got := strings.Join(turns, "\n"); got != want {
		t.Errorf("turns\n%s\nwant\n%s", got, want)
	}
}

func Example() {
	script, err := rehearsal.Parse("hello.yaml", []byte(`agents: [{rules: [{name: greet, say: "Hello from {{.Name}}."}]}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	endpoint, err := rehearsal.Listen("127.0.0.1:0", script, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- endpoint.Run(ctx) }()

	client, err := model.New(model.Options{BaseURL: endpoint.URL(), Model: "rehearsal"})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := client.Complete(ctx, model.Request{Messages: []*model.Message{
		{Role: "system", Content: "You are coder-1, role coder, in team red."},
		{Role: "user", Content: "hello"},
	}}, nil)
	fmt.Println(reply.Message.Content, reply.FinishReason, err)

	stop()
	fmt.Println(<-ended)
	// Output:
	// Hello from coder-1. stop <nil>
	// <nil>
}
