package shutdown_test

import (
	"testing"
	"time"

	"agentteam/pkg/shutdown"
)

// spare is for what has no share of its own: it waits for nobody.
const spare = 500 * time.Millisecond

// In the worst order every step takes all the time that it may.
func TestSharesFit(t *testing.T) {
	const (
		work     = max(shutdown.Tools+shutdown.Journal, shutdown.Goal)
		teammate = shutdown.Part + shutdown.SignOff
		leader   = work + shutdown.Release + shutdown.Lease
	)
	for who, takes := range map[string]time.Duration{
		"a leader":                         leader + shutdown.Close,
		"a leader whose owner has ended":   max(leader, shutdown.Children) + shutdown.Close,
		"a teammate":                       teammate + shutdown.Close,
		"a process that becomes a member":  shutdown.Join + shutdown.SignOff + shutdown.Close,
		"a standby or a leader of no team": shutdown.Close,
	} {
		if takes+spare > shutdown.Within {
			t.Errorf("%s may take %v to end, and should leave %v of %v", who, takes, spare, shutdown.Within)
		}
	}
	if steps := shutdown.Tools + shutdown.Journal + shutdown.Release; steps > shutdown.Part {
		t.Errorf("a member may take %v until it signs off, and is bounded by %v", steps, shutdown.Part)
	}
	if shutdown.Children < teammate {
		t.Errorf("a child is killed after %v, before its last word, which may take %v", shutdown.Children, teammate)
	}
}
