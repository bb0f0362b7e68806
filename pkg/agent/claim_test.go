package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// A task that is taken away while a tool runs: the tool is ended, what else the
// turn asked for is not begun, its files are stored, and the model reads it before it says anything more.
func TestTaskTakenDuringTool(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		running, order := make(chan struct{}), ""
		r.team.lost = func(lost team.Task) { order += fmt.Sprintf(" stored %s under %d", lost.ID, lost.Epoch) }
		r.tools["slow"] = func(ctx context.Context, _ tool.Call) tool.Result {
			close(running)
			<-ctx.Done()
			order += "ended"
			return tool.Result{Content: "ended: " + context.Cause(ctx).Error(), IsError: true}
		}
		r.tools["write"] = func(ctx context.Context, _ tool.Call) tool.Result {
			if ctx.Err() == nil {
				t.Error("a tool that writes was begun after the task was gone")
			}
			return tool.Result{Content: "not started", IsError: true}
		}
		r.says("!slow,write", "I stop")
		r.start()
		r.offer()
		<-running
		r.reap()
		r.revoke()
		synctest.Wait()
		r.wantKinds("start task turn result result note turn end")
		if n := r.notes(); !strings.Contains(n, "T-001 was taken from you") || !strings.Contains(n, "held by coder-9") {
			t.Errorf("the model was told %q", n)
		}
		if order != "ended stored T-001 under 1" {
			t.Errorf("in this order: %s", order)
		}
		r.wantStates(team.Idle, team.Running, team.Idle)
	})
}

// The files of a task that was taken away as the agent's context ended are stored too.
func TestTaskTakenAtTheEnd(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		running, order := make(chan struct{}), ""
		r.team.lost = func(lost team.Task) { order += fmt.Sprintf(" stored %s under %d", lost.ID, lost.Epoch) }
		r.tools["slow"] = func(ctx context.Context, _ tool.Call) tool.Result {
			close(running)
			<-ctx.Done()
			r.reap()
			r.revoke()
			order += "ended"
			return tool.Result{Content: "ended", IsError: true}
		}
		r.says("!slow")
		r.start()
		r.offer()
		<-running
		r.cancel()
		synctest.Wait()
		if order != "ended stored T-001 under 1" {
			t.Errorf("in this order: %s", order)
		}
	})
}

// While the model thinks: its answer is not waited for.
func TestTaskTakenDuringModelCall(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		asked := make(chan struct{})
		r.model = func(ctx context.Context, _ model.Request) (model.Reply, error) {
			close(asked)
			<-ctx.Done()
			return model.Reply{}, ctx.Err()
		}
		r.says("I stop")
		r.start()
		r.offer()
		<-asked
		r.model = nil
		r.reap()
		r.revoke()
		synctest.Wait()
		r.wantKinds("start task note turn end")
	})
}

// The word that a task was taken may be old: what the agent still holds is not
// spoken of.
func TestRevocationOfEarlierHold(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("!look", "!look", "done")
		r.start()
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.revoke()
			r.tools["look"] = nil
			return tool.Result{Content: "seen"}
		}
		r.offer()
		if n := r.notes(); strings.Contains(n, "taken from you") {
			t.Errorf("the model was told %q", n)
		}
	})
}

// The holder makes sure of its task before a turn and before a tool that writes,
// if it has not for a sixth of the lease; and only then.
func TestTaskIsConfirmed(t *testing.T) {
	for name, tt := range map[string]struct {
		tool     string
		after    time.Duration // the model takes that long
		confirms int
		runs     bool // the tool, although the task is gone
	}{
		"soon":           {"write", team.DefaultLease/6 - time.Second, 0, true},
		"late, writes":   {"write", team.DefaultLease / 6, 1, false},
		"late, reads":    {"look", team.DefaultLease / 6, 0, true},
		"long, it reads": {"look", 10 * team.DefaultLease, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.model = func(context.Context, model.Request) (model.Reply, error) {
					time.Sleep(tt.after) // of the bubble
					r.model = nil
					r.reap()
					return r.reply("!" + tt.tool), nil
				}
				before := 0
				r.tools[tt.tool] = func(ctx context.Context, _ tool.Call) tool.Result {
					before = r.confirms
					if (ctx.Err() == nil) != tt.runs {
						t.Errorf("the tool's context: %v", context.Cause(ctx))
					}
					return tool.Result{Content: "ran"}
				}
				r.says("I see", "done", "done")
				r.start()
				r.offer()
				r.pass(tt.after)
				if before != tt.confirms {
					t.Errorf("%d confirmations before the tool, want %d", before, tt.confirms)
				}
			})
		})
	}
}

