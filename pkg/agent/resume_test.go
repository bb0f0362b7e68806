package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// The work of these tests: a goal for which three tools are called at once, then a
// task for which a tool is called, somebody is asked, and the task completed.
func work(r *rig) (post *[]mailbox.Delivery) {
	var mail []mailbox.Delivery
	send := func(from team.AgentID, text string) {
		seq := uint64(len(mail) + 1)
		mail = append(mail, mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("m%d", seq), Type: team.MsgMessage, From: from, Content: text}, Seq: seq,
			Ack: func() { r.acked = append(r.acked, seq) }})
	}
	send(team.Leader, "the goal")
	r.awaits("coder-2")
	ask := r.tools["ask"]
	r.tools["ask"] = func(ctx context.Context, c tool.Call) tool.Result {
		send("coder-2", "the answer")
		return ask(ctx, c)
	}
	r.tools["complete"] = func(context.Context, tool.Call) tool.Result {
		if r.task().Status == team.Completed {
			return tool.Result{Content: "it is completed already"}
		}
		return tool.Result{Content: r.complete("done").Content}
	}
	r.decide = decide
	return &mail
}

// decide plays the model: what is to be done follows from the conversation alone.
func decide(messages []*model.Message) string {
	names, done, heard := map[string]string{}, map[string]bool{}, ""
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
		}
		if m.Role == "tool" && !strings.Contains(m.Content, `"code":"`) {
			done[names[m.ToolCallID]] = true
		}
		if m.Role == "user" {
			heard += m.Content
		}
	}
	var missing []string
	for _, name := range []string{"prepare", "look", "measure"} {
		if !done[name] {
			missing = append(missing, name)
		}
	}
	switch {
	case strings.Contains(heard, "the goal") && !strings.Contains(heard, "<task") && missing != nil:
		return "!" + strings.Join(missing, ",")
	case !strings.Contains(heard, "<task id=\"T-001\"") || done["complete"]:
		return "nothing to do"
	case !done["work"]:
		return "!work"
	case !done["ask"]:
		return "!ask"
	case !strings.Contains(heard, "the answer"):
		return "I wait"
	}
	return "!complete"
}

// live runs the agent, and a successor each time its process dies, until nothing
// moves any more; meanwhile it delivers the mail and offers the task.
func live(r *rig, mail *[]mailbox.Delivery) {
	r.t.Helper()
	r.start()
	delivered := 0
	for {
		select {
		case err := <-r.ended:
			if err != nil {
				r.t.Fatalf("Run = %v", err)
			}
			r.opts.Member.Incarnation++
			r.mail = make(chan mailbox.Delivery, 1)
			r.opts.Input.Mail = r.mail
			r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: r.opts.Member.Incarnation})
			delivered = 0
			r.start()
			continue
		default:
		}
		// The broker delivers again whatever was not acknowledged.
		for delivered < len(*mail) && slices.Contains(r.acked, (*mail)[delivered].Seq) {
			delivered++
		}
		switch {
		case delivered < len(*mail):
			r.mail <- (*mail)[delivered]
			delivered++
		case r.task().Status == team.Pending && r.beat.State == team.Idle:
			r.offers <- r.task()
		default:
			return
		}
		synctest.Wait()
	}
}

// Killed before or after any record is written, an agent is succeeded by one that
// ends where it would have ended: the task done, no call run twice, no attempt
// counted, each message heard once.
func TestKilledAnywhere(t *testing.T) {
	appends := 0
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		live(r, work(r))
		appends = r.appends
		r.stop()
		r.wantKinds("start mail turn result result result turn end task turn result turn result end mail turn result turn end")
	})
	for n := 1; n <= appends; n++ {
		for _, when := range []string{"before", "after", "before late", "after late"} {
			t.Run(fmt.Sprintf("%s record %d", when, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.late = strings.HasSuffix(when, "late")
					if strings.HasPrefix(when, "before") {
						r.killBefore = n
					} else {
						r.killAfter = n
					}
					mail := work(r)
					live(r, mail)
					defer r.stop()
					if r.opts.Member.Incarnation != 2 {
						t.Fatalf("incarnation %d, want 2", r.opts.Member.Incarnation)
					}
					if r.task().Status != team.Completed || r.task().Attempts > 1 || r.beat.State != team.Idle {
						t.Errorf("%s is %s after %d attempts; the agent is %s", r.task().ID, r.task().Status, r.task().Attempts, r.beat.State)
					}
					slices.Sort(r.ran)
					if n := len(r.ran); n != len(slices.Compact(r.ran)) {
						t.Errorf("a call was run twice: %v", r.ran)
					}
					conv := fold(t, r.journal...)
					if err := validProtocol(conv.Messages); err != nil {
						t.Error(err)
					}
					whole := transcript(conv.Messages)
					for _, m := range *mail {
						if n := strings.Count(whole, `id="`+m.ID+`"`); n != 1 {
							t.Errorf("message %s stands in the conversation %d times", m.ID, n)
						}
					}
					if conv.Unseen || conv.Await != nil {
						t.Errorf("unseen %v, await %v at the end", conv.Unseen, conv.Await)
					}
					if t.Failed() {
						t.Logf("journal: %s\n%s", r.kinds(), whole)
					}
				})
			})
		}
	}
}

