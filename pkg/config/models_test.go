package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/model/router"
	"agentteam/pkg/team"
)

// load reads text as a team.yaml that is trusted, with these environment variables.
func load(t *testing.T, text string, env map[string]string) (config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "team.yaml")
	write(t, file, text)
	return config.Load(config.Sources{Dir: dir, Env: from(env)})
}

func aliasNames(all []config.Alias) (names []string) {
	for _, a := range all {
		names = append(names, a.Name)
	}
	return names
}

const every = `models:
  strong:
    base_url: https://api.example.com/v1
    key_env: STRONG_KEY
    model: big-1
    profile: openrouter
    window: 200000
    max_output: 16000
    headers: {X-Title: agentteam, X-Service-Key: "env:SERVICE_KEY"}
    prices: {input: 3, cached: 0.3, output: 15, currency: USD}
    extra: {reasoning: {effort: high}, top_p: 0.9, stop: [a, 1]}
    fallbacks: [fast]
    limits: {connect: 5s, first_byte: 20m, idle: 3m, total: 1h}
  fast:
    base_url: http://127.0.0.1:8000/v1
    model: qwen3:8b
    prices: {input: 0, output: 0, currency: USD}
  sonnet: strong
  opus: sonnet
`

func TestModels(t *testing.T) {
	c, err := load(t, every, map[string]string{"STRONG_KEY": "hush", "SERVICE_KEY": "whisper"})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Routes()
	want := router.Routes{Default: "strong", Names: map[string]string{"sonnet": "strong", "opus": "strong"}, Aliases: []router.Alias{
		{Name: "strong", Fallbacks: []string{"fast"}, Prices: &router.Prices{Input: 3, Written: 3, Cached: 0.3, Output: 15, Currency: "USD"}, Options: model.Options{
			BaseURL: "https://api.example.com/v1", APIKey: "hush", Model: "big-1", Profile: "openrouter", Window: 200000, MaxTokens: 16000,
			Headers: map[string]string{"X-Title": "agentteam", "X-Service-Key": "whisper"},
			Secrets: []string{"whisper"}, Alias: "strong", KeyEnv: "STRONG_KEY",
			Extra:   map[string]any{"reasoning": map[string]any{"effort": "high"}, "top_p": 0.9, "stop": []any{"a", 1}},
			Connect: 5 * time.Second, FirstByte: 20 * time.Minute, Idle: 3 * time.Minute, Total: time.Hour,
		}},
		{Name: "fast", Prices: &router.Prices{Currency: "USD"}, Options: model.Options{BaseURL: "http://127.0.0.1:8000/v1", Model: "qwen3:8b", Headers: map[string]string{}, Alias: "fast"}},
	}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("Routes = %+v\nwant %+v", r, want)
	}
	if _, err := router.New(r, router.Options{}); err != nil {
		t.Error(err)
	}
	if o := origin(c, "models.strong"); o.Origin != "team.yaml:2" ||
		o.Value != "big-1 at https://api.example.com/v1, key in STRONG_KEY (set), falls back to fast" {
		t.Errorf("strong is shown as %+v", o)
	}
	for name, want := range map[string]string{
		"profile": "openrouter", "window": "200000", "max_output": "16000", "prices": "input 3, cached 0.3, written 3, output 15 USD",
		"limits": "connect 5s, first_byte 20m0s, idle 3m0s, total 1h0m0s",
	} {
		if o := origin(c, "models.strong."+name); o.Value != want || o.Origin != "team.yaml:2" {
			t.Errorf("%s of strong is shown as %+v, want %s", name, o, want)
		}
	}
	if o := origin(c, "models.fast.window"); o.Name != "" {
		t.Errorf("what is not set is shown as %+v", o)
	}
	if o := origin(c, "models.sonnet"); o.Value != "another name of strong" {
		t.Errorf("sonnet is shown as %+v", o)
	}
	origins, err := json.Marshal(c.Origins())
	if err != nil {
		t.Fatal(err)
	}
	aliases, err := json.Marshal(c.Models)
	if err != nil {
		t.Fatal(err)
	}
	if printed := string(origins) + string(aliases) + fmt.Sprintf("%v %+v", c.Models, c.Models[0]); strings.Contains(printed, "hush") || strings.Contains(printed, "whisper") {
		t.Errorf("a secret is printed: %s", printed)
	}
	if c, err = load(t, "", map[string]string{"OPENAI_MODEL": "m", "OPENAI_API_KEY": "k", "AGENTTEAM_MODEL_HEADERS": `{"X-Team":"hush","X-Gate":"whisper"}`}); err != nil {
		t.Fatal(err)
	}
	o := c.Routes().Aliases[0].Options
	if want := []string{"whisper", "hush"}; !slices.Equal(o.Secrets, want) {
		t.Errorf("of AGENTTEAM_MODEL_HEADERS %q are secret, want %q", o.Secrets, want)
	}
	if o.Alias != "" || o.KeyEnv != "" {
		t.Errorf("hints would name the alias %q, whose settings stand in no models", o.Alias)
	}
}

