package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// liveEvery is how often a piece is sent: see [engine.StreamTo].
const liveEvery = 75 * time.Millisecond

// listener keeps what is told while it is written.
type listener struct {
	mu  sync.Mutex
	all []team.Delta
}

func (l *listener) Tell(d team.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *listener) told() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.all {
		out = append(out, fmt.Sprintf("%d %s", d.Offset, d.Text))
	}
	return out
}

// writing is a model that writes what the test says.
type writing struct {
	rigModel
	write func(r model.Request, say func(string)) string
}

func (w writing) Complete(_ context.Context, r model.Request, onDelta func(string)) (model.Reply, error) {
	return w.reply(w.write(r, onDelta)), nil
}

// A text is told while it is written, gathered for a while, under the id that its record
// gets; a try that is thrown away is begun anew.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, heard := newRig(t), &listener{}
		r.opts.Live = heard.Tell
		r.opts.Model = writing{rigModel{r}, func(req model.Request, say func(string)) string {
			req.OnTry()
			say("thrown ")
			say("away")
			time.Sleep(2 * liveEvery)
			say("not told")
			req.OnTry()
			say("你")
			say("好")
			time.Sleep(2 * liveEvery)
			say(" there")
			time.Sleep(liveEvery / 2)
			say(", you")
			time.Sleep(liveEvery)
			say(".")
			return "你好 there, you."
		}}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "hello")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := heard.told(), []string{"0 thrown away", "0 你好", "6  there, you", "17 ."}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		i := slices.IndexFunc(r.journal, func(rec journal.Record) bool { return rec.Kind == journal.Turn })
		turn := r.journal[i]
		for _, d := range heard.all {
			d.Offset, d.Text = 0, ""
			if want := (team.Delta{TeamID: "t", AgentID: "coder-1", Incarnation: 1, RunID: turn.RunID, MessageID: turn.ID}); d != want || turn.RunID == "" || turn.ID == recordID {
				t.Errorf("told as %+v, want %+v", d, want)
			}
		}
		r.stop()
	})
}
