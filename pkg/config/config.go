package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/model/router"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// Config is the settings of one process, each checked.
type Config struct {
	Server string      // URLs of the NATS servers, comma-separated
	Team   team.TeamID // the team meant when none is named

	// The plain settings of one model; see [Config.Aliases].
	APIKey          Secret            // of the model endpoint; may be empty
	BaseURL         string            // of the model endpoint; empty: OpenAI's own
	Model           string            // name of the model; empty: none configured
	MaxTokens       int               // most tokens of one answer of the model; 0: what its kind of endpoint gives
	Profile         string            // kind of the endpoint; empty: found by BaseURL
	Window          int               // tokens of prompt and answer together; 0: what is known of the model
	ReasoningEffort string            // how much the model is to think, in the endpoint's words; empty: as it likes
	Temperature     *float64          // nil: the endpoint's
	ModelHeaders    map[string]Secret // sent with each request to the endpoint
	ModelExtra      map[string]any    // fields added to the body of each request to it
	ModelLimits     Limits            // of its patience

	Models       []Alias // those of `models:`, in the order of the file
	DefaultModel string  // the alias that is the default; empty: the first

	Replicas        int           // servers that keep each stream made by this process; those that are there keep theirs
	Lease           time.Duration // silence after which a member's task is freed, in the teams made by this process
	StallAfter      time.Duration // time without progress after which a member at work is stalled, in the teams made by this process
	KeepTranscripts time.Duration // how long conversations stay that a newer context has replaced; 0: for ever
	API             API           // the HTTP API of a leader process
	HTTP            string        // host:port where the process serves health and metrics; port 0: any free one
	Workspace       string        // absolute path of the folder that tools work in; empty: not named
	DataDir         string        // absolute path of the embedded server's store
	LogLevel        string        // debug, info, warn or error
	LogFormat       string        // text or json

	// Sandbox is how this process confines commands, and Policy what the members of teams may do
	// that it makes: what is not set there is its zero value.
	Sandbox team.Sandbox
	Policy  team.Policy
	Limits  sandbox.Limits // of each command in this process; 0: the default

	// Organisation is what holds for the members of all teams in this process, before the rules of their team.
	Organisation team.Permissions

	// Choices are those of the teams that it makes, but for policy and roles; see [Config.Over] and
	// [Config.Roles].
	Choices      team.Choices
	Budgets      team.Budgets // of the goals that are set from here
	TeammateMode TeammateMode
	BranchHook   string // what bash runs, with the user's rights, once the branch of a line is there; empty: nothing

	assumed    router.Prices // of an alias without prices, if assumes is set
	assumes    bool
	limits     commandLimits
	form       trust.Form    // the policy as it was read
	sections   sections      // of a team, the same
	neverMatch []string      // rules of permissions, and why
	waiting    trust.Waiting // what of the file no person has trusted
	undecided  []string      // keys among that by which a model, a place or a sandbox is chosen
	origins    []Origin
	file       string  // as in File
	found      bool    // as in Found
	sources    Sources // absolute; the zero value if not loaded
	leftOut    error   // as in LeftOut
}

// Origin is a setting in the output of "teamctl config view".
type Origin struct {
	Name   string `json:"name"`   // the key in team.yaml
	Value  string `json:"value"`  // what holds; the API key is "set" or "not set", passwords in URLs are left out
	Origin string `json:"origin"` // "flag --server", "env NATS_URL", "team.yaml:3", a cluster file's path, or "default"
}

const fromDefault = "default"

// Sources are the places of settings. The zero value reads only team.yaml and the cluster file of the current folder.
type Sources struct {
	Flags func(name string) (string, bool) // a flag's value, and whether it was given; name without dashes
	Env   func(name string) (string, bool) // os.LookupEnv, in a program
	Dir   string                           // the working folder; default: the current one
	File  string                           // the settings file; default: the nearest team.yaml

	// Lenient has [Load] leave out the models of team.yaml if something is wrong with
	// them, for those who ask none; [Config.LeftOut] then tells what.
	Lenient bool

	// All has [Load] return each fault of team.yaml, joined, not only the first, and the Config without
	// what is faulty; see [strictyaml.Faults]. Keys that wait for trust are read, too: nothing may be done by that Config.
	All bool
}

