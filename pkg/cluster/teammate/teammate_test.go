package teammate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/cluster/teammate"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// rig is a team without a leader, and what its teammate processes are started with.
type rig struct {
	t      *testing.T
	dir    string // workspace of the team
	config config.Config
	team   *broker.Storage
	roster *roster.Roster
}

func newRig(t *testing.T) *rig {
	t.Helper()
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	reg, err := registry.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bt, _, err := reg.Make(t.Context(), team.Team{ID: "t", LeaseSeconds: 5, Workspace: dir, Roles: map[string]team.Role{"coder": {Name: "coder"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, dir: dir, team: bt, roster: roster.New(bt), config: config.Config{
		Server: url, Team: "t", HTTP: "127.0.0.1:0", LogLevel: "info", LogFormat: "text",
	}}
}

// run starts a teammate process until the returned stop is called or the test ends.
func (r *rig) run(name team.AgentID) (stop func(), ended <-chan error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		done <- teammate.Run(ctx, teammate.Options{Config: r.config, Name: name, Role: "coder", Stderr: r.t.Output()})
	}()
	stop = func() {
		cancel()
		brokertest.Receive(r.t, "the process ends", over)
	}
	r.t.Cleanup(stop)
	return stop, done
}

// until returns the record of bob once ok is true for it.
func (r *rig) until(ok func(team.Member) bool) (found team.Member) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), brokertest.Longest)
	defer cancel()
	stop := errors.New("found")
	err := r.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		m, err := roster.Decode(e)
		if err == nil && ok(m) {
			found, err = m, stop
		}
		return err
	}, nil, subject.KeyMember("bob"))
	if !errors.Is(err, stop) {
		r.t.Fatalf("the record of bob never became what was waited for (%v)", err)
	}
	return found
}

// order asks the pool for bob until a standby takes it.
func (r *rig) order(incarnation uint64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), brokertest.Longest)
	defer cancel()
	for {
		err := control.StartAtStandby(ctx, r.team.Conn, "", control.Order{Team: "t", Agent: "bob", Incarnation: incarnation})
		if err == nil || errors.Is(err, team.Unavailable) && !control.NoResponders(err) { // on a slow machine it may be about to join
			return
		}
		if !control.NoResponders(err) || ctx.Err() != nil {
			r.t.Fatal(err)
		}
	}
}

// answered is what a standby answers to an order, once it is there.
func (r *rig) answered(o control.Order) (err error) {
	r.t.Helper()
	brokertest.Until(r.t, "a standby answers", func() bool {
		err = control.StartAtStandby(r.t.Context(), r.team.Conn, "", o)
		return !errors.Is(err, team.Unavailable)
	})
	return err
}

// A standby serves those who ask for one of its models, and hears of no other.
func TestStandbyWithModels(t *testing.T) {
	r := newRig(t)
	r.config.Models = []config.Alias{{Name: "strong", Model: "m", BaseURL: "http://127.0.0.1:1/v1"}, {Name: "sonnet", Same: "strong"},
		{Name: "keyless", Model: "m", Missing: []string{"KEY"}}}
	r.run("")
	if _, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Model: "sonnet", Backend: team.Pool}, roster.Limit{Team: 10}); err != nil {
		t.Fatal(err)
	}
	order := control.Order{Team: "t", Agent: "bob", Incarnation: 1}
	brokertest.Until(t, "a standby is there", func() bool {
		err := control.StartAtStandby(t.Context(), r.team.Conn, "", control.Order{Team: "t", Agent: "nobody"})
		if !errors.Is(err, team.NotFound) && !errors.Is(err, team.Unavailable) {
			t.Fatal(err)
		}
		return errors.Is(err, team.NotFound) // which a standby says
	})
	for _, alias := range []string{"opus", "keyless"} {
		if err := control.StartAtStandby(t.Context(), r.team.Conn, alias, order); !control.NoResponders(err) {
			t.Errorf("asked for %s: %v, want nobody", alias, err)
		}
	}
	if err := control.StartAtStandby(t.Context(), r.team.Conn, "sonnet", order); err != nil && (control.NoResponders(err) || !errors.Is(err, team.Unavailable)) {
		t.Error(err)
	}
	if m := r.until(func(m team.Member) bool { return m.State == team.Joined }); m.Model != "sonnet" {
		t.Errorf("bob is %+v", m)
	}
}

