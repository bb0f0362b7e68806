package config

import (
	"encoding/json"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// setting is one row of the table of Load.
type setting struct {
	name     string   // the key in team.yaml, and the name in errors
	flag     string   // without dashes; "" if it has none
	env      []string // the first that is not empty counts
	def      string   // used when no source has a value
	allowed  string   // completes "... is not"
	folder   bool     // a path; in team.yaml it is taken from the file's own folder
	secret   bool     // never read from team.yaml, which people commit
	harmless string   // which values count in a file that no person has trusted, as of [strictyaml.Node.Withhold]; "" = none
	decides  bool     // where it waits for trust, a process continues with no other model, place or sandbox
	runs     bool     // it is a command that runs with the user's rights
	fallback func() (value, origin string, err error)

	// section points to what the value is decoded into, for a setting that is more than one
	// value. In the environment it is written as in team.yaml, in one line. Of the other fields
	// it has name, env and def alone; def is shown, and is that of section as it is.
	section any

	// parse checks v and puts it into the Config. shown is v as people may see it,
	// whether or not it is ok.
	parse func(v string) (shown string, ok bool)
}

// settings returns the table, its rows bound to the fields of c. Relative paths are relative to dir.
func settings(c *Config, dir string) []setting {
	return slices.Concat(processSettings(c, dir), teamSettings(c), policySettings(c))
}

func processSettings(c *Config, dir string) []setting {
	return []setting{
		{name: "server", decides: true, flag: "server", env: []string{"AGENTTEAM_SERVER", "NATS_URL"}, def: "nats://127.0.0.1:4222",
			fallback: func() (string, string, error) { return clusterServer(dir) },
			allowed:  "a NATS URL such as nats://127.0.0.1:4222, or several with commas between", parse: servers(&c.Server)},
		{name: "team", decides: true, flag: "team", env: []string{"AGENTTEAM_TEAM"}, def: string(team.DefaultTeam),
			allowed: "a team name: 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit, not a reserved word", parse: value(&c.Team, team.ParseTeamID, anything)},
		{name: "api_key", env: []string{"OPENAI_API_KEY"}, secret: true, allowed: "a key", parse: secret(&c.APIKey)},
		{name: "base_url", decides: true, env: []string{"OPENAI_BASE_URL"},
			allowed: "an http or https URL such as http://127.0.0.1:8000/v1", parse: baseURL(&c.BaseURL)},
		{name: "model", decides: true, env: []string{"OPENAI_MODEL"}, allowed: "a model's name", parse: text(&c.Model)},
		{name: "max_tokens", env: []string{"AGENTTEAM_MAX_TOKENS"},
			allowed: tokensAllowed, parse: optional(positive(&c.MaxTokens))},
		{name: "profile", decides: true, env: []string{"AGENTTEAM_PROFILE"}, allowed: "one of " + strings.Join(model.Profiles(), ", "),
			parse: optional(oneOf(&c.Profile, model.Profiles()...))},
		{name: "window", env: []string{"AGENTTEAM_WINDOW"}, allowed: tokensAllowed, parse: optional(positive(&c.Window))},
		{name: "reasoning_effort", env: []string{"AGENTTEAM_REASONING_EFFORT"}, allowed: "a word", parse: text(&c.ReasoningEffort)},
		{name: "temperature", env: []string{"AGENTTEAM_TEMPERATURE"}, allowed: "a number, 0 or more", parse: optional(temperature(&c.Temperature))},
		{name: "model_headers", env: []string{"AGENTTEAM_MODEL_HEADERS"}, secret: true,
			allowed: `a JSON object of header names, each with a text of one line, such as {"X-Service-Key":"..."}`, parse: headers(&c.ModelHeaders)},
		{name: "model_extra", env: []string{"AGENTTEAM_MODEL_EXTRA"},
			allowed: `a JSON object such as {"top_p":0.9}, without the fields that each request has of its own: ` + strings.Join(model.OwnFields(), ", "), parse: optional(extra(&c.ModelExtra))},
		{name: "model_connect", env: []string{"AGENTTEAM_MODEL_CONNECT"}, allowed: limitAllowed, parse: limit(&c.ModelLimits.Connect)},
		{name: "model_first_byte", env: []string{"AGENTTEAM_MODEL_FIRST_BYTE"}, allowed: limitAllowed, parse: limit(&c.ModelLimits.FirstByte)},
		{name: "model_idle", env: []string{"AGENTTEAM_MODEL_IDLE"}, allowed: limitAllowed, parse: limit(&c.ModelLimits.Idle)},
		{name: "model_total", env: []string{"AGENTTEAM_MODEL_TOTAL"}, allowed: limitAllowed, parse: limit(&c.ModelLimits.Total)},
		{name: modelsKey, decides: true, section: new(models)},
		{name: assumedKey, section: &c.assumed},
		{name: defaultModelKey, decides: true, allowed: "an alias of models", parse: text(&c.DefaultModel)},
		{name: "replicas", env: []string{"AGENTTEAM_REPLICAS"}, def: "1",
			allowed: "1, 3 or 5", parse: replicas(&c.Replicas)},
		{name: "lease", env: []string{"AGENTTEAM_LEASE"}, def: "30s",
			allowed: "a duration from 2s to 1h", parse: duration(&c.Lease, 2*time.Second, time.Hour)},
		{name: "stall_after", env: []string{"AGENTTEAM_STALL_AFTER"}, def: "15m",
			allowed: "a duration from 2s to 24h", parse: duration(&c.StallAfter, 2*time.Second, 24*time.Hour)},
		{name: "keep_transcripts", env: []string{"AGENTTEAM_KEEP_TRANSCRIPTS"},
			allowed: "a duration of 1h or more", parse: optional(duration(&c.KeepTranscripts, time.Hour, math.MaxInt64))},
		{name: "http", decides: true, flag: "http", env: []string{"AGENTTEAM_HTTP"}, def: "127.0.0.1:0",
			allowed: "host:port, such as 127.0.0.1:8080 or :0", parse: hostPort(&c.HTTP)},
		{name: "api", decides: true, flag: "api", env: []string{"AGENTTEAM_API"},
			allowed: "host:port, such as 127.0.0.1:8090 or 127.0.0.1:0", parse: optional(hostPort(&c.API.Addr))},
		{name: "api_token_file", decides: true, folder: true, flag: "api-token-file", env: []string{"AGENTTEAM_API_TOKEN_FILE"}, allowed: "a file", parse: path(&c.API.TokenFile, dir)},
		{name: "api_read_token_file", decides: true, folder: true, flag: "api-read-token-file", env: []string{"AGENTTEAM_API_READ_TOKEN_FILE"}, allowed: "a file", parse: path(&c.API.ReadTokenFile, dir)},
		{name: "api_tls_cert", decides: true, folder: true, env: []string{"AGENTTEAM_API_TLS_CERT"}, allowed: "a file", parse: path(&c.API.Cert, dir)},
		{name: "api_tls_key", decides: true, folder: true, env: []string{"AGENTTEAM_API_TLS_KEY"}, allowed: "a file", parse: path(&c.API.Key, dir)},
		{name: "api_insecure", decides: true, flag: "insecure", env: []string{"AGENTTEAM_API_INSECURE"}, def: "false", allowed: "true or false", parse: value(&c.API.Insecure, strconv.ParseBool, anything)},
		{name: "api_origins", decides: true, env: []string{"AGENTTEAM_API_ORIGINS"}, allowed: "a list with commas of origins such as https://team.example.org", parse: commas(&c.API.Origins, IsOrigin)},
		{name: "api_hosts", decides: true, env: []string{"AGENTTEAM_API_HOSTS"}, allowed: "a list with commas of host names without port", parse: commas(&c.API.Hosts, IsHost)},
		{name: "workspace", decides: true, folder: true, flag: "workspace", env: []string{"AGENTTEAM_WORKSPACE"}, allowed: "a folder", parse: path(&c.Workspace, dir)},
		{name: "data_dir", decides: true, folder: true, flag: "data", env: []string{"AGENTTEAM_DATA_DIR"}, def: defaultStore,
			allowed: "a folder", parse: path(&c.DataDir, dir)},
		{name: "log_level", env: []string{"AGENTTEAM_LOG_LEVEL"}, def: "info",
			allowed: "debug, info, warn or error", parse: oneOf(&c.LogLevel, "debug", "info", "warn", "error")},
		{name: "log_format", env: []string{"AGENTTEAM_LOG_FORMAT"}, def: "text",
			allowed: "text or json", parse: oneOf(&c.LogFormat, "text", "json")},
	}
}

const (
	tokensAllowed = "a whole number of tokens, 1 or more"
	limitAllowed  = "a duration from 1ms to 24h, such as 90s"
	leastLimit    = time.Millisecond
	mostLimit     = 24 * time.Hour
)

// optional returns parse for a setting that may be empty.
func optional(parse func(string) (string, bool)) func(string) (string, bool) {
	return func(v string) (string, bool) {
		if v == "" {
			return v, true
		}
		return parse(v)
	}
}

func limit(dst *time.Duration) func(string) (string, bool) {
	return optional(duration(dst, leastLimit, mostLimit))
}

func temperature(dst **float64) func(string) (string, bool) {
	parse := func(v string) (*float64, error) { t, err := strconv.ParseFloat(v, 64); return &t, err }
	return value(dst, parse, func(t *float64) bool { return *t >= 0 && !math.IsInf(*t, 0) })
}

func extra(dst *map[string]any) func(string) (string, bool) {
	return func(v string) (string, bool) {
		ok := json.Unmarshal([]byte(v), dst) == nil && *dst != nil
		for _, field := range model.OwnFields() {
			_, own := (*dst)[field]
			ok = ok && !own
		}
		return v, ok
	}
}

// headers parses headers and shows them as a secret, since a service's key may be among them.
func headers(dst *map[string]Secret) func(string) (string, bool) {
	return func(v string) (string, bool) {
		ok := v == "" || json.Unmarshal([]byte(v), dst) == nil && *dst != nil
		for name, value := range *dst {
			ok = ok && headerPattern.MatchString(name) && !strings.ContainsAny(string(value), "\r\n\x00")
		}
		return Secret(v).String(), ok
	}
}

func text(dst *string) func(string) (string, bool) {
	return func(v string) (string, bool) { *dst = v; return v, true }
}

func oneOf(dst *string, values ...string) func(string) (string, bool) {
	return func(v string) (string, bool) {
		v = strings.ToLower(v)
		*dst = v
		return v, slices.Contains(values, v)
	}
}

func secret(dst *Secret) func(string) (string, bool) {
	return func(v string) (string, bool) { *dst = Secret(v); return dst.String(), true }
}

// value returns a parser of values that ok accepts.
func value[T any](dst *T, parse func(string) (T, error), ok func(T) bool) func(string) (string, bool) {
	return func(v string) (string, bool) {
		x, err := parse(v)
		*dst = x
		return v, err == nil && ok(x)
	}
}

func anything[T any](T) bool { return true }

func positive(dst *int) func(string) (string, bool) {
	return value(dst, strconv.Atoi, func(n int) bool { return n > 0 })
}

// replicas accepts odd numbers only: of four servers, as of three, one may be lost.
func replicas(dst *int) func(string) (string, bool) {
	return value(dst, strconv.Atoi, func(n int) bool { return n == 1 || n == 3 || n == 5 })
}

func duration(dst *time.Duration, least, most time.Duration) func(string) (string, bool) {
	return value(dst, time.ParseDuration, func(d time.Duration) bool { return least <= d && d <= most })
}

func hostPort(dst *string) func(string) (string, bool) {
	return func(v string) (string, bool) {
		*dst = v
		_, port, err := net.SplitHostPort(v)
		if err != nil {
			return v, false
		}
		_, err = strconv.ParseUint(port, 10, 16)
		return v, err == nil
	}
}

// commas parses a list whose parts fit accepts.
func commas(dst *[]string, fit func(string) bool) func(string) (string, bool) {
	return func(v string) (string, bool) {
		*dst = nil
		if v == "" {
			return v, true
		}
		for part := range strings.SplitSeq(v, ",") {
			*dst = append(*dst, strings.TrimSpace(part))
		}
		return v, !slices.ContainsFunc(*dst, func(part string) bool { return !fit(part) })
	}
}

// path makes v absolute, since children of this process may run elsewhere.
func path(dst *string, dir string) func(string) (string, bool) {
	return func(v string) (string, bool) {
		if v != "" && !filepath.IsAbs(v) {
			v = filepath.Join(dir, v)
		}
		*dst = v
		return v, true
	}
}

// IsBaseURL reports whether v may be the base URL of a model endpoint.
func IsBaseURL(v string) bool { return isURL(v, "http", "https") }

func baseURL(dst *string) func(string) (string, bool) {
	return func(v string) (string, bool) {
		*dst = v
		return maskURL(v), v == "" || IsBaseURL(v)
	}
}

// servers accepts what nats.go accepts: several URLs with commas between, the scheme of each optional.
func servers(dst *string) func(string) (string, bool) {
	return func(v string) (string, bool) {
		*dst = v
		parts := strings.Split(v, ",")
		ok := true
		for i, part := range parts {
			part = strings.TrimSpace(part)
			parts[i] = maskURL(part)
			if !strings.Contains(part, "://") {
				part = "nats://" + part
			}
			ok = ok && isURL(part, "nats", "tls", "ws", "wss")
		}
		return strings.Join(parts, ","), ok
	}
}

func isURL(v string, schemes ...string) bool {
	u, err := url.Parse(v)
	return err == nil && u.Hostname() != "" && slices.Contains(schemes, u.Scheme)
}
