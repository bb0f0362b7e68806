package engine_test

import (
	"context"
	"fmt"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/tool"
)

// records is a journal in memory.
type records []journal.Record

func (j *records) Append(_ context.Context, r journal.Record) (journal.Record, error) {
	*j = append(*j, r)
	return r, nil
}

func (j *records) Enqueue(ctx context.Context, r journal.Record) journal.Record {
	r, _ = j.Append(ctx, r)
	return r
}

func (j *records) Flush() error { return nil }

// script answers with one reply after another.
type script []model.Message

func (s *script) Complete(context.Context, model.Request, func(string)) (model.Reply, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	return model.Reply{Message: next}, nil
}

func (s *script) Limits(string) model.Limits { return model.Limits{Window: 32_000} }

func (s *script) Meant(name string) (string, string) { return name, "scripted" }

func Example() {
	type text struct {
		Text string `json:"text"`
	}
	count := tool.New("count", "Counts the words of a text.", func(_ context.Context, in text) (tool.Output, error) {
		return tool.Output{Value: fmt.Sprint(len(strings.Fields(in.Text)))}, nil
	}, tool.Traits{ReadOnly: true})
	tools, err := tool.NewSet(nil, count)
	if err != nil {
		panic(err)
	}
	var log records
	e := engine.New(engine.Options{Name: "counter", System: "You count words.", Tools: tools, Journal: &log, Model: &script{
		{Role: "assistant", ToolCalls: []model.ToolCall{{ID: "1", Name: "count", Arguments: `{"text":"a team of agents"}`}}},
		{Role: "assistant", Content: "There are four."},
	}})
	answer, err := e.Run(context.Background(), "How many words has: a team of agents?")
	fmt.Println(answer, err)
	for _, r := range log {
		fmt.Println(r.Kind)
	}
	// Output:
	// There are four. <nil>
	// note
	// turn
	// result
	// turn
}
