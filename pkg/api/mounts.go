package api

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"agentteam/pkg/api/agui"
	"agentteam/pkg/api/problem"
	"agentteam/pkg/api/teamwire"
	"agentteam/pkg/api/v1"
	"agentteam/pkg/api/web"
	"agentteam/pkg/team"
)

// mount is a handler and its paths, in the pattern language of [http.ServeMux].
type mount struct {
	paths []string
	make  func() (http.Handler, error)
}

// mounts returns everything that the API serves. The handlers check no tokens, origins and limits.
func (s *Server) mounts() []mount {
	return []mount{
		{[]string{"/{$}", "/health", "/team/", "/files/"}, s.teamwire},
		{[]string{web.Assets}, s.web},
		{[]string{agui.Path}, s.agui},
		{[]string{"/v1/"}, s.v1},
	}
}

func (s *Server) mux() (http.Handler, error) {
	mux := http.NewServeMux()
	for _, m := range s.mounts() {
		h, err := m.make()
		if err != nil {
			return nil, err
		}
		for _, pattern := range m.paths {
			mux.Handle(pattern, named(h))
		}
	}
	for _, pattern := range []string{"/", "/team", "/files", "/v1"} { // not by a redirect to what is below
		mux.HandleFunc(pattern, nothing)
	}
	return direct(mux), nil
}

func nothing(w http.ResponseWriter, _ *http.Request) {
	problem.Document{Status: http.StatusNotFound, Code: team.NotFound, Detail: "the API has nothing at this path", Hint: "/ tells what there is"}.Write(w)
}

// direct answers for paths with empty parts, or with . or .. among them. A mux would redirect the client, and a client
// that followed could delete a team where it meant a member.
func direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.EscapedPath()
		if clean := path.Clean(asked); clean != asked && clean+"/" != asked && asked != "*" {
			nothing(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// named records the route of a request's handler; of several muxes in a row, that of the last one.
func named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			_, route, found := strings.Cut(r.Pattern, " ")
			if !found {
				route = r.Pattern
			}
			w.(*writer).route = route
		}()
		h.ServeHTTP(w, r)
	})
}

func (s *Server) web() (http.Handler, error) { return compressed(web.New(http.HandlerFunc(nothing))) }

func (s *Server) v1() (http.Handler, error) {
	h, err := v1.New(v1.Options{Client: s.opt.Client, Hub: s.hub, NewTeam: s.opt.NewTeam, Log: s.opt.Log})
	if err != nil {
		return nil, err
	}
	return compressed(h)
}

// teamwire serves also /: the description of the service, or the page for browsers.
func (s *Server) teamwire() (http.Handler, error) {
	secrets := slices.DeleteFunc([]string{s.opt.TokenFile, s.opt.ReadTokenFile, s.opt.Key}, func(name string) bool { return name == "" })
	wire, err := teamwire.New(teamwire.Options{
		Client: s.opt.Client, Hub: s.hub, NewTeam: s.opt.NewTeam, Workspace: s.opt.Workspace, Private: secrets, Log: s.opt.Log,
	})
	if err != nil {
		return nil, err
	}
	page, err := s.web()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html") {
			page.ServeHTTP(w, r)
			return
		}
		wire.ServeHTTP(w, r)
	}), err
}

func (s *Server) agui() (http.Handler, error) {
	return agui.New(agui.Options{Client: s.opt.Client, Hub: s.hub, Log: s.opt.Log})
}
