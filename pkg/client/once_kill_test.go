package client_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// killed runs a call over a connection of its own, which ends for good once the call has made
// so many requests: nothing that the server answers to the last one arrives, and nothing else
// is sent. It reports whether the call was cut off. What was cut off is stored when it returns.
func (r *rig) killed(t *testing.T, after int, call func(*client.Team)) bool {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server, err := net.Dial("tcp", strings.TrimPrefix(r.client.Server(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	left.Store(1 << 40) // connecting is no part of the call
	cut := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		gone := make(chan struct{}) // the server has read all that was sent
		go func() {
			defer close(gone)
			_, _ = io.Copy(conn, server)
			_, _ = io.Copy(io.Discard, server)
		}()
		from := bufio.NewReader(conn)
		for left.Load() > 0 {
			line, err := from.ReadString('\n')
			if err != nil {
				break
			}
			_, _ = io.WriteString(server, line)
			fields := strings.Fields(line)
			if !strings.HasSuffix(fields[0], "PUB") {
				continue
			}
			size, _ := strconv.Atoi(fields[len(fields)-1])
			_, _ = io.CopyN(server, from, int64(size)+2)
			left.Add(-1)
		}
		conn.Close()
		_ = server.(*net.TCPConn).CloseWrite()
		<-gone
		close(cut)
	}()
	c := connect(t, "nats://"+l.Addr().String())
	tm, err := c.Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	left.Store(int64(after))
	ended := make(chan struct{})
	go func() { defer close(ended); call(tm) }()
	select {
	case <-cut:
		c.Close()
		t.Cleanup(func() { brokertest.Receive(t, "the call that was cut off ends", ended) })
		// The server stores what it has read in this order.
		if err := r.bt.Bucket.Set(t.Context(), "after-the-cut", nil); err != nil {
			t.Fatal(err)
		}
		return true
	case <-ended:
		c.Close()
		return false
	}
}

// Wherever a caller is killed, a repetition of its call finishes it: what the call does is done
// once, and every repetition returns the same.
func TestKilledBetween(t *testing.T) {
	testenv.Long(t)
	m := team.Member{Role: "coder", Prompt: "Begin."}
	for name, tt := range map[string]struct {
		call  func(tm *client.Team, key string) (ids string, err error)
		count func(t *testing.T, r *rig) int // of what was done
		want  int
	}{
		"mail": {func(tm *client.Team, key string) (string, error) {
			msg, to, _, err := tm.Mail().SendOnce(t.Context(), key, client.NewMail{To: team.Leader, Text: "text of " + key})
			return fmt.Sprint(msg.ID, to), err
		}, func(t *testing.T, r *rig) int { return len(r.inbox(t, team.Leader)) }, 1},
		"goal": {func(tm *client.Team, key string) (string, error) {
			g, _, err := tm.Goals().Set(t.Context(), client.NewGoal{Text: "goal of " + key, Key: key})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(g.Record().GoalNumber, g.Started()), nil
		}, func(t *testing.T, r *rig) int {
			return record(t, r.Team).GoalNumber + len(r.inbox(t, team.Leader))
		}, 2},
		"tasks": {func(tm *client.Team, key string) (string, error) {
			tasks, _, err := tm.Board().Add(t.Context(), key, team.NewTask{Title: "a"}, team.NewTask{Title: "b", After: []int{0}})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(tasks[0].ID, tasks[1].ID), nil
		}, func(t *testing.T, r *rig) int {
			tasks, err := r.board.All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(tasks)
		}, 2},
		"members": {func(tm *client.Team, key string) (string, error) {
			members, _, err := tm.Members().SpawnOnce(t.Context(), key, m, 2)
			return fmt.Sprint(names(members)), err
		}, func(t *testing.T, r *rig) int { return len(r.left(t)) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.standby(t, func() {})
			if name == "mail" {
				r.active(t)
			}
			cut := true
			for n := 1; cut; n++ {
				key := fmt.Sprint("key ", n)
				before := tt.count(t, r)
				cut = r.killed(t, n, func(tm *client.Team) { _, _ = tt.call(tm, key) })
				r.takeOver(t)
				ids, err := tt.call(r.Team, key)
				if err != nil {
					t.Fatalf("killed after %d requests: %v", n, err)
				}
				var wg sync.WaitGroup
				for range 16 {
					wg.Go(func() {
						if again, err := tt.call(r.Team, key); err != nil || again != ids {
							t.Errorf("killed after %d requests: again %s, %v, want %s", n, again, err, ids)
						}
					})
				}
				wg.Wait()
				if got := tt.count(t, r) - before; got != tt.want {
					t.Errorf("killed after %d requests: done %d times, want %d", n, got, tt.want)
				}
				if n > 200 {
					t.Fatal("the call does not end")
				}
				switch name {
				case "goal":
					r.end(t, "done")
				case "members":
					r.dismiss(t)
				}
			}
		})
	}
}

// takeOver does what the leader does of a spawn whose caller was killed.
func (r *rig) takeOver(t *testing.T) {
	t.Helper()
	r.members(t, func(m *team.Member) bool {
		if m.State == team.Created {
			m.State = team.Joined
			return true
		}
		return false
	})
}

// dismiss has all members leave.
func (r *rig) dismiss(t *testing.T) {
	t.Helper()
	r.members(t, func(m *team.Member) bool { m.State = team.Stopped; return true })
}

func (r *rig) members(t *testing.T, change func(*team.Member) bool) {
	t.Helper()
	all, err := r.roster.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		for change(&m) {
			if _, err = r.roster.Put(t.Context(), m); err == nil {
				break
			}
			if m, err = r.roster.Get(t.Context(), m.AgentID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Of callers that race with one key, and with others for the same names, each key spawns its
// own members.
func TestSpawnOnceAmongOthers(t *testing.T) {
	r := newRig(t)
	r.standby(t, func() {})
	var wg sync.WaitGroup
	var got [16][]team.AgentID
	for i := range got {
		wg.Go(func() {
			members, _, err := r.Members().SpawnOnce(t.Context(), fmt.Sprint("key ", i%4), team.Member{Role: "coder"}, 2)
			if err != nil {
				t.Error(err)
			}
			got[i] = names(members)
		})
	}
	wg.Wait()
	var all []team.AgentID
	for i, g := range got {
		if !slices.Equal(g, got[i%4]) {
			t.Errorf("call %d spawned %v, call %d with its key %v", i, g, i%4, got[i%4])
		}
		if i < 4 {
			all = append(all, g...)
		}
	}
	slices.Sort(all)
	if left := r.left(t); len(slices.Compact(all)) != 8 || len(left) != 8 {
		t.Errorf("4 keys of 2 members spawned %v; there are %v", all, left)
	}
}