// A member that is cut off begins nothing and ends what it is at, and goes on once
// it is certain again.
func TestUncertainMembershipWaits(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		running := make(chan struct{})
		r.tools["slow"] = func(ctx context.Context, _ tool.Call) tool.Result {
			close(running)
			<-ctx.Done()
			return tool.Result{Content: "ended: " + context.Cause(ctx).Error(), IsError: true}
		}
		r.says("!slow", "!finish", "done", "done")
		r.start()
		r.offer()
		<-running
		r.fence = make(chan struct{})
		r.fenced(roster.ErrFenced)
		synctest.Wait()
		if len(r.asked) != 1 {
			t.Fatalf("asked the model %d times, the last while its membership was uncertain", len(r.asked))
		}
		close(r.fence)
		synctest.Wait()
		if len(r.asked) < 2 || !strings.Contains(r.asked[1].Messages[len(r.asked[1].Messages)-1].Content, "five sixths") {
			t.Errorf("it did not go on, or the model was not told: %+v", r.asked)
		}
	})
}

// While the record of its task cannot be read, nobody knows whether the agent still has
// it: it asks its model nothing and says nothing, until the record is healed or somebody
// takes the task away. What comes by mail is taken in.
func TestUnreadableTaskWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		during string // what the model answers, when the damage is done
		end    func(*rig)
		want   string
	}{
		"it is healed": {"!look", func(r *rig) { r.heal() },
			"start task turn result mail turn note turn note turn note end"},
		"it is healed before a tool that writes": {"!write", func(r *rig) { r.heal() },
			"start task turn mail result turn note turn note turn note end"},
		"it is somebody else's": {"!look", func(r *rig) { r.heal(); r.reap() },
			"start task turn result mail note turn end"},
		"it is revoked, and is somebody else's": {"!look", func(r *rig) { r.heal(); r.reap(); r.revoke() },
			"start task turn result mail note turn end"},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.model = func(context.Context, model.Request) (model.Reply, error) {
					time.Sleep(team.DefaultLease / 6) // of the bubble
					r.model = nil
					r.damage()
					return r.reply(tt.during), nil
				}
				r.says("go on", "done", "done")
				r.start()
				r.offer()
				r.pass(team.DefaultLease / 6)
				before := r.kinds()
				r.revoke() // word comes of the damage
				r.post(1, team.Leader, team.MsgMessage, "how is it going?")
				r.pass(time.Hour)
				if got := r.kinds(); got != before+" mail" || len(r.asked) > 1 {
					t.Fatalf("meanwhile: %s, and the model was asked %d times", got, len(r.asked))
				}
				tt.end(r)
				r.pass(unreadableBackoff)
				r.wantKinds(tt.want)
			})
		})
	}
}

// What the turn asked for besides is not begun if the task is somebody else's by the time
// it can be read, and the model is told once.
func TestUnreadableTaskIsLost(t *testing.T) {
	for name, revoked := range map[string]bool{"found by itself": false, "revoked": true} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.model = func(context.Context, model.Request) (model.Reply, error) {
					time.Sleep(team.DefaultLease / 6) // of the bubble
					r.model = nil
					r.damage()
					return r.reply("!write,write"), nil
				}
				r.tools["write"] = func(ctx context.Context, _ tool.Call) tool.Result {
					if ctx.Err() == nil {
						t.Error("a tool that writes was begun after the task was gone")
					}
					return tool.Result{Content: "not started", IsError: true}
				}
				r.says("I stop")
				r.start()
				r.offer()
				r.pass(team.DefaultLease/6 + time.Minute)
				r.heal()
				r.reap()
				if revoked {
					r.revoke()
				}
				r.pass(unreadableBackoff)
				r.wantKinds("start task turn result result note turn end")
			})
		})
	}
}

// Neither is such a task given up before it can be read; what comes meanwhile is not
// forgotten over that.
func TestUnreadableTaskIsReleasedLater(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.MaxTurns = 1
		r.model = func(context.Context, model.Request) (model.Reply, error) {
			r.model = nil
			r.damage()
			return r.reply("!look"), nil
		}
		r.start()
		r.offer()
		r.pass(time.Minute)
		if n := r.notes(); strings.Contains(n, "was released") || strings.Count(n, "cannot be done now") != 1 {
			t.Errorf("the model was told %q", n)
		}
		if len(r.sent) != 1 || r.sent[0].To != team.Leader || !strings.Contains(r.sent[0].Content, "until my task can be read") {
			t.Errorf("the leader was told %+v", r.sent)
		}
		r.post(1, team.Leader, team.MsgMessage, "what is 2+2?")
		r.pass(time.Hour)
		r.says("!look", "4")
		r.heal()
		r.pass(unreadableBackoff)
		if last := transcript(r.asked[0].Messages); !strings.Contains(last, "what is 2+2?") {
			t.Errorf("the model was not told of the message:\n%s", last)
		}
		if r.task().Status != team.Pending || !strings.Contains(r.notes(), "T-001 was released") {
			t.Errorf("the task is %s, the model was told %q", r.task().Status, r.notes())
		}
	})
}

