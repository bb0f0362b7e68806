package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"agentteam/pkg/team"
)

// dialect is the way to call one endpoint: its profile, and the lessons of its errors. Safe for concurrent use.
type dialect struct {
	host   string // of the endpoint
	query  string // of each request beside that of the base URL, without the ?
	model  string // asked unless a request names another
	header http.Header
	set    Limits // by the settings; 0: not set

	begun beginnings

	shared Lessons
	key    string // of its endpoint in shared

	mu   sync.Mutex
	base *endpointSettings // of the settings, without any lesson
	now  *endpointSettings // what it holds never changes; to learn is to replace it
	seen string            // the lesson of shared that now has
}

// endpointSettings is a profile at one moment, ready for use. Two encodings are equal if they were made with the same settings.
type endpointSettings struct {
	profile
	names *regexp.Regexp // profile.Names
}

func speak(p profile) *endpointSettings {
	return &endpointSettings{profile: p, names: regexp.MustCompile(p.Names)}
}

// fixed are the fields of a body that only this package sets.
var fixed = []string{
	"model", "messages", "input", "instructions", "system", "tools", "stream",
	"max_tokens", "max_completion_tokens", "max_output_tokens", // Options.MaxTokens, in the endpoint's own word
}

// OwnFields returns the fields of a request's body that Options.Extra must not have, since each request sets them. The
// slice is the caller's.
func OwnFields() []string { return slices.Clone(fixed) }

// newDialect returns the dialect of the endpoint in o. Errors: InvalidArgument for an unknown profile, and for a
// reserved or malformed field in Options.Extra.
func newDialect(o Options) (*dialect, error) {
	base, err := url.Parse(o.BaseURL)
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "the base URL of the model endpoint is not an address") // it may hold a password
	}
	p, err := profileOf(o.Profile, base)
	if err != nil {
		return nil, err
	}
	extra := map[string]json.RawMessage{}
	for k, v := range o.Extra {
		if extra[k], err = json.Marshal(v); err != nil {
			return nil, team.Errorf(team.InvalidArgument, "the extra field %s of the model's requests is no JSON: %w", k, err)
		}
	}
	for _, k := range fixed {
		if _, ok := extra[k]; ok {
			return nil, team.Errorf(team.InvalidArgument, "%s is no extra field: each request has its own", k).
				WithHint("extra fields are such as reasoning_effort or temperature")
		}
	}
	d := &dialect{
		host: base.Host, query: missingIn(base, p.Query), model: o.Model,
		header: http.Header{}, set: Limits{Window: o.Window, MaxOutput: o.MaxTokens},
		shared: o.Lessons, key: lessonKey(bare(base), o.Model, p.Name), base: speak(p.with(extra)),
	}
	d.now = d.base
	for _, more := range []map[string]string{p.Headers, o.Headers} {
		for k, v := range more {
			d.header.Set(k, v)
		}
	}
	switch {
	case o.APIKey == "" || d.header.Get("Authorization") != "" || d.header.Get("api-key") != "":
		// No key, or the settings' headers carry one in their own way.
	case p.KeyHeader == "":
		d.header.Set("Authorization", "Bearer "+o.APIKey)
	default:
		d.header.Set(p.KeyHeader, o.APIKey)
	}
	return d, nil
}

// missingIn returns the parameters of query that base does not have.
func missingIn(base *url.URL, query string) string {
	values, _ := url.ParseQuery(query) // of the table of profiles
	for k := range base.Query() {
		values.Del(k)
	}
	return values.Encode()
}

// call is an encoded request.
type call struct {
	path   string // after the base URL; its query, if it has one, comes after that one's own
	header http.Header
	body   []byte
	bound  string   // the digest of the prompt, with which an answer's thoughts are bound to it; "": they are not
	stream *carrier // through which go-openai reads the answer; nil: it has no part in it
}

