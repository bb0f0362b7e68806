package agent

import (
	"os"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
)

// What the engine's limits are, for the tests of the agent.
const (
	maxRepeats  = 5
	maxCalls    = 64
	maxCause    = 1000
	resultShare = 8
)

// summaryPrompt is what the model reads when it is to sum the conversation up.
var summaryPrompt = func() string {
	text, err := os.ReadFile("engine/summary.md")
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(text))
}()

func size(m *model.Message) int { return engine.Size(m) }

func sizeOf(messages []*model.Message) (n int) {
	for _, m := range messages {
		n += size(m)
	}
	return n
}

func (c *Conversation) marked(tools engine.Tools, keep int) *Conversation {
	return c.shorter(c.Marked(tools, keep), engine.Cut{Rung: engine.Undone})
}

func (c *Conversation) summarized(tools engine.Tools, summary, task string, room int) *Conversation {
	return c.shorter(c.Summarized(tools, &Part{c, task}, summary, "", room), engine.Cut{})
}

func (c *Conversation) shortened(to engine.Rung, task, note string) *Conversation {
	return c.shorter(c.Shortened(to, &Part{c, task}, note), engine.Cut{Rung: to})
}
