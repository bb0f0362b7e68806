package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// from makes a lookup of a map.
func from(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func origin(c config.Config, name string) config.Origin {
	for _, o := range c.Origins() {
		if o.Name == name {
			return o
		}
	}
	return config.Origin{}
}

// The nearest settings file up the tree counts. Paths in it are taken from its folder.
func TestFileUpTheTree(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "src", "pkg")
	write(t, filepath.Join(top, "team.yaml"), "team: blue\nworkspace: work\nmodels:\n  a: {model: m}\n")
	write(t, filepath.Join(below, "x"), "")
	c, err := config.Load(config.Sources{Dir: below})
	if err != nil || c.Team != "blue" || c.Workspace != filepath.Join(top, "work") || c.File() != filepath.Join(top, "team.yaml") {
		t.Errorf("Load below = team %s, workspace %s, file %s, %v", c.Team, c.Workspace, c.File(), err)
	}
	for name, want := range map[string]string{"team": "../../team.yaml:1", "models.a": "../../team.yaml:4"} {
		if got := origin(c, name).Origin; got != want {
			t.Errorf("%s comes from %s, want %s", name, got, want)
		}
	}
	write(t, filepath.Join(below, "team.yaml"), "lease: 5s\n")
	if c, err = config.Load(config.Sources{Dir: below}); err != nil || c.Team != "default" || c.Workspace != "" {
		t.Errorf("Load with a nearer one = team %s, workspace %q, %v; want nothing of the one above", c.Team, c.Workspace, err)
	}
	write(t, filepath.Join(below, "team.yaml"), "")
	write(t, filepath.Join(top, "team.yaml"), "lease: soon\n")
	_, err = config.Load(config.Sources{Dir: filepath.Join(top, "src")})
	checkRefused(t, "a bad file above", err, []string{"../team.yaml:1"})
}

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	c, err := config.Load(config.Sources{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"server": "nats://127.0.0.1:4222", "team": "default", "api_key": "not set", "base_url": "", "model": "",
		"max_tokens": "", "profile": "", "window": "", "reasoning_effort": "", "temperature": "", "model_headers": "not set", "model_extra": "",
		"model_connect": "", "model_first_byte": "", "model_idle": "", "model_total": "", "default_model": "", "replicas": "1", "lease": "30s", "stall_after": "15m", "keep_transcripts": "", "http": "127.0.0.1:0", "workspace": "",
		"api": "", "api_token_file": "", "api_read_token_file": "", "api_tls_cert": "", "api_tls_key": "", "api_insecure": "false", "api_origins": "", "api_hosts": "",
		"data_dir": filepath.Join(dir, ".agentteam", "data"), "log_level": "info", "log_format": "text",
		"sandbox": "auto", "isolation": "auto", "network": "none", "permissions": "", "permission_mode": "default", "permission_ask": "wait", "credentials": "", "paths": "", "command_limits": "", "worktree_links": "", "on_edit": "", "description": "", "dialect": "", "teammate_mode": "auto", "check": "", "branch_hook": "",
	}
	for _, o := range c.Origins() {
		if v, ok := want[o.Name]; !ok || o.Value != v || o.Origin != "default" {
			t.Errorf("%+v, want value %q from default", o, v)
		}
		delete(want, o.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
	if c.Lease != 30*time.Second || c.MaxTokens != 0 || c.Team != team.DefaultTeam || c.ServerKnown() {
		t.Errorf("Load = %+v, ServerKnown %v", c, c.ServerKnown())
	}
}

// Each step takes one more source away; the next one in order must take over.
func TestServerOrder(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	write(t, filepath.Join(dir, "team.yaml"), "# 团队 🦀\n\nserver: nats://yaml:1\n")
	if err := config.WriteCluster(top, config.Cluster{NATS: "nats://localhost:1"}); err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{"server": "nats://flag:1"}
	env := map[string]string{"AGENTTEAM_SERVER": "nats://own:1", "NATS_URL": "nats://common:1"}
	for _, step := range []struct {
		value, origin string
		remove        func()
	}{
		{"nats://flag:1", "flag --server", func() { delete(flags, "server") }},
		{"nats://own:1", "env AGENTTEAM_SERVER", func() { env["AGENTTEAM_SERVER"] = "" }}, // empty is not set
		{"nats://common:1", "env NATS_URL", func() { delete(env, "NATS_URL") }},
		{"nats://yaml:1", "team.yaml:3", func() { os.Remove(filepath.Join(dir, "team.yaml")) }},
		{"nats://localhost:1", filepath.Join(top, ".agentteam", "cluster.json"), func() { config.RemoveCluster(top) }},
		{"nats://127.0.0.1:4222", "default", func() {}},
	} {
		c, err := config.Load(config.Sources{Flags: from(flags), Env: from(env), Dir: dir})
		if err != nil {
			t.Fatalf("%s: %v", step.origin, err)
		}
		if o := origin(c, "server"); c.Server != step.value || o.Value != step.value || o.Origin != step.origin {
			t.Errorf("Server = %q, %+v, want %q from %s", c.Server, o, step.value, step.origin)
		}
		if known := step.origin != "default"; c.ServerKnown() != known {
			t.Errorf("%s: ServerKnown = %v", step.origin, !known)
		}
		step.remove()
	}
}

func TestEverySettingFromEnvironmentAndFile(t *testing.T) {
	dir := t.TempDir()
	check := func(name string, c config.Config, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Server != "a:1,tls://b:2" || c.Team != "blue" || c.BaseURL != "http://m/v1" || c.Model != "通义 🦀" ||
			c.MaxTokens != 1 || c.Replicas != 3 || c.Lease != time.Hour || c.StallAfter != time.Minute || c.HTTP != ":8080" || c.Workspace != filepath.Join(dir, "w") ||
			c.DataDir != "/data" || c.KeepTranscripts != 48*time.Hour || c.LogLevel != "debug" || c.LogFormat != "json" ||
			c.Profile != "vllm" || c.Window != 32768 || c.ReasoningEffort != "high" || *c.Temperature != 0.5 || c.ModelExtra["top_p"] != 0.9 ||
			c.ModelLimits != (config.Limits{Connect: time.Second, FirstByte: time.Minute, Idle: 90 * time.Second, Total: time.Hour}) {
			t.Errorf("%s: Load = %+v", name, c)
		}
		if want := (config.API{Addr: "127.0.0.1:8090", TokenFile: filepath.Join(dir, "api.token"), ReadTokenFile: "/read.token", Cert: filepath.Join(dir, "c.pem"), Key: "/k.pem",
			Insecure: true, Origins: []string{"https://a.example.org", "http://b:81"}, Hosts: []string{"a.example.org", "::2"}}); !reflect.DeepEqual(c.API, want) {
			t.Errorf("%s: API = %+v", name, c.API)
		}
		for _, o := range c.Origins() {
			if !strings.HasPrefix(o.Origin, name) && !strings.Contains(" api_key model_headers default_model description check ", " "+o.Name+" ") {
				t.Errorf("%+v, want it from %s", o, name)
			}
		}
	}
	c, err := config.Load(config.Sources{Dir: dir, Env: from(map[string]string{
		"AGENTTEAM_SERVER": "a:1,tls://b:2", "AGENTTEAM_TEAM": "blue", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://m/v1",
		"OPENAI_MODEL": "通义 🦀\n", "AGENTTEAM_MAX_TOKENS": "1", "AGENTTEAM_PROFILE": "vllm", "AGENTTEAM_WINDOW": "32768",
		"AGENTTEAM_REASONING_EFFORT": "high", "AGENTTEAM_TEMPERATURE": "0.5", "AGENTTEAM_MODEL_HEADERS": `{"X-Key":"k"}`, "AGENTTEAM_MODEL_EXTRA": `{"top_p":0.9}`,
		"AGENTTEAM_MODEL_CONNECT": "1s", "AGENTTEAM_MODEL_FIRST_BYTE": "1m", "AGENTTEAM_MODEL_IDLE": "90s", "AGENTTEAM_MODEL_TOTAL": "1h",
		"AGENTTEAM_REPLICAS": "3", "AGENTTEAM_LEASE": "1h", "AGENTTEAM_STALL_AFTER": "1m", "AGENTTEAM_HTTP": ":8080", "AGENTTEAM_WORKSPACE": "w",
		"AGENTTEAM_DATA_DIR": "/data", "AGENTTEAM_KEEP_TRANSCRIPTS": "48h", "AGENTTEAM_LOG_LEVEL": "DEBUG", "AGENTTEAM_LOG_FORMAT": "json",
		"AGENTTEAM_API": "127.0.0.1:8090", "AGENTTEAM_API_TOKEN_FILE": "api.token", "AGENTTEAM_API_READ_TOKEN_FILE": "/read.token", "AGENTTEAM_API_TLS_CERT": "c.pem",
		"AGENTTEAM_API_TLS_KEY": "/k.pem", "AGENTTEAM_API_INSECURE": "1", "AGENTTEAM_API_ORIGINS": "https://a.example.org, http://b:81", "AGENTTEAM_API_HOSTS": "a.example.org,::2",
		"AGENTTEAM_SANDBOX": "confined", "AGENTTEAM_ISOLATION": "worktree", "AGENTTEAM_NETWORK": "full", "AGENTTEAM_PERMISSIONS": "{deny: [Bash(rm *)]}", "AGENTTEAM_PERMISSION_MODE": "plan",
		"AGENTTEAM_PERMISSION_ASK": "deny", "AGENTTEAM_CREDENTIALS": `["gh"]`, "AGENTTEAM_PATHS": "{read: [/opt]}", "AGENTTEAM_DIALECT": "claude", "AGENTTEAM_TEAMMATE_MODE": "tmux", "AGENTTEAM_BRANCH_HOOK": "gh pr create", "AGENTTEAM_WORKTREE_LINKS": "[node_modules]", "AGENTTEAM_ON_EDIT": `[gofmt, -l, "{file}"]`, "AGENTTEAM_COMMAND_LIMITS": "{threads: 9}",
	})})
	check("env ", c, err)
	if o := origin(c, "api_key"); string(c.APIKey) != "k" || o.Value != "set" || o.Origin != "env OPENAI_API_KEY" {
		t.Errorf("api_key: %+v", o)
	}

	if o := origin(c, "model_headers"); string(c.ModelHeaders["X-Key"]) != "k" || o.Value != "set" || o.Origin != "env AGENTTEAM_MODEL_HEADERS" {
		t.Errorf("model_headers: %+v", o)
	}

	write(t, filepath.Join(dir, "team.yaml"), "server: a:1,tls://b:2\nteam: blue\nbase_url: http://m/v1\nmodel: 通义 🦀\nmax_tokens: 1\nreplicas: 3\n"+
		"profile: vllm\nwindow: 32768\nreasoning_effort: high\ntemperature: 0.5\nmodel_extra: '{\"top_p\":0.9}'\n"+
		"model_connect: 1s\nmodel_first_byte: 1m\nmodel_idle: 90s\nmodel_total: 1h\n"+
		"lease: 1h\nstall_after: 1m\nkeep_transcripts: 48h\nhttp: :8080\nworkspace: w\ndata_dir: /data\nlog_level: debug\nlog_format: json\n"+
		"api: 127.0.0.1:8090\napi_token_file: api.token\napi_read_token_file: /read.token\napi_tls_cert: c.pem\napi_tls_key: /k.pem\napi_insecure: true\n"+
		"api_origins: https://a.example.org,http://b:81\napi_hosts: 'a.example.org, ::2'\n"+
		"sandbox: confined\nisolation: worktree\nnetwork: full\npermissions: {deny: [Bash(rm *)]}\npermission_mode: plan\npermission_ask: deny\ncredentials: [gh]\npaths: {read: [/opt]}\nworktree_links: [node_modules]\non_edit: [gofmt, -l, \"{file}\"]\ncommand_limits: {threads: 9}\ndialect: claude\nteammate_mode: tmux\nbranch_hook: gh pr create\n")
	c, err = config.Load(config.Sources{Dir: dir})
	check("team.yaml:", c, err)
}

func TestBadValues(t *testing.T) {
	long := strings.Repeat("长", 64<<10/3)
	for _, tt := range []struct {
		flag, env, value string
		want             []string
	}{
		{flag: "team", value: "Größe", want: []string{"team", "flag --team", "Größe", "a-z"}},
		{flag: "team", value: "pool", want: []string{"reserved"}},
		{flag: "team", value: " ", want: []string{"flag --team", "empty"}},
		{flag: "server", value: "http://x", want: []string{"server", "flag --server", "nats://127.0.0.1:4222"}},
		{env: "NATS_URL", value: "nats://a,", want: []string{"env NATS_URL"}},
		{env: "AGENTTEAM_LEASE", value: "1s", want: []string{"lease", "env AGENTTEAM_LEASE", `"1s"`, "2s to 1h"}},
		{env: "AGENTTEAM_LEASE", value: "61m", want: []string{"2s to 1h"}},
		{env: "AGENTTEAM_LEASE", value: "30", want: []string{"2s to 1h"}},
		{env: "AGENTTEAM_MAX_TOKENS", value: "0", want: []string{"max_tokens", "1 or more"}},
		{env: "AGENTTEAM_MAX_TOKENS", value: "viele", want: []string{"max_tokens"}},
		{env: "AGENTTEAM_PROFILE", value: "opanai", want: []string{"profile", "env AGENTTEAM_PROFILE", "openrouter"}},
		{env: "AGENTTEAM_WINDOW", value: "0", want: []string{"window", "1 or more"}},
		{env: "AGENTTEAM_TEMPERATURE", value: "-1", want: []string{"temperature", "0 or more"}},
		{env: "AGENTTEAM_TEMPERATURE", value: "NaN", want: []string{"temperature", "0 or more"}},
		{env: "AGENTTEAM_MODEL_HEADERS", value: `{"X":1}`, want: []string{"model_headers", "JSON object"}},
		{env: "AGENTTEAM_MODEL_HEADERS", value: `{"X Y":"a"}`, want: []string{"model_headers", "JSON object"}},
		{env: "AGENTTEAM_MODEL_EXTRA", value: "null", want: []string{"model_extra", "JSON object"}},
		{env: "AGENTTEAM_MODEL_EXTRA", value: "[]", want: []string{"model_extra", "JSON object"}},
		{env: "AGENTTEAM_MODEL_EXTRA", value: `{"top_p":1,"tools":[]}`, want: []string{"model_extra", "env AGENTTEAM_MODEL_EXTRA", "without", "tools"}},
		{env: "AGENTTEAM_MODEL_IDLE", value: "0s", want: []string{"model_idle", "1ms to 24h"}},
		{env: "AGENTTEAM_REPLICAS", value: "2", want: []string{"replicas", "env AGENTTEAM_REPLICAS", "1, 3 or 5"}},
		{env: "AGENTTEAM_REPLICAS", value: "drei", want: []string{"1, 3 or 5"}},
		{env: "AGENTTEAM_HTTP", value: "8080", want: []string{"http", "host:port"}},
		{env: "AGENTTEAM_HTTP", value: "localhost:99999", want: []string{"host:port"}},
		{env: "AGENTTEAM_API", value: "8090", want: []string{"api", "env AGENTTEAM_API", "host:port"}},
		{env: "AGENTTEAM_API_INSECURE", value: "perhaps", want: []string{"api_insecure", "true or false"}},
		{env: "AGENTTEAM_API_ORIGINS", value: "https://a.example.org,*", want: []string{"api_origins", "https://team.example.org"}},
		{env: "AGENTTEAM_API_ORIGINS", value: "https://a.example.org/", want: []string{"api_origins"}},
		{env: "AGENTTEAM_API_ORIGINS", value: "a.example.org", want: []string{"api_origins"}},
		{env: "AGENTTEAM_API_HOSTS", value: "a.example.org,", want: []string{"api_hosts", "without port"}},
		{env: "AGENTTEAM_API_HOSTS", value: "a.example.org:80", want: []string{"api_hosts", "without port"}},
		{env: "OPENAI_BASE_URL", value: "127.0.0.1:8000", want: []string{"base_url", "env OPENAI_BASE_URL", "http or https"}},
		{env: "AGENTTEAM_LOG_LEVEL", value: "loud", want: []string{"log_level", "debug, info, warn or error"}},
		{env: "AGENTTEAM_LOG_FORMAT", value: long, want: []string{"log_format", "text or json"}},
	} {
		src := config.Sources{Dir: t.TempDir(), Env: from(map[string]string{tt.env: tt.value})}
		if tt.flag != "" {
			src.Flags = from(map[string]string{tt.flag: tt.value})
		}
		_, err := config.Load(src)
		checkRefused(t, fmt.Sprintf("%s%s=%.20s", tt.flag, tt.env, tt.value), err, tt.want)
	}
}

func TestBadFile(t *testing.T) {
	for text, want := range map[string][]string{
		"team: a\n\nmodle: x\n":           {"team.yaml:3:1", `unknown key "modle" in the settings file; did you mean model?`},
		"team: a\nteam: b\n":              {"team.yaml:2:1", `the key "team" comes twice`},
		"api_key: sk-1\n":                 {"team.yaml:1", "environment only", "OPENAI_API_KEY"},
		"lease:\n  - 30s\n":               {"team.yaml:2", "lease", "2s to 1h"},
		"\nlease: 1s\n":                   {"team.yaml:2:8", "lease", "2s to 1h"},
		"model_extra: '{\"stream\":1}'\n": {"team.yaml:1:14", "model_extra", "of its own: model, messages"},
		"- team\n":                        {"team.yaml:1", "mapping"},
		"team: \"a\nb: 🦀":                 {"team.yaml:1:7", "unexpected end"},
		"team: a\n<<: {model: x}\n":       {"team.yaml:2", "a key must be plain text"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "team.yaml"), text)
		_, err := config.Load(config.Sources{Dir: dir})
		checkRefused(t, fmt.Sprintf("%q", text), err, want)
	}
}

func TestFileWithoutValues(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "model:\nteam: ''\nlease: ~\n"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "team.yaml"), text)
		c, err := config.Load(config.Sources{Dir: dir})
		if err != nil || c.Team != team.DefaultTeam || c.Lease != 30*time.Second {
			t.Errorf("%q: Load = %+v, %v, want the defaults", text, c, err)
		}
	}
}

