package tool

import (
	"context"
	"encoding/json"
	"slices"
)

// Variant is another way to call a tool, with another name and other arguments. The tool decides what runs, who may run
// it, which gates are asked, and the result. Package dialect makes variants.
type Variant struct {
	Name        string          // it may be the tool's own, and then takes its place
	Description string          // for the model
	Schema      json.RawMessage // the JSON schema of the arguments, as the model sees it
	Traits      Traits          // the tool's, with the names that arguments have here

	// When reports whether calls with these arguments, as the model wrote them, are this tool's, if
	// another one has a variant of the same name. nil: all are.
	When func(given map[string]any) bool

	// Run runs a call whose arguments are the JSON text as the model wrote it. It calls the
	// tool, which checks the arguments that it gets, as often as the call asks for.
	Run func(ctx context.Context, arguments string, call func(arguments map[string]any) (Output, error)) (Output, error)
}

// With returns t with further variants. An alias that is the name of a variant calls that variant.
func (t Tool) With(variants ...Variant) Tool {
	t.variants = slices.Concat(t.variants, variants)
	t.Aliases = slices.DeleteFunc(slices.Clone(t.Aliases), func(alias string) bool {
		return slices.ContainsFunc(variants, func(v Variant) bool { return v.Name == alias })
	})
	return t
}
