package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	openai "github.com/sashabaranov/go-openai"
)

// plainCommand starts this program as a plain loop, which is a separate process, as a
// teammate is, so that its memory can be told.
const plainCommand = "plain"

// plainLoop is what an agent is at the least: messages are appended, answers are
// streamed, tools are run one after another, nothing is stored. It ends when stdin does:
// until then it holds its conversation.
func plainLoop(ctx context.Context, url, workspace string, hold io.Reader) error {
	cfg := openai.DefaultConfig("none")
	cfg.BaseURL = url
	api := openai.NewClientWithConfig(cfg)
	messages := []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: "You are plain. Do what you are told."},
		{Role: openai.ChatMessageRoleUser, Content: "Read all the files."},
	}
	for over := false; !over; {
		turn, err := plainAsk(ctx, api, messages)
		if err != nil {
			return err
		}
		messages = append(messages, turn)
		over = len(turn.ToolCalls) == 0
		for _, c := range turn.ToolCalls {
			if c.Function.Name != readFile.Name {
				over = true
				break
			}
			var args struct{ Path string }
			if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
				return err
			}
			data, err := os.ReadFile(filepath.Join(workspace, args.Path))
			if err != nil {
				return err
			}
			messages = append(messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: c.ID, Content: string(data)})
		}
	}
	_, err := io.Copy(io.Discard, hold)
	runtime.KeepAlive(messages)
	return err
}

var readFile = &openai.FunctionDefinition{
	Name: "read_file", Description: "Reads a text file.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
}

// plainAsk streams one answer and puts it together.
func plainAsk(ctx context.Context, api *openai.Client, messages []openai.ChatCompletionMessage) (turn openai.ChatCompletionMessage, err error) {
	stream, err := api.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: "bench", Messages: messages, Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: readFile}},
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	})
	if err != nil {
		return turn, err
	}
	defer stream.Close()
	turn.Role = openai.ChatMessageRoleAssistant
	var text []byte
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			turn.Content = string(text)
			return turn, nil
		}
		if err != nil {
			return turn, err
		}
		for _, choice := range chunk.Choices {
			text = append(text, choice.Delta.Content...)
			for _, c := range choice.Delta.ToolCalls {
				for len(turn.ToolCalls) <= *c.Index {
					turn.ToolCalls = append(turn.ToolCalls, openai.ToolCall{Type: openai.ToolTypeFunction})
				}
				call := &turn.ToolCalls[*c.Index]
				call.ID += c.ID
				call.Function.Name += c.Function.Name
				call.Function.Arguments += c.Function.Arguments
			}
		}
	}
}

// plain has the conversation with a plain loop. look, if not nil, is called with the
// process's id before the first turn and after the last.
func (b *agentRig) plain(ctx context.Context, k talkKind, look func(pid int) error) (*talk, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ready := make(chan int, 1)
	t := newTalk(k)
	if look != nil {
		t.at = map[int]func() error{0: func() error { return look(<-ready) }}
	}
	b.endpoint.hold(t)
	defer b.endpoint.hold(nil)
	cmd := exec.CommandContext(ctx, self, plainCommand, b.endpoint.url, b.workspace)
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready <- cmd.Process.Pid
	ended := make(chan struct{})
	var left error
	go func() { left = cmd.Wait(); close(ended) }()
	err = b.endpoint.finish(ctx, t, ended)
	if err == nil && look != nil {
		err = look(cmd.Process.Pid)
	}
	hold.Close()
	if err != nil {
		_ = cmd.Process.Kill()
	}
	<-ended
	if err == nil {
		err = left
	}
	if err != nil {
		return nil, fmt.Errorf("plain loop: %w", err)
	}
	return t, nil
}
