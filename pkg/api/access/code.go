package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net/http"
	"strings"
	"time"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

const (
	// codeLife is how long a one-time code may be exchanged for a cookie.
	codeLife = time.Minute

	// cookieLife is how long a browser stays logged in.
	cookieLife = 12 * time.Hour

	// slack is how far the clock of the machine that makes a code may be ahead of ours.
	slack = time.Minute
)

// use is the purpose of a signature, so that it is not accepted for another.
type use string

const (
	forCode   use = "agentteam code"
	forCookie use = "agentteam cookie"
	forName   use = "agentteam cookie name"
)

type nonce [16]byte

// A signed text is base64 of a nonce, its expiry time, and a MAC of both. The numbers are the offsets of its parts, and
// its length.
const (
	expiryAt = len(nonce{})
	macAt    = expiryAt + 8
	signed   = macAt + sha256.Size
)

// NewCode returns a one-time code: its bearer opens /login?code=CODE within [codeLife]. It needs only the token, no
// process of the API.
func NewCode(token config.Secret, now time.Time) string {
	return sign(token, forCode, now.Add(codeLife))
}

// sign returns a text that only an owner of the token can make.
func sign(token config.Secret, u use, expires time.Time) string {
	text := make([]byte, macAt, signed)
	rand.Read(text[:expiryAt])
	binary.BigEndian.PutUint64(text[expiryAt:], uint64(expires.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(text, mac(token, u, text)...))
}

func mac(token config.Secret, u use, text []byte) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte(u))
	h.Write([]byte{0})
	h.Write(text)
	return h.Sum(nil)
}

// check returns the nonce and the expiry of a text that the token has signed for this use. It does not check the time.
func check(token config.Secret, u use, text string) (n nonce, expires time.Time, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != signed || token == "" || !hmac.Equal(raw[macAt:], mac(token, u, raw[:macAt])) {
		return n, expires, false
	}
	copy(n[:], raw)
	return n, time.Unix(int64(binary.BigEndian.Uint64(raw[expiryAt:])), 0), true
}

// signer returns the token that signed text for this use, "" if none of ours did, or it has expired. A text whose life
// is longer than life is not ours.
func (g *Gate) signer(text string, u use, life time.Duration) (token config.Secret, n nonce, expires time.Time) {
	for _, token := range g.tokens() {
		n, expires, ok := check(token, u, text)
		if left := expires.Sub(g.opt.Now()); ok && left > 0 && left <= life+slack {
			return token, n, expires
		}
	}
	return "", n, expires
}

// cookieName returns a name for each cluster: browsers do not distinguish the ports of a machine.
func (g *Gate) cookieName() string {
	return "agentteam_" + hex.EncodeToString(mac(g.opt.Token, forName, nil)[:4])
}

// ahead reports whether a browser prefetches.
func ahead(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") || r.Header.Get("Purpose") == "prefetch"
}

// logout ends the cookie of a browser: this process refuses it from then on, and the browser drops it.
func (g *Gate) logout(w http.ResponseWriter, r *http.Request) {
	if ahead(r) {
		refuse(w, r, tooEarly)
		return
	}
	if cookie, err := r.Cookie(g.cookieName()); err == nil {
		if token, n, expires := g.signer(cookie.Value, forCookie, cookieLife); token != "" {
			g.firstUse(n, expires)
		}
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(), Path: "/", MaxAge: -1, Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"logged_out"}` + "\n")) // whoever has left needs it no more
}

// tooEarly refuses prefetching.
var tooEarly = &problem.Document{Status: http.StatusServiceUnavailable, Code: team.Unavailable,
	Detail: "this address is not for fetching ahead", Hint: "open it"}

// login exchanges a code, once, for a cookie with the same right, and redirects to the page.
func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	if ahead(r) { // the code is for whoever opens the address
		refuse(w, r, tooEarly)
		return
	}
	token, n, expires := g.signer(r.URL.Query().Get("code"), forCode, codeLife)
	if token == "" || !g.firstUse(n, expires) {
		refuse(w, r, unauthorized("the code is wrong, was used already, or is older than a minute", "make a new one: teamctl web"))
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(), Value: sign(token, forCookie, g.opt.Now().Add(cookieLife)), Path: "/", MaxAge: int(cookieLife / time.Second),
		Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// ended reports whether a cookie was ended here.
func (g *Gate) ended(n nonce) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ended := g.used[n]
	return ended
}

// firstUse records a code that is exchanged, or a cookie that is ended, and reports whether this is its first use here.
func (g *Gate) firstUse(n nonce, expires time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.used, func(_ nonce, until time.Time) bool { return !until.After(g.opt.Now()) })
	if _, used := g.used[n]; used {
		return false
	}
	g.used[n] = expires
	return true
}
