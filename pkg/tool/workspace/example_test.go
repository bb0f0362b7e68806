package workspace_test

import (
	"context"
	"fmt"
	"os"

	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

func Example() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := workspace.Open(dir, command.Plain{}, workspace.Options{})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	set, err := tool.NewSet(nil, w.Tools()...)
	if err != nil {
		panic(err)
	}
	for _, call := range []tool.Call{
		{Name: "write_file", Arguments: `{"path":"docs/plan.md","content":"first\nsecond\n"}`},
		{Name: "bash", Arguments: `{"command":"wc -l < docs/plan.md; exit 3"}`},
		{Name: "read_file", Arguments: `{"path":"../secret"}`},
	} {
		r := set.Run(context.Background(), call)
		if r.IsError {
			fmt.Println(r.Code)
			continue
		}
		fmt.Println(r.Content)
	}
	// Output:
	// wrote 13 bytes to docs/plan.md
	// 2
	// exit status 3
	// permission_denied
}
