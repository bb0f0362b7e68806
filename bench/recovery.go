package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/team"
)

// recoveryMembers are the teammates of the cluster, each in the middle of a task.
const recoveryMembers = 3

// Goals, in seconds.
const (
	backGoal     = 15.0
	takeoverGoal = 15.0
	reclaimGoal  = 1.0 // over the lease
	brokerGoal   = 2.0
	allFellGoal  = 15.0 // at a lease of 5 s
)

// recoveryBench measures how long a team takes until its members are at work again after
// processes were killed. There is no raw figure: bare JetStream has no members.
func recoveryBench(ctx context.Context, r *rig) (all []figure, err error) {
	tries := 10
	if os.Getenv("BENCH") == "quick" {
		tries = 2
	}
	b, err := newRecoveryRig(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, way := range []struct {
		name string
		end  func(context.Context) error
	}{{"sighup", b.signalled(syscall.SIGHUP)}, {"sigpipe", b.closedPipe}, {"kill_up", b.signalled(syscall.SIGKILL)}, {"kill_all", b.killAll}} {
		progress("back after %s: %d tries", way.name, tries)
		took, err := repeat(ctx, tries, func(ctx context.Context) (float64, error) { return b.back(ctx, way.end) })
		if err != nil {
			return nil, fmt.Errorf("back after %s: %w", way.name, err)
		}
		all = append(all, bounded("back_after_"+way.name, took, backGoal)...)
	}
	for _, part := range []struct {
		name string
		goal float64
		try  func(context.Context) (float64, error)
	}{
		{"leader_takeover", takeoverGoal, b.takeover},
		{"claimed_again_over_lease", reclaimGoal, b.claimedAgain},
		{"first_claim_after_broker_restart", brokerGoal, b.brokerRestart},
		{"first_claim_after_all_fell_apart", allFellGoal, b.allFell},
	} {
		progress("%s: %d tries", part.name, tries)
		took, err := repeat(ctx, tries, part.try)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		all = append(all, bounded(part.name, took, part.goal)...)
	}
	return all, nil
}

// repeat returns the results of so many tries.
func repeat(ctx context.Context, tries int, try func(context.Context) (float64, error)) (took []float64, err error) {
	for n := range tries {
		s, err := try(ctx)
		if err != nil {
			return nil, fmt.Errorf("try %d: %w", n+1, err)
		}
		took = append(took, s)
	}
	return took, nil
}

// bounded are the median of some times and the longest, which is held against the goal.
func bounded(name string, took []float64, goal float64) []figure {
	return []figure{measured(name+"_p50", median(took), "s"), measured(name+"_max", slices.Max(took), "s").atMost(goal)}
}

// recoveryRig is a folder in which a team is at work.
type recoveryRig struct {
	*folder
	rig     *rig
	members []team.AgentID
	goal    bool // the team has one
	apart   *apart
}

func newRecoveryRig(ctx context.Context, r *rig) (b *recoveryRig, err error) {
	w, err := startWorks()
	if err != nil {
		return nil, err
	}
	b = &recoveryRig{folder: &folder{dir: filepath.Join(r.dir, "folder"), bin: r.bin, works: w}, rig: r}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return b, err
	}
	if err := b.up(ctx); err != nil {
		return b, err
	}
	begun := time.Now()
	for n := range recoveryMembers {
		b.members = append(b.members, team.AgentID(fmt.Sprintf("coder-%d", n+1)))
		if err := errors.Join(b.teamctl(ctx, "tasks", "add", "--title", "long", "--role", "coder"), b.teamctl(ctx, "spawn", "coder")); err != nil {
			return b, err
		}
	}
	_, err = b.atWork(ctx, begun)
	return b, err
}

func (b *recoveryRig) close() error {
	defer b.works.close()
	if b.apart != nil {
		b.apart.close()
	}
	if c, err := b.cluster(); err != nil || !c.Alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return b.teamctl(ctx, "down")
}

// atWork waits until every member has asked its model after begun, and returns when the
// last one did.
func (b *recoveryRig) atWork(ctx context.Context, begun time.Time) (at time.Time, err error) {
	err = eventually(ctx, "not all members are at work", func() (all bool, err error) {
		at, all = b.works.since(begun, b.members)
		return all, nil
	})
	if err != nil && ctx.Err() == nil { // what a person would look at
		err = errors.Join(err, b.show(ctx, "status", "-o", "wide"), b.show(ctx, "tasks", "ls", "-o", "wide"), b.show(ctx, "events", "--since", "3m"))
	}
	return at, err
}

// show returns what a command prints as an error.
func (b *recoveryRig) show(ctx context.Context, args ...string) error {
	cmd, err := b.command(ctx, args...)
	if err != nil {
		return err
	}
	out, _ := cmd.CombinedOutput()
	return fmt.Errorf("teamctl %s:\n%s", strings.Join(args, " "), out)
}

// back ends the cluster in one way, starts it again, and returns the seconds from there
// until every member has asked its model.
func (b *recoveryRig) back(ctx context.Context, end func(context.Context) error) (float64, error) {
	if err := end(ctx); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := b.up(ctx); err != nil {
		return 0, err
	}
	at, err := b.atWork(ctx, begun)
	return at.Sub(begun).Seconds(), err
}

// signalled ends the cluster by a signal to the process that owns it.
func (b *recoveryRig) signalled(s syscall.Signal) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := b.cluster()
		if err != nil {
			return err
		}
		if err := syscall.Kill(c.Owner(), s); err != nil {
			return err
		}
		return gone(ctx, c.Owner())
	}
}

// killAll kills every process of the cluster at once.
func (b *recoveryRig) killAll(ctx context.Context) error {
	c, err := b.cluster()
	if err != nil {
		return err
	}
	for _, pid := range c.PIDs {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one may have been replaced
	}
	return gone(ctx, c.Owner())
}

// closedPipe has the cluster owned by a run whose reader goes away, as that of `| head`.
func (b *recoveryRig) closedPipe(ctx context.Context) error {
	if err := b.teamctl(ctx, "down"); err != nil {
		return err
	}
	goal := []string{"run", "--keep", "wait"}
	if b.goal {
		goal = []string{"run", "--resume"}
	}
	b.goal = true
	cmd, err := b.command(ctx, goal...)
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var told bytes.Buffer
	cmd.Stderr = &told
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	// Members that come back may be at work before the run has set its goal. It shows
	// something only afterwards.
	_, err = io.ReadFull(out, make([]byte, 1))
	if err == nil {
		_, err = b.atWork(ctx, begun)
	}
	if err != nil {
		_ = cmd.Process.Signal(os.Interrupt)
		shown, _ := io.ReadAll(out) // to its end, which Wait asks for
		_ = cmd.Wait()
		return fmt.Errorf("%w\nteamctl %s:\n%s%s", err, strings.Join(goal, " "), shown, &told)
	}
	out.Close()
	// What it shows next is read by nobody; it may have ended by then.
	_ = b.teamctl(ctx, "tasks", "add", "--title", "seen by nobody", "--role", "tester")
	_ = cmd.Wait()
	return nil
}
