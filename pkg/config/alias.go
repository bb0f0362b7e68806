package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/model/router"
	"agentteam/pkg/team"
)

// defaultAlias is the alias of the settings without `models:`.
const defaultAlias = "default"

// Alias is a model under the name that roles and spawns use. Its fields with tags are those of an entry of `models:`.
type Alias struct {
	Name      string
	Same      string            // another alias, of which this is one more name; all else is then empty
	BaseURL   string            `yaml:"base_url" minLength:"1"` // of the endpoint; empty: OpenAI's own
	KeyEnv    string            `yaml:"key_env" minLength:"1"`  // the environment variable that holds the key; empty: none is sent
	Key       Secret            // what that variable holds
	Model     string            `yaml:"model" required:"its name at the endpoint" minLength:"1"`
	Profile   Profile           `yaml:"profile"`                // kind of endpoint; empty: found by BaseURL
	Window    int               `yaml:"window" minimum:"1"`     // tokens of prompt and answer together; 0: what is known of the model
	MaxOutput int               `yaml:"max_output" minimum:"1"` // tokens of one answer; 0: the profile's limit
	Headers   map[string]Secret `yaml:"headers"`                // sent with each request
	Prices    *router.Prices    `yaml:"prices"`                 // nil: not known
	Extra     map[string]any    `yaml:"extra"`                  // fields added to each request's body
	Fallbacks []string          `yaml:"fallbacks" minItems:"1"` // aliases that are asked, in this order, when this one refuses
	Limits    Limits            `yaml:"limits"`
	Missing   []string          // environment variables that it needs and that are empty; such an alias cannot be used

	origin  string   // as in Origin
	plain   bool     // the plain settings make it, not an entry of models
	secrets []string // the names of those Headers whose values come from the environment
}

// Profile is a kind of endpoint.
type Profile string

// Values returns the known kinds.
func (Profile) Values() []string { return model.Profiles() }

// Limits are the time limits for a model's endpoint; 0 is the client's default.
type Limits struct {
	Connect   time.Duration `yaml:"connect" minimum:"1ms" maximum:"24h"`    // for the connection
	FirstByte time.Duration `yaml:"first_byte" minimum:"1ms" maximum:"24h"` // for the first byte of an answer
	Idle      time.Duration `yaml:"idle" minimum:"1ms" maximum:"24h"`       // for the next piece of it
	Total     time.Duration `yaml:"total" minimum:"1ms" maximum:"24h"`      // for all of it
}

// Options returns the options of the alias for the model's client.
func (a Alias) Options() model.Options {
	headers := make(map[string]string, len(a.Headers))
	for name, value := range a.Headers {
		headers[name] = string(value)
	}
	var secrets []string
	for _, name := range a.secrets {
		secrets = append(secrets, headers[name])
	}
	o := model.Options{
		BaseURL: a.BaseURL, APIKey: string(a.Key), Model: a.Model, Profile: string(a.Profile), Window: a.Window, MaxTokens: a.MaxOutput,
		Headers: headers, Secrets: secrets, Extra: a.Extra,
		Connect: a.Limits.Connect, FirstByte: a.Limits.FirstByte, Idle: a.Limits.Idle, Total: a.Limits.Total,
	}
	if !a.plain {
		o.Alias, o.KeyEnv = a.Name, a.KeyEnv
	}
	return o
}

// usable reports whether agents can work with the alias: the environment has all that it needs, and its window is large
// enough.
func (a Alias) usable() bool { return len(a.Missing) == 0 && a.narrow() == nil }

// narrow returns the error of an alias whose window is too small to work with, or nil.
func (a Alias) narrow() error {
	w := a.Window
	if w == 0 && a.Same == "" {
		w = model.WindowOf(a.Options())
	}
	if w == 0 || w >= model.LeastWindow {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "the model alias %s cannot be used: its window is %d tokens, and an agent needs %d", a.Name, w, model.LeastWindow).
		WithHint("enlarge it where the model is served (Ollama: OLLAMA_CONTEXT_LENGTH=32768), and say so here: window: 32768, or AGENTTEAM_WINDOW=32768")
}

// CheckWindows returns the error of the first alias whose window is too small to work with, or nil.
func (c Config) CheckWindows() error {
	for _, a := range c.Aliases() {
		if err := a.narrow(); err != nil {
			return err
		}
	}
	return nil
}

// lacks returns the error of an unusable alias, or nil.
func (a Alias) lacks() error {
	if a.usable() {
		return nil
	}
	if len(a.Missing) == 0 {
		return a.narrow()
	}
	verb := "is"
	if len(a.Missing) > 1 {
		verb = "are"
	}
	return team.Errorf(team.InvalidArgument, "the model alias %s cannot be used: %s %s not set", a.Name, strings.Join(a.Missing, " and "), verb).
		WithHint("set it in the environment of the process")
}

