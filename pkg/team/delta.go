package team

// Delta is a chunk of the text that a model is writing. It is published and never stored: a reader that
// misses one finds the whole text in the feed once the turn is complete.
type Delta struct {
	TeamID      TeamID  `json:"team_id"`
	AgentID     AgentID `json:"agent_id"`
	Incarnation uint64  `json:"incarnation"` // of the agent
	RunID       string  `json:"run_id"`
	MessageID   string  `json:"message_id"` // that of the feed's text event, once the turn is complete
	Offset      int     `json:"offset"`     // bytes of the text before this piece; 0 also begins a try anew
	Text        string  `json:"text"`
}
