package modeltest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentteam/pkg/model"
)

// Fault is a fault of an endpoint; it is the handler that plays it.
type Fault struct {
	Name   string       // unique in the catalogue
	Reason model.Reason // that a call meets which sees nothing else
	Advice model.Advice // of that call
	Window int          // that the refusal names; else 0
	Silent bool         // it keeps the connection open and only the client's patience ends it
	play   http.HandlerFunc
}

// ServeHTTP plays the fault.
func (f *Fault) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.play(w, r) }

// Named returns the fault or the turn of that name, and ends the test if there is none.
func Named(t testing.TB, name string) *Fault {
	t.Helper()
	for _, f := range append(Faults(), Turns()...) {
		if f.Name == name {
			return &f
		}
	}
	t.Fatalf("the catalogue has no fault %q", name)
	return nil
}

// with returns f with the window that it names.
func (f Fault) with(window int) Fault {
	f.Window = window
	return f
}

var advice = map[model.Reason]model.Advice{
	model.RateLimited: model.TryAgain, model.ServerError: model.TryAgain, model.Connection: model.TryAgain,
	model.Incomplete: model.TryAgain, model.Silent: model.TryAgain,
	model.BadKey: model.Park, model.NoCredit: model.Park, model.UnknownModel: model.Park, model.NoEndpoint: model.Park,
	model.ContextLength: model.Compact, model.ContentFilter: model.GiveUp, model.FailedCall: model.GiveUp, model.InvalidRequest: model.GiveUp,
}

func fault(name string, reason model.Reason, play http.HandlerFunc) Fault {
	return Fault{Name: name, Reason: reason, Advice: advice[reason], Silent: reason == model.Silent, play: play}
}

// refused answers with a status and an error as its body.
func refused(name string, reason model.Reason, status int, body string) Fault {
	return fault(name, reason, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

// streamed answers with status 200 and a stream of these lines.
func streamed(name string, reason model.Reason, lines ...string) Fault {
	return fault(name, reason, func(w http.ResponseWriter, _ *http.Request) { send(w, "", lines...) })
}

// other answers with status 200 and a body that is no stream.
func other(name string, reason model.Reason, contentType, body string) Fault {
	return fault(name, reason, func(w http.ResponseWriter, _ *http.Request) { send(w, contentType, body) })
}

// silent sends these lines and then nothing until the client disconnects.
func silent(name string, lines ...string) Fault {
	return fault(name, model.Silent, func(w http.ResponseWriter, r *http.Request) {
		send(w, "", lines...)
		<-r.Context().Done()
	})
}

// send answers with status 200 and sends the lines immediately.
func send(w http.ResponseWriter, contentType string, lines ...string) {
	if contentType == "" {
		contentType = "text/event-stream"
	}
	w.Header().Set("Content-Type", contentType)
	fmt.Fprint(w, strings.Join(lines, ""))
	w.(http.Flusher).Flush()
}

// hangUp breaks the connection.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func event(data string) string { return "data: " + data + "\n\n" }

func text(s string) string { return `{"choices":[{"index":0,"delta":{"content":"` + s + `"}}]}` }

// oneCall returns a call of list_tasks with these arguments, escaped for JSON.
func oneCall(id, args string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"` + id + `","type":"function","function":{"name":"list_tasks","arguments":"` + args + `"}}]}}]}`
}

const called = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// half is the beginning of an answer that breaks: text, and a whole call that must not run.
var half = event(text("half of")) + event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"lost","type":"function","function":{"name":"list_tasks","arguments":"{}"}}]}}]}`)
