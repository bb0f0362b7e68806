package agent

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// The files of testdata/scenarios tell what happens to an agent, and what it does:
// after each command stand the records that it wrote, the mail that it sent and how it
// says it is. With -rewrite they are written anew.
//
// Commands: leader; says (an answer a line, "!name" for a call); refuses ADVICE REASON;
// window N; start; restart; mail FROM TYPE (and a text); offer; taken; compact; pass D.
// The tool complete completes the task, ask awaits an answer of coder-2, read_file and
// survey are long, and every other tool answers in a few words.
func TestScenarios(t *testing.T) {
	err := filepath.WalkDir("testdata/scenarios", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t.Run(strings.TrimSuffix(d.Name(), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScenario(t)
				datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return s.do(d) })
				if s.cancel != nil {
					s.stop()
				}
			})
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir("testdata/scenarios"); err != nil || len(entries) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
}

type scenario struct {
	*rig
	compacts chan struct{}
	seq      uint64
	// what was shown already
	records, mails, beats int
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{rig: newRig(t), compacts: make(chan struct{}, 1), records: 1}
	s.opts.Input.Compacts = s.compacts
	s.edit(func(t *team.Task) { t.Description = "Count the lines." })
	s.awaits("coder-2")
	s.tools["complete"] = func(context.Context, tool.Call) tool.Result {
		return s.complete("42 lines")
	}
	s.tools["read_file"] = func(context.Context, tool.Call) tool.Result {
		return tool.Result{Content: strings.Repeat(fmt.Sprintf("line of file %d\n", len(s.ran)), 400)}
	}
	s.tools["survey"] = func(context.Context, tool.Call) tool.Result {
		return tool.Result{Content: strings.Repeat(fmt.Sprintf("finding %d\n", len(s.ran)), 100)}
	}
	s.team.endGoal = func(_ context.Context, cause string) { s.parked = append(s.parked, "the goal is ended: "+cause) }
	return s
}

func (s *scenario) do(d *datadriven.TestData) string {
	arg := func(i int) string {
		if i >= len(d.CmdArgs) {
			d.Fatalf(s.t, "%s needs %d arguments", d.Cmd, i+1)
		}
		return d.CmdArgs[i].String()
	}
	switch d.Cmd {
	case "leader":
		s.opts.Member.AgentID, s.journal[0].Goal = team.Leader, 1
	case "says":
		s.says(strings.Split(strings.TrimSpace(d.Input), "\n")...)
	case "refuses":
		s.refuses(model.Advice(arg(0)), model.Reason(arg(1)))
	case "window":
		if _, err := fmt.Sscan(arg(0), &s.limits.Window); err != nil {
			d.Fatalf(s.t, "%v", err)
		}
	case "start":
		s.start()
	case "restart":
		s.stop()
		if !d.HasArg("stopped") { // a process that dies writes no last word
			s.journal = slices.DeleteFunc(s.journal, func(r journal.Record) bool { return r.Kind == journal.Stop })
		}
		s.opts.Member.Incarnation++
		s.journal = append(s.journal, journal.Record{Kind: journal.Start, Incarnation: s.opts.Member.Incarnation, Goal: s.journal[0].Goal})
		s.start()
	case "mail":
		s.seq++
		s.post(s.seq, team.AgentID(arg(0)), team.MessageType(arg(1)), strings.TrimSpace(d.Input))
	case "offer":
		if s.task().Status != team.Pending {
			s.next(team.Task{ID: "T-002", Title: "Next", Status: team.Pending})
		}
		s.offer()
	case "taken":
		s.reap()
		s.revoke()
		synctest.Wait()
	case "compact":
		s.compacts <- struct{}{}
		synctest.Wait()
	case "pass":
		length, err := time.ParseDuration(arg(0))
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		s.pass(length)
	default:
		d.Fatalf(s.t, "there is no command %s", d.Cmd)
	}
	return s.news()
}

// news is what happened since it was asked last.
func (s *scenario) news() string {
	var b strings.Builder
	for _, r := range s.journal[s.records:] {
		fmt.Fprintln(&b, s.shown(r))
	}
	for _, m := range s.sent[s.mails:] {
		fmt.Fprintf(&b, "  sends %s to %s: %s\n", m.Type, m.To, engine.Head(team.OneLine(m.Content), 90))
	}
	s.records, s.mails = len(s.journal), len(s.sent)
	for _, cause := range s.parked {
		fmt.Fprintf(&b, "  its record says: %q\n", cause)
	}
	s.parked = nil
	for _, state := range s.states[s.beats:] {
		fmt.Fprintf(&b, "  is %s\n", state)
	}
	s.beats = len(s.states)
	if s.holds() || s.task().Status != team.Pending || s.task().Attempts > 0 || s.task().Reason != "" {
		fmt.Fprintf(&b, "  %s is %s, attempts %d", s.task().ID, s.task().Status, s.task().Attempts)
		if s.task().Reason != "" {
			fmt.Fprintf(&b, " (%s)", engine.Head(s.task().Reason, 90))
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "ok"
	}
	return b.String()
}

// shown is a record in a line.
func (s *scenario) shown(r journal.Record) string {
	text := string(r.Kind)
	switch {
	case r.Kind == journal.Mail:
		text += " from " + string(r.Message.From) + ": " + r.Message.Content
	case r.Kind == journal.Task:
		text += " " + string(r.Task.ID)
	case r.Kind == journal.Turn:
		text += " " + strings.TrimSpace(transcript(fold(s.t, r).Messages))
	case r.Kind == journal.Result:
		text += " " + r.Result.Name + ": " + r.Result.Content
		if o := r.Result.Outcome; o != nil {
			text += " => " + o.Text
		}
	case r.Kind == journal.Refused:
		text += " " + r.Refusal.Advice + " " + r.Refusal.Reason
	default:
		text += " " + r.Text
	}
	if r.Context != nil {
		text += " [a new context]"
	}
	return engine.Head(team.OneLine(text), 130)
}
