package problem

import (
	"net/http"

	"agentteam/pkg/team"
)

// Mux returns mux with problem documents for unknown paths and methods. hint names the known ones.
func Mux(mux *http.ServeMux, hint string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, allow := Refused(mux, r)
		switch status {
		case 0:
			mux.ServeHTTP(w, r)
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", allow)
			Document{Status: status, Code: team.InvalidArgument, Detail: "this path does not take the method " + team.Clean(r.Method, 20), Hint: "it takes " + allow}.Write(w)
		default:
			Document{Status: http.StatusNotFound, Code: team.NotFound, Detail: "the API has nothing at this path", Hint: hint}.Write(w)
		}
	})
}

// Refused returns the status with which mux refuses r, and, if that is 405, the allowed methods; 0 if it has a handler
// for r.
func Refused(mux *http.ServeMux, r *http.Request) (status int, allow string) {
	h, pattern := mux.Handler(r)
	if pattern != "" {
		return 0, ""
	}
	said := head{http.Header{}, http.StatusNotFound}
	h.ServeHTTP(&said, r)
	return said.status, said.header.Get("Allow")
}

// head keeps only the head of an answer.
type head struct {
	header http.Header
	status int
}

func (h *head) Header() http.Header         { return h.header }
func (h *head) WriteHeader(status int)      { h.status = status }
func (h *head) Write(p []byte) (int, error) { return len(p), nil }
