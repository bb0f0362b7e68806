package team

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// priorities are the names of a task's priorities, by number.
var priorities = []string{"normal", "high", "critical"}

// Priorities returns the names of the priorities, by number.
func Priorities() []string { return slices.Clone(priorities) }

// ParsePriority parses the name or the number of a priority. Errors: InvalidArgument.
func ParsePriority(s string) (int, error) {
	if p := slices.Index(priorities, s); p >= 0 {
		return p, nil
	}
	if p, err := strconv.Atoi(s); err == nil && p >= 0 && p < len(priorities) {
		return p, nil
	}
	return 0, Errorf(InvalidArgument, "%q is not a priority", Clip(s, 40)).WithHint("use normal, high or critical; or 0, 1, 2")
}

// Priority is a priority as a caller writes it in JSON: its number or its name.
type Priority int

// UnmarshalJSON reads either. Errors: those of [ParsePriority].
func (p *Priority) UnmarshalJSON(text []byte) error {
	name := string(text)
	if bytes.HasPrefix(text, []byte{'"'}) {
		if err := json.Unmarshal(text, &name); err != nil {
			return err
		}
	}
	n, err := ParsePriority(name)
	*p = Priority(n)
	return err
}

// PriorityName returns the name of a priority, or the number of a priority without a name.
func PriorityName(p int) string {
	if p >= 0 && p < len(priorities) {
		return priorities[p]
	}
	return strconv.Itoa(p)
}
