package access

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

const (
	fullToken = config.Secret("0123456789abcdef0123456789abcdef")
	readToken = config.Secret("fedcba9876543210fedcba9876543210")
	friend    = "https://team.example.org"
	here      = "127.0.0.1:8081"
)

// rig is a gate before a handler that says what reached it.
type rig struct {
	*Gate
	now  time.Time
	seen *http.Request // what the handler got last
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var err error
	r.Gate, err = New(Options{Token: fullToken, ReadToken: readToken, Hosts: []string{"Box.Example.org"}, Origins: []string{friend}, Now: func() time.Time { return r.now }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask sends a request with these headers, each "Name: value", and with a body if it is
// among them.
func (r *rig) ask(method, target string, headers ...string) *http.Response {
	req := httptest.NewRequest(method, target, nil)
	if i := slices.Index(headers, body); i >= 0 {
		req = httptest.NewRequest(method, target, strings.NewReader("{}"))
		headers = slices.Delete(slices.Clone(headers), i, i+1)
	}
	req.Host = here
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	return r.send(req)
}

// at is a request as a server at this address and the port of here gets it.
func at(req *http.Request, ip net.IP) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: ip, Port: 8081}))
}

func (r *rig) send(req *http.Request) *http.Response {
	r.seen = nil
	req = at(req, net.IPv4(127, 0, 0, 1))
	w := httptest.NewRecorder()
	r.Guard(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.seen = req
		w.WriteHeader(http.StatusOK)
	})).ServeHTTP(w, req)
	return w.Result()
}

const (
	bearer  = "Authorization: Bearer " + string(fullToken)
	bearer2 = "Authorization: Bearer " + string(readToken)
	asJSON  = "Content-Type: application/json"
	body    = "a body" // in the place of a header
)

