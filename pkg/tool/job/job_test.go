package job_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
)

// set is the tools of jobs, as a model calls them.
func set(t *testing.T, s *job.Jobs) func(name, args string) tool.Result {
	t.Helper()
	tools, err := tool.NewSet(nil, s.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	return func(name, args string) tool.Result {
		return tools.Run(t.Context(), tool.Call{ID: "1", Name: name, Arguments: args})
	}
}

// prints is a command that prints what it is given until that ends, or it has to.
func prints(lines <-chan string) func(ctx context.Context, j *job.Job) string {
	return func(ctx context.Context, j *job.Job) string {
		for {
			select {
			case l, more := <-lines:
				if !more {
					return "exit status 0"
				}
				fmt.Fprintln(j, l)
			case <-ctx.Done():
				return "killed: " + context.Cause(ctx).Error()
			}
		}
	}
}

// What a job prints is shown once, and its end is told once: as a notice, unless a call has shown it.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := job.New(job.Options{Task: func() team.TaskID { return "T-001" }})
		defer s.Close()
		call := set(t, s)
		lines := make(chan string)
		j, err := s.Begin(team.Job{Kind: team.JobCommand, About: "make"}, prints(lines))
		if err != nil || j.Task != "T-001" || !strings.HasPrefix(j.ID, "b") || len(j.ID) != 7 {
			t.Fatalf("%+v, %v", j, err)
		}
		lines <- "one"
		synctest.Wait()
		args := `{"task_id":"` + j.ID + `","block":false}`
		if r := call("task_output", args); !strings.HasSuffix(r.Content, "]\none\n") || !strings.Contains(r.Content, "runs for") {
			t.Errorf("%q", r.Content)
		}
		if r := call("BashOutput", `{"bash_id":"`+j.ID+`","filter":"x"}`); strings.Contains(r.Content, "one") {
			t.Errorf("what was read is shown again: %q", r.Content)
		}
		time.Sleep(3 * time.Minute)
		if l := s.List(); len(l) != 1 || l[0].Still != 180 || !s.Waits() {
			t.Errorf("%+v", l)
		}
		time.Sleep(8 * time.Minute)
		if s.Waits() || s.List()[0].Holds() {
			t.Error("a command that has printed nothing for 11 minutes is waited for")
		}
		lines <- "two"
		close(lines)
		e := <-s.Ended()
		if want := "[" + j.ID + " has ended: exit status 0] (make)\none\ntwo\n"; e.Text != want || e.Job.Ended != "exit status 0" {
			t.Errorf("%q, want %q", e.Text, want)
		}
		if len(s.List()) != 1 {
			t.Error("it is not listed although its end is not recorded")
		}
		e.Recorded()
		synctest.Wait()
		if len(s.List()) != 0 {
			t.Errorf("%+v", s.List())
		}
		if r := call("TaskOutput", `{"task_id":"`+j.ID+`","timeout":1000}`); !strings.HasSuffix(r.Content, "two\n") {
			t.Errorf("the end cannot be read: %q", r.Content)
		}
	})
}

func TestStop(t *testing.T) {
	s := job.New(job.Options{})
	defer s.Close()
	call := set(t, s)
	j, err := s.Begin(team.Job{Kind: team.JobCommand}, prints(nil))
	if err != nil {
		t.Fatal(err)
	}
	r := call("KillShell", `{"shell_id":"`+j.ID+`"}`)
	if r.IsError || !strings.Contains(r.Content, "killed: stopped by its owner") || len(r.Effects.Jobs) != 1 {
		t.Errorf("%+v", r)
	}
	if r := call("task_stop", `{"task_id":"`+j.ID+`"}`); r.Code != team.InvalidState {
		t.Errorf("%+v", r)
	}
	if r := call("task_output", `{"task_id":"b000000"}`); r.Code != team.NotFound || !strings.Contains(r.Content, j.ID) {
		t.Errorf("%+v", r)
	}
	select {
	case e := <-s.Ended():
		t.Errorf("the agent is told again: %q", e.Text)
	default:
	}
}