// encode returns the request for the next turn. Errors: InvalidArgument for an invalid conversation.
//
// The limit of the answer is req's, else that of the settings, the model or the profile, lowered to the estimated rest
// of the window. It is never below 256: the endpoint refuses a prompt that leaves less.
func (d *dialect) encode(req Request) (call, error) {
	e := d.encoding(req)
	q, err := e.call(req)
	switch {
	case errors.Is(err, openai.ErrReasoningToolsRequireResponses) && d.learn(apiError{message: "v1/responses"}):
		return d.encode(req) // what its endpoint would answer
	case err != nil:
		return call{}, err
	}
	q.path, q.header = e.wire.path(), d.header.Clone()
	if d.query != "" {
		q.path += "?" + d.query
	}
	return q, nil
}

// reader returns the reader of the answer to req. onDelta gets the text as it arrives.
func (d *dialect) reader(req Request, onDelta func(string)) turnReader {
	switch d.settings(req.unlearnt).wireFor(cmp.Or(req.Model, d.model)) {
	case responses:
		return newResponsesReader(req, onDelta)
	case messages:
		return newMessagesReader(req, onDelta)
	}
	return newChatReader(req, onDelta)
}

// learn adapts the dialect to the error of a refused request, and reports whether the same request would now be encoded
// differently: then it is worth one more try. Templates that run at the server refuse with 500, so not only 400 and 422
// teach.
func (d *dialect) learn(e apiError) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := adapted(d.current().profile, e)
	if ok {
		d.replace(p)
	}
	return ok
}

// told records the window that the endpoint has named, in tokens.
func (d *dialect) told(window int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.current().profile; p.Window != window {
		p.Window = window
		d.replace(p)
	}
}

// limits returns the limits of the endpoint, as far as known: from the settings, else its errors, else the profile,
// else the model's name.
func (d *dialect) limits() Limits { return d.limitsOf(d.model) }

// patches reports whether edits of files are best made by patches.
func (d *dialect) patches() bool { return named(d.base.Patches, d.model) }

func (d *dialect) limitsOf(model string) Limits {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, now := knownLimits(model), d.current()
	l := Limits{
		Window:    cmp.Or(d.set.Window, now.Window, known.Window),
		MaxOutput: now.MaxOutput,
	}
	if known.MaxOutput > 0 {
		l.MaxOutput = min(l.MaxOutput, known.MaxOutput)
	}
	l.MaxOutput = cmp.Or(d.set.MaxOutput, l.MaxOutput)
	if now.MostOutput > 0 {
		l.MaxOutput = min(l.MaxOutput, now.MostOutput)
	}
	return l
}

// origin names the endpoint and the model that wrote a message with that Origin. The model is the requested one, not
// the one in the answer.
func (d *dialect) origin(model string) string { return d.host + " " + model }

// settings returns the profile of a request: with the lessons or, if unlearnt, without.
func (d *dialect) settings(unlearnt bool) *endpointSettings {
	d.mu.Lock()
	defer d.mu.Unlock()
	if unlearnt {
		return d.base
	}
	return d.current()
}

// apiError is an error that an endpoint reports, by status or in the stream.
type apiError struct {
	status  int    // of the answer; one inside a stream may name another
	code    string // the endpoint's word for it, such as context_length_exceeded
	kind    string // its type, such as invalid_request_error
	message string
	page    bool // it is a page for people, not one of our protocols

	window     int           // tokens, if a field of its own names it; else 0
	retryAfter time.Duration // what it asks for; else 0
}

// turnReader builds one turn from the events of a stream. Use it from one goroutine.
type turnReader interface {
	// event reads one server-sent event. It returns an error if the stream is broken, and an *apiError if the event
	// reports one.
	event(name string, data []byte) error
	// finished reports whether the finish reason has arrived: then the turn is complete, whatever breaks off later.
	finished() bool
	// over finishes a whole turn that ended without a finish reason.
	over()
	// reply returns the finished turn; its Usage is that of used.
	reply() Reply
	// used returns the tokens that the endpoint has counted so far; zero if it has reported none.
	used() Usage
	// size returns the length in bytes of the model's output so far.
	size() int
}

func (e *apiError) Error() string { return e.message }
