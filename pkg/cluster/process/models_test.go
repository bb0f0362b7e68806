package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv/trust/trusttest"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// logbook is a log that tells of each line with a word.
type logbook struct {
	t     *testing.T
	mu    sync.Mutex
	text  strings.Builder
	lines chan struct{}
}

func (j *logbook) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Write(b)
	select {
	case j.lines <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (j *logbook) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// says waits for a line with these words.
func (j *logbook) says(words ...string) {
	j.t.Helper()
	limit := time.After(brokertest.Longest)
	for {
		text := j.all()
		for line := range strings.Lines(text) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return
			}
		}
		select {
		case <-j.lines:
		case <-limit:
			j.t.Fatalf("no line says %q:\n%s", words, text)
		}
	}
}

// told is what others hear of p, the only process.
func told(t *testing.T, p *Process, c *broker.Conn) control.Process {
	t.Helper()
	if err := p.Conn.Flush(t.Context()); err != nil { // else it may not be heard yet
		t.Fatal(err)
	}
	all, err := control.Processes(t.Context(), c, "teammate", 300*time.Millisecond)
	if err != nil || len(all) != 1 {
		t.Fatalf("processes: %+v, %v", all, err)
	}
	return all[0]
}

// A process has the models of its settings file, and others when that changes.
func TestModelsOfTheSettings(t *testing.T) {
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	own, err := trusttest.Own(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", own)
	file := filepath.Join(t.TempDir(), "team.yaml")
	write := func(text string) {
		t.Helper()
		// As an editor does it: a file that is read half written would be a mistake.
		if err := os.WriteFile(file+"~", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	write("server: " + url + "\nmodels:\n  strong: {model: big-1, base_url: http://127.0.0.1:1/v1, fallbacks: [keyless]}\n  keyless: {model: m, key_env: NO_SUCH_KEY}\n" +
		"  fast: {model: small-1, base_url: http://127.0.0.1:1/v1}\n  sonnet: strong\ndefault_model: fast\n")
	cfg, err := config.Load(config.Sources{Dir: filepath.Dir(file)})
	if err != nil {
		t.Fatal(err)
	}
	log := &logbook{t: t, lines: make(chan struct{}, 1)}
	p, err := Open(t.Context(), "teammate", cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	log.says("keyless", "NO_SUCH_KEY is not set")
	if got := told(t, p, c); got.Model != "small-1" || !slices.Equal(got.Aliases, []string{"fast", "strong", "sonnet"}) {
		t.Errorf("told %+v", got)
	}
	if got := p.Models(); !slices.Equal(got, []string{"fast", "strong"}) {
		t.Errorf("Models = %v", got)
	}
	as := func(name string) {
		t.Helper()
		_, with, done := p.As("t", team.Member{AgentID: "coder-1", Model: name})
		done()
		if with == nil {
			t.Errorf("as %q there is no model", name)
		}
	}
	as("")
	as("sonnet")
	if text := log.all(); strings.Contains(text, "its default is used") {
		t.Errorf("warned of what is there:\n%s", text)
	}
	as("opus")
	log.says("level=WARN", "its default is used", "opus", "fast", "coder-1")

	changed := p.ModelsChanged()
	write("models: {strong: {model: big-1, window: 0}}\n")
	log.says("level=ERROR", "stay as they were", "team.yaml:1:41")
	if got := told(t, p, c); !slices.Contains(got.Aliases, "sonnet") {
		t.Errorf("after a mistake: %+v", got)
	}
	write("models: {other: {model: big-2, base_url: http://127.0.0.1:1/v1}}\n")
	brokertest.Receive(t, "the models have changed", changed)
	log.says("read again", "other")
	var all []control.Process
	brokertest.Until(t, "the new model is announced, and the old one taken back", func() bool {
		var err error
		if all, err = control.Processes(t.Context(), c, "teammate", 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		return len(all) == 1 && all[0].Model == "big-2"
	})
	if !slices.Equal(all[0].Aliases, []string{"other"}) {
		t.Errorf("told %+v", all[0])
	}
}

func TestProcessWithoutModel(t *testing.T) {
	url := brokertest.Server(t)
	p, err := Open(t.Context(), "teammate", config.Config{Server: url, HTTP: "127.0.0.1:0", LogLevel: "info", LogFormat: "text"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := told(t, p, brokertest.Connect(t, url)); got.Model != control.NoModel || len(got.Aliases) != 0 {
		t.Errorf("told %+v", got)
	}
	_, with, done := p.As("t", team.Member{AgentID: "coder-1", Model: "strong"})
	defer done()
	if with != nil {
		t.Errorf("a model out of nowhere: %+v", with)
	}
}
