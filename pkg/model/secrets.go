package model

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/team"
)

// secrets match the texts that no message may show: keys and passwords.
type secrets []*regexp.Regexp

// secretName matches the names of headers and parameters whose values are secret.
var secretName = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

func secretsOf(o Options, u *url.URL) secrets {
	texts := []string{o.APIKey}
	for _, value := range o.Secrets {
		texts = append(texts, withoutScheme(value))
	}
	password, _ := u.User.Password()
	hidden := cmp.Or(password, u.User.Username()) // alone the user is a token
	texts = append(texts, hidden, url.QueryEscape(hidden), url.PathEscape(hidden))
	if hidden != "" { // as it goes out, RFC 7617
		texts = append(texts, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	for name, values := range u.Query() { // an address may carry a key
		if secretName.MatchString(name) {
			texts = append(texts, values...)
		}
	}
	for name, value := range o.Headers {
		if secretName.MatchString(name) {
			texts = append(texts, withoutScheme(value))
		}
	}
	var s secrets
	for _, t := range texts {
		if t == "" {
			continue
		}
		pattern := regexp.QuoteMeta(t)
		if len(t) < 8 {
			// A placeholder such as EMPTY or k: inside words it is just letters.
			pattern = `(^|[^\pL\pN])` + pattern + `([^\pL\pN]|$)`
		} else {
			pattern = `()` + pattern + `()`
		}
		s = append(s, regexp.MustCompile(pattern))
	}
	slices.SortFunc(s, func(a, b *regexp.Regexp) int { return len(b.String()) - len(a.String()) }) // one may hold another
	return s
}

// authScheme matches the scheme at the beginning of a header's value; alone it is a word.
var authScheme = regexp.MustCompile(`(?i)^\s*(bearer|basic|token)\s+`)

func withoutScheme(value string) string {
	return strings.TrimSpace(authScheme.ReplaceAllString(value, ""))
}

// mostSaid bounds the shown part of an endpoint's text, in characters.
const mostSaid = 300

// line returns text fit for one line of a terminal, short and without secrets.
func (s secrets) line(text string) string {
	text = text[:min(len(text), 64<<10)] // a page may be long, and only its beginning is told
	for _, secret := range s {
		text = secret.ReplaceAllString(text, "${1}***${2}")
	}
	text = team.OneLine(text)
	if utf8.RuneCountInString(text) > mostSaid {
		text = string([]rune(text)[:mostSaid]) + "..."
	}
	return text
}