// A standby whose operator wants no sandbox refuses a member of one who wants one, and takes the others.
func TestStandbyConfinesLess(t *testing.T) {
	r := newRig(t)
	r.config.Sandbox = team.Unconfined
	r.run("")
	if _, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10}); err != nil {
		t.Fatal(err)
	}
	for _, least := range []team.Sandbox{team.SandboxAuto, team.Confined, team.Bubblewrap} {
		err := r.answered(control.Order{Team: "t", Agent: "bob", Incarnation: 1, Sandbox: least})
		if !errors.Is(err, team.PermissionDenied) || !strings.Contains(err.Error(), `commands there only "none"`) || team.HintOf(err) == "" {
			t.Fatalf("at least %s: %v (%s)", least, err, team.HintOf(err))
		}
	}
	if m, err := r.roster.Get(t.Context(), "bob"); err != nil || m.State != team.Created {
		t.Errorf("bob is %s, %v", m.State, err)
	}
	r.order(1)
	r.until(func(m team.Member) bool { return m.State == team.Joined })
}

// A standby at a level below that of the leader's commands names both, and what to do.
func TestStandbyBelowLeader(t *testing.T) {
	_, err := sandbox.Find(t.Context(), team.Confined)
	testenv.Need(t, err)
	r := newRig(t)
	r.config.Sandbox = team.Confined
	r.run("")
	if _, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10}); err != nil {
		t.Fatal(err)
	}
	order := control.Order{Team: "t", Agent: "bob", Incarnation: 1, Sandbox: team.Bubblewrap}
	err = r.answered(order)
	if !errors.Is(err, team.PermissionDenied) || !strings.Contains(err.Error(), `have the sandbox "bubblewrap", and commands there only "confined"`) || !strings.Contains(team.HintOf(err), "`sandbox: confined` for the leader") {
		t.Errorf("%v (%s)", err, team.HintOf(err))
	}
	order.Sandbox = team.Confined
	_ = r.answered(order) // that it is taken shows in the record
	r.until(func(m team.Member) bool { return m.State == team.Joined })
}

// A role that wants a network where commands have none is not spawned, and the error names why and what helps.
func TestSpawnWithNetworkIsRefused(t *testing.T) {
	_, err := sandbox.Find(t.Context(), team.Confined)
	testenv.Need(t, err)
	r := newRig(t)
	r.config.Sandbox = team.Confined
	record, err := registry.Record(t.Context(), r.team)
	if err != nil {
		t.Fatal(err)
	}
	record.Roles["coder"] = team.Role{Name: "coder", Policy: team.Policy{Network: team.Network{"example.org"}}}
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.team.Bucket.Set(t.Context(), subject.KeyTeam, text); err != nil {
		t.Fatal(err)
	}
	r.run("")
	_, err = spawn.New(spawn.Options{Team: r.team, Roster: r.roster}).Spawn(t.Context(), team.Member{AgentID: "bob", Role: "coder"}, 10)
	want := `bob wants the network example.org, and commands have none in the weaker sandbox "confined" (install bubblewrap, or set ` + "`network: none`" + `)`
	if !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if m, err := r.roster.Get(t.Context(), "bob"); err != nil || m.State != team.Stopped {
		t.Errorf("bob is %s, %v", m.State, err)
	}
}

// What stands in one process's way is no decision to leave: the member is lost, says
// why, and is the same member again once a process can be it.
func TestFailedMembership(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.Remove(r.dir); err != nil { // as a share that is not mounted yet
		t.Fatal(err)
	}
	r.run("")
	m, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	r.order(1)
	m = r.until(func(m team.Member) bool { return m.State != team.Created && m.State != team.Joined })
	if m.State != team.Lost || !strings.Contains(m.LastError, r.dir) {
		t.Errorf("bob is %s, last error %q, want lost and the reason", m.State, m.LastError)
	}
	told := make(chan team.Message, 1)
	go func() {
		_ = r.team.Messages.Follow(t.Context(), broker.Mark{}, func(m broker.Msg) error {
			var msg team.Message
			if json.Unmarshal(m.Data, &msg) == nil {
				told <- msg
			}
			return nil
		}, nil, subject.Mail("t", team.Leader)...)
	}()
	if msg := brokertest.Receive(t, "the leader has mail", told); msg.From != "bob" || !strings.Contains(msg.Content, r.dir) {
		t.Errorf("the leader was told %+v", msg)
	}

	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m.State, m.Incarnation = team.Created, 2
	if _, err := r.roster.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r.order(2) // by the same process, after a rest
	beats := make(chan team.Heartbeat, 10)
	stop, err := r.roster.Listen(team.Everyone, func(b team.Heartbeat) { beats <- b })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if b := brokertest.Receive(t, "the member beats", beats); b.AgentID != "bob" || b.Incarnation != 2 {
		t.Errorf("heard %+v", b)
	}
}

