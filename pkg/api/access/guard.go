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

// The methods and headers that pages of configured origins may use.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Last-Event-ID, Idempotency-Key, If-Match, If-None-Match, X-Request-Id"
	corsShown   = "ETag, Location, Retry-After, X-Request-Id"
	corsMaxAge  = "600" // seconds
)

// policy forbids a page of the API to load or send anything. A handler of a page may set another.
const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Guard returns a handler that passes authorized requests to next, and answers others with a problem document: 421 for
// another Host, 403 for another Origin and for a change with a read-only token, 401 without a valid token, 415 for a
// change that is not JSON; only programs may omit the type, where there is no body. GET /health without a body needs no
// token. GET /login takes a one-time code (see [NewCode]), and answers with a cookie, which /logout ends.
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

// By returns the name of the token with which [Gate.Guard] passed the request of this context: full, reading, or "" for
// none. A cookie counts as the token that signed it.
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

// unfit returns the refusal of a request from a permitted place; nil if it is not refused.
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

// secure sets the headers of all answers. Texts of models stay plain text.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Origin")
}

// shared sets the CORS headers for a page of a configured origin. It reports whether the request was a preflight.
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

// isJSON reports whether the body of a request is declared as JSON. A form of a page elsewhere cannot declare that
// without a preflight.
func isJSON(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// notLoggedIn is for people whose browser has no cookie, or an expired one.
const notLoggedIn = "This browser is not logged in to agentteam, or not any more: %s.\n\n" +
	"Run this where the cluster is, and open the address that it prints:\n\n    teamctl web\n"

const needsToken = "send Authorization: Bearer TOKEN; in a browser open the address that teamctl web prints"

func unauthorized(detail, hint string) *problem.Document {
	return &problem.Document{Status: http.StatusUnauthorized, Code: team.PermissionDenied, Detail: detail, Hint: hint}
}

func forbidden(detail, hint string) *problem.Document {
	return &problem.Document{Status: http.StatusForbidden, Code: team.PermissionDenied, Detail: detail, Hint: hint}
}

// refuse answers with a problem document. It does not wait for the rest of the request: its body may never end.
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

// withoutToken returns r without the token in its address, for handlers and logs.
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