func TestWhoMayAsk(t *testing.T) {
	for name, tt := range map[string]struct {
		method, target string
		headers        []string
		want           int
	}{
		"the full token":                       {"GET", "/v1/teams", []string{bearer}, 200},
		"the full token writes":                {"POST", "/v1/teams", []string{bearer, asJSON}, 200},
		"with a charset":                       {"PATCH", "/v1/teams", []string{bearer, "Content-Type: application/json; charset=utf-8"}, 200},
		"the scheme in small letters":          {"GET", "/v1/teams", []string{"Authorization: bearer " + string(fullToken)}, 200},
		"the read-only token":                  {"GET", "/v1/teams", []string{bearer2}, 200},
		"the read-only token, HEAD":            {"HEAD", "/v1/teams", []string{bearer2}, 200},
		"health without token":                 {"GET", "/health", nil, 200},
		"an event stream's address":            {"GET", "/team/subscribe?after=3&token=" + string(readToken), nil, 200},
		"localhost":                            {"GET", "/", []string{bearer, "Host: localhost:8081"}, 200},
		"IPv6 loopback":                        {"GET", "/", []string{bearer, "Host: [::1]:8081"}, 200},
		"another loopback address":             {"GET", "/", []string{bearer, "Host: 127.0.0.2:8081"}, 200},
		"a name of the settings":               {"GET", "/", []string{bearer, "Host: BOX.example.org.:8081"}, 200},
		"our own page":                         {"POST", "/v1/teams", []string{bearer, asJSON, "Origin: http://" + here, "Sec-Fetch-Site: same-origin"}, 200},
		"a configured origin":                  {"POST", "/v1/teams", []string{bearer, asJSON, "Origin: " + friend, "Sec-Fetch-Site: cross-site"}, 200},
		"no token":                             {"GET", "/v1/teams", nil, 401},
		"health is not a folder":               {"GET", "/health/x", nil, 401},
		"health is not written":                {"POST", "/health", []string{asJSON}, 401},
		"health with a body":                   {"GET", "/health", []string{body}, 401},
		"another method in a header":           {"GET", "/v1/teams", []string{bearer2, "X-HTTP-Method-Override: DELETE"}, 200}, // GET it is
		"a path that leads to health":          {"GET", "/v1/../health", nil, 401},
		"a path that begins with two slashes":  {"GET", "//health", nil, 401},
		"a path that leaves /team":             {"GET", "/v1/%2e%2e/team/?token=" + string(fullToken), nil, 401},
		"a Host beside the address":            {"GET", "http://evil.example.org/v1/teams", []string{bearer, "Host: evil.example.org"}, 421},
		"login is not written":                 {"POST", "/login", []string{asJSON}, 401},
		"a wrong token":                        {"GET", "/v1/teams", []string{bearer + "0"}, 401},
		"half a token":                         {"GET", "/v1/teams", []string{bearer[:len(bearer)-1]}, 401},
		"an empty token":                       {"GET", "/v1/teams", []string{"Authorization: Bearer "}, 401},
		"another scheme":                       {"GET", "/v1/teams", []string{"Authorization: Basic " + string(fullToken)}, 401},
		"a wrong token beside a right address": {"GET", "/team/subscribe?token=" + string(fullToken), []string{"Authorization: Bearer x"}, 401},
		"an address elsewhere":                 {"GET", "/v1/teams?token=" + string(fullToken), nil, 401},
		"an address that writes":               {"POST", "/team/stream?token=" + string(fullToken), []string{asJSON}, 401},
		"an address with a wrong token":        {"GET", "/team/subscribe?token=x", nil, 401},
		"a cookie that is garbage":             {"GET", "/v1/teams", []string{"Cookie: agentteam_00000000=x"}, 401},
		"the read-only token writes":           {"POST", "/v1/teams", []string{bearer2, asJSON}, 403},
		"the read-only token deletes":          {"DELETE", "/v1/teams/red", []string{bearer2, asJSON}, 403},
		"the read-only token asks for options": {"OPTIONS", "/v1/teams", []string{bearer2}, 403},
		"another Host":                         {"GET", "/v1/teams", []string{bearer, "Host: evil.example.org"}, 421},
		"no Host":                              {"GET", "/v1/teams", []string{bearer, "Host: "}, 421},
		"a Host that begins like ours":         {"GET", "/v1/teams", []string{bearer, "Host: 127.0.0.1.evil.example.org"}, 421},
		"health at another Host":               {"GET", "/health", []string{"Host: evil.example.org"}, 421},
		"a foreign origin":                     {"GET", "/v1/teams", []string{bearer, "Origin: https://evil.example.org"}, 403},
		"the null origin":                      {"POST", "/v1/teams", []string{bearer, asJSON, "Origin: null"}, 403},
		"another port of this machine":         {"POST", "/v1/teams", []string{bearer, asJSON, "Origin: http://127.0.0.1:9", "Sec-Fetch-Site: same-site"}, 403},
		"our name, another scheme":             {"POST", "/v1/teams", []string{bearer, asJSON, "Origin: https://" + here}, 403},
		"another port, an image":               {"GET", "/v1/teams", []string{bearer, "Sec-Fetch-Site: same-site", "Sec-Fetch-Dest: image"}, 403},
		"another port, a frame":                {"GET", "/", []string{bearer, "Sec-Fetch-Site: same-site", "Sec-Fetch-Dest: iframe"}, 403},
		"another port, a link":                 {"GET", "/", []string{bearer, "Sec-Fetch-Site: same-site", "Sec-Fetch-Dest: document"}, 200},
		"an address typed":                     {"GET", "/", []string{bearer, "Sec-Fetch-Site: none", "Sec-Fetch-Dest: document"}, 200},
		"cross-site without an origin":         {"GET", "/v1/teams", []string{bearer, "Sec-Fetch-Site: cross-site"}, 403},
		"cross-site of our own origin":         {"GET", "/v1/teams", []string{bearer, "Origin: http://" + here, "Sec-Fetch-Site: cross-site"}, 403},
		"a link elsewhere to the page":         {"GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200},
		"a link elsewhere to the API":          {"GET", "/v1/teams", []string{bearer, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		"a link elsewhere to a login":          {"GET", "/login?code=x", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		"the page in a frame elsewhere":        {"GET", "/", []string{bearer, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		"the page asked for elsewhere":         {"GET", "/", []string{bearer, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: empty"}, 403},
		"a configured origin without a token":  {"GET", "/", []string{"Origin: " + friend, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 401},
		"a preflight of a foreign origin":      {"OPTIONS", "/v1/teams", []string{"Origin: https://evil.example.org", "Access-Control-Request-Method: POST"}, 403},
		"a preflight of a configured origin":   {"OPTIONS", "/v1/teams", []string{"Origin: " + friend, "Access-Control-Request-Method: POST"}, 204},
		"options of a configured origin":       {"OPTIONS", "/v1/teams", []string{"Origin: " + friend}, 401},
		"a form":                               {"POST", "/v1/teams", []string{bearer, body, "Content-Type: application/x-www-form-urlencoded"}, 415},
		"text":                                 {"PUT", "/v1/teams", []string{bearer, body, "Content-Type: text/plain"}, 415},
		"no type":                              {"DELETE", "/v1/teams/red", []string{bearer, body}, 415},
		"a type that is none":                  {"POST", "/v1/teams", []string{bearer, body, "Content-Type: application/json;;"}, 415},
		"no type and no body":                  {"DELETE", "/v1/teams/red", []string{bearer}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			res := r.ask(tt.method, tt.target, tt.headers...)
			if res.StatusCode != tt.want {
				t.Fatalf("%s %s is answered %d, want %d", tt.method, tt.target, res.StatusCode, tt.want)
			}
			if passed := r.seen != nil; passed != (tt.want == 200) {
				t.Errorf("passed on: %v", passed)
			}
			for _, h := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Cross-Origin-Resource-Policy"} {
				if res.Header.Get(h) == "" {
					t.Errorf("no %s", h)
				}
			}
			if got := res.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: %q", got)
			}
			if asks := res.Header.Get("WWW-Authenticate") != ""; asks != (tt.want == 401) {
				t.Errorf("WWW-Authenticate: %v", asks)
			}
			if allowed := res.Header.Get("Access-Control-Allow-Origin"); allowed != "" && allowed != friend {
				t.Errorf("Access-Control-Allow-Origin: %s", allowed)
			}
			if tt.want < 400 {
				return
			}
			body, _ := io.ReadAll(res.Body)
			var d problem.Document
			if err := json.Unmarshal(body, &d); err != nil || d.Status != tt.want || d.Title == "" || d.Detail == "" || d.Hint == "" || d.Code == "" {
				t.Errorf("the document is %s (%v)", body, err)
			}
			for _, secret := range []string{string(fullToken), string(readToken), "example.org"} {
				if strings.Contains(string(body), secret) {
					t.Errorf("%s tells %s", body, secret)
				}
			}
		})
	}
}

// A name of loopback counts with the port at which it came in, a name of the settings with any.
func TestPortOfHost(t *testing.T) {
	r := newRig(t)
	for host, want := range map[string]int{here: 200, "localhost:8081": 200, "box.example.org:9": 200, "127.0.0.1:1": 421, "localhost:80810": 421, "127.0.0.1": 421, "[::1]": 421} {
		if res := r.ask("GET", "/", bearer, "Host: "+host); res.StatusCode != want {
			t.Errorf("%s is answered %d, want %d", host, res.StatusCode, want)
		}
	}
}

// What a page of a configured origin is told; its cookies are not asked for.
func TestPreflight(t *testing.T) {
	r := newRig(t)
	h := r.ask("OPTIONS", "/v1/teams", "Origin: "+friend, "Access-Control-Request-Method: PATCH").Header
	for name, part := range map[string]string{
		"Access-Control-Allow-Origin": friend, "Access-Control-Allow-Methods": "PATCH", "Access-Control-Allow-Headers": "Last-Event-ID", "Vary": "Origin",
	} {
		if !strings.Contains(h.Get(name), part) {
			t.Errorf("%s: %q, want %s", name, h.Get(name), part)
		}
	}
	if h.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("cookies are allowed")
	}
	if shown := r.ask("GET", "/v1/teams", bearer, "Origin: "+friend).Header.Get("Access-Control-Expose-Headers"); !strings.Contains(shown, "ETag") {
		t.Errorf("shown are %q", shown)
	}
}

// The token in an address goes no further than the gate.
func TestTokenIsTakenOutOfTheAddress(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"token", "%74oken", "token=&token"} {
		r.ask("GET", "/team/subscribe?user_id=ann&"+name+"="+string(fullToken)+"&after=3", bearer)
		if r.seen == nil {
			t.Fatal("refused")
		}
		if q := r.seen.URL.Query(); q.Get("user_id") != "ann" || q.Get("after") != "3" || q.Has("token") || strings.Contains(r.seen.RequestURI, string(fullToken)) {
			t.Errorf("the handler got %s, %s", r.seen.URL, r.seen.RequestURI)
		}
	}
}

// login opens the address that holds code, and returns the answer and its cookie as a
// header, "" if there is none.
func (r *rig) login(code string) (res *http.Response, cookie string) {
	res = r.ask("GET", "/login?"+url.Values{"code": {code}}.Encode(), "Sec-Fetch-Site: none")
	for _, c := range res.Cookies() {
		cookie = "Cookie: " + c.Name + "=" + c.Value
	}
	return res, cookie
}

func TestLogin(t *testing.T) {
	r := newRig(t)
	res, cookie := r.login(NewCode(fullToken, r.now))
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" || cookie == "" {
		t.Fatalf("login: %d, Location %q, %q", res.StatusCode, res.Header.Get("Location"), cookie)
	}
	if c := res.Cookies()[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.MaxAge != int(cookieLife.Seconds()) {
		t.Errorf("the cookie is %v", c)
	}
	if res := r.ask("POST", "/v1/teams", cookie, asJSON); res.StatusCode != 200 {
		t.Errorf("the cookie of the full token: %d", res.StatusCode)
	}
	if res := r.ask("DELETE", "/v1/teams/red", cookie); res.StatusCode != 415 { // a page elsewhere might have made the browser ask
		t.Errorf("the cookie and no type: %d", res.StatusCode)
	}
	_, reader := r.login(NewCode(readToken, r.now))
	if res := r.ask("GET", "/v1/teams", reader); res.StatusCode != 200 {
		t.Errorf("the cookie of the read-only token: %d", res.StatusCode)
	}
	if res := r.ask("POST", "/v1/teams", reader, asJSON); res.StatusCode != 403 {
		t.Errorf("the cookie of the read-only token writes: %d", res.StatusCode)
	}
	r.now = r.now.Add(cookieLife)
	if res := r.ask("GET", "/v1/teams", cookie); res.StatusCode != 401 {
		t.Errorf("a cookie that has expired: %d", res.StatusCode)
	}
}

// A person without a login reads what to do; a program gets its document.
func TestPersonWithoutLogin(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{"/", "/login?code=none"} {
		res := r.ask("GET", target, "Accept: text/html,*/*;q=0.8")
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != 401 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") || !strings.Contains(string(text), "teamctl web") {
			t.Errorf("%s: %d %s: %s", target, res.StatusCode, res.Header.Get("Content-Type"), text)
		}
	}
	if res := r.ask("GET", "/"); res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a program is answered %s", res.Header)
	}
}

// A browser that fetches ahead uses no code up, and ends no cookie.
func TestFetchedAhead(t *testing.T) {
	r := newRig(t)
	code := NewCode(fullToken, r.now)
	for _, header := range []string{"Sec-Purpose: prefetch", "Sec-Purpose: prefetch;prerender", "Purpose: prefetch"} {
		if res := r.ask("GET", "/login?code="+url.QueryEscape(code), header); res.StatusCode != 503 || len(res.Cookies()) > 0 {
			t.Errorf("%s: %d", header, res.StatusCode)
		}
	}
	_, cookie := r.login(code)
	if cookie == "" {
		t.Fatal("the code was used up")
	}
	r.ask("GET", "/logout", cookie, "Sec-Purpose: prefetch")
	if res := r.ask("GET", "/v1/teams", cookie); res.StatusCode != 200 {
		t.Errorf("the cookie was ended: %d", res.StatusCode)
	}
}

// A cookie that was logged out holds no longer, also for whoever has copied it; others do.
func TestLogout(t *testing.T) {
	r := newRig(t)
	_, cookie := r.login(NewCode(fullToken, r.now))
	_, other := r.login(NewCode(fullToken, r.now))
	if res := r.ask("POST", "/logout", cookie, "Origin: https://evil.example.org"); res.StatusCode != 403 {
		t.Errorf("from elsewhere: %d", res.StatusCode)
	}
	if res := r.ask("GET", "/v1/teams", cookie); res.StatusCode != 200 {
		t.Errorf("a page elsewhere has logged out: %d", res.StatusCode)
	}
	res := r.ask("GET", "/logout", cookie)
	if c := res.Cookies(); res.StatusCode != 200 || len(c) != 1 || c[0].MaxAge >= 0 {
		t.Errorf("logout: %d, %v", res.StatusCode, c)
	}
	for c, want := range map[string]int{cookie: 401, other: 200} {
		if res := r.ask("GET", "/v1/teams", c); res.StatusCode != want {
			t.Errorf("then a cookie is answered %d, want %d", res.StatusCode, want)
		}
	}
	if res := r.ask("GET", "/logout"); res.StatusCode != 200 { // whoever is not logged in
		t.Errorf("without a cookie: %d", res.StatusCode)
	}
}

func TestLoginUnderTLS(t *testing.T) {
	r := newRig(t)
	req := httptest.NewRequest("GET", "https://"+here+"/login?code="+NewCode(fullToken, r.now), nil)
	req.TLS = &tls.ConnectionState{}
	if cookies := r.send(req).Cookies(); len(cookies) != 1 || !cookies[0].Secure {
		t.Errorf("the cookies are %v", cookies)
	}
}

// Another process with the same token takes codes and cookies of this one. It does not know
// which codes were used elsewhere, so it takes each once too.
func TestProcessesAreAlike(t *testing.T) {
	a, b := newRig(t), newRig(t)
	code := NewCode(fullToken, a.now)
	_, cookie := a.login(code)
	if res := b.ask("GET", "/v1/teams", cookie); res.StatusCode != 200 {
		t.Errorf("a cookie of the other process: %d", res.StatusCode)
	}
	for _, want := range []int{303, 401} {
		if res, _ := b.login(code); res.StatusCode != want {
			t.Errorf("a code of the other process: %d, want %d", res.StatusCode, want)
		}
	}
}

func TestCodesThatAreRefused(t *testing.T) {
	r := newRig(t)
	used := NewCode(fullToken, r.now)
	r.login(used)
	good := NewCode(fullToken, r.now)
	for name, code := range map[string]string{
		"none":                     "",
		"garbage":                  "%%%",
		"used":                     used,
		"used, written otherwise":  used[:len(used)-1] + string(used[len(used)-1]+1),
		"expired":                  NewCode(fullToken, r.now.Add(-codeLife)),
		"made far in the future":   NewCode(fullToken, r.now.Add(time.Hour)),
		"of another token":         NewCode(fullToken+"0", r.now),
		"of no token":              NewCode("", r.now),
		"a cookie":                 sign(fullToken, forCookie, r.now.Add(codeLife)),
		"cut":                      good[:40],
		"with another expiry time": good[:24] + "AAAA" + good[28:],
		"the token itself":         string(fullToken),
	} {
		if res, cookie := r.login(code); res.StatusCode != 401 || cookie != "" {
			t.Errorf("a code that is %s: %d, %q", name, res.StatusCode, cookie)
		}
	}
	if res, _ := r.login(good); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a good code after the bad ones: %d", res.StatusCode)
	}
	if len(r.used) != 2 {
		t.Errorf("%d codes are kept, want the 2 that were used", len(r.used))
	}
	r.now = r.now.Add(codeLife)
	r.login(NewCode(fullToken, r.now))
	if len(r.used) != 1 {
		t.Errorf("%d codes are kept, want only the one that still holds", len(r.used))
	}
}

func TestCookiesThatAreForged(t *testing.T) {
	r := newRig(t)
	expires := r.now.Add(time.Hour)
	for name, value := range map[string]string{
		"a code":              NewCode(fullToken, r.now),
		"of another token":    sign("another token of the same length", forCookie, expires),
		"of no token":         sign("", forCookie, expires),
		"for ever":            sign(fullToken, forCookie, r.now.Add(1000*time.Hour)),
		"the token itself":    string(fullToken),
		"with another expiry": sign(fullToken, forCookie, expires)[:21] + "zzzzzzzzzz" + sign(fullToken, forCookie, expires)[31:],
	} {
		if res := r.ask("GET", "/v1/teams", "Cookie: "+r.cookieName()+"="+value); res.StatusCode != 401 {
			t.Errorf("a cookie that is %s: %d", name, res.StatusCode)
		}
	}
}

// A refusal does not wait for the rest of a body.
func TestRefusalEndsTheConnection(t *testing.T) {
	r := newRig(t)
	req := httptest.NewRequest("POST", "http://"+here+"/v1/teams", io.MultiReader(strings.NewReader("{")))
	if res := r.send(req); res.StatusCode != 401 || res.Header.Get("Connection") != "close" {
		t.Errorf("%d, Connection: %q", res.StatusCode, res.Header.Get("Connection"))
	}
}

func TestHandlersMayCache(t *testing.T) {
	r := newRig(t)
	w := httptest.NewRecorder()
	req := at(httptest.NewRequest("GET", "http://127.0.0.1:9/health", nil), net.IPv4(172, 17, 0, 2)) // by the port of a container
	r.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "no-cache") })).ServeHTTP(w, req)
	if got := w.Result().Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control: %q", got)
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	for name, o := range map[string]Options{
		"no token":                  {},
		"the same token twice":      {Token: fullToken, ReadToken: fullToken},
		"any origin":                {Token: fullToken, Origins: []string{"*"}},
		"any name of a domain":      {Token: fullToken, Origins: []string{"https://*.example.org"}},
		"an origin with a path":     {Token: fullToken, Origins: []string{"https://example.org/"}},
		"an origin without scheme":  {Token: fullToken, Origins: []string{"example.org"}},
		"an origin of another kind": {Token: fullToken, Origins: []string{"ftp://example.org"}},
		"an empty host":             {Token: fullToken, Hosts: []string{""}},
		"any host":                  {Token: fullToken, Hosts: []string{"*"}},
		"an address as host":        {Token: fullToken, Hosts: []string{"http://example.org"}},
	} {
		_, err := New(o)
		if err == nil || o.Token != "" && (team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