// A call that only reads does not wait until what came before is stored. One that may change
// something does, and so does the next request.
func TestReadingWaitsForNoWrite(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.late = true
		var pending []int
		for _, name := range []string{"look1", "look2", "look3", "look4", "prepare", "look5"} {
			r.tools[name] = func(context.Context, tool.Call) tool.Result {
				pending = append(pending, len(r.pending))
				return tool.Result{Content: "seen"}
			}
		}
		answers := []string{"!look1,look2", "!look3,look4", "!look1,prepare,look5", "done"}
		r.decide = func([]*model.Message) string {
			pending = append(pending, len(r.pending)) // those at the requests
			answer := answers[0]
			answers = answers[1:]
			return answer
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if want := []int{0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 0}; !slices.Equal(pending, want) {
			t.Errorf("records on their way at requests and calls: %v, want %v", pending, want)
		}
		r.wantKinds("start mail turn result result turn result result turn result result result turn end")
	})
}

// An orderly stop waits until what was said and done is stored.
func TestStopStoresWhatIsOnItsWay(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.late = true
		r.tools["look-long"] = func(ctx context.Context, _ tool.Call) tool.Result {
			<-ctx.Done()
			return tool.Result{Content: "cut off"}
		}
		r.says("!look,look-long")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if len(r.pending) != 2 {
			t.Fatalf("%d records are on their way, want the turn and a result", len(r.pending))
		}
		r.stop()
		r.wantKinds("start mail turn result")
		r.cancel = nil
	})
}

// With NATS away an agent that waits for its journal stops all the same.
func TestStopWhileJournalIsAway(t *testing.T) {
	for name, calls := range map[string]string{"before a call": "!prepare", "before the next turn": "!look"} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.late = true
				r.decide = func([]*model.Message) string { r.away = true; return calls }
				r.start()
				r.post(1, team.UserAgent, team.MsgUser, "go")
				r.stop()
				r.wantKinds("start mail")
				r.cancel = nil
			})
		})
	}
}

// What a call that was cut off did is unknown; the model is told so, and nobody
// runs the call again.
func TestInterruptedCalls(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.journal = append(r.journal, mailRecord(1, team.Leader, team.MsgMessage, "go"), turnRecord("", "a", "b"), resultRecord("a", "A"))
		r.opts.Member.Incarnation = 2
		r.says("I look first")
		r.start()
		r.wantKinds("start mail turn result result turn end")
		if len(r.ran) != 0 {
			t.Errorf("calls were run: %v", r.ran)
		}
		if got := r.journal[4].Result; got.CallID != "b" || !got.IsError || !strings.Contains(got.Content, `"code":"unavailable"`) || !strings.Contains(got.Content, "look before you repeat") {
			t.Errorf("the open call was answered with %+v", got)
		}
	})
}

// A successor of one that died between the claim and its record hears what the
// task is about.
func TestAdoptsUnrecordedTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.claim()
		r.opts.Member.Incarnation = 2
		r.says("a", "b")
		r.start()
		if got := r.asked[0].Messages[1].Content; !strings.Contains(got, "title: Count") {
			t.Errorf("the model was told\n%s", got)
		}
	})
}

// One that is told of its task already is not told as if it were new: it goes on.
func TestAdoptsRecordedTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.claim()
		r.journal = append(r.journal, taskRecord(r.task()), turnRecord("hm"))
		r.opts.Member.Incarnation = 2
		r.says("a", "b")
		r.start()
		if !strings.HasPrefix(r.kinds(), "start task turn note turn") || !strings.Contains(r.notes(), "T-001 is still yours") {
			t.Errorf("journal: %s, notes: %s", r.kinds(), r.notes())
		}
		if r.task().Incarnation != 2 && r.task().Status == team.InProgress {
			t.Errorf("the task was not adopted: %+v", r.task())
		}
	})
}

// One that was lost after its model had answered at work has had an attempt; one whose
// model had not answered since has not.
func TestAdoptionIsAnAttempt(t *testing.T) {
	for name, tt := range map[string]struct {
		turn team.TaskID
		want int
	}{"at work": {"T-001", 1}, "not begun": {"", 0}} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.claim()
				turn := turnRecord("hm")
				turn.TaskID = tt.turn
				r.journal = append(r.journal, taskRecord(r.task()), turn, journal.Record{Kind: journal.Start, Incarnation: 2})
				r.opts.Member.Incarnation = 2
				r.says("a", "b", "c")
				r.start()
				if got := r.task().Attempts - 1; got != tt.want { // that it goes idle with the task is one, too
					t.Errorf("%d attempts, want %d", got, tt.want)
				}
			})
		})
	}
}

// A task that is had for the second time is told anew: it was free in between, and may
// have been edited.
func TestAdoptsTaskTakenAgain(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		first := r.claim()
		r.journal = append(r.journal, taskRecord(first), turnRecord("hm"))
		time.Sleep(time.Second) // of the bubble
		if _, err := r.hand.Release(t.Context(), r.id, team.Freed{Reason: "later"}); err != nil {
			t.Fatal(err)
		}
		r.edit(func(t *team.Task) { t.Title = "Count again" })
		r.claim()
		r.opts.Member.Incarnation = 2
		r.says("a", "b")
		r.start()
		if !strings.HasPrefix(r.kinds(), "start task turn task note turn") || !strings.Contains(transcript(r.asked[0].Messages), "title: Count again") {
			t.Errorf("journal: %s", r.kinds())
		}
	})
}

func TestUnreadableJournal(t *testing.T) {
	for name, r := range map[string]journal.Record{
		"a turn": {Kind: journal.Turn, Turn: []byte("{")}, "a context": {Kind: journal.Compact, Context: []byte("{")},
	} {
		if _, err := Fold("", []journal.Record{r}); !errors.Is(err, team.InvalidState) {
			t.Errorf("%s: Fold = %v, want invalid_state", name, err)
		}
	}
}
