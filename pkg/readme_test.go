package pkg

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// readmeWords is how long README.md may be: a visitor decides within a minute.
const readmeWords = 900

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadmeIsShort(t *testing.T) {
	n := 0
	for word := range strings.FieldsSeq(read(t, "README.md")) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	if n > readmeWords {
		t.Errorf("README.md has %d words, at most %d: move reference to docs/", n, readmeWords)
	}
}

// part returns the text below a heading, up to the next one of its level.
func part(t *testing.T, file, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, file), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// rows returns the cells of a text's table rows, without head and rule.
func rows(text string) (all [][]string) {
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	if len(all) == 0 {
		return nil
	}
	return all[1:]
}

// The times of README's table of failures are those of the one that the operators have.
func TestWhatIf(t *testing.T) {
	source := part(t, "docs/operations.md", "When something fails")
	table := rows(part(t, "README.md", "What if"))
	for _, row := range table {
		if after := row[len(row)-1]; !strings.Contains(source, after) {
			t.Errorf("README.md: %s: %q is not in docs/operations.md, When something fails", row[0], after)
		}
	}
	for i, who := range []string{"teammate", "leader", "NATS", "model", "terminal"} {
		if i >= len(table) || !strings.Contains(table[i][0], who) {
			t.Errorf("README.md: row %d of What if is not about: %s", i+1, who)
		}
	}
}

// The state of a rule in the overview is the one of its section.
func TestStatesOfRules(t *testing.T) {
	text := read(t, "docs/rules.md")
	overview, _, _ := strings.Cut(text, "\n## ")
	for _, row := range rows(overview) {
		_, rest, _ := strings.Cut(text, "\n## "+row[0]+". ")
		body, _, _ := strings.Cut(rest, "\n## ")
		_, body, _ = strings.Cut(body, "\n\n")
		state := row[len(row)-1]
		switch {
		case strings.HasPrefix(body, "Not built.") != strings.HasPrefix(state, "not built"):
			t.Errorf("rule %s: the overview has %q, the section begins %.20q", row[0], state, body)
		case strings.Contains(body, "\nNot built: ") && state == "built":
			t.Errorf("rule %s: the overview has %q, the section names what is not built", row[0], state)
		}
	}
}

// What the pages list as not built is not there: neither a tool of that name nor a package.
func TestNotBuilt(t *testing.T) {
	tools := toolNames(t)
	list := regexp.MustCompile(`(?m)^- The tools .*$`).FindString(part(t, "docs/architecture.md", "Not built yet"))
	for _, m := range span.FindAllStringSubmatch(list, -1) {
		if tools[m[1]] != "" {
			t.Errorf("docs/architecture.md lists the tool %s as not built, and it is there", m[1])
		}
	}
	for _, m := range span.FindAllStringSubmatch(regexp.MustCompile(`(?s)packages that do not exist yet \(.*?\)`).FindString(read(t, "docs/architecture.md")), -1) {
		if _, err := os.Stat(m[1]); err == nil {
			t.Errorf("docs/architecture.md says that the package %s does not exist yet", m[1])
		}
	}
}

// Every page is in the map of pages.
func TestPagesAreListed(t *testing.T) {
	listed := part(t, "docs/README.md", "All pages")
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(listed, "("+name+")") {
			t.Errorf("docs/README.md, All pages, has no row for %s", name)
		}
	}
}

// The manual names every kind of endpoint that has a profile.
func TestProfilesAreNamed(t *testing.T) {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	text := plain(part(t, "docs/models.md", "Profiles"))
	names := regexp.MustCompile(`\bName:\s+"([a-z]+)`).FindAllStringSubmatch(read(t, "pkg/model/profiles.go"), -1)
	for _, m := range names {
		if !strings.Contains(text, plain(m[1])) {
			t.Errorf("docs/models.md, Profiles, does not name %s", m[1])
		}
	}
	if len(names) < 10 {
		t.Errorf("%d profiles were found", len(names))
	}
}
