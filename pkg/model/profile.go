package model

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// profile describes a kind of endpoint. It is plain data: every difference between endpoints is a field here and
// nowhere a branch, so a new endpoint is a new entry in profiles.go.
//
// The lessons of an endpoint's errors change the fields that have a name in JSON, and no others: see [Lessons].
//
// In a field that lists models, an entry names every model whose name contains it at the beginning of a word: "gpt-5"
// names gpt-5, openai/gpt-5-mini and my-gpt-5, not xgpt-5.
type profile struct {
	Name string `json:"-"`

	// Hosts tells such an endpoint by its base URL. An entry is a host, in which *
	// stands for any text, a host and the beginning of the path, or a port as in
	// ":11434".
	Hosts []string `json:"-"`

	Wire            protocol          // how it is asked
	ResponsesModels []string          `json:"-"` // models that are asked over Responses, whatever Wire says
	KeyHeader       string            `json:"-"` // the header that carries the key; "": Authorization, as a bearer
	Query           string            `json:"-"` // of each request, without the ?; what the base URL's own has goes first
	Headers         map[string]string `json:"-"` // sent with each request

	// Extra are fields of each request's body; one that has a field's name here
	// replaces it.
	Extra map[string]json.RawMessage `json:"-"`

	Window       int      // tokens of prompt and answer together, whatever the model; 0: as the model has it
	MaxOutput    int      `json:"-"` // limit of an answer in tokens, unless a setting or the model has another
	MostOutput   int      // the highest limit that is taken; 0: not known
	LimitField   string   // the field of a chat completion that carries the limit
	LimitRenamed []string // models whose limit is max_completion_tokens, whatever LimitField says
	AskUsage     bool     `json:"-"` // a stream tells its usage only if stream_options asks for it

	CacheMarks  cacheMarks // how the endpoint learns what to cache
	CacheModels []string   `json:"-"` // the models that want the marks; others get none

	SystemRole string        // role of the leading message
	EmptyTurn  string        // text of an assistant's turn that has neither text nor calls; "": the turn is left out
	WithCalls  textWithCalls // what stands as content beside calls if the turn has no text
	MergeUsers bool          // user messages in a row are sent as one
	AfterTool  string        // what the assistant says between a tool's result and a user; "": nothing
	BeforeTurn string        // what the user says before a turn that follows neither user nor tool; "": nothing
	Images     bool          // images are sent; else their reference stands in their place, as text

	// Echo are the fields of an earlier answer, and of its calls, that are sent back
	// to the model that gave it; "*" is any. Reasoning is among them where the model
	// goes on from it.
	Echo []string
	// Drop are fields that are never sent, in the body, a message or a call.
	Drop []string
	// Always is the field of Echo that every turn of the assistant must have; a turn
	// without one gets an empty text. "": none.
	Always string
	// Foreign are fields of the first call of a turn that another model gave.
	Foreign map[string]json.RawMessage `json:"-"`

	Patches []string `json:"-"` // models that edit files best by patches

	CallIDs callIDs // the form of the ids of calls
	Names   string  `json:"-"` // regular expression that the name of a call must fit; one that does not is mapped

	SchemaDrop    []string // keywords taken out of the schemas of arguments
	SchemaOneType bool     // a type must be one word: of ["null", "x"] x stays
	SchemaFull    bool     // an object without properties is refused: such an argument is left out
}

// protocol is a wire protocol of model calls.
type protocol string

// The protocols.
const (
	chat      protocol = "chat"      // chat completions
	responses protocol = "responses" // OpenAI's Responses, without state at the server
	messages  protocol = "messages"  // Anthropic's Messages
)

// textWithCalls is the content of a turn that has calls and no text.
type textWithCalls string

// The kinds of beside.
const (
	emptyText textWithCalls = "empty" // ""
	null      textWithCalls = "null"
	absent    textWithCalls = "absent" // no such key
)

// cacheMarks is a way to mark cacheable parts for an endpoint. Most need none.
type cacheMarks string

// The kinds of cacheMarks.
const (
	noMarks  cacheMarks = ""
	onBlocks cacheMarks = "blocks" // on the system message, the last tool, and the last two messages that are not the assistant's
	onTop    cacheMarks = "top"    // one field of the body
)

// callIDs is the form of the ids of calls.
type callIDs string

// The forms. Ids of another form are mapped, the same id always to the same one.
const (
	anyID   callIDs = ""
	shortID callIDs = "short" // letters, digits, _ and -, at most 40
	nineID  callIDs = "nine"  // nine letters and digits
)

// Profiles returns the names of all profiles, sorted.
func Profiles() []string {
	var names []string
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// profileOf returns the profile of that name or, if name is empty, the first whose Hosts match the base URL; unknown if
// none does. Errors: InvalidArgument for an unknown name.
func profileOf(name string, base *url.URL) (profile, error) {
	fits := func(p profile) bool { return p.Name == name }
	if name == "" {
		fits = func(p profile) bool { return p.serves(base) || p.Name == unknownEndpoint }
	}
	i := slices.IndexFunc(profiles, fits) // unknown is the last
	if i < 0 {
		return profile{}, team.Errorf(team.InvalidArgument, "no profile is named %q", name).
			WithHint("profiles are %s; without one it is found by the base URL", strings.Join(Profiles(), ", "))
	}
	return profiles[i], nil
}

// serves reports whether one of p's Hosts matches the base URL.
func (p profile) serves(base *url.URL) bool {
	return slices.ContainsFunc(p.Hosts, func(entry string) bool {
		host, dir, _ := strings.Cut(entry, "/")
		if port, ok := strings.CutPrefix(host, ":"); ok {
			return base.Port() == port
		}
		ok, _ := path.Match(host, strings.ToLower(base.Hostname()))
		return ok && strings.HasPrefix(strings.TrimPrefix(base.Path, "/"), dir)
	})
}

// wireFor returns the protocol of the model.
func (p profile) wireFor(model string) protocol {
	if named(p.ResponsesModels, model) {
		return responses
	}
	return p.Wire
}

// limitFieldFor returns the field that carries the limit of the model's answer.
func (p profile) limitFieldFor(model string) string {
	if named(p.LimitRenamed, model) {
		return "max_completion_tokens"
	}
	return p.LimitField
}

// marksFor returns the cache marks of the model.
func (p profile) marksFor(model string) cacheMarks {
	if named(p.CacheModels, model) {
		return p.CacheMarks
	}
	return noMarks
}

// echoes reports whether a field of an earlier answer is sent back.
func (p profile) echoes(field string) bool {
	if field == answerBlocks || field == answersTo { // the Messages wire has its own way
		return false
	}
	return !slices.Contains(p.Drop, field) && (slices.Contains(p.Echo, field) || slices.Contains(p.Echo, "*"))
}

// with returns p with further fields for each request's body.
func (p profile) with(extra map[string]json.RawMessage) profile {
	whole := maps.Clone(p.Extra)
	if whole == nil {
		whole = map[string]json.RawMessage{}
	}
	maps.Copy(whole, extra)
	p.Extra = whole
	return p
}

// named reports whether one of the entries names the model; see [profile].
func named(entries []string, model string) bool {
	return slices.ContainsFunc(entries, func(e string) bool { return names(e, model) })
}

// names reports whether entry occurs in the model's name at the beginning of a word.
func names(entry, model string) bool {
	model = strings.ToLower(model)
	for i := 0; i+len(entry) <= len(model); i++ {
		if (i == 0 || strings.IndexByte("/.:@-_ ", model[i-1]) >= 0) && strings.HasPrefix(model[i:], entry) {
			return true
		}
	}
	return false
}
