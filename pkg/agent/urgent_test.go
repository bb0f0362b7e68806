package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// urge has urgent mail come: the word of it at once, the mail itself a moment later.
func (r *rig) urge(seq uint64) {
	r.agent.Urge(seq)
	go func() {
		time.Sleep(10 * time.Millisecond)
		r.mail <- delivery(seq, team.MsgUser)
	}()
}

// Urgent mail cuts off a call that yields, skips those not begun, and is the next thing
// that the model reads.
func TestUrgentCutsOffCalls(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["sleep"] = func(ctx context.Context, _ tool.Call) tool.Result {
			r.urge(2)
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return tool.Result{Content: context.Cause(ctx).Error(), IsError: true}
		}
		r.says("!sleep,look,write", "I stop", "bye")
		r.start()
		begun := time.Now()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		r.pass(time.Second)
		r.wantKinds("start mail turn result result result mail turn end")
		if len(r.ran) != 1 || time.Since(begun) > time.Minute {
			t.Errorf("after %v, ran %v", time.Since(begun), r.ran)
		}
		got := transcript(r.asked[1].Messages)
		if !strings.Contains(got, "sleep: urgent mail came") || strings.Count(got, "not run: urgent mail came") != 2 || !strings.Contains(got, "please") {
			t.Errorf("the model was told\n%s", got)
		}
	})
}

// A call that writes is left to end.
func TestUrgentLeavesWriter(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["write"] = func(ctx context.Context, _ tool.Call) tool.Result {
			r.urge(2)
			time.Sleep(time.Minute)
			return tool.Result{Content: "written", IsError: ctx.Err() != nil}
		}
		r.says("!write,look", "I stop", "bye")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		r.pass(2 * time.Minute)
		if got := transcript(r.asked[1].Messages); !strings.Contains(got, "write: written") || !strings.Contains(got, "not run: urgent mail came") || !strings.Contains(got, "please") {
			t.Errorf("the model was told\n%s", got)
		}
	})
}

// Word of a message that has come twice, and was skipped, cuts nothing off.
func TestUrgentTwice(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("I read it")
		r.start()
		r.mail <- delivery(1, team.MsgUser)
		synctest.Wait()
		again := delivery(1, team.MsgUser)
		again.Seq = 2
		r.mail <- again
		synctest.Wait()
		if r.agent.Urge(2); len(r.agent.engine.Interrupts()) != 0 || r.agent.Taken().Seq != 2 {
			t.Errorf("mail up to %v is taken, and urgent mail %d times is waited for", r.agent.Taken(), len(r.agent.engine.Interrupts()))
		}
	})
}

// A completion whose check runs, however long, is one: its result counts, and the mail is read
// within 250 ms of its end.
func TestUrgentLeavesCheck(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var ended, asked time.Time
		r.tools["write"] = func(ctx context.Context, _ tool.Call) tool.Result {
			r.urge(2)
			time.Sleep(5 * time.Minute)
			ended = time.Now()
			if ctx.Err() != nil {
				t.Error("the check was cut off")
			}
			return r.complete("checked")
		}
		r.says("!write")
		r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
			asked = time.Now()
			return r.reply("I read it"), nil
		})
		r.start()
		r.offers <- r.task()
		r.pass(6 * time.Minute)
		if got := transcript(r.asked[len(r.asked)-1].Messages); r.task().Status != team.Completed || !strings.Contains(got, "write: completed") || !strings.Contains(got, "please") {
			t.Errorf("the task is %s, and the model was told\n%s", r.task().Status, got)
		}
		if late := asked.Sub(ended); late < 0 || late > 250*time.Millisecond {
			t.Errorf("the mail is read %v after the check's end", late)
		}
	})
}

// A model call is asked again with the mail. Word of mail that never comes holds nobody up
// for long, and word of what was read already does nothing.
func TestUrgentInterruptsModel(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.start()
		r.model = func(ctx context.Context, req model.Request) (model.Reply, error) {
			r.asked = append(r.asked, req)
			switch len(r.asked) {
			case 1:
				r.urge(2)
				<-ctx.Done()
				return model.Reply{}, ctx.Err()
			case 2:
				r.agent.Urge(9)
				if ctx.Err() == nil || context.Cause(ctx) != error(urgentMail(9)) {
					return model.Reply{}, errors.New("it goes on")
				}
				return model.Reply{}, ctx.Err()
			}
			return r.reply("done"), ctx.Err()
		}
		r.post(1, team.UserAgent, team.MsgUser, "go")
		r.pass(urgentWithin + time.Second)
		r.wantKinds("start mail mail turn end")
		if len(r.asked) != 3 || !strings.Contains(transcript(r.asked[1].Messages), "please") {
			t.Errorf("asked %d times", len(r.asked))
		}
		r.agent.Urge(2)
		synctest.Wait()
		r.post(10, team.UserAgent, team.MsgUser, "go on")
		r.wantKinds("start mail mail turn end mail turn end")
	})
}
