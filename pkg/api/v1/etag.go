package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type humaContext = huma.Context

// tagged is a reading request. Its answer gets an ETag, and is 304 without a body if the client has that one. A task's
// ETag is its revision; that of another answer is made of its text.
type tagged struct {
	humaContext
	status int
}

func withTag(ctx huma.Context) huma.Context {
	if m := ctx.Method(); m != http.MethodGet && m != http.MethodHead {
		return ctx
	}
	return &tagged{humaContext: ctx}
}

// Unwrap returns the request itself.
func (t *tagged) Unwrap() huma.Context { return t.humaContext }

// SetStatus holds a success back until its text is known.
func (t *tagged) SetStatus(code int) {
	if t.status = code; code != http.StatusOK {
		t.humaContext.SetStatus(code)
	}
}

// BodyWriter returns t.
func (t *tagged) BodyWriter() io.Writer { return t }

// Write writes the answer, which arrives in one call.
func (t *tagged) Write(text []byte) (int, error) {
	if t.status != http.StatusOK {
		return t.humaContext.BodyWriter().Write(text)
	}
	r, w := humago.Unwrap(t.humaContext)
	tag := w.Header().Get("ETag")
	if tag == "" {
		sum := sha256.Sum256(text)
		tag = `W/"` + hex.EncodeToString(sum[:12]) + `"`
		w.Header().Set("ETag", tag)
	}
	if has(r.Header.Values("If-None-Match"), tag) {
		w.Header().Del("Content-Type")
		t.humaContext.SetStatus(http.StatusNotModified)
		return len(text), nil
	}
	t.humaContext.SetStatus(http.StatusOK)
	t.status = 0 // the head is written
	return t.humaContext.BodyWriter().Write(text)
}

// has reports whether an ETag is in If-None-Match, compared weakly (RFC 9110, section 13.1.2).
func has(given []string, tag string) bool {
	for _, line := range given {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
