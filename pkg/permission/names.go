package permission

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// places are the files that a word may be.
func (r *reader) places(w word) (list []place) {
	said := w.text.String()
	if w.glob && !w.expand && w.cut == 0 {
		w.text = slices.Clone(w.text)
		for i, c := range w.text {
			if c == star {
				w.text[i] = part
			}
		}
	}
	switch {
	case w.expand || w.cut > 0:
		return []place{{text{star}, said}}
	case len(w.text) > 0 && w.text[0] == tilde:
		if len(w.text) > 1 && w.text[1] != '/' {
			return []place{{text{star}, said}}
		}
		return []place{{clean(append(literal(r.home), w.text[1:]...), r.home), said}}
	case len(w.text) == 0 || w.text[0] != '/':
		if r.lost {
			list = append(list, place{append(text{star, '/'}, w.text...), said})
		}
		for _, base := range r.bases {
			list = append(list, place{clean(append(literal(base+"/"), w.text...), base), said})
		}
		return list
	}
	return []place{{clean(w.text, r.bases[0]), said}}
}

var (
	// silent open no file that their words name.
	silent = []string{"echo", "printf", "true", "false", ":", "exit", "test", "[", "cd", "pushd", "kill", "sleep", "export", "which", "type", "basename", "dirname"}
	// readers only read what they name.
	readers = []string{"cat", "head", "tail", "less", "more", "wc", "grep", "egrep", "fgrep", "rg", "diff", "cmp", "comm", "nl", "tac", "rev", "od",
		"xxd", "hexdump", "strings", "base64", "md5sum", "sha1sum", "sha256sum", "sha512sum", "file", "stat", "ls", "cut", "sort", "uniq", "fold", "jq", "awk", "gawk", "mawk"}
	// writers change what they name.
	writers = []string{"rm", "mv", "cp", "touch", "tee", "truncate", "dd", "chmod", "chown", "ln", "mkdir", "rmdir", "install", "shred", "unlink", "patch", "sed"}
	// copying write what they name last.
	copying = []string{"cp", "ln", "install"}
	// scripted have a pattern or a script before the files.
	scripted = []string{"grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "jq"}
)

// names are the files that the words after a command's name may be.
func (r *reader) names(command string, words []word) (list []name) {
	if slices.Contains(silent, command) {
		return nil
	}
	n := name{reads: true, writes: !slices.Contains(readers, command)}
	if command == "sed" {
		n.writes = slices.ContainsFunc(words, func(w word) bool {
			s := w.text.String()
			return strings.HasPrefix(s, "-") && strings.Contains(s, "i")
		})
	}
	writes := n.writes
	listed := slices.Contains(readers, command) || slices.Contains(writers, command)
	script := slices.Contains(scripted, command) && !slices.ContainsFunc(words, func(w word) bool { return givesScript(command, w.text.String()) })
	last := -1 // only the last operand is written; -1: every one is
	if slices.Contains(copying, command) && !slices.ContainsFunc(words, func(w word) bool {
		return strings.HasPrefix(w.text.String(), "-t") || strings.HasPrefix(w.text.String(), "--t")
	}) {
		last = len(words) - 1
	}
	for i, w := range words {
		n.writes = writes && (last < 0 || i == last)
		option := strings.HasPrefix(w.text.String(), "-")
		if script && !option {
			script = false
			continue
		}
		for i, part := range parts(w, option) {
			s := part.text.String()
			n.sure = listed && i == 0 || strings.ContainsAny(s, "./")
			for _, n.place = range r.places(part) {
				// Others may open any file, also one that they do not name.
				if listed || len(n.path) > 1 || n.path.certain() {
					n.said = w.text.String()
					list = append(list, n)
				}
			}
		}
	}
	return list
}

// valued are the short options of scripted commands that take a value: what stands behind one in its word is that. With e the
// value is a script, with f a file that holds one.
var valued = map[string]string{"sed": "efil", "awk": "efvF", "gawk": "efvF", "mawk": "fvF", "jq": "fL", "rg": "efABCEMTdgjmrt"}

// givesScript reports whether a word may be an option with the script, so that the first operand is a file. Where e ends several
// letters, the script is that operand. In doubt it is true: then more words count as files.
func givesScript(command, s string) bool {
	switch {
	case s == "-e", strings.HasPrefix(s, "--regexp"), strings.HasPrefix(s, "--file"), strings.HasPrefix(s, "--expression"):
		return true
	case !strings.HasPrefix(s, "-"), strings.HasPrefix(s, "--"):
		return false
	}
	at := strings.IndexAny(s, cmp.Or(valued[command], "efABCDdm")) // of grep
	return at >= 0 && (s[at] == 'f' || s[at] == 'e' && at < len(s)-1)
}

// parts are what of a word may be the name of a file: of "--file=a" and "if=a", of "@a" and of
// "HEAD:a" what comes last, too, and of "f=@a;type=b" what curl uploads.
func parts(w word, option bool) (list []word) {
	add := func(from int) {
		p := word{text: w.text[from:], glob: w.glob, expand: w.expand, cut: w.cut}
		list = append(list, p)
		if len(p.text) < 2 || p.text[0] != '@' && p.text[0] != '<' {
			return
		}
		p.text = p.text[1:]
		list = append(list, p)
		if end := slices.IndexFunc(p.text, func(c rune) bool { return c == ';' || c == ',' }); end > 0 {
			p.text = p.text[:end]
			list = append(list, p)
		}
	}
	if !option {
		add(0)
	} else if w.expand || w.glob {
		return []word{{text: text{star}, expand: true}}
	} else if len(w.text) > 2 && w.text[1] != '-' {
		add(2)
	}
	for i, c := range w.text[:max(len(w.text)-1, 0)] {
		if c == '=' || c == ':' {
			add(i + 1)
		}
	}
	return list
}

// cd follows a change of folder.
func (r *reader) cd(words []word) {
	to := words[1:]
	for len(to) > 0 && to[0].is("-P", "-L", "--") {
		to = to[1:]
	}
	dir, ok := "", false
	if len(to) == 1 {
		dir, ok = to[0].plain()
	}
	if !ok || dir == "" || dir[0] == '-' || dir[0] == '~' || len(r.bases) > 8 {
		r.lost = true
		return
	}
	for _, base := range slices.Clone(r.bases) {
		next := path.Join(base, dir)
		if path.IsAbs(dir) {
			next = path.Clean(dir)
		}
		if !slices.Contains(r.bases, next) {
			r.bases = append(r.bases, next)
		}
	}
}
