package agent

import (
	"embed"
	"strings"
)

// prompts are the texts that stay the same for every agent. They are what models read
// most, so they are files of their own, to be read and changed as text.
//
//go:embed prompts/*.md
var prompts embed.FS

var (
	leaderPrompt   = prompt("leader")
	teammatePrompt = prompt("teammate")
	planPrompt     = prompt("plan")     // of a member in plan mode
	delegatePrompt = prompt("delegate") // of a leader in delegate mode
)

// prompt returns a text of prompts without the line end after it.
func prompt(name string) string {
	text, err := prompts.ReadFile("prompts/" + name + ".md")
	if err != nil { // the file is not in the program: it is broken
		panic(err)
	}
	return strings.TrimSpace(string(text))
}
