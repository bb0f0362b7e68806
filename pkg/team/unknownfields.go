package team

import "encoding/json"

// Extra holds the fields of a stored record that this program does not know.
// Records are written by programs of different ages: whoever reads one and writes
// it back must not drop what a newer program put there (package codec).
type Extra map[string]json.RawMessage
