package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parseError parses the error in body, in any form that endpoints use: an object, a string, a list of either, or no
// JSON. A code that is such a number counts as the status.
func parseError(body []byte) apiError {
	body = bytes.TrimSpace(body)
	if list := []json.RawMessage(nil); json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // Gemini
	}
	f := fields{}
	if json.Unmarshal(body, &f) != nil {
		return apiError{message: textOf(body), page: isPage(body)}
	}
	if e, ok := errorIn(f); ok {
		return e
	}
	return apiError{message: string(body)}
}

// errorIn returns the error in the object f; ok is false if it has none.
func errorIn(f fields) (e apiError, ok bool) {
	if isSet(f["error"]) {
		inner := fields{}
		if json.Unmarshal(f["error"], &inner) == nil {
			return errorObject(inner), true
		}
		e := errorObject(f) // {"error": "model not found"}, beside which a code may stand
		e.message = cmp.Or(loose(f["error"]), e.message)
		return e, true
	}
	if list := []json.RawMessage(nil); json.Unmarshal(f["errors"], &list) == nil && len(list) > 0 {
		return parseError(list[0]), true
	}
	for _, known := range []string{"detail", "message", "error_msg"} {
		if isSet(f[known]) {
			return errorObject(f), true
		}
	}
	return apiError{}, false
}

// errorObject parses the object of an error.
func errorObject(f fields) apiError {
	e := apiError{
		code:    cmp.Or(loose(f["code"]), loose(f["error_code"])),
		kind:    cmp.Or(loose(f["type"]), loose(f["status"])),
		message: cmp.Or(detail(f["message"]), detail(f["detail"]), loose(f["error_msg"])),
	}
	for _, key := range []string{"code", "status", "status_code"} {
		if n, err := strconv.Atoi(loose(f[key])); err == nil && n >= 400 && n < 600 {
			e.status = n
			break
		}
	}
	var n number
	if json.Unmarshal(f["n_ctx"], &n) == nil { // llama.cpp
		e.window = int(n)
	}
	e.metadata(f["metadata"])
	e.details(f["details"])
	return e
}

// metadata adds OpenRouter's details: the error of the provider behind it, or the reasons of its moderation.
func (e *apiError) metadata(raw json.RawMessage) {
	var m struct {
		Raw     json.RawMessage `json:"raw"`
		Reasons json.RawMessage `json:"reasons"`
		Flagged json.RawMessage `json:"flagged_input"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return
	}
	if isSet(m.Reasons) || isSet(m.Flagged) {
		e.code = "moderation"
	}
	if !isSet(m.Raw) {
		return
	}
	said := []byte(m.Raw)
	if text := ""; json.Unmarshal(m.Raw, &text) == nil {
		said = []byte(text)
	}
	inner := parseError(said)
	e.code, e.kind = strings.TrimSpace(e.code+" "+inner.code), cmp.Or(e.kind, inner.kind)
	e.window, e.retryAfter = cmp.Or(e.window, inner.window), cmp.Or(e.retryAfter, inner.retryAfter)
	if inner.message != "" {
		e.message += ": " + inner.message
	}
}

// details adds the details of Google's services (google.rpc.RetryInfo and ErrorInfo).
func (e *apiError) details(raw json.RawMessage) {
	var list []struct {
		RetryDelay string `json:"retryDelay"`
		Reason     string `json:"reason"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return
	}
	for _, d := range list {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			e.retryAfter = max(e.retryAfter, wait)
		}
		e.kind = strings.TrimSpace(e.kind + " " + d.Reason)
	}
}

// detail returns a message: a string, an object with one, or FastAPI's list of faults and places, without the input
// that the list quotes.
func detail(raw json.RawMessage) string {
	if !isSet(raw) {
		return ""
	}
	var list []struct {
		Loc []json.RawMessage `json:"loc"`
		Msg string            `json:"msg"`
	}
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && list[0].Msg != "" {
		var all []string
		for _, l := range list {
			var at []string
			for _, part := range l.Loc {
				at = append(at, loose(part))
			}
			all = append(all, strings.Join(at, ".")+": "+l.Msg)
		}
		return strings.Join(all, "; ")
	}
	if f := (fields{}); json.Unmarshal(raw, &f) == nil {
		for _, key := range []string{"message", "detail", "error"} {
			if isSet(f[key]) {
				return detail(f[key])
			}
		}
	}
	return loose(raw)
}

// loose returns the text of a JSON string, the JSON of any other value, "" for null.
func loose(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// isSet reports whether a key has a value other than null, false or an empty one.
func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "{}", "[]", "false":
		return false
	}
	return true
}

var (
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	pageTags  = regexp.MustCompile(`(?is)<(script|style).*?</(script|style)>|<[^>]*>`)
)

// textOf returns the text of a body that is not JSON: the title of a web page, or its text.
func textOf(body []byte) string {
	if !isPage(body) {
		return string(body)
	}
	said := pageTags.ReplaceAllString(string(body), " ")
	if m := pageTitle.FindSubmatch(body); m != nil {
		said = string(m[1])
	}
	return "an HTML page: " + strings.TrimSpace(html.UnescapeString(said))
}

func isPage(body []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) }

// whatCame describes an answer that does not come from a model endpoint.
func whatCame(h http.Header, body []byte) string {
	switch {
	case isPage(body):
		return textOf(body)
	case json.Valid(body):
		return "JSON that is no turn: " + string(body)
	}
	return cmp.Or(h.Get("Content-Type"), "no content type") + ": " + string(body)
}
