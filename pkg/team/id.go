package team

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// TeamID names a team: [a-z0-9][a-z0-9-]{0,62}, not a reserved word. It is part
// of NATS subjects, where a bad name would close the connection.
type TeamID string

// AgentID names a member within its team, by the same grammar as TeamID. It does not contain the team's name;
// people see name@team.
type AgentID string

// TaskID is "T-001", "T-002", ...: at least three digits, dense within a team,
// never reused.
type TaskID string

// Names that no member can choose.
const (
	Leader    AgentID = "leader"   // the member that leads
	UserAgent AgentID = "user"     // a person outside a seat
	Watchdog  AgentID = "watchdog" // sender of the watchdog's notices
	Everyone  AgentID = "*"        // addressee of a broadcast
)

// DefaultTeam is the team of a command that names none.
const DefaultTeam TeamID = "default"

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	reserved    = []string{"teams", "pool", "all", "board", "user", "watchdog"}
)

// ParseTeamID checks s. Error: InvalidArgument, which states what is allowed.
func ParseTeamID(s string) (TeamID, error) {
	return TeamID(s), checkName("team name", s)
}

// SessionTeam returns the name of the team of a user's session. It is made of hashes of the two, so that
// every process finds the same team and every name is valid. All sessions of a user begin with [SessionsOf].
func SessionTeam(user, session string) TeamID {
	return SessionsOf(user) + TeamID(hashOf(session, 16))
}

// SessionsOf returns the common prefix of the names of a user's session teams.
func SessionsOf(user string) TeamID { return TeamID("s-" + hashOf(user, 10) + "-") }

const wholeHash = sha256.Size

// hashOf returns the first bytes of the SHA-256 of a text, in hexadecimal digits.
func hashOf(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}

// ParseAgentID checks the name of a member; "leader" is one.
func ParseAgentID(s string) (AgentID, error) {
	return AgentID(s), checkName("agent name", s)
}

// ParseAddress reads a member's name as people read and write it: coder-1, or
// coder-1@red. id is "" for a name without a team. Error: InvalidArgument.
func ParseAddress(s string) (a AgentID, id TeamID, err error) {
	name, of, with := strings.Cut(s, "@")
	if with {
		if id, err = ParseTeamID(of); err != nil {
			return "", "", err
		}
	}
	a, err = ParseAgentID(name)
	return a, id, err
}

func checkName(what, s string) error {
	const hint = "use 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit"
	switch {
	case slices.Contains(reserved, s):
		return Errorf(InvalidArgument, "%s %q is reserved", what, s).WithHint("reserved are: %s", strings.Join(reserved, ", "))
	case !namePattern.MatchString(s):
		return Errorf(InvalidArgument, "%s %q is not valid", what, Clip(s, 80)).WithHint(hint)
	}
	return nil
}

// At returns the name of a member as people see it: name@team.
func (a AgentID) At(t TeamID) string { return string(a) + "@" + string(t) }

// MakeTaskID returns the id of the n-th task of a team, counted from 1.
func MakeTaskID(n int) TaskID { return TaskID(fmt.Sprintf("T-%03d", n)) }

// Number returns the number in the id, 0 if the id is malformed. Tasks are ordered by it, since "T-1000"
// comes after "T-999" only as a number.
func (id TaskID) Number() int {
	digits, ok := strings.CutPrefix(string(id), "T-")
	if !ok || len(digits) < 3 || len(digits) > 9 || (len(digits) > 3 && digits[0] == '0') {
		return 0
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// ParseTaskID parses an id as people and models write it: T-001, t-1, #1, 1.
func ParseTaskID(s string) (TaskID, error) {
	digits := strings.TrimSpace(s)
	digits = strings.TrimPrefix(digits, "#")
	if len(digits) > 1 && (digits[0] == 'T' || digits[0] == 't') {
		digits = strings.TrimPrefix(digits[1:], "-")
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || len(digits) > 9 {
		return "", Errorf(InvalidArgument, "%q is not a task id", Clip(s, 40)).WithHint("task ids look like T-001")
	}
	return MakeTaskID(int(n)), nil
}
