package tool_test

import (
	"context"
	"fmt"

	"agentteam/pkg/tool"
)

func Example() {
	type arguments struct {
		Name  string `json:"name" jsonschema:"whom to greet"`
		Times int    `json:"times,omitempty" jsonschema:"how often (default 1)"`
	}
	greet := tool.New("greet", "Greets somebody.", func(_ context.Context, in arguments) (tool.Output, error) {
		return tool.Output{Value: "hello, " + in.Name}, nil
	}, tool.Alias("Greet"))
	set, err := tool.NewSet(nil, greet)
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Run(context.Background(), tool.Call{ID: "call_1", Name: "greet", Arguments: `{"name":"coder-1"}`}).Content)
	fmt.Println(set.Run(context.Background(), tool.Call{ID: "call_2", Name: "Greet", Arguments: `{"nmae":"coder-1"}`}).Content)
	// Output:
	// hello, coder-1
	// {"error":"nmae: there is no such argument","code":"invalid_argument","status":"error","hint":"arguments: name, times?"}
}