// Load reads and checks every setting. In the environment and in team.yaml an empty value counts as not set, since
// compose files and scripts pass those on; an empty flag is an error, since the default could hit the wrong team.
//
// An error is [team.InvalidArgument] and one line: it names the setting, its origin and the allowed values, and never
// contains a secret.
func Load(src Sources) (Config, error) {
	dir, err := filepath.Abs(src.Dir)
	if err != nil {
		return Config{}, team.Errorf(team.InvalidArgument, "working folder: %w", err)
	}
	c := Config{sources: src}
	c.sources.Dir = dir
	err = c.load(settings(&c, dir))
	if err != nil && !src.All {
		return Config{}, err
	}
	return c, err
}

// load fills the settings of the table from c.sources.
func (c *Config) load(table []setting) error {
	path, shown := c.sources.findFile()
	c.file = path
	file, data, faults := readFile(path, shown, table, c.sources.All)
	c.found = data != nil
	if faults == nil && !c.found && c.sources.File != "" {
		faults = team.Errorf(team.NotFound, "there is no file %s", shown)
	}
	if faults != nil && file == nil {
		return faults
	}
	c.withhold(table, file, data)
	next := func(err error) bool { // reports whether the rest is read, too
		faults = errors.Join(faults, err)
		return err == nil || c.sources.All
	}
	for _, s := range table {
		var err error
		switch {
		case s.name == modelsKey: // takeModels reads them: what is wrong with them may not matter
		case s.section != nil:
			err = c.decode(s, file[s.name])
		default:
			err = c.parse(s, file)
		}
		if !next(err) {
			return err
		}
	}
	if err := c.checkRoom(file); !next(err) {
		return err
	}
	if err := c.takePolicy(file); !next(err) {
		return err
	}
	if err := c.takeOrganisation(); !next(err) {
		return err
	}
	c.takeTeam(file)
	if err := c.takeModels(file); err != nil {
		if c.Models, c.DefaultModel, c.leftOut = nil, "", err; !c.sources.Lenient && !next(err) {
			return err
		}
	}
	for _, a := range c.Aliases() {
		c.origins = append(c.origins, a.origins()...)
	}
	return faults
}

// parse reads a setting with a single value.
func (c *Config) parse(s setting, file map[string]entry) error {
	value, origin, err := s.find(c.sources, file)
	if err != nil {
		return err
	}
	shown, ok := s.parse(value)
	switch e := file[s.name]; {
	case !ok && e.origin == origin:
		return e.node.At(fmt.Errorf("setting %s: %.80q is not %s", s.name, shown, s.allowed))
	case !ok && s.secret: // shown is only whether there is one
		return team.Errorf(team.InvalidArgument, "setting %s, from %s: its value is not %s", s.name, origin, s.allowed)
	case !ok:
		return team.Errorf(team.InvalidArgument, "setting %s, from %s: %.80q is not %s", s.name, origin, shown, s.allowed)
	}
	c.origins = append(c.origins, Origin{Name: s.name, Value: shown, Origin: origin})
	return nil
}

// decode reads a section.
func (c *Config) decode(s setting, e entry) (err error) {
	origin := e.origin
	if text, variable := s.inEnv(c.sources); variable != "" {
		origin = "env " + variable
		_, err = strictyaml.Format{File: origin, Kind: s.name}.Decode([]byte(text), s.section)
	} else if origin != "" {
		err = e.node.Decode(s.section)
	}
	shown := s.def
	if err == nil && origin != "" {
		shown, err = showSection(s.section)
	}
	if origin == "" && len(s.env) > 0 {
		origin = fromDefault
	}
	if err == nil && origin != "" {
		c.origins = append(c.origins, Origin{Name: s.name, Value: shown, Origin: origin})
	}
	return err
}

// inEnv returns the value of s in the environment and its variable, else two empty strings.
func (s setting) inEnv(src Sources) (value, variable string) {
	for _, name := range s.env {
		if v := strings.TrimSpace(src.variable(name)); v != "" {
			return v, name
		}
	}
	return "", ""
}

