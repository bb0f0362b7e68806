package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// endpoints are all that the API answers for, each as method and address; that none of /v1 is
// missing is known from its own description.
func endpoints(t *testing.T, s *Server) []string {
	t.Helper()
	all := strings.Split(strings.TrimSpace(`
GET /
GET /team/teammates?user_id=ann&session_id=1
GET /team/tasks?user_id=ann&session_id=1
POST /team/tasks
POST /team/tasks/claim
PATCH /team/tasks/T-001?user_id=ann&session_id=1
POST /team/message
POST /team/user-message
POST /team/stop
GET /team/status?user_id=ann&session_id=1
GET /team/history?user_id=ann&session_id=1
GET /team/sessions?user_id=ann
GET /team/subscribe?user_id=ann&session_id=1
POST /team/stream
POST /team/query
GET /files/tree
GET /files/content?path=x
POST /v1/teams/red/agui
GET /v1/openapi.json
GET /v1/openapi.yaml
GET /nothing/here`), "\n")
	_, data := ask(t, http.DefaultClient, "GET", s.URL()+"/v1/openapi.json", nil)
	var description struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	if err := json.Unmarshal(data, &description); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{\w+\}`)
	for path, operations := range description.Paths {
		path = strings.NewReplacer("{team}", "red", "{task}", "T-001").Replace(path)
		path = parameter.ReplaceAllString(path, "x")
		for method, o := range operations {
			if o.ID != "" {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d endpoints are known", len(all))
	}
	return all
}

// Every endpoint refuses what must be refused, in the same way, and nothing comes of it.
func TestEveryEndpoint(t *testing.T) {
	o := options(t)
	o.ReadTokenFile = filepath.Join(filepath.Dir(o.TokenFile), "read")
	put(t, o.ReadTokenFile, []byte(reader))
	l := defaultLimits
	l.body = 1000
	s := serve(t, o, l, nil)
	l.bodyWait = 20 * time.Millisecond
	hasty := serve(t, o, l, nil) // which does not wait for slow clients
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	for _, e := range endpoints(t, s) {
		method, address, _ := strings.Cut(e, " ")
		try := func(what string, s *Server, want int, header, body string) {
			t.Helper()
			res, got := raw(t, s, method+" "+address+" HTTP/1.1\r\nConnection: close\r\n"+header+"\r\n"+body)
			var d map[string]any
			if res.StatusCode != want && (want != 400 || res.StatusCode > 499) || json.Unmarshal(got, &d) != nil || d["detail"] == "" {
				t.Errorf("%s, %s: answered %d %s, want %d", e, what, res.StatusCode, got, want)
			}
			if res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s, %s: a browser is told %v", e, what, res.Header)
			}
			for _, secret := range []string{token, reader, o.TokenFile} {
				if strings.Contains(string(got)+fmt.Sprint(res.Header), secret) {
					t.Errorf("%s, %s: %s tells of the token", e, what, got)
				}
			}
		}
		try("no token", s, 401, here, "")
		try("a wrong token", s, 401, here+"Authorization: Bearer x"+token+"\r\n", "")
		try("a token in the address", s, 401, here+"Referer: http://127.0.0.1/?token="+token+"\r\n", "")
		try("another Host", s, 421, "Host: evil.example.org\r\n"+mine, "")
		try("another Origin", s, 403, here+mine+"Origin: http://127.0.0.1:9\r\n", "")
		try("from another site", s, 403, here+mine+"Sec-Fetch-Site: cross-site\r\n", "")
		if method == "GET" {
			res, got := raw(t, s, method+" "+address+" HTTP/1.1\r\nConnection: close\r\n"+here+"Authorization: Bearer "+reader+"\r\n\r\n")
			if res.StatusCode == 401 || res.StatusCode == 403 {
				t.Errorf("%s, the token for reading: answered %d %s", e, res.StatusCode, got)
			}
			continue
		}
		try("the token for reading", s, 403, here+"Authorization: Bearer "+reader+"\r\n"+typed+length(2), "{}")
		for _, other := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
			try("another method in a header", s, 403, here+"Authorization: Bearer "+reader+"\r\n"+other+": GET\r\n"+typed+length(2), "{}")
		}
		try("no JSON by its type", s, 415, here+mine+"Content-Type: text/plain\r\n"+length(2), "{}")
		try("too much", s, 413, here+mine+typed+length(1001), strings.Repeat(" ", 1001))
		try("a slow client", hasty, 408, here+mine+typed+length(100), "{")
		for _, body := range []string{"{", "[]", "null", `"\ud800`, "\xff", `{"user_id":1,"title":{}}`, strings.Repeat("[", 999)} {
			try("malformed", s, 400, here+mine+typed+length(len(body)), body)
		}
	}
	if _, data := ask(t, http.DefaultClient, "GET", s.URL()+"/v1/teams", nil); !strings.Contains(string(data), `"teams":[]`) {
		t.Errorf("then there are teams: %s", data)
	}
}

// A page learns what its token may do, so that it offers nothing that is refused.
func TestSession(t *testing.T) {
	o := options(t)
	o.ReadTokenFile = filepath.Join(filepath.Dir(o.TokenFile), "read")
	put(t, o.ReadTokenFile, []byte(reader))
	s := serve(t, o, defaultLimits, nil)
	for bearer, want := range map[string]string{token: "write", reader: "read"} {
		_, body := raw(t, s, "GET /v1/session HTTP/1.1\r\nConnection: close\r\n"+here+"Authorization: Bearer "+bearer+"\r\n\r\n")
		var got struct{ Access, Version string }
		if err := json.Unmarshal(body, &got); err != nil || got.Access != want || got.Version == "" {
			t.Errorf("%s, %v; want %s", body, err, want)
		}
	}
}
