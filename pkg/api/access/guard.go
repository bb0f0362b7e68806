package access

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/team"
)

// What pages elsewhere may send and see, if their origin is among those of the settings.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Last-Event-ID, Idempotency-Key, If-Match, If-None-Match, X-Request-Id"
	corsShown   = "ETag, Location, Retry-After, X-Request-Id"
	corsMaxAge  = "600" // seconds
)

// policy lets a page of the API load and send nothing. A handler that serves a page may
// set one of its own.
const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Guard returns a handler that passes on to next what may be asked, and answers the rest
// with a problem document: 421 for another Host, 403 for another Origin and for what a
// read-only token must not do, 401 without a token that holds, 415 for what changes
// something and is not JSON; only programs may leave that out where there is no body. GET
// /health without a body needs no token: nobody reads much for those who have none. GET
// /login takes a one-time code (see [NewCode]), and answers with a cookie, which /logout ends.
func (g *Gate) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		configured, no := g.from(r)
		switch {
		case no != nil:
			refuse(w, r, no)
			return
		case configured && g.shared(w, r):
			return
		case r.URL.Path == "/health" && reads(r) && r.ContentLength == 0:
			next.ServeHTTP(w, r)
			return
		case !configured && r.Header.Get("Sec-Fetch-Site") == "cross-site" && followsLink(r):
			next.ServeHTTP(w, r)
			return
		case r.URL.Path == "/login" && r.Method == http.MethodGet:
			g.login(w, r)
			return
		case r.URL.Path == "/logout" && (r.Method == http.MethodGet || r.Method == http.MethodPost):
			g.logout(w, r)
			return
		}
		if no := g.unfit(r); no != nil {
			refuse(w, r, no)
			return
		}
		right, _ := g.right(r)
		r = r.WithContext(context.WithValue(r.Context(), rightKey{}, right))
		next.ServeHTTP(w, withoutToken(r))
	})
}

// rightKey is the key of a request's right in its context.
type rightKey struct{}

// By names the token by which [Gate.Guard] let a request through, whose context this is: full,
// reading, or "" without one. A cookie counts as the token that signed it.
func By(ctx context.Context) string {
	switch ctx.Value(rightKey{}) {
	case full:
		return "full"
	case reading:
		return Reading
	}
	return ""
}

// Reading is the name of the token that lets its bearer read only.
const Reading = "reading"

// unfit is why a request that comes from where it may is refused; nil if it is not.
func (g *Gate) unfit(r *http.Request) *problem.Document {
	switch right, way := g.right(r); {
	case right == none && way != byNothing:
		return unauthorized("the token or the cookie does not hold here", needsToken)
	case right == none:
		return unauthorized("the API needs a token", needsToken)
	case right == reading && !reads(r):
		return forbidden("this token is for reading only", "use the full token")
	case !reads(r) && r.Method != http.MethodOptions && (r.ContentLength != 0 || way == byCookie) && !isJSON(r):
		return &problem.Document{Status: http.StatusUnsupportedMediaType, Code: team.InvalidArgument,
			Detail: "what changes something must be sent as JSON", Hint: "send Content-Type: application/json"}
	}
	return nil
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// secure sets what all answers have in common. Texts of models are never more than text.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Origin")
}

// shared tells a page of a configured origin what it may do. It reports whether that was
// all that was asked (a preflight).
func (g *Gate) shared(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsShown)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// isJSON reports whether a request says that its body is JSON. A form of a page elsewhere
// cannot: it would have to ask first.
func isJSON(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// notLoggedIn is for people whose browser has no cookie, or one that holds no more.
const notLoggedIn = "This browser is not logged in to agentteam, or not any more: %s.\n\n" +
	"Run this where the cluster is, and open the address that it prints:\n\n    teamctl web\n"

const needsToken = "send Authorization: Bearer TOKEN; in a browser open the address that teamctl web prints"

func unauthorized(detail, hint string) *problem.Document {
	return &problem.Document{Status: http.StatusUnauthorized, Code: team.PermissionDenied, Detail: detail, Hint: hint}
}

func forbidden(detail, hint string) *problem.Document {
	return &problem.Document{Status: http.StatusForbidden, Code: team.PermissionDenied, Detail: detail, Hint: hint}
}

// refuse answers with a problem document. What is left of the request is not waited for:
// its body may never end.
func refuse(w http.ResponseWriter, r *http.Request, d *problem.Document) {
	if d.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="agentteam"`)
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(d.Status)
			_, _ = fmt.Fprintf(w, notLoggedIn, d.Detail) // a browser that has left needs none
			return
		}
	}
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	d.Write(w)
}

// withoutToken is r without the token in its address, which handlers and logs need not
// know.
func withoutToken(r *http.Request) *http.Request {
	if !mayAskByAddress(r) {
		return r
	}
	query := r.URL.Query()
	if !query.Has(tokenParameter) {
		return r
	}
	query.Del(tokenParameter)
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	r.RequestURI = r.URL.RequestURI()
	return r
}