// checkRoom refuses plain settings with an answer as large as the window.
func (c *Config) checkRoom(file map[string]entry) error {
	if c.Window == 0 || c.MaxTokens < c.Window {
		return nil
	}
	const name = "max_tokens"
	i := slices.IndexFunc(c.origins, func(o Origin) bool { return o.Name == name })
	if e := file[name]; e.origin == c.origins[i].Origin {
		return e.node.At(fmt.Errorf(noRoom, "setting "+name, c.MaxTokens, c.Window))
	}
	return team.Errorf(team.InvalidArgument, noRoom, "setting "+name+", from "+c.origins[i].Origin, c.MaxTokens, c.Window)
}

// takeModels adds the aliases of the file and checks their references to each other and the settings.
func (c *Config) takeModels(file map[string]entry) (err error) {
	section := file[modelsKey].node
	if file[modelsKey].origin != "" {
		var m models
		if err := section.Decode(&m); err != nil {
			return err
		}
		if c.Models, err = m.aliases(section, c.sources.variable); err != nil {
			return err
		}
	}
	all := c.Aliases()
	if err := link(section, all); err != nil {
		return err
	}
	if c.DefaultModel != "" && !slices.ContainsFunc(all, named(c.DefaultModel)) {
		return file[defaultModelKey].node.At(fmt.Errorf("%s: there is no alias %.80q", defaultModelKey, c.DefaultModel))
	}
	return nil
}

// LeftOut returns the error of the models in team.yaml, which are therefore left out; nil unless the sources are
// lenient. It is an error as of [Load].
func (c Config) LeftOut() error { return c.leftOut }

// File returns the path of the settings file, which may not exist; empty if the settings were not loaded.
func (c Config) File() string {
	return c.file
}

// Found reports whether File exists.
func (c Config) Found() bool { return c.found }

// Reload loads the settings again from the same sources. Errors: as of [Load].
func (c Config) Reload() (Config, error) { return Load(c.sources) }

// Origins lists every setting, in the order of the documentation. The slice is the
// caller's.
func (c Config) Origins() []Origin { return slices.Clone(c.origins) }

// ServerKnown reports whether a server was named or a cluster file found; else Server is a guess.
func (c Config) ServerKnown() bool {
	return slices.ContainsFunc(c.origins, func(o Origin) bool { return o.Name == "server" && o.Origin != fromDefault })
}

// ClusterFile returns the path of the cluster file that Server comes from; "" if it comes from another source.
func (c Config) ClusterFile() string {
	for _, o := range c.origins {
		if o.Name == "server" && filepath.IsAbs(o.Origin) {
			return o.Origin
		}
	}
	return ""
}

// Store returns the data folder in which a cluster of this folder has stored teams: that of the settings, else that of
// the cluster file's folder, else the nearest. "" if there is none.
func (c Config) Store() string {
	data := c.DataDir
	if slices.ContainsFunc(c.origins, func(o Origin) bool { return o.Name == "data_dir" && o.Origin == fromDefault }) {
		folder := FindStore(c.sources.Dir)
		if file := c.ClusterFile(); file != "" {
			folder = filepath.Dir(filepath.Dir(file))
		}
		data = filepath.Join(folder, defaultStore)
		if CheckClusterDir(folder) != nil {
			return ""
		}
	}
	if !filepath.IsAbs(data) || !HasStore(data) {
		return ""
	}
	return data
}

// Folder returns the absolute path of the working folder; "" if the settings were not loaded.
func (c Config) Folder() string { return c.sources.Dir }

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
	if v, variable := s.inEnv(src); variable != "" {
		return v, "env " + variable, nil
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

// variable returns an environment variable, "" if it is not set.
func (src Sources) variable(name string) string {
	if src.Env == nil {
		return ""
	}
	v, _ := src.Env(name)
	return v
}

// clusterServer returns the server of the nearest cluster file, or "" if there is none.
func clusterServer(dir string) (value, origin string, err error) {
	cluster, path, err := FindCluster(dir)
	if errors.Is(err, team.NotFound) {
		return "", "", nil
	}
	return cluster.NATS, path, err
}
