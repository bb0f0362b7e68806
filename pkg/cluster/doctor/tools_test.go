package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/config"
)

// The model is asked for one call of a tool, which it makes, or not, or may not be asked for.
func TestTools(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		answer string
		want   Status
		detail string
	}{
		"it calls": {200, `{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"ready","arguments":"{\"word\":\"yes\"}"}}]},"finish_reason":"tool_calls"}`, OK, "small calls tools"},
		"it talks": {200, `{"delta":{"content":"{\"name\":\"ready\"}"},"finish_reason":"stop"}`, Fail, "small answers in text only"},
		"Ollama":   {400, `{"error":{"message":"registry.ollama.ai/library/small does not support tools"}}`, Fail, "takes no tools for this model"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.status != http.StatusOK {
					http.Error(w, tt.answer, tt.status)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\ndata: [DONE]\n\n", strings.Replace(tt.answer, "{", `{"index":0,`, 1))
			}))
			defer srv.Close()
			c := toolsCheck(t.Context(), config.Config{BaseURL: srv.URL + "/v1", Model: "small"})
			if c.Status != tt.want || !strings.Contains(c.Detail, tt.detail) || (c.Status == OK) != (c.Hint == "") {
				t.Errorf("%+v, want %s with %q", c, tt.want, tt.detail)
			}
		})
	}
}
