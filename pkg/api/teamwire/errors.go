package teamwire

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// detail is the document of an error.
type detail struct {
	Detail string `json:"detail"`
}

// fault is one fault of a request.
type fault struct {
	Loc  []any  `json:"loc"` // "body" or "query", then the field; of a list, also the place in it
	Msg  string `json:"msg"`
	Type string `json:"type"`
}

// invalid is the error of a request with missing fields or wrong types.
type invalid []fault

func (v invalid) Error() string {
	texts := make([]string, len(v))
	for i, f := range v {
		texts[i] = f.Msg
	}
	return strings.Join(texts, "; ")
}

// fail answers with an error. It logs an error without a code and does not send its text.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	err = late(r, err)
	if bad, ok := errors.AsType[invalid](err); ok {
		writeJSON(w, http.StatusUnprocessableEntity, struct {
			Detail invalid `json:"detail"`
		}{bad})
		return
	}
	if team.CodeOf(err) == "" {
		s.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	writeJSON(w, problem.Status(team.CodeOf(err)), detail{textOf(err)})
}

// errStopping ends the requests of a process that stops. Without it their answer would be an empty 200.
var errStopping = team.Errorf(team.Unavailable, "This process is stopping; the team is not")

// late returns the error of a request that has taken too long, or has lost its process or its client; it returns any
// other err unchanged.
func late(r *http.Request, err error) error {
	switch {
	case r.Context().Err() != nil, errors.Is(err, stream.ErrClosed):
		return errStopping
	case errors.Is(err, context.DeadlineExceeded):
		return team.Errorf(team.Unavailable, "The cluster did not answer in time")
	}
	return err
}

// textOf returns the text of an error for clients, as in problem documents. The hints of our errors name commands of
// teamctl, which are useless to a page.
func textOf(err error) string {
	if team.CodeOf(err) == "" {
		return http.StatusText(http.StatusInternalServerError)
	}
	return problem.Of(err).Detail
}

// writeJSON answers with a document.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	data, _ := codec.Plain(v)          // of types that all can be
	_, _ = w.Write(append(data, '\n')) // a client that has left needs none
}
