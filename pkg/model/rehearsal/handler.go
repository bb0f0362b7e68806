package rehearsal

import (
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

const maxBodyBytes = 32 << 20

// NewHandler returns the endpoint that plays s: POST /v1/chat/completions, streamed and not, and GET /v1/models. It
// accepts any key and model. Errors have OpenAI's form. A nil logger discards.
func NewHandler(s *Script, logger *slog.Logger) http.Handler {
	h := &handler{script: s, log: telemetry.OrDiscard(logger), faults: map[faultKey]int{}, told: map[complaint]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", h.play)
	mux.HandleFunc("GET /v1/models", h.models)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.refuse(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path)
	})
	return mux
}

type handler struct {
	script *Script
	log    *slog.Logger

	mu     sync.Mutex
	faults map[faultKey]int // how often each was played
	told   map[complaint]bool
}

// complaint is a warning that is logged once for an agent, until a person writes something else to it.
type complaint struct {
	who         asker
	asked, what string
}

// once logs a warning about the script once for a person's request to an agent; the log has the request.
func (h *handler) once(who asker, conv []message, what string, more ...any) {
	c := complaint{who, asked(conv), what}
	h.mu.Lock()
	told := h.told[c]
	h.told[c] = true
	h.mu.Unlock()
	if !told {
		h.log.Warn(what, append([]any{"team", who.team, "agent", who.name, "asked", c.asked}, more...)...)
	}
}

var personsMail = regexp.MustCompile(`(?s)<mail from="user"[^>]*>\s*(.*?)\s*</mail`)

// asked returns the beginning of the newest mail from a person in the conversation, else of its first input.
func asked(conv []message) string {
	text := ""
	if i := lastMatch(personsMail, conv, message.fromUser); i >= 0 {
		text = group(personsMail.FindStringSubmatch(conv[i].Content))
	} else if i := slices.IndexFunc(conv, message.fromUser); i >= 0 {
		text = conv[i].Content
	}
	return team.Clean(strings.Join(strings.Fields(text), " "), 80)
}

type faultKey struct {
	who  asker
	rule string
	step int
}

func (h *handler) models(w http.ResponseWriter, _ *http.Request) {
	h.send(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": h.script.model, "object": "model", "created": 0, "owned_by": "rehearsal"}},
	})
}

func (h *handler) play(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		h.refuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	req, err := parseChat(body)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	who, err := req.asker()
	if err != nil {
		h.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	t, err := h.script.next(who, req.Messages[1:])
	if err != nil {
		h.once(who, req.Messages, "the script cannot go on", "err", err, "hint", "fix that rule, or give the goal that the script is for")
		h.refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	if t.rule == "" {
		h.once(who, req.Messages, "nothing in the script fits", "hint", "add a rule that fits what it was asked (docs/rehearsal.md), or give the goal that the script is for")
	}
	for _, c := range t.calls {
		if !slices.ContainsFunc(req.Tools, func(o tool) bool { return o.Function.Name == c.Function.Name }) {
			h.log.Warn("the script calls a tool that was not offered", "team", who.team, "agent", who.name, "rule", t.rule, "tool", c.Function.Name)
		}
	}
	h.answer(w, r, req, t, h.due(who, t), len(body))
}

// answer sends the turn, with its fault.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, req request, t turn, fault fault, promptBytes int) {
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if fault.Status != 0 || fault.refusal != nil && !fault.InStream {
		h.fail(w, fault)
		return
	}
	if fault.Page {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html>\n<html><head><title>Bad gateway</title></head></html>\n") // a client that is gone needs no answer
		return
	}
	t = t.spoiled(fault)
	a := answer{turn: t, model: req.Model, usage: usageOf(promptBytes, t), cut: fault.Cut}
	a.error = fault.refusal
	if req.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		a.stream(req, w)
	} else {
		a.send(w)
	}
}

// fail answers with a fault in place of the turn.
func (h *handler) fail(w http.ResponseWriter, f fault) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if f.refusal != nil {
		h.send(w, f.refusal.status, f.refusal.body())
		return
	}
	h.refuse(w, f.Status, "this is a fault of the script")
}

// due returns the fault of t that is to be played now, the zero value if none, and counts it.
func (h *handler) due(who asker, t turn) fault {
	if t.fault == nil {
		return fault{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := faultKey{who, t.rule, t.step}
	if h.faults[key] == t.fault.Times {
		return fault{}
	}
	h.faults[key]++
	return *t.fault
}

func (h *handler) refuse(w http.ResponseWriter, status int, message string) {
	h.log.Debug("refused", "status", status, "err", message)
	kind := "invalid_request_error"
	switch {
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status >= 500:
		kind = "server_error"
	}
	h.send(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}})
}

func (h *handler) send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		h.log.Debug("the client is gone", "err", err)
	}
}
