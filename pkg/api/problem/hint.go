package problem

import (
	"regexp"
	"slices"
	"strings"
)

// requests maps commands of teamctl to the requests with the same effect; TEAM, ID and NAME are placeholders. Commands
// for the operator of the cluster have none.
var requests = map[string]string{
	"diff":              "GET /v1/teams/TEAM/diff",
	"agents":            "GET /v1/teams/TEAM/members",
	"agents compact":    "POST /v1/teams/TEAM/members/NAME/compact",
	"answer":            "POST /v1/teams/TEAM/messages/ID/answer",
	"approvals":         "GET /v1/teams/TEAM/approvals",
	"approvals approve": "POST /v1/teams/TEAM/approvals/ID/decide",
	"approvals reject":  "POST /v1/teams/TEAM/approvals/ID/decide",
	"events":            "GET /v1/teams/TEAM/events",
	"inbox":             "GET /v1/teams/TEAM/inbox/NAME",
	"run":               "POST /v1/teams/TEAM/goal",
	"send":              "POST /v1/teams/TEAM/messages",
	"status":            "GET /v1/status",
	"stop":              "DELETE /v1/teams/TEAM/members/NAME",
	stopTeam:            "DELETE /v1/teams/TEAM/goal",
	"tasks":             "GET /v1/teams/TEAM/tasks",
	"tasks add":         "POST /v1/teams/TEAM/tasks",
	"tasks claim":       "POST /v1/teams/TEAM/tasks/ID/claim",
	"tasks get":         "GET /v1/teams/TEAM/tasks/ID",
	"tasks release":     "POST /v1/teams/TEAM/tasks/ID/release",
	"tasks update":      "PATCH /v1/teams/TEAM/tasks/ID",
	"teams":             "GET /v1/teams",
	"teams add":         "POST /v1/teams",
	"teams rm":          "DELETE /v1/teams/TEAM",
	"teams set":         "PATCH /v1/teams/TEAM",
}

// stopTeam stands for teamctl stop without a name. It cannot be a member's name, so no hint about a member matches it.
const stopTeam = "stop Team"

var (
	command = regexp.MustCompile(`\bteamctl ([a-z]+)( [a-zA-Z]+)?`)
	// By HTTP a team is made before it gets a goal or tasks, and stopped by another path than a member.
	makes = regexp.MustCompile(`teamctl (run|tasks add) [^;]* makes `)
	stops = regexp.MustCompile(`teamctl stop( --team|,)`)
	// The names of all teams are no help to a program that may list them.
	names = regexp.MustCompile(`^name one with --team: [^;]*; `)
)

// overHTTP adds to a hint with commands of teamctl the requests with the same effect.
func overHTTP(hint string) string {
	hint = names.ReplaceAllString(hint, "`teamctl teams` lists the teams; ")
	said := makes.ReplaceAllString(hint, "teamctl teams add; ")
	said = stops.ReplaceAllString(said, "teamctl "+stopTeam+";")
	var ways []string
	for _, m := range command.FindAllStringSubmatch(said, -1) {
		way, ok := requests[m[1]+m[2]]
		if !ok {
			way = requests[m[1]]
		}
		if way != "" && !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	if ways == nil {
		return hint
	}
	return "by HTTP: " + strings.Join(ways, ", ") + "; in a shell: " + hint
}
