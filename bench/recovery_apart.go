package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// apart is a team whose processes live apart from their NATS server, as on several
// machines: leaders and two teammates.
type apart struct {
	rig            *rig
	works          *works
	client         *client.Client
	team           *client.Team
	lifeline, held *os.File // children end with it
	children       []*childproc.Process
	started        int // teammates
}

const apartTeammates = 2

// separately returns the team apart, which is started at the first call.
func (b *recoveryRig) separately(ctx context.Context) (a *apart, err error) {
	if b.apart == nil {
		b.apart, err = startApart(ctx, b.rig, b.works, "apart", 2)
	}
	return b.apart, err
}

// startApart starts a team apart. It is to be closed also after an error.
func startApart(ctx context.Context, r *rig, w *works, id team.TeamID, leaders int) (a *apart, err error) {
	a = &apart{rig: r, works: w}
	if a.client, err = client.Connect(ctx, client.Options{URL: r.server.URL()}); err != nil {
		return a, err
	}
	if a.lifeline, a.held, err = os.Pipe(); err != nil {
		return a, err
	}
	roles, err := role.Load(r.dir)
	if err != nil {
		return a, err
	}
	if a.team, err = a.client.Make(ctx, client.NewTeam{ID: id, Roles: roles.All, Lease: recoveryLease}); err != nil {
		return a, err
	}
	release, most := team.RespawnRelease, 100 // whoever is killed stays away, and counts on
	if _, err := a.team.Choose(ctx, team.Choices{Respawn: &release, MaxTeammates: &most}); err != nil {
		return a, err
	}
	for range leaders {
		if err := a.start("leader"); err != nil {
			return a, err
		}
	}
	for range apartTeammates {
		if err := a.teammate(); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *apart) start(program string, args ...string) error {
	p, err := childproc.Start(filepath.Join(a.rig.bin, program),
		append([]string{"--server", a.rig.server.URL(), "--http", "127.0.0.1:0", "--workspace", a.rig.dir}, args...),
		[]string{"OPENAI_BASE_URL=" + a.works.url, "OPENAI_MODEL=bench", "OPENAI_API_KEY=none", "AGENTTEAM_LOG_LEVEL=error"}, a.lifeline, os.Stderr)
	if err == nil {
		a.children = append(a.children, p)
	}
	return err
}

func (a *apart) close() {
	for _, p := range a.children {
		p.Kill() // it has nothing to save
		<-p.Done()
	}
	if a.held != nil {
		a.held.Close()
		a.lifeline.Close()
	}
	if a.client != nil {
		a.client.Close()
	}
}

// leading waits until a leader of a later term than that one beats, and returns its term
// and its process.
func (a *apart) leading(ctx context.Context, term uint64) (uint64, int, error) {
	var leader client.Agent
	err := eventually(ctx, "nobody leads", func() (ok bool, err error) {
		if leader, err = a.team.Members().Get(ctx, team.Leader); errors.Is(err, team.NotFound) || errors.Is(err, team.Unavailable) {
			return false, nil
		}
		return leader.Incarnation > term && leader.State == team.Idle, err
	})
	return leader.Incarnation, leader.PID, err
}

// takeover kills the leading process and returns the seconds until another one leads and
// its leader beats.
func (b *recoveryRig) takeover(ctx context.Context) (float64, error) {
	a, err := b.separately(ctx)
	if err != nil {
		return 0, err
	}
	term, pid, err := a.leading(ctx, 0)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, err
	}
	if _, _, err := a.leading(ctx, term); err != nil {
		return 0, err
	}
	took := time.Since(begun).Seconds()
	return took, a.start("leader") // in its place
}

// working returns a team that has rested, with a task that one of its teammates has just claimed.
func (b *recoveryRig) working(ctx context.Context) (a *apart, held team.TaskView, err error) {
	if a, err = b.separately(ctx); err == nil {
		err = a.rested(ctx)
	}
	if err != nil {
		return a, held, err
	}
	added, _, err := a.team.Board().Add(ctx, "", team.NewTask{Title: "long", Role: "coder"})
	if err == nil {
		held, err = a.claimed(ctx, added[0].ID, 0)
	}
	return a, held, err
}

