package teamtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// commands is a script in which an agent runs what a person says.
const commands = `
agents:
- rules:
  - name: run
    since: 'run (?P<command>[^\n]+)'
    steps:
    - calls:
      - {tool: bash, args: {command: '{{.Match.command}}'}}
    - {say: That is done.}
  - {name: idle, say: Nothing to do.}
`

// post is one member, bob, with mail of the person, and its journal.
type post struct {
	t    *testing.T
	tm   *client.Team
	bt   *broker.Storage
	box  *mailbox.Mailbox
	runs int // commands that were begun
}

func newPost(t *testing.T) *post {
	c := teamtest.Start(t, commands)
	tm := c.Team("t")
	c.Named("bob", "coder", "t")
	joined(t, tm, "bob")
	bt, err := brokertest.Connect(t, c.URL).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return &post{t: t, tm: tm, bt: bt, box: mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})}
}

// run has bob run a command, and returns once it is at it.
func (p *post) run(command string, urgent bool) {
	p.t.Helper()
	if _, _, err := p.box.Send(p.t.Context(), team.Message{Type: team.MsgUser, From: team.UserAgent, To: "bob", Content: "run " + command, Urgent: urgent}); err != nil {
		p.t.Fatal(err)
	}
	p.runs++
	begun := 0
	teamtest.Until(p.t, p.tm, func(e client.Entry) bool {
		if e.Event.Event.ToolCallName == "bash" && e.Event.Event.Type == team.ToolCallChunk {
			begun++
		}
		return begun == p.runs
	})
}

func (p *post) journal() (records []journal.Record) {
	p.t.Helper()
	if err := journal.Each(p.t.Context(), p.bt, 1, func(r journal.Record) error { records = append(records, r); return nil }); err != nil {
		p.t.Fatal(err)
	}
	return records
}

// Three thousand messages that come while a member is busy are one record of its journal,
// and each of them is in it.
func TestFlood(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.run("until [ -e go ]; do sleep 0.02; done", false)

	const senders, each = 10, 300
	var sending sync.WaitGroup
	var one atomic.Value // the id of a message
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				m := team.Message{Type: team.MsgMessage, From: team.AgentID(fmt.Sprintf("ann-%d", s)), To: "bob", Content: fmt.Sprintf("thank you %d", i)}
				sent, _, err := p.box.Send(t.Context(), m)
				if err != nil {
					t.Error(err)
					return
				}
				one.Store(sent.ID)
			}
		})
	}
	sending.Wait()
	last, err := p.bt.Messages.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record, err := p.tm.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := os.WriteFile(filepath.Join(record.Workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	teamtest.Until(t, p.tm, func(e client.Entry) bool { return strings.Contains(e.Event.Event.Delta, "That is done.") })
	t.Logf("the model answered %v after the call's end", time.Since(begun))
	brokertest.Until(t, "all is acknowledged", func() bool {
		n, err := p.box.Waiting(t.Context(), "bob", 1)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	t.Logf("all was acknowledged after %v", time.Since(begun))

	var piles int
	took := map[uint64]int{}
	for _, r := range p.journal() {
		if r.Kind == journal.Backlog {
			piles++
		}
		for seq := uint64(1); seq <= last; seq++ {
			if r.Took(seq) {
				took[seq]++
			}
		}
	}
	if piles != 1 || len(took) != senders*each+1 || slices.Max(values(took)) != 1 {
		t.Errorf("%d records have %d of %d messages", piles, len(took), senders*each+1)
	}
	if l, err := p.tm.Mail().Message(t.Context(), one.Load().(string)); err != nil || len(l.Deliveries) != 1 || l.Deliveries[0].Status != team.MailProcessed {
		t.Errorf("its sender sees of one of them: %+v, %v", l.Deliveries, err)
	}
	p.run("true", false) // what comes later comes
}

func values(m map[uint64]int) (vs []int) {
	for _, v := range m {
		vs = append(vs, v)
	}
	return vs
}

// Urgent mail ends a command of an hour, and is what the model reads next. How soon is
// logged.
func TestUrgentMail(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	const rounds = 20
	for i := range rounds {
		p.run(fmt.Sprintf("sleep 3600 # %d", i), true)
	}
	p.run("true", true)
	teamtest.Until(t, p.tm, func(e client.Entry) bool { return strings.Contains(e.Event.Event.Delta, "That is done.") })

	var ended time.Time
	var waits []time.Duration
	for _, r := range p.journal() {
		switch {
		case r.Kind == journal.Result && r.Result.IsError:
			ended = r.At
		case r.Kind == journal.Mail && !ended.IsZero():
			waits = append(waits, r.At.Sub(ended))
			ended = time.Time{}
		}
	}
	if len(waits) != rounds {
		t.Fatalf("%d of %d commands were cut off", len(waits), rounds)
	}
	slices.Sort(waits)
	t.Logf("from the end of the call to the mail in the conversation: median %v, most of %d: %v", waits[rounds/2], rounds, waits[rounds-1])
}
