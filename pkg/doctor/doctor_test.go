package doctor

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/config"
	"agentteam/pkg/control"
	"agentteam/pkg/demo"
	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/team"
)

// announce has a leader process answer on a new server, and returns its URL.
func announce(t *testing.T, model string) string {
	t.Helper()
	url := brokertest.Server(t)
	hide, err := control.Announce(brokertest.Connect(t, url), control.Process{Kind: "leader", Model: model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hide)
	return url
}

func endpoint(t *testing.T) string {
	t.Helper()
	script, err := rehearsal.Parse("demo", demo.Script)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := rehearsal.Listen("127.0.0.1:0", script, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- srv.Run(t.Context()) }() // ends with the test's context
	t.Cleanup(func() { <-done })
	return srv.URL()
}

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %q among %v", name, checks)
	}
	return checks[i]
}

func TestNobodyLeadsAndNothingCanBeWritten(t *testing.T) {
	checks := Run(t.Context(), config.Config{Server: brokertest.Server(t), Workspace: filepath.Join(t.TempDir(), "absent")}, Options{})
	for name, want := range map[string]struct {
		status Status
		code   team.Code
		word   string
	}{
		"workspace":   {Fail, team.InvalidState, "absent"},
		"server":      {OK, "", "nats://"},
		"jetstream":   {OK, "", "JetStream"},
		"leaders":     {Fail, team.Unavailable, "no leader process"},
		"standbys":    {Warn, "", "0"},
		"model":       {Fail, team.InvalidArgument, "OPENAI_MODEL"},
		"confinement": {Warn, "", "bash is not confined"},
		"identity":    {Warn, "", "not by NATS credentials"},
	} {
		c := find(t, checks, name)
		if c.Status != want.status || c.Code != want.code || !strings.Contains(c.Detail, want.word) {
			t.Errorf("%+v, want %v %v with %q in it", c, want.status, want.code, want.word)
		}
		if c.Status != OK && c.Hint == "" {
			t.Errorf("%s says nothing to do about it", name)
		}
	}
	if err := Err(checks); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "workspace") {
		t.Errorf("Err = %v, want the first failure", err)
	}
}

func TestModel(t *testing.T) {
	here := config.Config{BaseURL: endpoint(t), Model: "rehearsal"}
	dead := config.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "rehearsal"}
	for name, tt := range map[string]struct {
		leader string
		cfg    config.Config
		status Status
		code   team.Code
	}{
		"here, and it answers":               {"rehearsal", here, OK, ""},
		"here, and it does not answer":       {"rehearsal", dead, Fail, team.Unavailable},
		"only the leaders have one":          {"rehearsal", config.Config{}, OK, ""},
		"nobody has one":                     {control.NoModel, config.Config{}, Fail, team.InvalidArgument},
		"here, where the leaders do not run": {control.NoModel, here, Fail, team.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Server, tt.cfg.Workspace = announce(t, tt.leader), t.TempDir()
			checks := Run(t.Context(), tt.cfg, Options{})
			if c := find(t, checks, "model"); c.Status != tt.status || c.Code != tt.code {
				t.Errorf("%+v, want %v %v", c, tt.status, tt.code)
			}
			// A model that cannot be asked is not asked for its window.
			asked := slices.ContainsFunc(checks, func(c Check) bool { return c.Name == "window" && c.Status == OK })
			if want := tt.status == OK && tt.cfg.Model != ""; asked != want {
				t.Errorf("its window was asked for: %v, want %v", asked, want)
			}
			if err := Err(checks); team.CodeOf(err) != tt.code {
				t.Errorf("Err = %v, want code %q", err, tt.code)
			}
		})
	}
}

func ExampleErr() {
	err := Err([]Check{
		{Name: "bash", Status: Warn, Detail: "there is no bash on this machine"},
		{Name: "model", Status: Fail, Detail: "no model is configured: set OPENAI_MODEL", Code: team.InvalidArgument},
	})
	fmt.Println(err, team.ExitCode(err))
	// Output: model: no model is configured: set OPENAI_MODEL 2
}
