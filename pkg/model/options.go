package model

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

const openAI = "https://api.openai.com/v1"

// Options states which endpoint to call and how patiently.
type Options struct {
	BaseURL   string            // with the /v1; default OpenAI's own, which needs APIKey
	APIKey    string            // may be empty for an endpoint that wants none
	Model     string            // required
	Profile   string            // what kind of endpoint it is, a name of [Profiles]; default: found by BaseURL
	Window    int               // tokens of prompt and answer together; default: what is known of the model
	MaxTokens int               // limit of one answer; default: the profile's
	Headers   map[string]string // sent with each request, such as a service's own key
	Secrets   []string          // values of Headers that no error and no log may show, whatever their names
	Extra     map[string]any    // fields added to each request's body, such as reasoning_effort

	Alias  string // in team.yaml, for the hints of errors; default: the endpoint is that of the plain settings
	KeyEnv string // the environment variable that holds APIKey, for the hints of an Alias

	Attempts  int           // tries of one call, the first included; default 5
	Connect   time.Duration // longest wait for a connection, and for its TLS handshake; default 10 s
	FirstByte time.Duration // longest wait for the first event of an answer; default 10 min
	Idle      time.Duration // longest wait for the next one; default 2 min
	Total     time.Duration // longest time for a whole answer; default 30 min

	Lessons   Lessons           // shared with other processes; default: the client learns alone
	Transport http.RoundTripper // what carries its requests; default: connections of the client's own
	Logger    *slog.Logger      // default: discard
}

// keySetting returns the setting of the key, for hints.
func (o Options) keySetting() string {
	switch {
	case o.Alias == "":
		return "OPENAI_API_KEY"
	case o.KeyEnv == "":
		return "key_env of alias " + o.Alias + " in team.yaml"
	}
	return o.KeyEnv + " (alias " + o.Alias + ")"
}

// endpointSettings returns the settings of the address and the model, for hints.
func (o Options) endpointSettings() (address, model string) {
	if o.Alias == "" {
		return "OPENAI_BASE_URL", "OPENAI_MODEL"
	}
	return "base_url of alias " + o.Alias + " in team.yaml", "its model"
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Model == "":
		return o, team.Errorf(team.InvalidArgument, "no model is configured: OPENAI_MODEL is not set").
			WithHint("set OPENAI_MODEL to a model of your endpoint")
	case o.BaseURL == "" && o.APIKey == "":
		return o, team.Errorf(team.InvalidArgument, "no model endpoint is configured: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set").
			WithHint("set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint of your own")
	}
	o.BaseURL = cmp.Or(o.BaseURL, openAI)
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The value is not quoted: it may hold a password.
		return o, team.Errorf(team.InvalidArgument, "OPENAI_BASE_URL is not an http or https address").
			WithHint("it looks like http://127.0.0.1:11434/v1")
	}
	// An agent retries for as long as it takes, so few attempts only mean that people learn sooner that the model is
	// away.
	o.Attempts = cmp.Or(o.Attempts, 5)
	o.Connect = cmp.Or(o.Connect, 10*time.Second)
	// A local endpoint may load its model and read a long prompt first, and a model may think for minutes before it
	// writes.
	o.FirstByte = cmp.Or(o.FirstByte, 10*time.Minute)
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	o.Total = cmp.Or(o.Total, 30*time.Minute)
	o.Logger = telemetry.OrDiscard(o.Logger)
	return o, nil
}
