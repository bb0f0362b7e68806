package team

import "time"

// Await is the wait of an agent: for the answer to its message, or for the decision on a plan or on a call.
type Await struct {
	MessageID  string    `json:"message_id"`
	Plan       string    `json:"plan,omitempty"`       // request_id of the plan, or of the call; "" = none
	Permission bool      `json:"permission,omitempty"` // it is a call
	From       AgentID   `json:"from"`
	About      string    `json:"about,omitempty"` // the message's first words, or the plan's, or the call's
	Until      time.Time `json:"until,omitzero"`  // zero: for as long as it takes
	Task       TaskID    `json:"task,omitempty"`  // the task that it held then; "" = none
	Asker      AgentID   `json:"asker,omitempty"` // an earlier holder of Task, which may be the agent itself, that has asked the question; "" = the present hold has
}

// OfPerson reports whether a person is to answer a message.
func (a Await) OfPerson() bool { return a.Plan == "" && a.Until.IsZero() }

// Over reports whether the wait has ended by its limit.
func (a Await) Over(now time.Time) bool { return !a.Until.IsZero() && !now.Before(a.Until) }

// Verdict is a model's answer to a request to shut down.
type Verdict struct {
	RequestID string `json:"request_id"`
	Approve   bool   `json:"approve"`
	Reason    string `json:"reason,omitempty"`
}
