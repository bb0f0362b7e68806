package agent

import (
	"context"
	"slices"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// A turn, a tool's result and a command's output are progress, and the beat tells which
// tool runs meanwhile. A failed try of the model is none, and the beat tells why.
func TestProgress(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		asked := 0
		still := func() time.Duration { return time.Since(time.Unix(0, r.progress.Load())) }
		r.tools["work"] = func(ctx context.Context, _ tool.Call) tool.Result {
			for range 3 {
				time.Sleep(time.Minute)
				tool.Progress(ctx)
			}
			time.Sleep(time.Minute)
			return tool.Result{Content: "ok"}
		}
		r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
			switch asked++; asked {
			case 1:
				q.OnRetry(model.Retry{Endpoint: "http://localhost", Reason: model.ServerError, Status: 503, Tried: 1, Of: 5, Wait: time.Second})
				time.Sleep(time.Minute)
				return model.Reply{}, no(model.TryAgain, model.ServerError)
			case 2:
				return r.reply("!work"), nil
			}
			time.Sleep(time.Minute)
			return r.reply("done"), nil
		}
		r.start()
		r.pass(time.Hour)
		r.offer()
		if want := "the model endpoint http://localhost failed (server error, status 503), try 2 of 5 follows after 1s"; r.beat.Trouble != want || still() != 0 {
			t.Errorf("while it is tried again: %+v, still for %v", r.beat, still())
		}
		if !slices.Contains(r.events, team.Retry) {
			t.Errorf("the stream does not tell that it is tried again: %v", r.events)
		}
		r.pass(time.Minute)
		if r.beat.Trouble != "the endpoint says no" || r.beat.State != team.WaitingModel || still() != time.Minute {
			t.Errorf("between two rounds of tries: %+v, still for %v", r.beat, still())
		}
		r.pass(modelBackoff)
		if r.beat.Trouble != "" || r.beat.Tool != "work" || r.beat.ToolAt == nil || still() != 0 {
			t.Errorf("at its tool: %+v, still for %v", r.beat, still())
		}
		r.pass(3*time.Minute + time.Second)
		if r.beat.Tool != "work" || still() != time.Second {
			t.Errorf("while its command prints: %+v, still for %v", r.beat, still())
		}
		r.pass(time.Minute)
		if r.beat.Tool != "" || r.beat.ToolAt != nil || still() != time.Second {
			t.Errorf("after the result: %+v, still for %v", r.beat, still())
		}
		if r.beat.Alias != "default" || r.beat.Model != "model-of-default" || r.beat.Tokens == 0 {
			t.Errorf("the beat tells of the model: %+v", r.beat)
		}
	})
}

// The event of a retry is stored although the answer comes first, or the call is interrupted, and
// the run ends after it.
func TestRetryEventOutlivesTheCall(t *testing.T) {
	for name, interrupted := range map[string]bool{"answered": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				stored := 0
				r.emits = func(ctx context.Context, e team.EventBody) {
					if e.Type != team.Retry {
						return
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Second): // NATS is slow
						stored++
					}
				}
				asked := 0
				r.model = func(ctx context.Context, q model.Request) (model.Reply, error) {
					if asked++; asked > 1 {
						return r.reply("done"), nil
					}
					q.OnRetry(model.Retry{Endpoint: "http://localhost", Reason: model.ServerError, Tried: 1, Of: 5})
					if interrupted {
						<-ctx.Done()
						return model.Reply{}, ctx.Err()
					}
					return r.reply("done"), nil
				}
				r.start()
				r.post(1, team.UserAgent, team.MsgUser, "work")
				if interrupted {
					r.agent.Urge(2)
				}
				r.pass(time.Minute)
				if stored != 1 || !slices.Contains(r.events, team.Retry) || r.events[len(r.events)-1] != team.RunFinished {
					t.Errorf("%d events of the retry were stored, of %v", stored, r.events)
				}
			})
		})
	}
}
