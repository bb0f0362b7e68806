package stricttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"

	"agentteam/pkg/model/rehearsal"
)

// NewHandler returns [rehearsal.NewHandler] with the additional refusals of the named kind of endpoint, in its words.
// It panics if the kind is unknown.
func NewHandler(name string, s *rehearsal.Script, logger *slog.Logger) http.Handler {
	strict, ok := strictest[name]
	if !ok {
		panic("no endpoint called " + name + " is known to be strict in its own way")
	}
	return &handler{strict, rehearsal.NewHandler(s, logger), ids{plain: map[string]string{}}}
}

// Known reports whether endpoints of the named kind are in the table.
func Known(name string) bool { return strictest[name] != nil }

type handler struct {
	strict *strictness
	script http.Handler
	ids    ids
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/responses") {
		h.serveResponses(w, r, body)
		return
	}
	var req request
	if strings.HasSuffix(r.URL.Path, "/chat/completions") && json.Unmarshal(body, &req) == nil {
		if refused := h.strict.refusedBy(&req); refused != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(refused.status)
			_ = json.NewEncoder(w).Encode(h.strict.body(refused)) // a client that is gone needs no answer
			return
		}
		body = h.strict.completed(body)
		if h.strict.nine {
			body, w = h.ids.long(body), &shortWriter{w, &h.ids}
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.script.ServeHTTP(w, r)
}

// completed returns body with the fields that the rehearsal requires and s does not.
func (s *strictness) completed(body []byte) []byte {
	var r map[string]any
	if json.Unmarshal(body, &r) != nil {
		return body
	}
	messages, _ := r["messages"].([]any)
	for _, m := range messages {
		if m, ok := m.(map[string]any); ok && s.noContent && m["tool_calls"] != nil && m["content"] == nil {
			m["content"] = ""
		}
	}
	tools, _ := r["tools"].([]any)
	for _, t := range tools {
		t, _ := t.(map[string]any)
		if f, ok := t["function"].(map[string]any); ok && s.noSchema && f["parameters"] == nil {
			f["parameters"] = map[string]any{"type": "object"}
		}
	}
	full, _ := json.Marshal(r) // it was decoded from JSON
	return full
}

var (
	scriptID  = regexp.MustCompile(`call_[a-z0-9-]+_-?\d+_[A-Z2-7]{8}`)
	nineAlnum = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	nineID    = regexp.MustCompile(`"[a-zA-Z0-9]{9}"`)
)

// ids maps the ids of the script's calls to nine letters and digits, and back.
type ids struct {
	mu    sync.Mutex
	plain map[string]string
}

func (n *ids) short(text []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return scriptID.ReplaceAllFunc(text, func(id []byte) []byte {
		sum := sha256.Sum256(id)
		digits := new(big.Int).SetBytes(sum[:]).Text(62)
		nine := digits[len(digits)-9:]
		n.plain[`"`+nine+`"`] = `"` + string(id) + `"`
		return []byte(nine)
	})
}

func (n *ids) long(body []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return nineID.ReplaceAllFunc(body, func(id []byte) []byte {
		if plain, ok := n.plain[string(id)]; ok {
			return []byte(plain)
		}
		return id
	})
}

// shortWriter writes with short ids; the rehearsal writes each id in one call.
type shortWriter struct {
	http.ResponseWriter
	ids *ids
}

func (w *shortWriter) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(w.ids.short(p))
	return len(p), err
}

func (w *shortWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Check returns why an endpoint of the named kind refuses body, a chat completion request from an agent, or nil if it
// accepts it; name "" is no special kind.
func Check(name string, body []byte) error {
	h := rehearsal.NewHandler(anything, nil)
	if name != "" {
		h = NewHandler(name, anything, nil)
	}
	return refusalOf(h, "/v1/chat/completions", body)
}

// CheckResponses returns why OpenAI refuses body, a Responses request, or nil if it accepts it.
func CheckResponses(body []byte) error {
	return refusalOf(NewHandler("openai", anything, nil), "/v1/responses", body)
}

func refusalOf(h http.Handler, path string, body []byte) error {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		return fmt.Errorf("%d: %s", w.Code, w.Body)
	}
	return nil
}

var anything = func() *rehearsal.Script {
	s, err := rehearsal.Parse("anything", []byte("agents: [{rules: [{name: a, say: fine}]}]"))
	if err != nil {
		panic(err)
	}
	return s
}()
