package team

import "encoding/json"

// Extra holds the fields of a stored record that this program does not know. Programs of different versions write
// records: a program that writes one back must keep the fields of a newer program (package codec).
type Extra map[string]json.RawMessage