// The model refuses, and the task is somebody else's meanwhile: both are told once.
func TestRefusedAndLost(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		calls := 0
		r.model = func(context.Context, model.Request) (model.Reply, error) {
			if calls++; calls == 1 {
				r.reap()
			}
			return model.Reply{}, no(model.Park, model.BadKey)
		}
		r.start()
		r.offer()
		r.wantKinds("start task refused note")
		if calls != 1 || len(r.parked) != 1 || len(r.sent) != 1 {
			t.Errorf("%d calls of the model, told %d times of its refusal, sent %+v", calls, len(r.parked), r.sent)
		}
	})
}

// A task that is assigned while the model answers something else is told before the agent
// is nudged about it.
func TestAssignedDuringAnswer(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.model = func(context.Context, model.Request) (model.Reply, error) {
			r.model = nil
			r.given <- r.claim()
			return r.reply("fine"), nil
		}
		r.says("I begin", "I am done", "done")
		r.start()
		r.post(1, team.Leader, team.MsgMessage, "how are you?")
		if !strings.HasPrefix(r.kinds(), "start mail turn end task turn note turn") || r.task().Attempts != 1 {
			t.Errorf("journal: %s, %d attempts", r.kinds(), r.task().Attempts)
		}
		if len(r.sent) != 1 {
			t.Errorf("the leader was told %+v, want that the agent is idle, once, at the end", r.sent)
		}
	})
}

// The same task is taken from the agent and given back to it: what it hears last is that
// the task is its own, and the turn of before is not gone on with.
func TestTakenAndGivenBack(t *testing.T) {
	for range 10 { // the words of both come by different ways
		loop(t, func(t *testing.T, r *rig) {
			running, back := make(chan struct{}), make(chan struct{})
			r.tools["slow"] = func(ctx context.Context, _ tool.Call) tool.Result {
				close(running)
				<-ctx.Done()
				<-back
				time.Sleep(time.Second) // of the bubble: a later claim has a later time
				r.next(team.Task{ID: "T-001", Title: "Count", Status: team.Pending, Epoch: 7})
				r.given <- r.claim()
				return tool.Result{Content: "ended"}
			}
			r.tools["write"] = func(ctx context.Context, _ tool.Call) tool.Result {
				if ctx.Err() == nil {
					t.Error("a tool that writes was begun for the hold of before")
				}
				return tool.Result{Content: "not started"}
			}
			r.says("!slow,write", "I begin again", "done")
			r.start()
			r.offer()
			<-running
			r.reap()
			r.revoke()
			close(back)
			r.pass(time.Minute)
			if !strings.HasPrefix(r.kinds(), "start task turn result result note task turn note") {
				t.Errorf("journal: %s", r.kinds())
			}
		})
	}
}

// A task that is assigned while the one before is being given up, which turns out to be
// somebody else's, is begun.
func TestAssignedWhileGivenUp(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.MaxTurns = 1
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.reap()
			return tool.Result{Content: "ok"}
		}
		r.released = func() {
			r.released = nil
			r.next(team.Task{ID: "T-002", Title: "Second", Status: team.Pending})
			r.given <- r.claim()
		}
		r.says("!look", "I begin", "done", "done")
		r.start()
		r.offer()
		if !strings.HasPrefix(r.kinds(), "start task turn result note task turn") {
			t.Errorf("journal: %s", r.kinds())
		}
	})
}

// A model that takes and releases tasks in every turn does not go on for ever.
func TestTurnLimitOfTakersAndReleasers(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.MaxTurns = 3
		turns := 0
		r.model = func(ctx context.Context, _ model.Request) (model.Reply, error) {
			if turns++; turns > 100 {
				<-ctx.Done()
				return model.Reply{}, ctx.Err()
			}
			return r.reply(fmt.Sprintf("!again%d", turns)), nil
		}
		for i := range 101 {
			r.tools[fmt.Sprintf("again%d", i)] = func(ctx context.Context, _ tool.Call) tool.Result {
				if _, err := r.hand.Release(ctx, r.id, team.Freed{}); err != nil {
					t.Error(err)
				}
				r.claim()
				return tool.Result{Content: "mine again"}
			}
		}
		r.start()
		r.offer()
		if turns > 2*r.opts.MaxTurns || r.task().Attempts != 1 {
			t.Errorf("%d turns, %d attempts", turns, r.task().Attempts)
		}
	})
}
