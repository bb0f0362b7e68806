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

// tokenParameter is the token in an address, where nothing else can carry it.
const tokenParameter = "token"

// mayAskByAddress reports whether the token may stand in the address: for the event
// streams of /team, whose pages cannot send a header.
func mayAskByAddress(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/team/")
}

// way is how a request says who asks.
type way int

const (
	byNothing way = iota
	byToken
	byCookie // which a browser sends by itself, whoever made it ask
)

// right tells what a request may do, by the first of header, address and cookie that it
// has.
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

// bearer is the right of whoever bears this text as a token.
func (g *Gate) bearer(text string) right {
	for _, token := range g.tokens() {
		if same(text, token) {
			return g.rightOf(token)
		}
	}
	return none
}

// tokens are those that hold.
func (g *Gate) tokens() []config.Secret {
	if g.opt.ReadToken == "" {
		return []config.Secret{g.opt.Token}
	}
	return []config.Secret{g.opt.Token, g.opt.ReadToken}
}

// rightOf is the right that a token of ours gives; none without one.
func (g *Gate) rightOf(token config.Secret) right {
	switch token {
	case "":
		return none
	case g.opt.Token:
		return full
	}
	return reading
}

// same compares in a time that tells nothing of the secret, nor of its length.
func same(text string, secret config.Secret) bool {
	a, b := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
