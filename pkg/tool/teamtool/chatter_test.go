package teamtool

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/team"
)

// Of the messages to one receiver as many are let through in any minute, and a minute after
// the first the next.
func TestChatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chatter
		count := func(to team.AgentID, want error) error {
			t.Helper()
			err := c.count(to, time.Now())
			if !errors.Is(err, want) {
				t.Errorf("at %v to %s: %v, want %v", time.Now(), to, err, want)
			}
			return err
		}
		for range maxToOne {
			count("a", nil)
			time.Sleep(time.Second)
		}
		err := count("a", team.Busy)
		if wait := "send it in 40s"; !strings.Contains(team.HintOf(err), wait) {
			t.Errorf("hint %q, want %q in it", team.HintOf(err), wait)
		}
		count("b", nil)
		time.Sleep(40 * time.Second) // the first is a minute old
		count("a", nil)
		count("a", team.Busy)
		for range maxToAll {
			count(team.Everyone, nil)
		}
		count(team.Everyone, team.Busy)
		time.Sleep(window)
		for range maxToOne {
			count("a", nil)
		}
	})
}
