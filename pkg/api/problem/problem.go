// Package problem writes errors as the API's clients get them: problem documents of
// RFC 9457, with the codes that all of agentteam uses.
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

// Document is a problem document of RFC 9457. Its type is always about:blank, so the
// title is that of the status; what is wrong is told by Code and Detail.
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

// Fault is one thing that is wrong with a request.
type Fault struct {
	Location string `json:"location,omitempty"` // such as body.tasks[3].title or query.limit
	Message  string `json:"message"`
}

// Status returns the HTTP status for an error code; 500 for one that is none of ours.
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

// Of returns the document of an error. What is no error of ours is not told to clients,
// since it may name what is none of their business: it is to be logged. Nor are names in NATS.
func Of(err error) Document {
	code := team.CodeOf(err)
	d := Document{Status: Status(code), Code: code, Hint: subject.Hidden(overHTTP(team.HintOf(err)))}
	d.Title = http.StatusText(d.Status)
	if code != "" {
		d.Detail = subject.Hidden(team.OneLine(err.Error()))
	}
	return d
}

// Write answers with the document of err. It is called before anything else is written.
func Write(w http.ResponseWriter, err error) { Of(err).Write(w) }

// Write answers with the document, whose title, if it has none, is that of its status.
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

// Headers are those of the answer that the document needs: after 503 that is when to try again.
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

// Named returns a handler that names each request for next: by the requestIDHeader of the client, if that is one,
// else by a new one. It is in the header of the answer.
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

// Request is the name of the request whose context this is; "" if it has none.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// In is the document as an answer to the request whose context this is.
func (d Document) In(ctx context.Context) Document {
	if id := Request(ctx); id != "" {
		d.Instance = instance + id
	}
	return d
}
