package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// agentRig is a cluster with an endpoint: a leader and, one after another, teammates, each
// with a team of its own.
type agentRig struct {
	rig       *rig
	endpoint  *endpoint
	conn      *broker.Conn
	client    *client.Client
	workspace string

	lifeline, held *os.File // children end with it
	leader         *childproc.Process
	teams          int
	last           *broker.Storage // of the newest conversation
}

const (
	pieces     = 1100 // files to be read, more than any conversation reads
	pieceBytes = 1400 // of one, with which 800 messages make a request of about 1 MB
)

func pieceName(i int) string { return fmt.Sprintf("pieces/%04d.txt", i%pieces) }

func newAgentRig(ctx context.Context, r *rig) (b *agentRig, err error) {
	b = &agentRig{rig: r, workspace: filepath.Join(r.dir, "workspace")}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if err := os.MkdirAll(filepath.Join(b.workspace, "pieces"), 0o755); err != nil {
		return b, err
	}
	for i := range pieces {
		text := strings.Repeat(fmt.Sprintf("%04d is what this line is about, and the next one.\n", i), pieceBytes/50)
		if err := os.WriteFile(filepath.Join(b.workspace, pieceName(i)), []byte(text), 0o644); err != nil {
			return b, err
		}
	}
	if b.endpoint, err = listen(); err != nil {
		return b, err
	}
	if b.conn, err = r.connect(ctx); err != nil {
		return b, err
	}
	if b.client, err = client.Connect(ctx, client.Options{URL: r.server.URL()}); err != nil {
		return b, err
	}
	if b.lifeline, b.held, err = os.Pipe(); err != nil {
		return b, err
	}
	b.leader, err = b.start("leader")
	return b, err
}

func (b *agentRig) close() {
	if b.leader != nil {
		b.leader.Terminate()
		<-b.leader.Done()
	}
	if b.held != nil {
		b.held.Close()
		b.lifeline.Close()
	}
	if b.client != nil {
		b.client.Close()
	}
	if b.conn != nil {
		b.conn.Close()
	}
	if b.endpoint != nil {
		b.endpoint.close()
	}
}

// start starts one of the programs on the endpoint. Its window is so large that no
// conversation here is made shorter.
func (b *agentRig) start(program string, args ...string) (*childproc.Process, error) {
	return childproc.Start(filepath.Join(b.rig.bin, program),
		append([]string{"--server", b.rig.server.URL(), "--http", "127.0.0.1:0", "--workspace", b.workspace}, args...),
		[]string{"OPENAI_BASE_URL=" + b.endpoint.url, "OPENAI_MODEL=bench", "OPENAI_API_KEY=none", "AGENTTEAM_WINDOW=4000000", "AGENTTEAM_LOG_LEVEL=warn"},
		b.lifeline, os.Stderr)
}

// makeTeam makes a team that does not bring its members back.
func (b *agentRig) makeTeam(ctx context.Context) (*broker.Storage, error) {
	roles, err := role.Load(b.rig.dir)
	if err != nil {
		return nil, err
	}
	for name, r := range roles.All { // its members only read
		r.StillTurns = memoryMessages
		roles.All[name] = r
	}
	reg, err := registry.Open(ctx, b.conn)
	if err != nil {
		return nil, err
	}
	b.teams++
	bt, _, err := reg.Make(ctx, team.Team{
		ID: team.TeamID(fmt.Sprintf("agent-%d", b.teams)), Roles: roles.All, LeaseSeconds: 30, MaxTeammates: team.DefaultMaxTeammates,
		Policies: team.Policies{Respawn: team.RespawnRelease}, Workspace: b.workspace, CreatedBy: team.UserAgent,
	})
	return bt, err
}

// product has the conversation with a new teammate: it is the one task of a new team.
// look, if not nil, is called with the process's id before the first turn and after the
// last.
func (b *agentRig) product(ctx context.Context, k talkKind, look func(pid int) error) (*talk, error) {
	bt, err := b.makeTeam(ctx)
	if err != nil {
		return nil, err
	}
	b.last = bt
	tm, err := b.client.Open(ctx, bt.ID)
	if err != nil {
		return nil, err
	}
	t := newTalk(k)
	b.endpoint.hold(t)
	defer b.endpoint.hold(nil)
	teammate, err := b.idle(ctx, bt)
	if err != nil {
		return nil, err
	}
	if look != nil {
		err = look(teammate.PID())
	}
	if err == nil {
		_, _, err = tm.Board().Add(ctx, "", team.NewTask{Title: "Read all the files", Role: "coder"})
	}
	if err == nil {
		err = b.endpoint.finish(ctx, t, teammate.Done())
	}
	if err == nil {
		err = rested(ctx, tm)
	}
	if err == nil && look != nil {
		err = look(teammate.PID())
	}
	if err == nil { // nobody is left at work, to disturb the next
		err = tm.StopTeam(ctx, 10*time.Second)
	}
	teammate.Terminate()
	<-teammate.Done()
	if err != nil {
		return nil, fmt.Errorf("teammate: %w", err)
	}
	return t, nil
}

// rested waits until the one teammate has done its task and has nothing to do.
func rested(ctx context.Context, tm *client.Team) error {
	for {
		task, err := tm.Board().Task(ctx, "T-001")
		if err != nil {
			return err
		}
		a, err := tm.Members().Get(ctx, "coder-1")
		if err != nil {
			return err
		}
		if task.Status == team.Completed && a.State == team.Idle {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// idle starts a teammate and waits until it has nothing to do.
func (b *agentRig) idle(ctx context.Context, bt *broker.Storage) (*childproc.Process, error) {
	heard := make(chan beat, 1000) // many more than come while nobody reads
	stop, err := roster.New(bt).Listen(team.Everyone, func(h team.Heartbeat) { heard <- beat{h, time.Now()} })
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := bt.Conn.Flush(ctx); err != nil { // the server listens for us from here on
		return nil, err
	}
	teammate, err := b.start("teammate", "--team", string(bt.ID), "--name", "coder-1", "--role", "coder")
	if err != nil {
		return nil, err
	}
	_, err = await(ctx, heard, teammate.Done(), func(h beat) bool { return h.AgentID == "coder-1" && h.State == team.Idle })
	if err != nil {
		teammate.Kill()
		<-teammate.Done()
		return nil, err
	}
	return teammate, nil
}

// stored is how many messages the streams of the newest conversation's team have taken:
// its log, its events and its mail. It waits for what is on its way.
func (b *agentRig) stored(ctx context.Context) (uint64, error) {
	for last, same := uint64(0), 0; ; {
		var sum uint64
		for _, s := range []*broker.Stream{b.last.Logs, b.last.Events, b.last.Messages} {
			seq, err := s.LastSeq(ctx)
			if err != nil {
				return 0, err
			}
			sum += seq
		}
		if same++; sum != last {
			same = 0
		}
		if last = sum; same == 10 {
			return sum, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
