package trust

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Waiting is the part of a file that waits until a person trusts the file's present state.
type Waiting struct {
	File    string            `json:"file"`           // as people see it from here
	Role    string            `json:"role,omitempty"` // whose file it is; "" = the settings
	SHA256  string            `json:"sha256"`         // of the file's content, in hex
	Runs    map[string]string `json:"runs,omitempty"` // as in [Trusted]
	Keys    []Key             `json:"keys"`
	Refused bool              `json:"refused,omitempty"` // a person was asked about the file as it stands, and does not want it

	path   string // of the file
	before []Key  // that were trusted of the file before it was changed
}

// Wait adds a key. It is a callback of package strictyaml.
func (w *Waiting) Wait(name, value string) { w.Keys = append(w.Keys, Key{name, value}) }

// Run adds the files of the repository that a key's command runs: their content is trusted with the key.
func (w *Waiting) Run(command string) {
	top := filepath.Dir(w.path)
	for word := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>'\"`$={}", r) }) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(top, word)
		}
		sum := digestOf(path)
		if sum == "" && !strings.Contains(word, "/") { // a program or an argument
			continue
		}
		if w.Runs == nil {
			w.Runs = map[string]string{}
		}
		w.Runs[path] = sum
	}
}

// Names returns the names of the keys.
func (w Waiting) Names() (names []string) {
	for _, k := range w.Keys {
		names = append(names, k.Name)
	}
	return names
}

// String returns a line for people that can trust the file.
func (w Waiting) String() string {
	who := w.File
	if w.Role != "" {
		who = fmt.Sprintf("role %s (%s)", w.Role, w.File)
	}
	verb := "is"
	if len(w.Keys) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s: %s %s not in force; a person allows it with: %s", who, strings.Join(w.Names(), ", "), verb, w.Command())
}

// Command returns the command with which a person trusts the file.
func (w Waiting) Command() string { return "teamctl trust " + Quoted(w.File) }

// Lines returns each key with its value, and each file that a key runs; if an earlier state of the file was trusted, the difference:
// "+ " is new, "- " is gone.
func (w Waiting) Lines() (lines []string) {
	mark := ""
	if w.before != nil {
		mark = "+ "
	}
	for _, k := range w.Keys {
		if w.before == nil || !slices.Contains(w.before, k) {
			lines = append(lines, mark+k.String())
		}
	}
	for _, k := range w.before {
		if !slices.Contains(w.Keys, k) {
			lines = append(lines, "- "+k.String())
		}
	}
	if len(lines) == 0 && w.before != nil {
		lines = append(lines, "the same keys as before")
	}
	for _, path := range slices.Sorted(maps.Keys(w.Runs)) {
		sum := w.Runs[path]
		if sum == "" {
			sum = "is not there"
		}
		lines = append(lines, "runs "+path+": "+sum)
	}
	return lines
}
