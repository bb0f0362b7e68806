package board_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// frozenEnv makes the test binary a holder that can be frozen: its value is the
// server's address.
const frozenEnv = "AGENTTEAM_BOARD_FROZEN"

// holdAndComplete claims the tasks one after the other, says so, and completes each
// when it is told to; it prints how that ended.
func holdAndComplete(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := broker.Connect(ctx, broker.Options{URL: url, Wait: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close()
	bt, err := c.Open(ctx, "t")
	if err != nil {
		return err
	}
	hand := board.NewClaimSlot(ctx, board.New(bt.Bucket, board.Options{}), ann)
	in := bufio.NewReader(os.Stdin)
	for {
		var id team.TaskID
		if _, err := fmt.Fscanln(in, &id); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := hand.Claim(ctx, id); err != nil {
			return err
		}
		fmt.Println("claimed")
		if _, err := fmt.Fscanln(in, new(string)); err != nil {
			return err
		}
		_, err = hand.Complete(ctx, id, team.Done{Summary: "late"})
		fmt.Printf("%q\n", team.CodeOf(err))
	}
}

// A holder that was frozen past its lease, and then tries to complete, is refused
// every time; the one who took over completes.
func TestFrozenHolder(t *testing.T) {
	const times = 100
	url := brokertest.Server(t)
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	b := board.New(bt.Bucket, board.Options{})
	for range times {
		add(t, b)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env, cmd.Stderr = append(os.Environ(), frozenEnv+"="+url), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	tell := func(what any) { // also while the process is frozen
		if _, err := fmt.Fprintln(in, what); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want string) {
		t.Helper()
		var got string
		if _, err := fmt.Fscanln(answers, &got); err != nil || got != want {
			t.Fatalf("the holder said %s, %v; want %s", got, err, want)
		}
	}
	for n := range times {
		id := team.MakeTaskID(n + 1)
		tell(id)
		hear("claimed")
		freeze(t, cmd.Process)
		tell("complete")
		if err := b.Reap(t.Context(), id, 1, team.Freed{Reason: "not heard for the lease", Attempt: true}); err != nil {
			t.Fatal(err)
		}
		taken, err := b.Claim(t.Context(), id, bob)
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 { // at times the task is over before the holder wakes
			complete(t, b, taken)
		}
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		hear(`"conflict"`)
		if n%2 != 0 {
			complete(t, b, taken)
		}
	}
}

// freeze stops a child and returns once it stands.
func freeze(t *testing.T, p *os.Process) {
	t.Helper()
	var status syscall.WaitStatus
	err := p.Signal(syscall.SIGSTOP)
	if err == nil {
		_, err = syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		t.Fatalf("the holder was not frozen: %v, %v", status, err)
	}
}

func complete(t *testing.T, b *board.Board, task team.Task) {
	t.Helper()
	if task, err := b.Complete(t.Context(), task.ID, bob, task.Epoch, team.Done{Summary: "by who took over"}); err != nil || task.Assignee != bob.Agent {
		t.Fatalf("completed by %s, %v", task.Assignee, err)
	}
}