// claimedAgain kills the teammate that holds a task, while another is idle, and returns how
// long the task was without a holder that lives, in seconds over the lease.
func (b *recoveryRig) claimedAgain(ctx context.Context) (float64, error) {
	a, held, err := b.working(ctx)
	if err != nil {
		return 0, err
	}
	holder, err := a.team.Members().Get(ctx, held.Assignee)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := syscall.Kill(holder.PID, syscall.SIGKILL); err != nil {
		return 0, err
	}
	if _, err := a.claimed(ctx, held.ID, held.Epoch); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	if _, err = a.team.Board().Cancel(ctx, held.ID, "", "the try is over"); err != nil {
		return 0, err
	}
	return (took - recoveryLease).Seconds(), a.teammate() // in the place of the killed one
}

// allFell kills all processes and stops the server in the middle of a task, starts all again, and
// returns the seconds from there until the task is claimed.
func (b *recoveryRig) allFell(ctx context.Context) (float64, error) {
	a, held, err := b.working(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range a.children {
		p.Kill()
		<-p.Done()
	}
	a.children = nil
	if err := a.rig.restart(); err != nil {
		return 0, err
	}
	begun := time.Now()
	for range 2 {
		if err := errors.Join(a.start("leader"), a.teammate()); err != nil {
			return 0, err
		}
	}
	if _, err := a.claimed(ctx, held.ID, held.Epoch); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	_, err = a.team.Board().Cancel(ctx, held.ID, "", "the try is over")
	return took.Seconds(), err
}

// claimed waits until a task is in progress under a later epoch.
func (a *apart) claimed(ctx context.Context, id team.TaskID, epoch uint64) (task team.TaskView, err error) {
	err = eventually(ctx, string(id)+" is not claimed", func() (bool, error) {
		task, err = a.team.Board().Task(ctx, id)
		return task.Status == team.InProgress && task.Epoch > epoch, err
	})
	return task, err
}

// teammate starts one more, under the next name.
func (a *apart) teammate() error {
	a.started++
	return a.start("teammate", "--team", string(a.team.ID()), "--name", fmt.Sprintf("coder-%d", a.started), "--role", "coder")
}

// rested waits until both teammates are idle.
func (a *apart) rested(ctx context.Context) error {
	return eventually(ctx, "the teammates do not come to rest", func() (bool, error) {
		all, err := a.team.Members().List(ctx, false)
		idle := 0
		for _, m := range all {
			if m.Role == "coder" && m.State == team.Idle {
				idle++
			}
		}
		return idle == apartTeammates, err
	})
}

// brokerRestart stops the NATS server, starts it again, and returns the seconds from there
// until a task is claimed.
func (b *recoveryRig) brokerRestart(ctx context.Context) (float64, error) {
	a, err := b.separately(ctx)
	if err != nil {
		return 0, err
	}
	if err := a.rested(ctx); err != nil {
		return 0, err
	}
	if err := a.rig.restart(); err != nil {
		return 0, err
	}
	begun := time.Now()
	added, _, err := a.team.Board().Add(ctx, "", team.NewTask{Title: soonDone, Role: "coder"})
	if err != nil {
		return 0, err
	}
	err = eventually(ctx, "the task is not claimed", func() (bool, error) {
		task, err := a.team.Board().Task(ctx, added[0].ID)
		return task.Status != team.Pending, err
	})
	return time.Since(begun).Seconds(), err
}

// restart stops the server and starts it again at its address, with what it has stored.
func (r *rig) restart() error {
	u, err := url.Parse(r.server.URL())
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return err
	}
	r.server.Shutdown()
	server, err := embedded.Start(embedded.Options{Dir: r.dir, Port: port})
	if err != nil {
		return fmt.Errorf("the server is not back: %w", err)
	}
	r.server = server
	return nil
}
