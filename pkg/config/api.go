package config

import (
	"net"
	"net/url"
	"strings"
)

// API states where a leader process serves the HTTP API, and to whom.
type API struct {
	Addr          string   // host:port; port 0: any free one; empty: nowhere
	TokenFile     string   // absolute path of the file that holds the token
	ReadTokenFile string   // the same of the token for reading only; may be empty
	Cert, Key     string   // absolute paths of the PEM files for TLS; both or none
	Insecure      bool     // serve without TLS beyond loopback
	Origins       []string // of pages elsewhere that may ask
	Hosts         []string // names by which it may be called, beside its own
}

// IsOrigin reports whether v is an origin as browsers send it. No origin means all.
func IsOrigin(v string) bool {
	u, err := url.Parse(v)
	return err == nil && isURL(v, "http", "https") && u.Scheme+"://"+u.Host == v && !strings.Contains(v, "*")
}

// IsHost reports whether v is the name or the address of a machine, without port.
func IsHost(v string) bool {
	return v != "" && !strings.ContainsAny(v, "*/@ ") && (!strings.Contains(v, ":") || net.ParseIP(v) != nil)
}
