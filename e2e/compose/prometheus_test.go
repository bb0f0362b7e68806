//go:build compose

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// ask gets data from Prometheus' HTTP API.
func (p *project) ask(ctx context.Context, path string, params url.Values, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.prom+"/api/v1/"+path+"?"+params.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s", answer.Error)
	}
	return nil
}

// labels of one target or sample.
type labels map[string]string

// targets returns the labels of those of the job agentteam that are up. Others make
// the answer an error: what is gone should be gone from the list.
func (p *project) targets(ctx context.Context) (up []labels, err error) {
	var all struct {
		ActiveTargets []struct {
			Labels    labels
			Health    string
			LastError string
		}
	}
	if err := p.ask(ctx, "targets", nil, &all); err != nil {
		return nil, err
	}
	for _, target := range all.ActiveTargets {
		if target.Labels["job"] != "agentteam" {
			continue
		}
		if target.Health != "up" {
			return nil, fmt.Errorf("%v is %s %s", target.Labels, target.Health, target.LastError)
		}
		up = append(up, target.Labels)
	}
	return up, nil
}

// awaitTargets waits until the leader and exactly the teammates that run are up.
func (p *project) awaitTargets(t *testing.T, teammates int) {
	t.Helper()
	until(t, fmt.Sprintf("Prometheus scrapes a leader and %d teammates", teammates), func(ctx context.Context) string {
		var want, have []string
		for _, service := range []string{"leader", "teammate"} {
			for _, c := range p.running(t, service) {
				want = append(want, service+" "+c.Config.Hostname+":8080")
			}
		}
		up, err := p.targets(ctx)
		if err != nil {
			return err.Error()
		}
		for _, l := range up {
			have = append(have, l["kind"]+" "+l["instance"])
		}
		slices.Sort(want)
		slices.Sort(have)
		if len(want) != teammates+1 || !slices.Equal(have, want) {
			return fmt.Sprintf("targets %q, containers %q", have, want)
		}
		return ""
	})
}

// result is one series of a query's answer.
type result struct {
	Metric labels
	Values [][2]any
}

// query evaluates expr over the time since begun.
func (p *project) query(ctx context.Context, expr string, begun time.Time) ([]result, error) {
	var data struct{ Result []result }
	err := p.ask(ctx, "query_range", url.Values{
		"query": {expr}, "step": {"5"}, "start": {begun.Format(time.RFC3339)}, "end": {time.Now().Format(time.RFC3339)},
	}, &data)
	return data.Result, err
}

// askedForAll returns all dashboards, their rows unfolded, with the variables in the
// panels' expressions replaced as Grafana would for "All".
func askedForAll(t *testing.T) (boards []dashboard) {
	t.Helper()
	dir := os.DirFS("../../deploy/grafana/dashboards")
	files, err := fs.Glob(dir, "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, name := range files {
		var board dashboard
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &board); err != nil || board.UID == "" {
			t.Fatalf("%s: uid %q, %v", name, board.UID, err)
		}
		values := map[string]string{"__rate_interval": "1m"} // four scrapes at least
		for _, v := range board.Templating.List {
			values[v.Name] = ".*"
		}
		all := board.Panels
		for _, row := range board.Panels {
			all = append(all, row.Panels...)
		}
		board.Panels = slices.DeleteFunc(all, func(p panel) bool { return len(p.Targets) == 0 })
		for _, p := range board.Panels {
			for i, target := range p.Targets {
				p.Targets[i].Expr = inserted.ReplaceAllStringFunc(target.Expr, func(v string) string {
					value, ok := values[strings.Trim(v, "${}")]
					if !ok {
						t.Errorf("panel %q: %s is no variable of the dashboard", p.Title, v)
					}
					return value
				})
			}
		}
		boards = append(boards, board)
	}
	return boards
}

var inserted = regexp.MustCompile(`\$(\w+|\{\w+\})`)

type dashboard struct {
	UID        string
	Templating struct{ List []variable }
	Panels     []panel
}

// variable is what a person chooses from the answer to Query, which is
// label_values(SERIES, LABEL).
type variable struct {
	Name  string
	Query struct{ Query string }
}

type panel struct {
	Title   string
	Targets []struct{ Expr string }
	Panels  []panel // of a row that is folded
}

// values asks what Grafana asks to offer the values of a variable.
func (p *project) values(ctx context.Context, v variable, begun time.Time) (values []string, err error) {
	args := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Query.Query)
	if args == nil {
		return nil, fmt.Errorf("the query is %q", v.Query.Query)
	}
	err = p.ask(ctx, "label/"+args[2]+"/values", url.Values{
		"match[]": {args[1]}, "start": {begun.Format(time.RFC3339)}, "end": {time.Now().Format(time.RFC3339)},
	}, &values)
	return values, err
}

// rules returns the expressions of all rules, by name, as Prometheus has loaded
// them. One that is not evaluated or errs fails the test.
func (p *project) rules(t *testing.T) map[string]string {
	t.Helper()
	exprs := map[string]string{}
	until(t, "every rule is evaluated", func(ctx context.Context) string {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, LastError string }
			}
		}
		if err := p.ask(ctx, "rules", nil, &data); err != nil {
			return err.Error()
		}
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return fmt.Sprintf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
				}
				exprs[r.Name] = r.Query
			}
		}
		return ""
	})
	if len(exprs) == 0 {
		t.Fatal("Prometheus has no rules")
	}
	return exprs
}
