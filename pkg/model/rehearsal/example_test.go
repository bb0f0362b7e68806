package rehearsal_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"agentteam/pkg/model/rehearsal"
)

func Example() {
	script, err := rehearsal.Parse("hello.yaml", []byte(`
agents:
- match: {role: coder}
  rules:
  - {name: greet, say: "{{.Name}} of {{.Team}} is here."}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := rehearsal.Listen("127.0.0.1:0", script, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()

	resp, err := http.Post(server.URL()+"/chat/completions", "application/json", strings.NewReader(`{
		"model": "rehearsal",
		"messages": [
			{"role": "system", "content": "You are coder-1, role coder, in team red."},
			{"role": "user", "content": "hello"}
		]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, strings.Contains(string(body), "coder-1 of red is here."))

	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 true
	// <nil>
}
