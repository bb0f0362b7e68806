package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"

	"agentteam/pkg/model"
)

const streamedTokens = 2000

// tokenStream is an endpoint that sends an answer of so many tokens at once.
func tokenStream(b *testing.B) (baseURL string) {
	var body strings.Builder
	for i := range streamedTokens {
		fmt.Fprintf(&body, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"word%d "},"logprobs":null,"finish_reason":null}]}`+"\n\n", i)
	}
	body.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n")
	body.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2000,"total_tokens":2010}}` + "\n\ndata: [DONE]\n\n")
	all := []byte(body.String())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(all)
	}))
	b.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

// BenchmarkTokens compares how many tokens a second come through: Complete, and the
// plain loop over the protocol's SDK that one would write instead.
func BenchmarkTokens(b *testing.B) {
	rate := func(b *testing.B) {
		b.ReportMetric(float64(b.N*streamedTokens)/b.Elapsed().Seconds(), "tokens/s")
		b.ReportAllocs()
	}
	b.Run("Complete", func(b *testing.B) {
		c, err := model.New(model.Options{BaseURL: tokenStream(b), Model: "m"})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			n := 0
			r, err := c.Complete(context.Background(), model.Request{Messages: []*model.Message{{Role: "user", Content: "hello"}}}, func(string) { n++ })
			if err != nil || n != streamedTokens || r.Usage.CompletionTokens != streamedTokens {
				b.Fatal(n, r.Usage, err)
			}
		}
		rate(b)
	})
	b.Run("go-openai", func(b *testing.B) {
		cfg := openai.DefaultConfig("")
		cfg.BaseURL = tokenStream(b)
		c := openai.NewClientWithConfig(cfg)
		for b.Loop() {
			n := 0
			stream, err := c.CreateChatCompletionStream(context.Background(), openai.ChatCompletionRequest{
				Model: "m", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}})
			if err != nil {
				b.Fatal(err)
			}
			var said strings.Builder
			for {
				chunk, err := stream.Recv()
				if err == io.EOF {
					break
				}
				if err != nil {
					b.Fatal(err)
				}
				for _, choice := range chunk.Choices {
					if choice.Delta.Content != "" {
						said.WriteString(choice.Delta.Content)
						n++
					}
				}
			}
			_ = stream.Close()
			if n != streamedTokens {
				b.Fatal(n)
			}
		}
		rate(b)
	})
}
