package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

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
		r.opts.Live = heard
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

// A text that comes at once is told in pieces of a bounded size, which are whole letters.
func TestLiveLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &listener{}
		a := &Agent{o: Options{Live: heard}}
		for _, text := range []string{strings.Repeat("你", maxPiece), strings.Repeat("\x80", 3*maxPiece)} {
			heard.all = nil
			s := a.speak("id")
			s.Add(text)
			s.End()
			var whole strings.Builder
			for _, d := range heard.all {
				if d.Offset != whole.Len() || len(d.Text) > maxPiece || utf8.ValidString(text) != utf8.ValidString(d.Text) {
					t.Errorf("a piece of %d bytes at %d of %d", len(d.Text), d.Offset, whole.Len())
				}
				whole.WriteString(d.Text)
			}
			if whole.String() != text {
				t.Errorf("%d of %d bytes are told", whole.Len(), len(text))
			}
		}
	})
}