// The name of a member whose process lives is refused, also while that process does
// not answer because it is just connecting again; one that is dead is followed.
func TestNameOfALiveMember(t *testing.T) {
	for name, lives := range map[string]bool{"reconnecting": true, "dead": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			m, err := r.roster.Put(t.Context(), team.Member{AgentID: "bob", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Exec, JoinedAt: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if lives { // it beats, and nobody serves its control subjects
				ctx, cancel := context.WithCancel(t.Context())
				beating := make(chan struct{})
				go func() {
					defer close(beating)
					_ = roster.NewHeart(r.roster, m, 5*time.Second).Run(ctx)
				}()
				t.Cleanup(func() { cancel(); brokertest.Receive(t, "the heart stops", beating) })
			}
			stop, ended := r.run("bob")
			if !lives {
				r.until(func(m team.Member) bool { return m.State == team.Joined && m.Incarnation == 2 })
				stop()
			}
			err = brokertest.Receive(t, "the process ends", ended)
			if want := map[bool]team.Code{true: team.Conflict}[lives]; team.CodeOf(err) != want {
				t.Errorf("Run = %v, want code %q", err, want)
			}
			now, err := r.roster.Get(t.Context(), "bob")
			if err != nil || lives && now.Revision != m.Revision {
				t.Errorf("bob is now %+v, %v", now, err)
			}
		})
	}
}

// A leader brings a dead member back just while a process of that name looks whether it lives: the
// process becomes the incarnation that the leader asks for.
func TestNameThatIsBroughtBack(t *testing.T) {
	r := newRig(t)
	dead, err := r.roster.Put(t.Context(), team.Member{AgentID: "bob", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Exec, JoinedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	pings := make(chan *nats.Msg, 1)
	if _, err := r.team.Conn.NATS().ChanSubscribe(subject.Control("t", "bob", subject.Ping), pings); err != nil {
		t.Fatal(err)
	}
	stop, _ := r.run("bob")
	brokertest.Receive(t, "the process looks whether bob lives", pings)
	if _, err := r.roster.Put(t.Context(), dead.ToSpawn("")); err != nil {
		t.Fatal(err)
	}
	r.until(func(m team.Member) bool { return m.State == team.Joined && m.Incarnation == 2 })
	stop()
}

// A process that comes up after its spawn was given up is not the member.
func TestSpawnGivenUp(t *testing.T) {
	r := newRig(t)
	m, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10})
	if err == nil {
		m.State = team.Stopped
		m, err = r.roster.Put(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = teammate.Run(t.Context(), teammate.Options{Config: r.config, Name: "bob", Incarnation: m.Incarnation, Stderr: t.Output()})
	if !errors.Is(err, team.Conflict) || !strings.Contains(err.Error(), "no spawn waits for bob@t as incarnation 1") {
		t.Errorf("it ends with %v", err)
	}
	if now, err := r.roster.Get(t.Context(), "bob"); err != nil || now.State != team.Stopped {
		t.Errorf("bob is %+v, %v", now, err)
	}
}

// A process that is told to stop at the moment at which it becomes a member gives the
// membership back.
func TestStopWhileJoining(t *testing.T) {
	r := newRig(t)
	if _, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10}); err != nil {
		t.Fatal(err)
	}
	stop, ended := r.run("")
	r.order(1)
	stop()
	if err := brokertest.Receive(t, "the process ends", ended); err != nil {
		t.Error(err)
	}
	if m, err := r.roster.Get(t.Context(), "bob"); err != nil || m.State != team.Lost || m.LastError != "" {
		t.Errorf("bob is %+v, %v, want lost", m, err)
	}
}
