package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// A member whose calls differ each time, and lead to nothing, is reported to the leader once, and gives its task back later.
func TestTurnsWithoutProgress(t *testing.T) {
	for name, tt := range map[string]struct {
		most     int // by the role
		wants    int // turns that are made
		progress func(r *rig, turn int) tool.Effects
		files    func(turn int) string
	}{
		"none":                {0, team.StillTurns, nil, nil},
		"none, by its role":   {40, 40, nil, nil},
		"a file is written":   {40, 60, func(_ *rig, turn int) tool.Effects { return touchedAt(turn == 20) }, nil},
		"a command writes":    {48, 68, nil, func(turn int) string { return fmt.Sprint(turn >= 20) }},
		"a message is sent":   {40, 60, func(_ *rig, turn int) tool.Effects { return sentAt(turn == 20) }, nil},
		"mail comes":          {40, 60, func(r *rig, turn int) tool.Effects { return r.mailAt(turn == 20) }, nil},
		"a file all the time": {40, 200, func(_ *rig, turn int) tool.Effects { return touchedAt(turn%30 == 29) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.opts.StillTurns = tt.most
				turn := 0
				if tt.files != nil {
					r.opts.Footprint = func(context.Context) string { return tt.files(turn) }
				}
				for i := range 200 + tt.wants {
					call := fmt.Sprintf("do%d", i)
					r.tools[call] = func(context.Context, tool.Call) tool.Result {
						res := tool.Result{Content: call}
						if turn++; tt.progress != nil {
							res.Effects = tt.progress(r, turn)
						}
						if turn == 200 && tt.wants == 200 {
							r.cancel()
						}
						return res
					}
					r.says("!" + call)
				}
				r.start()
				r.offer()
				r.settle()
				var reports []string
				for _, m := range r.sent {
					if strings.HasPrefix(m.Content, "[No Progress] coder-1 has made ") && m.To == team.Leader {
						reports = append(reports, m.Content)
					}
				}
				if turn < tt.wants-tt.most/10 || turn > tt.wants+tt.most/10 {
					t.Errorf("%d turns were made, want %d", turn, tt.wants)
				}
				if tt.wants == 200 {
					if r.task().Status != team.InProgress {
						t.Errorf("with progress the task is %s: %s", r.task().Status, r.task().Reason)
					}
					return
				}
				most := cmp.Or(tt.most, team.StillTurns)
				if want := fmt.Sprintf("%d turns in a row at T-001 (Count)", most/4); len(reports) == 0 || len(reports) > 2 || !strings.Contains(reports[0], want) {
					t.Errorf("the leader was notified %q, want one with %q", reports, want)
				}
				if r.task().Status != team.Pending || r.task().Attempts != 1 || !strings.Contains(r.task().Reason, "turns without progress") {
					t.Errorf("the task is %s after %d attempts: %q", r.task().Status, r.task().Attempts, r.task().Reason)
				}
			})
		})
	}
}

func touchedAt(now bool) (e tool.Effects) {
	if now {
		e.Touched = "/w/a.go"
	}
	return e
}

func sentAt(now bool) (e tool.Effects) {
	if now {
		e.Sent = &team.Sent{}
	}
	return e
}

func (r *rig) mailAt(now bool) (e tool.Effects) {
	if now {
		r.mail <- delivery(7, team.MsgUser)
	}
	return e
}

// A leader waits for others, however many turns it takes.
func TestLeaderMayMakeNoProgress(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID, r.opts.StillTurns = team.Leader, 8
		for i := range 30 {
			r.says(fmt.Sprintf("!look%d", i))
		}
		r.says("done")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "work")
		if len(r.asked) != 31 || len(r.sent) > 0 {
			t.Errorf("the leader was asked %d times, and %v was sent", len(r.asked), r.sent)
		}
	})
}
