package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"agentteam/pkg/config"
)

// right is what a request may do.
type right int

const (
	none right = iota
	reading
	full
)

// tokenParameter is the parameter of a token in an address, where no header can carry it.
const tokenParameter = "token"

// mayAskByAddress reports whether the address may contain the token: for the event streams of /team, whose pages cannot
// send a header.
func mayAskByAddress(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/team/")
}

// way is the way in which a request authenticates.
type way int

const (
	byNothing way = iota
	byToken
	byCookie // which a browser sends by itself, whoever made it ask
)

// right returns the right of a request, by the first of header, address and cookie that it has.
func (g *Gate) right(r *http.Request) (right, way) {
	if header := r.Header.Get("Authorization"); header != "" {
		kind, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(kind, "Bearer") {
			return none, byToken
		}
		return g.bearer(strings.TrimSpace(token)), byToken
	}
	if mayAskByAddress(r) {
		if query := r.URL.Query(); query.Has(tokenParameter) {
			return g.bearer(query.Get(tokenParameter)), byToken
		}
	}
	if cookie, err := r.Cookie(g.cookieName()); err == nil {
		token, n, _ := g.signer(cookie.Value, forCookie, cookieLife)
		if g.ended(n) {
			return none, byCookie
		}
		return g.rightOf(token), byCookie
	}
	return none, byNothing
}

// bearer returns the right of a token.
func (g *Gate) bearer(text string) right {
	for _, token := range g.tokens() {
		if same(text, token) {
			return g.rightOf(token)
		}
	}
	return none
}

// tokens returns the valid tokens.
func (g *Gate) tokens() []config.Secret {
	if g.opt.ReadToken == "" {
		return []config.Secret{g.opt.Token}
	}
	return []config.Secret{g.opt.Token, g.opt.ReadToken}
}

// rightOf returns the right of one of our tokens; none for "".
func (g *Gate) rightOf(token config.Secret) right {
	switch token {
	case "":
		return none
	case g.opt.Token:
		return full
	}
	return reading
}

// same compares in constant time, so that the time reveals neither the secret nor its length.
func same(text string, secret config.Secret) bool {
	a, b := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
