package config

import (
	"log/slog"
	"strings"
)

// Secret is a string that must not be printed: in fmt, slog, JSON and YAML it is "set" or "not set". string(s) is the
// string itself.
type Secret string

// String returns "set" or "not set".
func (s Secret) String() string {
	if s == "" {
		return "not set"
	}
	return "set"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue is String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// maskURL removes from a URL what may be secret: user and password, or token, and the query. It works on the text,
// since the URL may be malformed.
func maskURL(v string) string {
	v, _, _ = strings.Cut(v, "?")
	at := strings.LastIndex(v, "@")
	if at < 0 {
		return v
	}
	scheme, _, found := strings.Cut(v, "://")
	if !found {
		return "xxxxx" + v[at:]
	}
	return scheme + "://xxxxx" + v[at:]
}
