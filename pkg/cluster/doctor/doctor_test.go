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

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/demo"
	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// announce has a leader process answer on a new server, and returns its URL.
func announce(t *testing.T, model string) string {
	t.Helper()
	url := brokertest.Server(t)
	hide, err := control.Announce(brokertest.Connect(t, url), control.Process{Kind: "leader", Model: model, API: "https://team.example.org:8090"})
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
	t.Cleanup(func() { brokertest.Receive(t, "the endpoint ends", done) })
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
		"workspace": {Fail, team.InvalidState, "absent"},
		"server":    {OK, "", "nats://"},
		"jetstream": {OK, "", "JetStream"},
		"leaders":   {Fail, team.Unavailable, "no leader process"},
		"api":       {OK, "", "no leader process serves"},
		"standbys":  {Warn, "", "0"},
		"model":     {Fail, team.InvalidArgument, "OPENAI_MODEL"},
		"sandbox":   {OK, "", "4 GiB of memory, 512 processes, 4096 threads, 4 GiB in a file, 10 minutes"},
		"identity":  {Warn, "", "not by NATS credentials"},
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
	t.Parallel()
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
			if c := find(t, checks, "api"); c.Status != OK || !strings.Contains(c.Detail, "https://team.example.org:8090") {
				t.Errorf("%+v, want the address", c)
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

// An alias that cannot be used is named with what it lacks; the others are fine.
func TestAliases(t *testing.T) {
	url := endpoint(t)
	alias := func(name, base string, missing ...string) config.Alias {
		return config.Alias{Name: name, BaseURL: base, Model: name + "-model", Missing: missing}
	}
	for name, tt := range map[string]struct {
		models []config.Alias
		status Status
		words  []string
	}{
		"all answer":          {[]config.Alias{alias("a", url), alias("b", url)}, OK, []string{"a (a-model), b (b-model) are configured and their endpoints answer"}},
		"one lacks its key":   {[]config.Alias{alias("a", url), alias("b", url, "B_KEY")}, Warn, []string{"a (a-model) is configured", "the model alias b cannot be used: B_KEY is not set"}},
		"the first lacks its": {[]config.Alias{alias("a", url, "A_KEY"), alias("b", url)}, Warn, []string{"b (b-model) is configured", "A_KEY is not set"}},
		"one does not answer": {[]config.Alias{alias("a", url), alias("b", "http://127.0.0.1:1/v1")}, Warn, []string{"a (a-model) is configured", "the model alias b: "}},
		"the default does":    {[]config.Alias{alias("a", "http://127.0.0.1:1/v1"), alias("b", url)}, Fail, []string{"the model alias a: ", "127.0.0.1:1"}},
		"all lack their keys": {[]config.Alias{alias("a", url, "A_KEY"), alias("b", url, "B_KEY")}, Fail, []string{"A_KEY", "B_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := modelCheck(t.Context(), config.Config{Models: tt.models}, client.Status{})
			for _, w := range tt.words {
				if !strings.Contains(c.Detail, w) {
					t.Errorf("%q does not say %q", c.Detail, w)
				}
			}
			if c.Status != tt.status || c.Status == Warn && c.Hint == "" {
				t.Errorf("%+v, want %s", c, tt.status)
			}
		})
	}
	c := aliases(client.Status{Leaders: []control.Process{{Aliases: []string{"a"}}}, Members: []control.Process{{Aliases: []string{"b", "a"}}}})
	if !strings.HasPrefix(c.Detail, "a (2), b (1): ") {
		t.Errorf("%+v", c)
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
