// Package deploy_test checks the files of this folder against each other, the code
// and the docs. Whether Prometheus itself takes them is checked where there is one.
package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/telemetry"
)

// rule is one recording rule or alert.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	readYAML(t, "prometheus/rules/agentteam.yml", &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

func TestRules(t *testing.T) {
	known := metrics(t)
	docs := read(t, "../docs/operations.md")
	var tests struct {
		Tests []struct {
			Alerts []struct {
				Name string         `yaml:"alertname"`
				Exp  []any          `yaml:"exp_alerts"`
				Rest map[string]any `yaml:",inline"`
			} `yaml:"alert_rule_test"`
			Rest map[string]any `yaml:",inline"`
		} `yaml:"tests"`
		Rest map[string]any `yaml:",inline"`
	}
	readYAML(t, "prometheus/rules_test.yml", &tests)
	fires := map[string]bool{}
	for _, c := range tests.Tests {
		for _, a := range c.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Exp) > 0
		}
	}

	for _, r := range rules(t) {
		name := r.Record + r.Alert
		checkExpr(t, name, r.Expr, known)
		if r.Record != "" {
			continue
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has the severity %q", name, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", name)
		}
		if want := "docs/operations.md#" + strings.ToLower(name); r.Annotations["runbook_url"] != want {
			t.Errorf("%s names the runbook %q, want %q", name, r.Annotations["runbook_url"], want)
		}
		if !strings.Contains(docs, "\n#### "+name+"\n") {
			t.Errorf("docs/operations.md has no heading %q", "#### "+name)
		}
		if !fires[name] {
			t.Errorf("prometheus/rules_test.yml makes %s never fire", name)
		}
		delete(fires, name)
	}
	for name := range fires {
		t.Errorf("prometheus/rules_test.yml tests %s, which is no alert", name)
	}
}

