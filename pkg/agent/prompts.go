package agent

import (
	"embed"
	"strings"
)

// prompts are the texts that are the same for every agent. Models read them most, so they are
// separate files.
//
//go:embed prompts/*.md
var prompts embed.FS

var (
	leaderPrompt   = prompt("leader")
	teammatePrompt = prompt("teammate")
	planPrompt     = prompt("plan")     // of a member in plan mode
	delegatePrompt = prompt("delegate") // of a leader in delegate mode
)

// prompt returns a text of prompts without its final line end.
func prompt(name string) string {
	text, err := prompts.ReadFile("prompts/" + name + ".md")
	if err != nil { // the file is not in the program: it is broken
		panic(err)
	}
	return strings.TrimSpace(string(text))
}
