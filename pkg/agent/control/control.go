// Package control sends requests to processes, as opposed to mail for agents: every process is a
// NATS micro service that can be discovered, and every membership answers a few verbs (ping, offer,
// assign, revoked, compact, stop) while it lasts. For each verb there is a function that sends it
// and a field of [Handlers] that serves it.
//
// A request is core NATS: it is lost if no process listens, and a missing answer proves nothing
// about the process. Package mailbox carries messages that must not be lost.
package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Process is the description that a process publishes.
type Process struct {
	ID          string       `json:"id"`   // as it stands in leases
	Kind        string       `json:"kind"` // leader or teammate
	Host        string       `json:"host"`
	PID         string       `json:"pid"`
	Metrics     string       `json:"metrics"`       // URL
	API         string       `json:"api,omitempty"` // base URL of its HTTP API; empty if it serves none
	Model       string       `json:"model"`         // of its default alias; NoModel if none is configured
	Aliases     []string     `json:"aliases"`       // names of models that it has, its default first
	Sandbox     string       `json:"sandbox"`       // in which commands run, with its version; "none" = they are not confined; begins with NoSandbox if none can be run
	Version     string       `json:"version"`
	Memberships []Membership `json:"memberships,omitempty"` // by team; a teammate has one at most, a leader one for each team it leads
}

// Membership is a process's place in a team. It is announced for exactly as long as the process
// works as that member, while the member's record has the state joined.
type Membership struct {
	Process string       `json:"-"` // ID of the process
	Team    team.TeamID  `json:"team"`
	AgentID team.AgentID `json:"agent_id"`
	Role    string       `json:"role"`
}

// member is the kind of service of a membership.
const member = "member"

// NoModel is published instead of a model's name by a process without a model.
const NoModel = "none"

// NoSandbox is the prefix of Process.Sandbox if the process can run no command; the reason follows.
const NoSandbox = "no commands"

// Announce registers the process until the returned stop is called. It fills in host and pid.
func Announce(c *broker.Conn, p Process) (stop func(), err error) {
	p.Host, _ = os.Hostname()
	p.PID = fmt.Sprint(os.Getpid())
	svc, err := micro.AddService(c.NATS(), micro.Config{
		Name: subject.Service(p.Kind), Version: semver(p.Version), Description: "agentteam " + p.Kind + " process",
		Metadata: map[string]string{"process": p.ID, "kind": p.Kind, "host": p.Host, "pid": p.PID, "metrics": p.Metrics, "api": p.API, "model": p.Model,
			"aliases": strings.Join(p.Aliases, ","), "sandbox": p.Sandbox, "version": p.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("announce the process: %w", err)
	}
	return func() { _ = svc.Stop() }, nil
}

// semver returns v if it is a semantic version, as a micro service requires; builds from a work
// tree are not.
func semver(v string) string {
	if v = strings.TrimPrefix(v, "v"); semverPattern.MatchString(v) {
		return v
	}
	return "0.0.0"
}

var semverPattern = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Processes pings all processes, collects the answers for the duration wait, and returns the
// processes of this kind ("" = all), each with its memberships, unordered. A process that does not
// answer in time is missing.
func Processes(ctx context.Context, c *broker.Conn, kind string, wait time.Duration) ([]Process, error) {
	// One request to all services, so that a process and its memberships are seen at the same
	// moment; a ping, since its answer is the shortest that has the metadata.
	subj, err := micro.ControlSubject(micro.PingVerb, "", "")
	if err != nil {
		return nil, err
	}
	inbox := c.NATS().NewInbox()
	sub, err := c.NATS().SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe() // the answers were taken
	if err := c.NATS().PublishRequest(subj, inbox, nil); err != nil {
		return nil, team.Errorf(team.Unavailable, "ask who runs: %w", broker.Unheard(err))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var all []Process
	memberships := map[string][]Membership{}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil { // the time is up, or no process answers
			break
		}
		var pong micro.Ping
		if json.Unmarshal(m.Data, &pong) != nil {
			continue
		}
		switch md := pong.Metadata; {
		case pong.Name == subject.Service(member):
			memberships[md["process"]] = append(memberships[md["process"]],
				Membership{Process: md["process"], Team: team.TeamID(md["team"]), AgentID: team.AgentID(md["agent_id"]), Role: md["role"]})
		case pong.Name == subject.Service(md["kind"]) && (kind == "" || kind == md["kind"]): // else it is another program's
			all = append(all, Process{ID: md["process"], Kind: md["kind"], Host: md["host"], PID: md["pid"],
				Metrics: md["metrics"], API: md["api"], Model: md["model"], Aliases: split(md["aliases"]), Sandbox: md["sandbox"], Version: md["version"]})
		}
	}
	for i, p := range all {
		all[i].Memberships = memberships[p.ID]
		slices.SortFunc(all[i].Memberships, func(a, b Membership) int { return cmp.Compare(a.Team, b.Team) })
	}
	return all, nil
}

// split splits a list of names at commas; the list may be empty.
func split(names string) []string {
	return slices.DeleteFunc(strings.Split(names, ","), func(name string) bool { return name == "" })
}