func TestPrometheusConfig(t *testing.T) {
	var config struct {
		Global    map[string]string `yaml:"global"`
		RuleFiles []string          `yaml:"rule_files"`
		Scrape    []struct {
			Job         string `yaml:"job_name"`
			HonorLabels bool   `yaml:"honor_labels"`
			HTTP        []struct {
				URL     string `yaml:"url"`
				Refresh string `yaml:"refresh_interval"`
			} `yaml:"http_sd_configs"`
			Static []any `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "prometheus/prometheus.yml", &config)
	for _, pattern := range config.RuleFiles {
		if found, err := filepath.Glob("prometheus/" + pattern); err != nil || len(found) == 0 {
			t.Errorf("rule_files: %s matches nothing (%v)", pattern, err)
		}
	}
	// The job's name stands in rules and dashboard, and the labels that leader
	// processes give their teams' metrics must win over those of the target.
	job := config.Scrape[0]
	if job.Job != "agentteam" || !job.HonorLabels || len(job.HTTP) != 1 || job.HTTP[0].URL != "http://leader:8080/http_sd" || job.HTTP[0].Refresh != "5s" {
		t.Errorf("the first job is %+v", job)
	}
}

// Prometheus' own tool, where it is installed.
func TestPromtool(t *testing.T) {
	bin, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

type source struct{ Type, UID string }

type dashboard struct {
	UID, Title, Refresh string
	Templating          struct {
		List []struct {
			Name, Definition, AllValue string
			Query                      struct{ Query string }
			IncludeAll                 bool
			Datasource                 source
		}
	}
	Panels []struct {
		ID          int
		Type, Title string
		Datasource  source
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			RefID, Expr, LegendFormat string
			Datasource                source
		}
	}
}

func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/dashboards/agentteam.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID != "agentteam" || d.Title != "agentteam" || d.Refresh == "" {
		t.Errorf("uid %q, title %q, refresh %q", d.UID, d.Title, d.Refresh)
	}
	var provisioned struct {
		Version int `yaml:"apiVersion"`
		Sources []struct {
			UID  string         `yaml:"uid"`
			Type string         `yaml:"type"`
			URL  string         `yaml:"url"`
			Rest map[string]any `yaml:",inline"`
		} `yaml:"datasources"`
	}
	readYAML(t, "grafana/provisioning/datasources/prometheus.yml", &provisioned)
	want := source{provisioned.Sources[0].Type, provisioned.Sources[0].UID}
	if want.UID == "" || want.Type != "prometheus" {
		t.Errorf("the data source is %+v", want)
	}

	known := metrics(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		// A process of no team has no label team, which only .* matches.
		if !v.IncludeAll || v.AllValue != ".*" || v.Datasource != want {
			t.Errorf("variable %+v", v)
		}
		// Query is what is asked, Definition what people are shown of it.
		args := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Query.Query)
		label := map[string]string{"team": "team", "role": "role", "agent": "agent_id"}[v.Name] // that the panels select by
		if args == nil || args[2] != label || v.Definition != v.Query.Query {
			t.Errorf("variable %s is asked for as %q, and shown as %q", v.Name, v.Query.Query, v.Definition)
			continue
		}
		checkExpr(t, "variable "+v.Name, args[1], known)
	}
	if !slices.Equal(variables, []string{"team", "role", "agent"}) {
		t.Errorf("the variables are %q", variables)
	}
	variables = append(variables, "__rate_interval")

	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is taken, or none", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("%s lies outside the grid: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s covers %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource != want || len(p.Targets) == 0 {
			t.Errorf("%s has the data source %+v and %d targets", p.Title, p.Datasource, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Datasource != want || refs[target.RefID] {
				t.Errorf("%s: target %+v", p.Title, target)
			}
			refs[target.RefID] = true
			for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, v[1]) {
					t.Errorf("%s: there is no variable $%s", p.Title, v[1])
				}
			}
			checkExpr(t, p.Title, target.Expr, known)
			if regexp.MustCompile(`(sum|count) by \([^)]*\) \((up|agentteam_(members|tasks|nats_connected|agent_\w+))\{`).MatchString(target.Expr) {
				t.Errorf("%s: %s counts a gauge twice while the labels of its target change", p.Title, target.Expr)
			}
			if strings.Contains(target.Expr, "agentteam_model_tokens_total{") && !strings.Contains(target.Expr, "direction=~") {
				t.Errorf("%s: %s counts tokens twice that are part of others", p.Title, target.Expr)
			}
			if strings.Contains(target.Expr, "histogram_quantile") {
				want := ", since start"
				if strings.Contains(target.Expr, "[5m]") {
					want = ", 5 min"
				}
				if strings.Count(target.Expr, "histogram_quantile") != 1 || !strings.HasSuffix(target.LegendFormat, want) {
					t.Errorf("%s: %q does not say of which time %s is", p.Title, target.LegendFormat, target.Expr)
				}
			}
		}
	}
}

// docker-compose.yml, the Dockerfile and .env.example name the same settings with the
// same defaults, and no registry can give an image in the place of ours.
func TestCompose(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image string
			Build *struct {
				Args map[string]string
				Rest map[string]any `yaml:",inline"`
			}
			DependsOn map[string]any `yaml:"depends_on"`
			Ports     []string
			Rest      map[string]any `yaml:",inline"`
		}
		Rest map[string]any `yaml:",inline"`
	}
	readYAML(t, "../docker-compose.yml", &file)
	text := read(t, "../docker-compose.yml")
	example := read(t, "../.env.example")

	for _, v := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(example, "\n#"+v[1]+"=") {
			t.Errorf(".env.example does not tell of %s", v[1])
		}
	}
	for _, set := range regexp.MustCompile(`(?m)^#([A-Z_]+)=`).FindAllStringSubmatch(example, -1) {
		if set[1] != "COMPOSE_PROFILES" && !strings.Contains(text, "${"+set[1]+":-") {
			t.Errorf("docker-compose.yml has no setting %s", set[1])
		}
	}
	bases := regexp.MustCompile(`(?m)^ARG (\w+)=(.+)$`).FindAllStringSubmatch(read(t, "Dockerfile"), -1)
	if len(bases) != 2 {
		t.Errorf("the Dockerfile has the bases %q", bases)
	}
	names := map[string]string{}
	for name, s := range file.Services {
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s, not on 127.0.0.1 alone", name, port)
			}
		}
		if s.Build == nil {
			continue
		}
		if _, ok := s.Rest["pull_policy"]; ok || !strings.HasPrefix(s.Image, "localhost/") {
			t.Errorf("%s is built, but its image %s may be pulled, or built at every start", name, s.Image)
		}
		if other := names[s.Image]; other != "" {
			t.Errorf("%s and %s build one image", name, other)
		}
		names[s.Image] = name
		for _, base := range bases {
			if want := "${" + base[1] + ":-" + base[2] + "}"; s.Build.Args[base[1]] != want || !strings.Contains(example, "\n#"+base[1]+"="+base[2]+"\n") {
				t.Errorf("%s is built with %s=%s, want %s, and so in .env.example", name, base[1], s.Build.Args[base[1]], want)
			}
		}
	}
	// Members and those who merge run as no root, and their commands in a sandbox, unless .env has it otherwise.
	for _, name := range []string{"leader", "teammate"} {
		rest := file.Services[name].Rest
		env, _ := rest["environment"].(map[string]any)
		if rest["user"] != "${WORKSPACE_USER:-65532:65532}" || env["AGENTTEAM_SANDBOX"] != "${AGENTTEAM_SANDBOX:-confined}" {
			t.Errorf("%s runs as %v, and commands there in %v", name, rest["user"], env["AGENTTEAM_SANDBOX"])
		}
	}
	if len(names) == 0 || len(file.Services["teamctl"].DependsOn) != 0 {
		t.Errorf("images %q; teamctl waits for %v, whose faults its doctor is to tell", names, file.Services["teamctl"].DependsOn)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// stand-ins.sh --remove takes stand-ins away and nothing else.
func TestRemoveStandIns(t *testing.T) {
	dir := t.TempDir()
	const docker = `#!/bin/sh
case "$1 $2 $*" in
"image inspect "*golang:*|"image inspect "*nats:*) echo 0123456789abcdef ;;
"image inspect "*debian:*) echo ;;
"image inspect "*) exit 1 ;;
*) echo "$*" >>"$CALLS" ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	cmd := exec.CommandContext(t.Context(), "bash", "stand-ins.sh", "--remove")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+calls)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("stand-ins.sh --remove: %v\n%s", err, out)
	}
	if got := read(t, calls); !regexp.MustCompile(`^image rm golang:\S+\nimage rm nats:\S+\n$`).MatchString(got) {
		t.Errorf("stand-ins.sh --remove calls docker for\n%s", got)
	}
}

// checkExpr complains of a metric that nobody tells and of brackets that do not
// match. More is known only by a PromQL parser, whose module brings a hundred others.
func checkExpr(t *testing.T, where, expr string, known map[string]bool) {
	t.Helper()
	names, err := metricsIn(expr)
	if err != nil || len(names) == 0 {
		t.Errorf("%s: %q: %v", where, expr, err)
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("%s: nobody tells the metric %s", where, name)
		}
	}
}

var (
	quoted   = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	grouping = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\([^()]*\)`)
	selector = regexp.MustCompile(`\{[^{}]*\}|\[[^\[\]]*\]`)
	call     = regexp.MustCompile(`\b\w+\s*\(`)
	name     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	duration = regexp.MustCompile(`\b(\d+[a-z]+)+\b`)
	operator = []string{"and", "or", "unless", "bool", "offset"}
)

// metricsIn returns the metrics that a PromQL expression names.
func metricsIn(expr string) (names []string, err error) {
	bare := quoted.ReplaceAllString(expr, "")
	var open []rune
	for _, c := range bare {
		switch c {
		case '(', '{', '[':
			open = append(open, c)
		case ')', '}', ']':
			if len(open) == 0 || map[rune]rune{')': '(', '}': '{', ']': '['}[c] != open[len(open)-1] {
				return nil, fmt.Errorf("%q closes nothing", c)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%q is not closed", open)
	}
	bare = grouping.ReplaceAllString(bare, "")
	bare = selector.ReplaceAllString(bare, "")
	bare = call.ReplaceAllString(bare, "(")
	bare = duration.ReplaceAllString(bare, "")
	for _, n := range name.FindAllString(bare, -1) {
		if !slices.Contains(operator, n) && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, nil
}

func TestMetricsIn(t *testing.T) {
	for expr, want := range map[string]string{
		`sum by (a, b) (rate(x_total{l=~"y(", m!="z"}[5m])) > 0.5 * t:x:rate5m`: "[x_total t:x:rate5m]",
		`up == 0 and on (job) absent(up) or vector(0)`:                          "[up]",
		`x_5m offset 1h30m unless y offset 5m`:                                  "[x_5m y]",
		`sum(rate(x[5m])`:                                                       "not closed",
		`x{l="y"})`:                                                             "closes nothing",
	} {
		if got, err := metricsIn(expr); fmt.Sprint(got) != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s names %q, %v; want %s", expr, got, err, want)
		}
	}
}

// metrics returns the names of all that Prometheus gets from the processes, itself,
// or the recording rules.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{"up": true, "ALERTS": true}
	for _, r := range rules(t) {
		if r.Record != "" {
			known[r.Record] = true
		}
	}
	families, err := telemetry.NewRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		known[f.GetName()] = true
	}
	maps.Copy(known, registered(t))
	return known
}

// unshown are the metrics that no panel, rule or alert needs, with the reason.
var unshown = map[string]string{
	"agentteam_build_info":                "a version, for queries",
	"agentteam_api_request_seconds":       "the requests are shown",
	"agentteam_budget_warnings_total":     "the leader and the log are notified of each",
	"agentteam_foreign_beats_total":       "the logs name each",
	"agentteam_network_requests_total":    "the audit has each",
	"agentteam_stream_kept_items":         "the readers are shown",
	"agentteam_stream_lag_seconds":        "the readers are shown",
	"agentteam_stream_sent_total":         "the readers are shown",
	"agentteam_stream_slow_readers_total": "the readers are shown",
}

// Each metric is asked for by a panel, a rule or an alert, or the list has the reason why not.
func TestMetricsShown(t *testing.T) {
	asked := read(t, "grafana/dashboards/agentteam.json") + read(t, "prometheus/rules/agentteam.yml")
	for name := range registered(t) {
		if strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
			continue
		}
		shown := regexp.MustCompile(`\b` + name + `(?:_bucket|_sum|_count)?\b`).MatchString(asked)
		if reason := unshown[name]; shown == (reason != "") {
			t.Errorf("%s is asked for: %v; not needed: %q", name, shown, reason)
		}
	}
}

// registered returns the names of the metrics that the packages register, from the table of the docs, which is made from the code.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(agentteam_\\w+)[^`]*`( histogram)? \\|").FindAllStringSubmatch(read(t, "../docs/operations.md"), -1) {
		names[row[1]] = true
		if row[2] != "" {
			names[row[1]+"_bucket"], names[row[1]+"_sum"], names[row[1]+"_count"] = true, true, true
		}
	}
	if len(names) < 10 {
		t.Fatalf("docs/operations.md has %d metrics", len(names))
	}
	return names
}
