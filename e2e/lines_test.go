package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// Two hosts share nothing but the server: the second has neither the repository nor the trees of
// the first. The process whose queue merges is frozen beyond its lease: another queue continues,
// a member beside it is killed, and the frozen one moves nothing when it wakes.
func TestLineOnTwoHosts(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const tasks = 8
	url := brokertest.Server(t)
	model := rehearse(t, lineScript(4, tasks, "sleep 0.3; "))
	var hosts []*cluster
	var caches []string
	pids := make([]map[int]bool, 2)
	killed := 0
	for n := range pids {
		caches = append(caches, t.TempDir())
		hosts = append(hosts, folder(t, model, "NATS_URL="+url, "AGENTTEAM_LEASE=3s", "XDG_CACHE_HOME="+caches[n]))
		pids[n] = map[int]bool{}
		for range 4 - n { // one of them in place of the frozen one, one in place of the killed one
			cmd := hosts[n].launch("teammate")
			pids[n][cmd.Process.Pid] = true
			t.Cleanup(func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				if err := ends(t, cmd); err != nil && cmd.Process.Pid != killed {
					t.Errorf("a teammate after SIGTERM: %v", err)
				}
			})
		}
	}
	repository(t, hosts[0].dir, "seq 1 20 | sed 's/^/line /' > shared.txt; echo processes.log > .gitignore")
	conn := dial(t, url)
	tm, storage := watched(t, conn, team.DefaultTeam, 3*time.Second)
	hosts[0].start("leader")
	done := hosts[0].begin("Do them", "--workspace", hosts[0].dir)

	var members map[team.AgentID]int // their processes; the leader's has a queue too
	until(t, "four coders are there", func() bool {
		list, err := tm.Members().List(t.Context(), false)
		members = map[team.AgentID]int{}
		for _, a := range list {
			if a.Member.HasProcess() && a.PID != 0 {
				members[a.Member.AgentID] = a.PID
			}
		}
		return err == nil && len(members) == 5
	})
	frozen, was := freezeQueue(t, storage, members)
	records := mergequeue.New(storage)
	until(t, "another queue moves the line", func() bool {
		h, err := records.Head(t.Context())
		return err == nil && h.Term > was.Term && h.Commit != was.Commit
	})
	for id, pid := range members {
		if pid != frozen && id != team.Leader {
			killed = pid
			break
		}
	}
	if err := errors.Join(syscall.Kill(killed, syscall.SIGKILL), syscall.Kill(frozen, syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	r := done.end(t)
	var repos []string
	for n := range hosts {
		repos = append(repos, lineOf(t, caches[n]))
		if !slices.ContainsFunc(r.Tasks, func(v team.TaskView) bool { return pids[n][members[v.Assignee]] }) {
			t.Errorf("no task was done on host %d", n+1)
		}
	}
	inLine(t, r, repos[0], tasks)
	log := git(t, repos[0], "log", "--first-parent", "--format=%H", "agentteam/default")
	err := storage.Bucket.Past(t.Context(), 1, func(e broker.Entry) error {
		var h mergequeue.Head
		if err := json.Unmarshal(e.Value, &h); err != nil || !strings.Contains(log, string(h.Commit)) {
			t.Errorf("the line was at %s, which it has lost; %v", h.Commit, err)
		}
		return nil
	}, subject.KeyBranch)
	if err != nil {
		t.Error(err)
	}
}

// freezeQueue freezes the process of the first of the members whose queue holds the lease on the
// line, and returns the head as it was then.
func freezeQueue(t *testing.T, s *broker.Storage, members map[team.AgentID]int) (pid int, at mergequeue.Head) {
	t.Helper()
	found := errors.New("found")
	records := mergequeue.New(s)
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Longest)
	defer cancel()
	err := s.Bucket.Watch(ctx, func(broker.Entry) error {
		h, err := records.Head(ctx)
		if err != nil {
			return nil
		}
		for a, of := range members {
			if strings.HasSuffix(h.Process, "-"+string(a)) {
				pid, at = of, h
				_ = syscall.Kill(pid, syscall.SIGSTOP) // at once; halt waits until it stands
				return found
			}
		}
		return nil
	}, nil, subject.KeyBranch)
	if !errors.Is(err, found) {
		t.Fatalf("waited in vain for a queue that holds the lease: %v", err)
	}
	halt(t, pid)
	return pid, at
}
