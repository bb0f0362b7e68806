package team

import "cmp"

// Ending is how a goal ends.
type Ending struct {
	Status  Status   // finished, failed or stopped
	Summary string   // the result
	Reason  string   // why it has failed; "" if it has not
	GivenUp []TaskID // the failed tasks that the result does without
}

// Why says in words how the team's last goal has ended: why it has failed, else its result.
func (t Team) Why() string { return cmp.Or(t.Reason, t.Summary) }
