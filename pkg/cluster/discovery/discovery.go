// Package discovery implements Prometheus' HTTP service discovery for agentteam: the processes to
// scrape, with the state of each: standby, member of a team, leader.
//
// It asks the processes and stores nothing. So every leader process gives the same answer, also one
// that has just started; an ended process is missing; and no stream is read, so a team whose
// storage fails is still watched. The processes publish their own metrics (package telemetry).
package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// wait is how long the processes may take to answer. Prometheus gives a refresh as long as its
// interval, 5 s in our configuration; a slow process on an overloaded machine should not be missing
// because of that.
const wait = time.Second

// returning is how long processes may take to reconnect to a NATS server that was away: they try
// again within 1.2 s, and a try at an address where no server answers takes up to 3 s.
const returning = 5 * time.Second

// standby is the state of a process that is not a member, or leads no team.
const standby = "standby"

// Group is one process in Prometheus' HTTP service discovery format
// (https://prometheus.io/docs/prometheus/latest/http_sd/).
type Group struct {
	Targets []string          `json:"targets"` // host:port, one
	Labels  map[string]string `json:"labels"`
}

// Handler answers with a JSON array of [Group], one for each process that answers within a second;
// self is the ID of the asking process, which must be among them. If the answers are unreliable it
// responds 503 with the reason in one line: then Prometheus keeps its targets.
func Handler(c *broker.Conn, self string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := ask(r.Context(), c, self)
		if err != nil {
			http.Error(w, team.OneLine(err.Error()), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Groups(all)) // the client has closed the connection
	})
}

func ask(ctx context.Context, c *broker.Conn, self string) ([]control.Process, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	asked, before := time.Now(), c.NATS().Stats().Reconnects
	all, err := control.Processes(ctx, c, "", wait)
	ready := c.Ready(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil: // collecting was cut short
		return nil, ctx.Err()
	case ready != nil: // answers may have been lost with the connection
		return nil, ready
	case asked.Sub(c.Restored()) < returning || c.NATS().Stats().Reconnects != before:
		return nil, team.Errorf(team.Unavailable, "NATS has only just come back, and not yet all processes with it")
	case !slices.ContainsFunc(all, func(p control.Process) bool { return p.ID == self }):
		// The request or the answers were lost, so the silence of the others proves nothing.
		return nil, team.Errorf(team.Unavailable, "NATS did not even bring this process's own answer")
	}
	return all, nil
}

// Groups describes processes to Prometheus, in order of their addresses. Those without an address
// are left out.
func Groups(all []control.Process) []Group {
	groups := make([]Group, 0, len(all))
	for _, p := range all {
		u, err := url.Parse(p.Metrics)
		if err != nil || u.Host == "" {
			continue
		}
		groups = append(groups, Group{Targets: []string{u.Host}, Labels: labels(p)})
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Targets[0], b.Targets[0]) })
	return groups
}

// labels returns the labels of p. Each change of them begins new time series for all metrics of p,
// so they contain only facts that change with a membership. Whether a member runs or idles changes
// every few seconds; agentteam_members has that.
func labels(p control.Process) map[string]string {
	l := map[string]string{"kind": p.Kind, "state": standby}
	if p.Kind == team.LeaderRole {
		l["role"], l["agent_id"] = team.LeaderRole, string(team.Leader)
	}
	if len(p.Memberships) == 0 {
		return l
	}
	m := p.Memberships[0]
	l["state"], l["role"], l["agent_id"] = string(team.Joined), m.Role, string(m.AgentID)
	// A process that leads several teams is scraped once like any other. Metrics about a team carry
	// its name as a separate label.
	if len(p.Memberships) == 1 {
		l["team"] = string(m.Team)
	}
	return l
}
