package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are the examples in each command's help, by the command's name without teamctl.
var examples = map[string][]string{
	"up":                {"teamctl up -d", "teamctl up -n 8 --port 4222"},
	"down":              {"teamctl down"},
	"run":               {`teamctl run "find out why the tests are slow; write the reasons to SLOW.md"`, `teamctl run --top "port the parser"`, "teamctl run --resume"},
	"attach":            {"teamctl attach", "teamctl attach --agent coder-1 --since 10m"},
	"diff":              {"teamctl diff", "teamctl diff 3", "teamctl diff --agent coder-1 --stat"},
	"land":              {"teamctl land", "teamctl land --publish", "teamctl land --workspace ~/src/shop"},
	"init":              {"teamctl init", "teamctl init --yes"},
	"demo":              {"teamctl demo", "teamctl demo ~/src/project"},
	"rehearse":          {"teamctl rehearse --listen 127.0.0.1:8099", "teamctl rehearse script.yaml"},
	"repair":            {"teamctl repair", "teamctl repair member.coder-1", "teamctl repair --all"},
	"top":               {"teamctl top", "teamctl top red"},
	"budget":            {"teamctl budget", "teamctl budget set 10usd,2Mtok"},
	"budget show":       {"teamctl budget show -o json"},
	"budget set":        {"teamctl budget set 10usd", "teamctl budget set 2Mtok --role coder", "teamctl budget set none"},
	"goals":             {"teamctl goals", "teamctl goals -o json"},
	"status":            {"teamctl status", "teamctl status -o wide"},
	"teams":             {"teamctl teams"},
	"teams ls":          {"teamctl teams ls"},
	"teams get":         {"teamctl teams get red"},
	"teams add":         {`teamctl teams add red --max-teammates 4 --description "the parser"`},
	"teams set":         {"teamctl teams set red --max-teammates 20", "teamctl teams set red --create leader"},
	"teams apply":       {"teamctl teams apply --dry-run", "teamctl teams apply -f shop.yaml"},
	"teams rm":          {"teamctl teams rm red", "teamctl teams rm red --force"},
	"save":              {"teamctl save red.save --team red", "teamctl save red.save --copy"},
	"load":              {"teamctl load red.save --server nats://nats.example.org:4222"},
	"export":            {"teamctl export report --team red"},
	"trust":             {"teamctl trust", "teamctl trust team.yaml", "teamctl trust --remove team.yaml"},
	"spawn":             {"teamctl spawn coder --count 3", `teamctl spawn reviewer --name ann --prompt "be strict about tests"`},
	"approvals":         {"teamctl approvals"},
	"approvals ls":      {"teamctl approvals ls --all"},
	"approvals show":    {"teamctl approvals show 9f0c2ab1e4d35768"},
	"approvals approve": {"teamctl approvals approve 9f0c2ab1e4d35768", "teamctl approvals approve 9f0c2ab1e4d35768 --scope task"},
	"approvals reject":  {`teamctl approvals reject 9f0c2ab1e4d35768 --feedback "leave the tests alone"`},
	"tasks":             {"teamctl tasks", "teamctl tasks -w"},
	"tasks ls":          {"teamctl tasks ls --claimable --role coder", "teamctl tasks ls --assignee coder-1 -o json"},
	"tasks get":         {"teamctl tasks get 3"},
	"tasks add":         {`teamctl tasks add "Measure the parser" --priority high`, "teamctl tasks add -f release.yaml"},
	"tasks claim":       {"teamctl tasks claim 2 --as alice"},
	"tasks assign":      {"teamctl tasks assign 3 --to coder-1"},
	"tasks release":     {"teamctl tasks release 3"},
	"tasks update":      {`teamctl tasks update 2 --status completed --as alice --summary "see NOTES.md"`, "teamctl tasks update 4 --priority critical"},
	"tasks cancel":      {`teamctl tasks cancel 5 --reason "not needed"`, "teamctl tasks cancel --all"},
	"tasks undo":        {"teamctl tasks undo 7"},
	"tasks wait":        {"teamctl tasks wait 4 && echo released"},
	"tasks graph":       {"teamctl tasks graph", "teamctl tasks graph --format dot | dot -Tsvg -o tasks.svg"},
	"tasks history":     {"teamctl tasks history 3"},
	"agents":            {"teamctl agents", "teamctl agents --all -o wide"},
	"agents ls":         {"teamctl agents ls"},
	"agents get":        {"teamctl agents get coder-1"},
	"agents transcript": {"teamctl agents transcript coder-1 -f"},
	"agents compact":    {"teamctl agents compact coder-1"},
	"agents jobs":       {"teamctl agents jobs", "teamctl agents jobs coder-1 -o wide"},
	"skills":            {"teamctl skills"},
	"skills ls":         {"teamctl skills ls"},
	"skills show":       {"teamctl skills show review-a-change"},
	"skills validate":   {"teamctl skills validate", "teamctl skills validate .claude/skills/deploy"},
	"roles":             {"teamctl roles"},
	"roles ls":          {"teamctl roles ls"},
	"roles show":        {"teamctl roles show coder"},
	"roles new":         {"teamctl roles new docs-writer"},
	"roles validate":    {"teamctl roles validate", "teamctl roles validate .agents/docs-writer.md"},
	"roles apply":       {"teamctl roles apply", "teamctl roles apply coder"},
	"send":              {`teamctl send coder-1 "use the new parser"`, "git diff | teamctl send reviewer-1 - --urgent"},
	"inbox":             {"teamctl inbox", "teamctl inbox coder-1 -f"},
	"messages":          {"teamctl messages"},
	"messages ls":       {"teamctl messages ls coder-1"},
	"messages get":      {"teamctl messages get 01M7Q2V9Q2S4M6K8XW3F5T7Y9Z"},
	"answer":            {`teamctl answer "keep the old names"`, "teamctl answer coder-1 2"},
	"broadcast":         {`teamctl broadcast "the build is broken; do not push"`},
	"chat":              {"teamctl chat", `echo "how far are you?" | teamctl chat coder-1`},
	"events":            {"teamctl events --since 1h", "teamctl events -f --agent coder-1"},
	"audit":             {"teamctl audit --since 1h", "teamctl audit --agent coder-1 --tool bash -o jsonl"},
	"cost":              {"teamctl cost --by agent"},
	"stop":              {"teamctl stop coder-1 --reason 'the work is done'", "teamctl stop coder-1 --drain", "teamctl stop"},
	"web":               {"teamctl web", "teamctl web --no-open"},
	"doctor":            {"teamctl doctor"},
	"config":            {"teamctl config view --show-origin"},
	"config schema":     {"teamctl config schema"},
	"config validate":   {"teamctl config validate", "teamctl config validate -f shop.yaml"},
	"config view":       {"teamctl config view --show-origin"},
	"version":           {"teamctl version"},
}