// String returns the alias as people see it, without key and headers.
func (a Alias) String() string {
	if a.Same != "" {
		return "another name of " + a.Same
	}
	s := a.Model + " at " + cmp.Or(maskURL(a.BaseURL), "OpenAI")
	if a.KeyEnv != "" {
		s += ", key in " + a.KeyEnv + " (" + a.Key.String() + ")"
	}
	if len(a.Fallbacks) > 0 {
		s += ", falls back to " + strings.Join(a.Fallbacks, ", ")
	}
	return s
}

// Aliases returns the models in this process's settings, its default first, then in the order of `models:`. The plain
// settings (OPENAI_MODEL and those beside it) make the alias `default`: the only one without `models:`; the last one
// otherwise, if they name a model and no alias of `models:` is called so. An alias may be unusable. The slice is the
// caller's.
func (c Config) Aliases() []Alias {
	all := slices.Clone(c.Models)
	if c.Model != "" && !slices.ContainsFunc(all, named(defaultAlias)) {
		all = append(all, c.plain())
	}
	if i := slices.IndexFunc(all, named(c.DefaultModel)); i > 0 {
		first := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, first)
	}
	return all
}

func named(name string) func(Alias) bool { return func(a Alias) bool { return a.Name == name } }

// plain returns the alias of the plain settings.
func (c Config) plain() Alias {
	extra := maps.Clone(c.ModelExtra)
	set := func(field string, value any) {
		if extra == nil {
			extra = map[string]any{}
		}
		extra[field] = value
	}
	if c.ReasoningEffort != "" {
		set("reasoning_effort", c.ReasoningEffort)
	}
	if c.Temperature != nil {
		set("temperature", *c.Temperature)
	}
	a := Alias{
		Name: defaultAlias, BaseURL: c.BaseURL, KeyEnv: "OPENAI_API_KEY", Key: c.APIKey, Model: c.Model, Profile: Profile(c.Profile),
		Window: c.Window, MaxOutput: c.MaxTokens, Headers: c.ModelHeaders, Extra: extra, Limits: c.ModelLimits, origin: fromDefault,
		plain: true, secrets: slices.Sorted(maps.Keys(c.ModelHeaders)),
	}
	if a.Key == "" && a.BaseURL == "" {
		a.Missing = []string{"OPENAI_API_KEY or OPENAI_BASE_URL"}
	}
	for _, o := range c.origins {
		if o.Name == "model" {
			a.origin = o.Origin
		}
	}
	return a
}

// Lacking returns one error, fit for a line, for each alias that is unusable because the environment lacks what it
// needs.
func (c Config) Lacking() (errs []error) {
	for _, a := range c.Aliases() {
		if err := a.lacks(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// CheckModel returns an [team.InvalidArgument] error that names what is missing, unless at least one alias is usable.
func (c Config) CheckModel() error {
	var missing []string
	for _, a := range c.Aliases() {
		switch {
		case a.usable() && a.Same == "":
			return nil
		case len(c.Models) > 0 && len(a.Missing) > 0:
			missing = append(missing, strings.Join(a.Missing, " and ")+" (for the alias "+a.Name+")")
		}
	}
	if err := c.CheckWindows(); err != nil && len(missing) == 0 {
		return err
	}
	if len(c.Models) > 0 {
		return team.Errorf(team.InvalidArgument, "no model of team.yaml can be used: set %s", strings.Join(missing, ", or "))
	}
	if c.Model == "" {
		missing = append(missing, "OPENAI_MODEL")
	}
	if c.APIKey == "" && c.BaseURL == "" {
		missing = append(missing, "OPENAI_API_KEY or OPENAI_BASE_URL")
	}
	return team.Errorf(team.InvalidArgument, "no model is configured: set %s", strings.Join(missing, ", and ")).
		WithHint("to try a team out without a model, run: teamctl demo")
}

// Routes returns the routes of the usable aliases, which may be none. The default is the first usable one. An unusable
// alias is left out, also as a fallback, and so is a further name of it.
func (c Config) Routes() router.Routes {
	all := c.Aliases()
	byName := map[string]Alias{}
	for _, a := range all {
		byName[a.Name] = a
	}
	// meant follows the names of names; the settings file has no circle of them.
	meant := func(name string) Alias {
		a := byName[name]
		for a.Same != "" {
			a = byName[a.Same]
		}
		return a
	}
	r := router.Routes{Names: map[string]string{}}
	for _, a := range all {
		to := meant(a.Name)
		switch {
		case to.Name == "" || !to.usable():
			continue
		case r.Default == "":
			r.Default = to.Name
		}
		if a.Same != "" {
			r.Names[a.Name] = to.Name
			continue
		}
		route := router.Alias{Name: a.Name, Options: a.Options(), Prices: c.pricesOf(a)}
		for _, f := range a.Fallbacks {
			if f := meant(f); f.Name != "" && f.usable() && !slices.Contains(route.Fallbacks, f.Name) {
				route.Fallbacks = append(route.Fallbacks, f.Name)
			}
		}
		r.Aliases = append(r.Aliases, route)
	}
	return r
}