func checkRefused(t *testing.T, what string, err error, want []string) {
	t.Helper()
	if !errors.Is(err, team.InvalidArgument) {
		t.Errorf("%s: error %v, want InvalidArgument", what, err)
		return
	}
	msg := err.Error()
	if strings.Contains(msg, "\n") || len(msg) > 500 {
		t.Errorf("%s: not one clear line: %q", what, msg)
	}
	for _, w := range want {
		if !strings.Contains(msg, w) {
			t.Errorf("%s: %q does not mention %q", what, msg, w)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	env := map[string]string{
		"OPENAI_API_KEY":  "hush",
		"OPENAI_BASE_URL": "https://me:hush@host/v1?key=hush",
		"OPENAI_MODEL":    "m", "AGENTTEAM_MODEL_HEADERS": `{"X-Key":"hush"}`,
		"NATS_URL": "nats://me:hu@sh@a:1, hush@b:2,tls://c",
	}
	c, err := config.Load(config.Sources{Env: from(env), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	origins, err := json.Marshal(c.Origins())
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(c.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	printed := string(origins) + string(key) + fmt.Sprintf("%v %+v %#v %q %s", c.APIKey, c.APIKey, c.APIKey, c.APIKey, c.APIKey.LogValue())
	if strings.Contains(printed, "hush") || strings.Contains(printed, "sh@") {
		t.Errorf("a secret is printed: %s", printed)
	}
	if v := origin(c, "server").Value; v != "nats://xxxxx@a:1,xxxxx@b:2,tls://c" {
		t.Errorf("server is shown as %q", v)
	}
	if c.BaseURL != env["OPENAI_BASE_URL"] || c.Server != env["NATS_URL"] {
		t.Error("the masked URL is used, not only shown")
	}

	for _, name := range []string{"OPENAI_BASE_URL", "NATS_URL"} {
		_, err = config.Load(config.Sources{Dir: t.TempDir(), Env: from(map[string]string{name: "ftp://me:hu sh@host"})})
		if err == nil || strings.Contains(err.Error(), "hu sh") {
			t.Errorf("%s: error %v, want one without the password", name, err)
		}
	}
}

func TestCheckModel(t *testing.T) {
	for _, tt := range []struct {
		cfg     config.Config
		missing string // "" if a model can be asked
	}{
		{config.Config{}, "set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL"},
		{config.Config{APIKey: "k"}, "set OPENAI_MODEL"},
		{config.Config{Model: "m"}, "set OPENAI_API_KEY or OPENAI_BASE_URL"},
		{config.Config{Model: "m", APIKey: "k"}, ""},
		{config.Config{Model: "m", BaseURL: "http://127.0.0.1:8000/v1"}, ""},
	} {
		err := tt.cfg.CheckModel()
		if tt.missing == "" {
			if err != nil {
				t.Errorf("CheckModel(%+v) = %v, want nil", tt.cfg, err)
			}
			continue
		}
		if !errors.Is(err, team.InvalidArgument) || !strings.HasSuffix(err.Error(), tt.missing) {
			t.Errorf("CheckModel(%+v) = %v, want %q", tt.cfg, err, tt.missing)
		}
	}
}

func ExampleLoad() {
	env := map[string]string{"NATS_URL": "nats://me:secret@broker:4222"} // os.LookupEnv in a program
	c, err := config.Load(config.Sources{
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range c.Origins()[:3] {
		fmt.Printf("%s=%s (%s)\n", o.Name, o.Value, o.Origin)
	}
	// Output:
	// server=nats://xxxxx@broker:4222 (env NATS_URL)
	// team=default (default)
	// api_key=not set (default)
}
