package model

import (
	"net/http"
	"time"
)

// dialect is how one endpoint wants to be spoken to: its profile, and what its
// answers have taught since. Safe for concurrent use.
type dialect struct{}

// newDialect returns the dialect of the endpoint in o. Errors: InvalidArgument for
// an unknown profile.
func newDialect(o Options) (*dialect, error) { return &dialect{}, nil }

// call is a request, encoded.
type call struct {
	path   string // with the query, after the base URL
	header http.Header
	body   []byte
}

// encode returns the body that asks for the next turn. Errors: InvalidArgument for a
// conversation that is none.
func (d *dialect) encode(req Request) (call, error) {
	body, err := encode(req)
	return call{path: "/chat/completions", body: body}, err
}

// reader returns what puts the answer to req together. onDelta gets the text as it
// comes.
func (d *dialect) reader(req Request, onDelta func(string)) turnReader {
	return newChatReader(req, onDelta)
}

// learn takes in why an endpoint refused a request, and reports whether the same
// request would now be encoded in another way: then it is worth one more try.
func (d *dialect) learn(e apiError) bool { return false }

// told takes in the window, in tokens, that the endpoint named in an error.
func (d *dialect) told(window int) {}

// origin names the endpoint and the model, for the Origin of what they write.
func (d *dialect) origin(model string) string { return "" }

// limits is what the endpoint takes and gives, as far as it is known.
func (d *dialect) limits() Limits { return Limits{} }

// apiError is an error as an endpoint tells it, by status or in the stream.
type apiError struct {
	status  int    // of the answer; one inside a stream may name another
	code    string // the endpoint's word for it, such as context_length_exceeded
	kind    string // its type, such as invalid_request_error
	message string

	window     int           // tokens, if a field of its own names it; else 0
	retryAfter time.Duration // what it asks for; else 0
}

// turnReader puts one turn together from the events of a stream. Use it from one
// goroutine.
type turnReader interface {
	// event takes one server-sent event. An error means that the stream is broken, or
	// that it reports an error, which then is an *apiError.
	event(name string, data []byte) error
	// finished reports whether the endpoint has said why it stopped: then the turn is
	// complete, whatever breaks off after it.
	finished() bool
	// reply returns the finished turn; its Usage is zero if none was told.
	reply() Reply
	// size is the length in bytes of all that the model wrote so far.
	size() int
}

func (e *apiError) Error() string { return e.message }
