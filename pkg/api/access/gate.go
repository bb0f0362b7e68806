package access

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options state who may call the API, and from where.
type Options struct {
	Token     config.Secret // lets its bearer do everything; required
	ReadToken config.Secret // lets its bearer read only; "" = there is none

	// Hosts are the names by which the API may be called, without port, beside the
	// names of loopback.
	Hosts []string

	// Origins are those of pages elsewhere that may ask, such as https://team.example.org.
	// The API's own pages may in any case.
	Origins []string

	Now func() time.Time // default: time.Now
}

// Gate passes requests to the API, or refuses them. Safe for concurrent use.
type Gate struct {
	opt  Options
	mu   sync.Mutex
	used map[nonce]time.Time // codes that were exchanged here, and cookies that were ended, until they have expired
}

// New returns a gate. Errors: InvalidArgument for a malformed origin or host, and for two equal tokens.
func New(o Options) (*Gate, error) {
	if o.Token == "" {
		return nil, errors.New("access: Options.Token is empty")
	}
	if o.Token == o.ReadToken {
		return nil, team.Errorf(team.InvalidArgument, "the read-only token of the API is the same as the full one").
			WithHint("write another one into its file, such as the output of: openssl rand -hex 32")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	hosts := make([]string, len(o.Hosts))
	for i, h := range o.Hosts {
		if !config.IsHost(h) {
			return nil, team.Errorf(team.InvalidArgument, "%.80q is not the name of a host", h).WithHint("give names or addresses without port, such as team.example.org")
		}
		hosts[i] = plainHost(h)
	}
	o.Hosts = hosts
	for _, origin := range o.Origins {
		if !config.IsOrigin(origin) {
			return nil, team.Errorf(team.InvalidArgument, "%.80q is not an origin", origin).WithHint("give scheme, name and port as browsers send them, such as https://team.example.org")
		}
	}
	return &Gate{opt: o, used: map[nonce]time.Time{}}, nil
}

// plainHost returns the name in a Host header in the normal form.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// answersTo reports whether the Host header names the API. Without this check a page elsewhere could have its own name
// resolve to this machine (DNS rebinding), and would then have the origin of the API. For a name of loopback the port
// must be the one of the connection over loopback; for other names and connections any port will do: a proxy, or the
// port of a container, may be in between.
func (g *Gate) answersTo(r *http.Request) bool {
	if slices.Contains(g.opt.Hosts, plainHost(r.Host)) {
		return true
	}
	at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil { // browsers leave out the port of the scheme
		port = map[string]string{"http": "80", "https": "443"}[scheme(r)]
	}
	return telemetry.IsLoopback(r.Host) && at != nil && (!at.IP.IsLoopback() || port == strconv.Itoa(at.Port))
}

// scheme returns the scheme of the client's connection to this process.
func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// from checks where a request comes from: whether its Origin is configured, and why it is refused, nil if it is not.
func (g *Gate) from(r *http.Request) (configured bool, no *problem.Document) {
	if !g.answersTo(r) {
		return false, &problem.Document{Status: http.StatusMisdirectedRequest, Code: team.InvalidArgument, Detail: "the API does not answer for this Host",
			Hint: "use the address that teamctl web prints; further names are added by the setting api_hosts"}
	}
	origin := r.Header.Get("Origin")
	if origin != "" && slices.Contains(g.opt.Origins, origin) {
		return true, nil
	}
	if origin != "" && !strings.EqualFold(origin, scheme(r)+"://"+r.Host) {
		return false, forbidden("pages of this origin may not ask here", "it is allowed by the setting api_origins")
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site":
		if !followsLink(r) {
			return false, forbidden("pages of other sites may not ask here, and lead to the page only", "type or paste the address")
		}
	case "same-site":
		// Such as another port of this machine, whose requests have our cookie. It may link here, but an image of it,
		// say, would hold a stream open.
		if r.Header.Get("Sec-Fetch-Dest") != "document" {
			return false, forbidden("pages of this origin may not ask here", "it is allowed by the setting api_origins")
		}
	}
	return false, nil
}

// followsLink reports whether a person has followed a link to the page, from anywhere. The browser sends no cookie with
// it. The page itself contains no data, and its own requests have the cookie.
func followsLink(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