// Each mistake is one line with its place and what is right.
func TestBadModels(t *testing.T) {
	const head = "models:\n  a:\n    model: m\n    base_url: http://h/v1\n"
	for text, want := range map[string][]string{
		"models: [a]\n":                                                        {"team.yaml:1:9", "models must be a mapping"},
		"models:\n  a: {modle: m}\n":                                           {"team.yaml:2:7", `unknown key "modle" in models.a; did you mean model?`},
		"models:\n  a b: {model: m}\n":                                         {"team.yaml:2:3", `"a b" is not a name of up to 64`},
		"models:\n  inherit: {model: m}":                                       {"team.yaml:2:3: inherit is reserved: it means the process's default"},
		"models:\n  a: {model: m}\n  a: {model: n}\n":                          {"team.yaml:3:3", `"a" comes twice`},
		"models:\n  a: {window: 5}\n":                                          {"team.yaml:2:3", "models.a lacks the key model: its name at the endpoint"},
		"models:\n  a:\n":                                                      {"team.yaml:2:5", "models.a has no value"},
		"models:\n  a: {model: ''}\n":                                          {"team.yaml:2:14", "model is empty"},
		"models: {}\nmodels: {}\n":                                             {"team.yaml:2:1", `"models" comes twice`},
		head + "    model: n\n":                                                {"team.yaml:5:5", `"model" comes twice`},
		head + "    profile: closedai\n":                                       {"team.yaml:5:14", `"closedai" is not known; allowed: `, "openrouter"},
		head + "    window: 0\n":                                               {"team.yaml:5:13", "window", "1 or more"},
		head + "    max_output: 8k\n":                                          {"team.yaml:5:17", "max_output", `"8k"`, "1 or more"},
		head + "    key_env: sk-123\n":                                         {"team.yaml:5:14", "name of an environment variable"},
		head + "    headers: {A B: c}\n":                                       {"team.yaml:5:15", "name of an HTTP header"},
		head + "    headers: {A: 'env:B C'}\n":                                 {"team.yaml:5:18", "environment variable"},
		head + "    headers: {A: \"b\\nc\"}\n":                                 {"team.yaml:5:18", "more than one line"},
		head + "    prices: 3\n":                                               {"team.yaml:5:13", "prices must be a mapping; keys: input, cached, written, output, currency"},
		head + "    prices: {input: x, output: 1}\n":                           {"team.yaml:5:21", `"x" is not a number`},
		head + "    prices: {input: 1, output: -1}\n":                          {"team.yaml:5:32", `"-1" is not a number, 0 or more`},
		head + "    prices: {input: .inf, output: 1}":                          {"team.yaml:5:21", "not a number"},
		head + "    prices: {input: 1}\n":                                      {"team.yaml:5:5", "prices lacks the key output: the price of a million tokens"},
		head + "    extra: [a]\n":                                              {"team.yaml:5:12", "extra must be a mapping"},
		head + "    extra: {top_p: 1, max_tokens: 5}\n":                        {"team.yaml:5:23", "max_tokens is no extra field"},
		head + "    extra: {a: .nan}\n":                                        {"team.yaml:5:16", "no place in JSON"},
		head + "    fallbacks: b\n":                                            {"team.yaml:5:16: fallbacks must be a list: [b]"},
		head + "    fallbacks:\n":                                              {"team.yaml:5:15", "fallbacks has no value; give it one or leave it out"},
		head + "    window:\n":                                                 {"team.yaml:5:12: window has no value"},
		head + "    prices: {input: , output: 1}\n":                            {"team.yaml:5:21: input has no value: it is the price of a million tokens"},
		head + "    window: 8000\n    max_output: 8000\n":                      {"team.yaml:6:17", "8000 tokens leaves no room for a prompt in a window of 8000"},
		"model: m\nwindow: 8000\nmax_tokens: 9000\n":                           {"team.yaml:3:13", "setting max_tokens: an answer of 9000 tokens leaves no room for a prompt in a window of 8000"},
		head + "    fallbacks: [b]\n":                                          {"team.yaml:5:17", `"b" is no alias; aliases are a`},
		head + "    fallbacks: [a]\n":                                          {"team.yaml:5:17", "a -> a"},
		head + "    limits: {idle: 0s}\n":                                      {"team.yaml:5:20", "1ms to 24h"},
		head + "    limits: {patience: 1s}\n":                                  {"team.yaml:5:14", "connect, first_byte, idle, total"},
		head + "  b: c\n":                                                      {"team.yaml:5:6", `"c" is no alias; aliases are a, b`},
		head + "  b: c\n  c: b\n":                                              {"b -> c -> b"},
		head + "    fallbacks: [b]\n  b: {model: n, fallbacks: [c]}\n  c: a\n": {"a -> b -> c -> a"},
		head + "    prices: {input: 1, output: 1}\n  b: {model: m, prices: {input: 1, output: 1, currency: EUR}}\n": {"team.yaml:6:25", "one currency"},
		head + "default_model: b\n":                           {"team.yaml:5:16", `no alias "b"`},
		"default_model: default\n":                            {"team.yaml:1:16", "no alias"},
		"models:\n  a: {model: m, base_url: 'ftp://u:p@h'}\n": {"team.yaml:2:27", "ftp://xxxxx@h", "http or https"},
		"models:\n  a: {model: m, base_url: localhost:80}\n":  {"team.yaml:2:27", "http or https"},
		"models:\n  a: &x {model: m}\n  b: *x\n":              {"team.yaml:3:6", "a YAML alias such as *x is not understood in a settings file"},
		"models:\n  a: {model: m\nteam: x\n":                  {"team.yaml:3:"},
	} {
		_, err := load(t, text, nil)
		checkRefused(t, fmt.Sprintf("%q", text), err, want)
		if err != nil && (strings.Contains(err.Error(), "sk-123") || strings.Contains(err.Error(), "u:p")) {
			t.Errorf("a secret is printed: %v", err)
		}
	}
}

