// Package problem writes errors of the API as problem documents of RFC 9457, with the codes of all of agentteam.
package problem

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"regexp"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Document is a problem document of RFC 9457. Its type is always about:blank, so its title is that of the status; Code
// and Detail describe the error.
type Document struct {
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail,omitempty"` // what was wrong and where; one line
	Code   team.Code `json:"code,omitempty"`   // the error code, the same as in teamctl
	Hint   string    `json:"hint,omitempty"`   // what to do; may be empty

	// Instance names the request, as its answer's header X-Request-Id and the log of the process do.
	Instance string `json:"instance,omitempty"`

	Errors []Fault `json:"errors,omitempty"` // all that is wrong with a request that was not as it must be
}

// Fault is one fault of a request.
type Fault struct {
	Location string `json:"location,omitempty"` // such as body.tasks[3].title or query.limit
	Message  string `json:"message"`
}

// Status returns the HTTP status for an error code; 500 for an unknown code.
func Status(c team.Code) int {
	switch c {
	case team.InvalidArgument:
		return http.StatusUnprocessableEntity
	case team.NotFound:
		return http.StatusNotFound
	case team.PermissionDenied:
		return http.StatusForbidden
	case team.Conflict, team.Blocked, team.Busy, team.InvalidState, team.BudgetExceeded:
		return http.StatusConflict
	case team.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Of returns the document of an error. It hides the text of an error without a code, which may contain internal
// details: callers log it. It also hides names in NATS.
func Of(err error) Document {
	code := team.CodeOf(err)
	d := Document{Status: Status(code), Code: code, Hint: subject.Hidden(overHTTP(team.HintOf(err)))}
	d.Title = http.StatusText(d.Status)
	if code != "" {
		d.Detail = subject.Hidden(team.OneLine(err.Error()))
	}
	return d
}

// Write answers with the document of err. Call it before any other write.
func Write(w http.ResponseWriter, err error) { Of(err).Write(w) }

// Write answers with the document; the default title is that of its status.
func (d Document) Write(w http.ResponseWriter) {
	d.Title = cmp.Or(d.Title, http.StatusText(d.Status))
	for name, values := range d.Headers() {
		if w.Header().Get(name) == "" {
			w.Header()[name] = values
		}
	}
	if id := w.Header().Get(requestIDHeader); id != "" {
		d.Instance = instance + id
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(d.Status)
	_ = json.NewEncoder(w).Encode(d) // a client that has left needs none
}

// Headers returns the headers for the document: after 503 the time of the next try.
func (d Document) Headers() http.Header {
	if d.Status == http.StatusServiceUnavailable {
		return http.Header{"Retry-After": {retryAfter}}
	}
	return nil
}

const retryAfter = "2" // seconds

// requestIDHeader is the header that names a request.
const requestIDHeader = "X-Request-Id"

// instance begins the name of a request as a URI.
const instance = "urn:agentteam:request:"

type requestKey struct{}

// Named returns a handler that names each request for next: by the client's requestIDHeader, if it is valid, else by a
// new one. The answer has it in its header.
func Named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !requestID.MatchString(id) {
			id = rand.Text()
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, id)))
	})
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// Request returns the name of the request of this context; "" if it has none.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// In returns the document as an answer to the request of this context.
func (d Document) In(ctx context.Context) Document {
	if id := Request(ctx); id != "" {
		d.Instance = instance + id
	}
	return d
}
