package main

import "testing"

// What an agent read acts on nobody's terminal.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"写 🚀 für\tall":                  "写 🚀 für all",
		"\x1b[2Jgone\r\x07":             "[2Jgone",
		"a\u202eb\u202c c\u2066d\u2069": "ab cd",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}