// addExamples adds the examples to cmd and all commands below it, and hides global flags where they mean
// nothing.
func addExamples(cmd *cobra.Command) {
	if lines := examples[nameOf(cmd)]; len(lines) > 0 {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
	switch nameOf(cmd) {
	case "version":
		hideFlags(cmd, "server", "team", "timeout")
	case "config view":
		hideFlags(cmd, "timeout")
	case "rehearse":
		hideFlags(cmd, "server", "team", "output", "timeout")
	}
	for _, below := range cmd.Commands() {
		addExamples(below)
	}
}

// wrapHelp wraps the help texts of cmd and all commands below it to width cells: sentences are joined, and an
// indented line stays separate.
func wrapHelp(cmd *cobra.Command, width int) {
	var all []string
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		last := len(all) - 1
		if last < 0 || line == "" || all[last] == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(all[last], " ") {
			all = append(all, line)
			continue
		}
		all[last] += " " + line
	}
	for i, line := range all {
		all[i] = wrapped(line, width)
	}
	cmd.Long = strings.Join(all, "\n")
	for _, below := range cmd.Commands() {
		if below.Long == "" {
			below.Long = below.Short
		}
		names := strings.Repeat(" ", len("  ")+below.NamePadding()+len(" ")) // stand before it in the list
		below.Short = strings.TrimSpace(wrapped(names+below.Short, width))
		wrapHelp(below, width)
	}
}

// hideFlags hides global flags in the help of cmd, where they mean nothing.
func hideFlags(cmd *cobra.Command, names ...string) {
	show := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		for _, name := range names {
			cmd.Root().PersistentFlags().Lookup(name).Hidden = true
		}
		show(cmd, args)
	})
}

// nameOf returns the name of cmd without teamctl.
func nameOf(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}