// A member has so many at the same time and no more; who waits for a subagent waits for its turn.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := job.New(job.Options{})
		defer s.Close()
		for kind, most := range map[team.JobKind]int{team.JobCommand: job.MaxCommands, team.JobSubagent: job.MaxSubagents} {
			for n := range most + 1 {
				_, err := s.Begin(team.Job{Kind: kind}, prints(nil))
				if full := n == most; errors.Is(err, team.Busy) != full {
					t.Errorf("%s %d: %v", kind, n, err)
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Run(ctx, team.Job{Kind: team.JobSubagent}, prints(nil)); !errors.Is(err, team.Unavailable) {
			t.Errorf("a subagent too many: %v", err)
		}
	})
}

// All end with their owner, and those of a task with that.
func TestEnds(t *testing.T) {
	task := team.TaskID("T-001")
	s := job.New(job.Options{Task: func() team.TaskID { return task }})
	var ends [2]string
	for i := range ends {
		if _, err := s.Begin(team.Job{Kind: team.JobCommand}, func(ctx context.Context, _ *job.Job) string {
			<-ctx.Done()
			ends[i] = context.Cause(ctx).Error()
			return ends[i]
		}); err != nil {
			t.Fatal(err)
		}
		task = "T-002"
	}
	wait := s.EndTask("T-001", errors.New("T-001 was taken from its owner"))
	if err := wait(t.Context()); err != nil || ends[0] == "" {
		t.Errorf("waited for the end: %v; %q", err, ends)
	}
	if e := brokertest.Receive(t, "the job ends", s.Ended()); !strings.Contains(e.Text, "T-001 was taken from its owner") {
		t.Errorf("%q", e.Text)
	}
	s.Close()
	if ends[1] != "its owner's process ends" {
		t.Errorf("%q", ends)
	}
	if _, err := s.Begin(team.Job{Kind: team.JobCommand}, prints(nil)); !errors.Is(err, team.Unavailable) {
		t.Errorf("begun after the end: %v", err)
	}
}

// A long output is told by head and tail, with where the whole lies.
func TestLongOutput(t *testing.T) {
	var kept string
	s := job.New(job.Options{Keep: func(_ context.Context, text string) (string, error) {
		kept = text
		return "stored:abc", nil
	}})
	defer s.Close()
	text := strings.Repeat("a line\n", 10_000)
	if _, err := s.Begin(team.Job{Kind: team.JobCommand}, func(_ context.Context, j *job.Job) string {
		fmt.Fprint(j, text)
		return "exit status 1"
	}); err != nil {
		t.Fatal(err)
	}
	if e := brokertest.Receive(t, "the job ends", s.Ended()); len(e.Text) > 2_300 || !strings.Contains(e.Text, "stored:abc") || kept != text {
		t.Errorf("%d bytes, %d kept: %q", len(e.Text), len(kept), e.Text)
	}
}

// Of the output of a job that has ended all is kept that there is room for, though less is held of what
// was not read.
func TestLongUnread(t *testing.T) {
	s := job.New(job.Options{Keep: func(_ context.Context, text string) (string, error) {
		return fmt.Sprintf("stored:%d", len(text)), nil
	}})
	defer s.Close()
	text := strings.Repeat("a line\n", 300_000) // 2 MiB
	is, err := s.Begin(team.Job{Kind: team.JobCommand}, func(_ context.Context, j *job.Job) string {
		fmt.Fprint(j, text)
		return "exit status 0"
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(nil, s.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	got := set.Run(t.Context(), tool.Call{Name: "task_output", Arguments: `{"task_id":"` + is.ID + `"}`})
	if got.IsError || !strings.Contains(got.Content, fmt.Sprintf("stored:%d", len(text))) {
		t.Errorf("what is kept is not all %d bytes: %s", len(text), regexp.MustCompile(`stored:\d+`).FindString(got.Content))
	}
}
