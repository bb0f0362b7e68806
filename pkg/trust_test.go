package pkg

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/execenv"
)

var update = flag.Bool("update", false, "write what is made from the code into the docs")

// The table of what counts in the files of a repository before a person has trusted them is made from the declarations of the
// keys.
func TestHarmlessKeys(t *testing.T) {
	const file = "../docs/usage.md"
	type keys struct{ settings, role []string }
	byValue := map[string]*keys{}
	var order []string
	add := func(rows [][2]string, of func(*keys) *[]string) {
		for _, row := range rows {
			value := values(row[1])
			if byValue[value] == nil {
				byValue[value], order = &keys{}, append(order, value)
			}
			list := of(byValue[value])
			*list = append(*list, "`"+row[0]+"`")
		}
	}
	add(config.HarmlessKeys(), func(k *keys) *[]string { return &k.settings })
	add(role.HarmlessKeys(), func(k *keys) *[]string { return &k.role })
	var table strings.Builder
	table.WriteString("| value | keys of `team.yaml` | keys of a role file |\n|---|---|---|\n")
	for _, value := range order {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", value, strings.Join(byValue[value].settings, ", "), strings.Join(byValue[value].role, ", "))
	}
	holdsTable(t, file, table.String())
}

// The table of the files by which programs run commands unasked is that of the code.
func TestProtectedFiles(t *testing.T) {
	var table strings.Builder
	table.WriteString("| members only read | why |\n|---|---|\n")
	for _, row := range execenv.ProtectedFiles() {
		if row.Runs != execenv.OnWord {
			fmt.Fprintf(&table, "| `%s` | %s |\n", strings.Join(row.Paths, "`, `"), row.Why)
		}
	}
	holdsTable(t, "../docs/operations.md", table.String())
}

// holdsTable has a page of the docs hold a table that the running test makes, behind a line that names the test.
func holdsTable(t *testing.T, file, table string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin := "-run " + t.Name() + " -update -->\n\n"
	head, rest, begun := strings.Cut(string(data), begin)
	_, tail, ended := strings.Cut(rest, "\n<!-- end -->")
	if !begun || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	want := head + begin + table + "\n<!-- end -->" + tail
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Errorf("the table in %s is not that of the code: go test ./pkg -run %s -update", file, t.Name())
	}
}

// values are those of a tag `harmless`, for people.
func values(tag string) string {
	if tag == "any" {
		return "any"
	}
	if most, ok := strings.CutPrefix(tag, "most="); ok {
		return "up to " + most
	}
	return "`" + strings.ReplaceAll(tag, "|", "`, `") + "`"
}
