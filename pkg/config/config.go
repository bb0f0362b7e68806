package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// Config is the settings of one process, each checked.
type Config struct {
	Server string      // URLs of the NATS servers, comma-separated
	Team   team.TeamID // the team meant when none is named

	APIKey    Secret // of the model endpoint; may be empty
	BaseURL   string // of the model endpoint; empty: OpenAI's own
	Model     string // name of the model; empty: none configured
	MaxTokens int    // most tokens of one answer of the model

	Replicas  int           // servers that keep each stream made by this process; those that are there keep theirs
	Lease     time.Duration // silence after which a member's task is freed, in the teams made by this process
	HTTP      string        // host:port where the process serves health and metrics; port 0: any free one
	Workspace string        // absolute path of the folder that tools work in; empty: not named
	DataDir   string        // absolute path of the embedded server's store
	LogLevel  string        // debug, info, warn or error
	LogFormat string        // text or json

	origins []Origin
}

// Origin is a setting as "teamctl config view" prints it.
type Origin struct {
	Name   string `json:"name"`   // the key in team.yaml
	Value  string `json:"value"`  // what holds; the API key is "set" or "not set", passwords in URLs are left out
	Origin string `json:"origin"` // "flag --server", "env NATS_URL", "team.yaml:3", a cluster file's path, or "default"
}

const fromDefault = "default"

// Sources is where settings may come from. The zero value reads team.yaml and the
// cluster file of the current folder and nothing else.
type Sources struct {
	Flags func(name string) (string, bool) // a flag's value, and whether it was given; name without dashes
	Env   func(name string) (string, bool) // os.LookupEnv, in a program
	Dir   string                           // the working folder; default: the current one
}

// Load reads and checks every setting. In the environment and in team.yaml an
// empty value counts as not set, since compose files and scripts pass those on; an
// empty flag is an error, since acting on the default instead could hit the wrong
// team.
//
// An error is [team.InvalidArgument] and one line: it names the setting, where it
// came from and what is allowed, and never holds a secret.
func Load(src Sources) (Config, error) {
	dir, err := filepath.Abs(src.Dir)
	if err != nil {
		return Config{}, team.Errorf(team.InvalidArgument, "working folder: %w", err)
	}
	var c Config
	table := settings(&c, dir)
	file, err := readFile(filepath.Join(dir, fileName), table)
	if err != nil {
		return Config{}, err
	}
	for _, s := range table {
		value, origin, err := s.find(src, file)
		if err != nil {
			return Config{}, err
		}
		shown, ok := s.parse(value)
		if !ok {
			return Config{}, team.Errorf(team.InvalidArgument, "setting %s, from %s: %.80q is not %s", s.name, origin, shown, s.allowed)
		}
		c.origins = append(c.origins, Origin{Name: s.name, Value: shown, Origin: origin})
	}
	return c, nil
}

// Origins lists every setting, in the order of the documentation. The slice is the
// caller's.
func (c Config) Origins() []Origin { return slices.Clone(c.origins) }

// ServerKnown reports whether a server was named or a cluster file found, so that
// Server is more than a guess.
func (c Config) ServerKnown() bool {
	return slices.ContainsFunc(c.origins, func(o Origin) bool { return o.Name == "server" && o.Origin != fromDefault })
}

// CheckModel returns an [team.InvalidArgument] error that names what is missing,
// unless a model can be asked: its name is set, and a key or the base URL of an
// endpoint that may need none.
func (c Config) CheckModel() error {
	var missing []string
	if c.Model == "" {
		missing = append(missing, "OPENAI_MODEL")
	}
	if c.APIKey == "" && c.BaseURL == "" {
		missing = append(missing, "OPENAI_API_KEY or OPENAI_BASE_URL")
	}
	if missing == nil {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "no model is configured: set %s", strings.Join(missing, ", and ")).
		WithHint("to try a team out without a model, run: teamctl demo")
}

// find returns the value of s from the first source that has one.
func (s setting) find(src Sources, file map[string]entry) (value, origin string, err error) {
	if s.flag != "" && src.Flags != nil {
		if v, given := src.Flags(s.flag); given {
			if v = strings.TrimSpace(v); v == "" {
				return "", "", team.Errorf(team.InvalidArgument, "setting %s, from flag --%s: the value is empty; give %s", s.name, s.flag, s.allowed)
			}
			return v, "flag --" + s.flag, nil
		}
	}
	for _, name := range s.env {
		if src.Env == nil {
			break
		}
		if v, _ := src.Env(name); strings.TrimSpace(v) != "" {
			return strings.TrimSpace(v), "env " + name, nil
		}
	}
	if e := file[s.name]; e.value != "" {
		return e.value, e.origin, nil
	}
	if s.fallback != nil {
		if value, origin, err = s.fallback(); err != nil || value != "" {
			return value, origin, err
		}
	}
	return s.def, fromDefault, nil
}

// clusterServer is the server of the nearest cluster file, or "" if there is none.
func clusterServer(dir string) (value, origin string, err error) {
	cluster, path, err := FindCluster(dir)
	if errors.Is(err, team.NotFound) {
		return "", "", nil
	}
	return cluster.NATS, path, err
}