// An alias whose variable is empty says which; the others go on without it.
func TestModelsWithoutTheirVariables(t *testing.T) {
	const text = "models:\n  strong: {model: m, key_env: STRONG_KEY, headers: {A: 'env:SERVICE'}, fallbacks: [fast]}\n  fast: {model: n, base_url: http://h/v1, fallbacks: [old]}\n" +
		"  old: {model: o}\n  opus: strong\n"
	c, err := load(t, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, err := range c.Lacking() {
		if !errors.Is(err, team.InvalidArgument) || team.HintOf(err) == "" {
			t.Errorf("%v, hint %q", err, team.HintOf(err))
		}
		lines = append(lines, err.Error())
	}
	want := []string{"the model alias strong cannot be used: SERVICE and STRONG_KEY are not set", "the model alias old cannot be used: OPENAI_API_KEY is not set"}
	if !slices.Equal(lines, want) {
		t.Errorf("Lacking = %q, want %q", lines, want)
	}
	if err := c.CheckModel(); err != nil {
		t.Errorf("CheckModel = %v, though fast can be asked", err)
	}
	r := c.Routes()
	if r.Default != "fast" || len(r.Aliases) != 1 || r.Aliases[0].Fallbacks != nil || len(r.Names) != 0 {
		t.Errorf("Routes = %+v, want fast alone", r)
	}

	c, err = load(t, "models: {a: {model: m, key_env: A_KEY}, default: {model: m, key_env: B_KEY}, c: a}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckModel(); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "A_KEY (for the alias a), or B_KEY (for the alias default)") {
		t.Errorf("CheckModel = %v", err)
	}
	if r := c.Routes(); r.Aliases != nil || r.Default != "" {
		t.Errorf("Routes = %+v, want none", r)
	}
}

// A model whose window is too small for an agent cannot be used, and the others can.
func TestModelsWithSmallWindows(t *testing.T) {
	c, err := load(t, "models:\n  tiny: {model: m, base_url: http://h/v1, window: 4096}\n  fast: {model: n, base_url: http://h/v1, window: 8192, fallbacks: [tiny]}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong := c.Lacking()
	if len(wrong) != 1 || wrong[0].Error() != "the model alias tiny cannot be used: its window is 4096 tokens, and an agent needs 8192" || !strings.Contains(team.HintOf(wrong[0]), "window: 32768") {
		t.Errorf("Lacking = %v", wrong)
	}
	if err := c.CheckModel(); err != nil || c.CheckWindows() == nil {
		t.Errorf("CheckModel = %v, CheckWindows = %v", err, c.CheckWindows())
	}
	if r := c.Routes(); r.Default != "fast" || len(r.Aliases) != 1 || r.Aliases[0].Fallbacks != nil {
		t.Errorf("Routes = %+v, want fast alone", r)
	}
	// Ollama has no more if it is told nothing.
	for text, want := range map[string]string{
		"model: qwen3:8b\nbase_url: http://127.0.0.1:11434/v1\n":                "the model alias default cannot be used: its window is 4096",
		"model: qwen3:8b\nbase_url: http://127.0.0.1:11434/v1\nwindow: 32768\n": "",
	} {
		c, err := load(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckModel(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("CheckModel = %v, want %q", err, want)
		}
	}
}

// The plain settings make one more alias, unless one is called so.
func TestDefaultAlias(t *testing.T) {
	plain := map[string]string{"OPENAI_MODEL": "m", "OPENAI_API_KEY": "k", "AGENTTEAM_REASONING_EFFORT": "low", "AGENTTEAM_TEMPERATURE": "0", "AGENTTEAM_MODEL_EXTRA": `{"top_p":1}`}
	const two = "models:\n  a: {model: x, base_url: http://h/v1, fallbacks: [b]}\n  b: {model: y, base_url: http://h/v1}\n"
	for name, tt := range map[string]struct {
		text string
		env  map[string]string
		want []string
	}{
		"nothing":                     {"", nil, nil},
		"plain":                       {"", plain, []string{"default"}},
		"of the file":                 {"model: m\nbase_url: http://h/v1\n", nil, []string{"default"}},
		"models":                      {two, nil, []string{"a", "b"}},
		"models: nothing":             {"models:\n", plain, []string{"default"}},
		"models: none":                {"models: {}\n", plain, []string{"default"}},
		"both":                        {two, plain, []string{"a", "b", "default"}},
		"a default of its own":        {two + "  default: {model: z, base_url: http://h/v1}\n", plain, []string{"a", "b", "default"}},
		"another is the default":      {two + "default_model: b\n", plain, []string{"b", "a", "default"}},
		"the plain one is":            {two + "default_model: default\n", plain, []string{"default", "a", "b"}},
		"the plain one is a fallback": {two + "  c: {model: z, base_url: http://h/v1, fallbacks: [default]}\n", plain, []string{"a", "b", "c", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, tt.text, tt.env)
			if err != nil {
				t.Fatal(err)
			}
			all := c.Aliases()
			if got := aliasNames(all); !slices.Equal(got, tt.want) {
				t.Fatalf("Aliases = %v, want %v", got, tt.want)
			}
			if i := slices.Index(tt.want, "default"); i >= 0 {
				model := "m"
				if name == "a default of its own" {
					model = "z"
				}
				if all[i].Model != model {
					t.Errorf("default is %+v, want %s", all[i], model)
				}
			}
			if tt.want != nil && c.Routes().Default != tt.want[0] {
				t.Errorf("Routes = %+v, want %s first", c.Routes(), tt.want[0])
			}
		})
	}
	c, err := load(t, "", plain)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"reasoning_effort": "low", "temperature": 0.0, "top_p": 1.0}
	if a := c.Aliases()[0]; !reflect.DeepEqual(a.Extra, want) || a.MaxOutput != 0 || a.KeyEnv != "OPENAI_API_KEY" {
		t.Errorf("default is %+v", a)
	}
	if o := origin(c, "models.default"); o.Value != "m at OpenAI, key in OPENAI_API_KEY (set)" || o.Origin != "env OPENAI_MODEL" {
		t.Errorf("default is shown as %+v", o)
	}
}

// Who asks no model can go on without those of the file, whatever is wrong with them;
// what is wrong with the rest of the file is refused as ever.
func TestLenient(t *testing.T) {
	loadLenient := func(text string) (config.Config, error) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "team.yaml"), text)
		return config.Load(config.Sources{Dir: dir, Env: from(map[string]string{"OPENAI_MODEL": "m"}), Lenient: true})
	}
	const rest = "server: nats://h:1\n"
	for text, want := range map[string]string{
		"models:\n  a: {modle: m}\n  b: {model: m}\n" + rest: `team.yaml:2:7: unknown key "modle"`,
		"models: [a]\n" + rest:                               "team.yaml:1:9: models must be a mapping",
		"models: {a: b}\n" + rest:                            `team.yaml:1:13: "b" is no alias`,
		"default_model: b\n" + rest:                          `there is no alias "b"`,
	} {
		if _, err := load(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		c, err := loadLenient(text)
		if err != nil || c.LeftOut() == nil || !strings.Contains(c.LeftOut().Error(), want) || !errors.Is(c.LeftOut(), team.InvalidArgument) {
			t.Errorf("%q: %v, left out for %v, want %s", text, err, c.LeftOut(), want)
		}
		if names := aliasNames(c.Aliases()); !slices.Equal(names, []string{"default"}) || c.Server != "nats://h:1" || origin(c, "models.default").Value == "" {
			t.Errorf("%q: aliases %v at %s; want those of the plain settings", text, names, c.Server)
		}
	}
	if c, err := loadLenient("models: {a: {model: m}}\n"); err != nil || c.LeftOut() != nil || len(c.Models) != 1 {
		t.Errorf("good models: %v, %v, %v", err, c.LeftOut(), c.Models)
	}
	for _, text := range []string{"modles: {}\n", "models: {}\nmodels: {}\n", "lease: x\n", "models: {a: {model: m}\n"} {
		if _, err := loadLenient(text); !errors.Is(err, team.InvalidArgument) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A secret that is wrong is not quoted, nor what is shown in its place.
func TestSecretsThatAreWrong(t *testing.T) {
	for value, want := range map[string]string{
		`hush`:           "is not a JSON object of header names, each with a text of one line",
		`{"a b":"hush"}`: "is not a JSON object of header names",
		`{"a":"hu\nsh"}`: "each with a text of one line",
	} {
		_, err := load(t, "", map[string]string{"AGENTTEAM_MODEL_HEADERS": value})
		checkRefused(t, value, err, []string{"setting model_headers, from env AGENTTEAM_MODEL_HEADERS: its value is not ", want})
		if err != nil && (strings.Contains(err.Error(), "hu") || strings.Contains(err.Error(), `"set"`)) {
			t.Errorf("%v", err)
		}
	}
	_, err := load(t, "max_tokens: 5\n", map[string]string{"AGENTTEAM_WINDOW": "9000", "AGENTTEAM_MAX_TOKENS": "9000"})
	checkRefused(t, "max_tokens", err, []string{"setting max_tokens, from env AGENTTEAM_MAX_TOKENS: an answer of 9000 tokens leaves no room"})
}

func TestReload(t *testing.T) {
	c, err := load(t, "models: {a: {model: m, base_url: http://h/v1}}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.File(), "models: {b: {model: m, key_env: KEY}}\n")
	c, err = c.Reload()
	if err != nil || !slices.Equal(aliasNames(c.Models), []string{"b"}) {
		t.Errorf("Reload = %+v, %v", c.Models, err)
	}
	if (config.Config{}).File() != "" {
		t.Error("settings that were not loaded have a file")
	}
}

// What the page about models shows is read as it stands.
func TestDocumentedModels(t *testing.T) {
	page, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) < 6 {
		t.Errorf("%d examples, want at least 6", len(examples))
	}
	for _, e := range examples {
		c, err := load(t, string(e[1]), map[string]string{"OPENAI_API_KEY": "k"})
		if err != nil || len(c.Models) == 0 {
			t.Errorf("%s\n%v, with %d models", e[1], err, len(c.Models))
		}
	}
}
