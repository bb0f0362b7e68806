package command

import "strings"

// Environ returns the part of all ("NAME=value" each) that commands get, and TERM=dumb, since there is no terminal.
//
// It is an allow list: a list of secrets to withhold would miss the next one. The LC_ variables are written out because
// SSH servers commonly accept any LC_*, which people use to carry other things.
func Environ(all []string) []string {
	var out []string
	for _, entry := range all {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG",
			"LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME":
			out = append(out, entry)
		}
	}
	return append(out, "TERM=dumb")
}
