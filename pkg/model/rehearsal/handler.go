package rehearsal

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const maxBodyBytes = 32 << 20

// NewHandler returns the endpoint that plays s: POST /v1/chat/completions,
// streamed and not, and GET /v1/models. Any key and any model name will do.
// Errors have the shape of OpenAI's, or of the endpoint that the script is as strict
// as. A nil logger discards.
func NewHandler(s *Script, logger *slog.Logger) http.Handler {
	h := &handler{script: s, log: cmp.Or(logger, slog.New(slog.DiscardHandler)), faults: map[faultKey]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", h.complete)
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

func (h *handler) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		h.refuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	req, err := parseRequest(body, h.script.strict)
	var strict *refusal
	switch {
	case errors.As(err, &strict):
		h.log.Debug("refused", "status", strict.status, "err", err)
		h.send(w, strict.status, h.script.strict.body(strict))
		return
	case err != nil:
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
		h.refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	if t.rule == "" {
		h.log.Warn("nothing in the script fits", "team", who.team, "agent", who.name)
	}
	for _, c := range t.calls {
		if !slices.ContainsFunc(req.Tools, func(o tool) bool { return o.Function.Name == c.Function.Name }) {
			h.log.Warn("the script calls a tool that was not offered", "team", who.team, "agent", who.name, "rule", t.rule, "tool", c.Function.Name)
		}
	}
	fault := h.due(who, t)
	if fault.delay > 0 {
		select {
		case <-time.After(fault.delay):
		case <-r.Context().Done():
			return
		}
	}
	if fault.status != 0 || fault.refusal != nil && !fault.inStream {
		if fault.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(fault.retryAfter.Seconds()))))
		}
		if fault.refusal != nil {
			h.send(w, fault.refusal.status, openAIError(fault.refusal))
			return
		}
		h.refuse(w, fault.status, "this is a fault of the script")
		return
	}
	if fault.malformed {
		t = t.malformed()
	}
	a := answer{turn: t, model: req.Model, usage: usageOf(len(body), t), cut: fault.cut}
	if fault.refusal != nil {
		a.error = openAIError(fault.refusal)
	}
	if req.Stream {
		a.stream(w, req.StreamOptions.IncludeUsage)
	} else {
		a.whole(w)
	}
}

// due returns the fault that t is to be played with, the zero value if none, and
// counts it.
func (h *handler) due(who asker, t turn) fault {
	if t.fault == nil {
		return fault{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := faultKey{who, t.rule, t.step}
	if h.faults[key] == t.fault.times {
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
