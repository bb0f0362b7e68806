package patch_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/patch"
)

func whole(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"
}

// Each patch is of the file f; what it makes of the text, or the words of its error.
func TestApply(t *testing.T) {
	const text = "func a() {\n\tone()\n}\n\nfunc b() {\n\tone()\n\ttwo()\n}\n"
	for name, tt := range map[string]struct {
		text, patch, want string
		code              team.Code
	}{
		"a line":                     {text, "@@\n-\ttwo()\n+\tthree()", strings.Replace(text, "two", "three", 1), ""},
		"below a heading":            {text, "@@ func b() {\n-\tone()\n+\tthree()", "func a() {\n\tone()\n}\n\nfunc b() {\n\tthree()\n\ttwo()\n}\n", ""},
		"below two":                  {text, "@@ func a() {\n@@ func b() {\n-\tone()", "func a() {\n\tone()\n}\n\nfunc b() {\n\ttwo()\n}\n", ""},
		"without a heading":          {text, " func b() {\n-\tone()", "func a() {\n\tone()\n}\n\nfunc b() {\n\ttwo()\n}\n", ""},
		"a heading of diff":          {text, "@@ -5,3 +5,3 @@ func b() {\n-\tone()", "func a() {\n\tone()\n}\n\nfunc b() {\n\ttwo()\n}\n", ""},
		"two hunks":                  {text, "@@\n-\tone()\n@@\n-\tone()", "func a() {\n}\n\nfunc b() {\n\ttwo()\n}\n", ""},
		"hunks out of order":         {text, "@@\n-\ttwo()\n@@\n-func a() {", "hunk 2 of f: its 1 old lines are not in the file from line 8 on; the first is \"func a() {\"", team.Conflict},
		"lost blanks":                {text, " func b() {\n-one()\n+\tthree()\n two()", "func a() {\n\tone()\n}\n\nfunc b() {\n\tthree()\n\ttwo()\n}\n", ""},
		"an empty line has no blank": {text, " }\n\n-func b() {\n+func c() {", strings.Replace(text, "b()", "c()", 1), ""},
		"an empty line at the end":   {"a\nb\n", "@@\n-a\n+A\n", "A\nb\n", ""},
		"only new lines":             {"a\n", "@@\n+b", "a\nb\n", ""},
		"new ones below a line":      {"a\nb\n", "@@ a\n+x", "a\nx\nb\n", ""},
		"at the end":                 {"a\nb\na\n", "@@\n-a\n+c\n*** End of File", "a\nb\nc\n", ""},
		"no line end":                {"a\nb", "@@\n b\n+c", "a\nb\nc\n", ""},
		"line ends of Windows":       {"a\r\nb\r\n", "@@\n a\n-b\n+c\n+d", "a\r\nc\r\nd\r\n", ""},
		"an empty file":              {"", "@@\n+a", "a\n", ""},
		"not there":                  {text, "@@\n-\tfour()", "hunk 1 of f: its 1 old lines are not in the file from line 1 on", team.Conflict},
		"no such heading":            {text, "@@ func c() {\n-\tone()", "hunk 1 of f: no line from 1 on is \"func c() {\"", team.Conflict},
	} {
		files, err := patch.Parse(whole("*** Update File: f", tt.patch))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := files[0].Apply(tt.text)
		if team.CodeOf(err) != tt.code || err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	files, err := patch.Parse("apply_patch <<'EOF'\r\n" + strings.ReplaceAll(whole("*** Add File: a/b", "+one", "+", "*** Delete File: c", "*** Update File: d", "*** Move to: e", "*** Update File: f", "@@", "+x"), "\n", "\r\n") + "\r\nEOF\r\n")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	if f := files[0]; f.Path != "a/b" || !f.New || f.Text != "one\n\n" {
		t.Errorf("added: %+v", f)
	}
	if f := files[1]; f.Path != "c" || !f.Gone {
		t.Errorf("deleted: %+v", f)
	}
	if f := files[2]; f.Path != "d" || f.To != "e" || f.New || f.Gone {
		t.Errorf("moved: %+v", f)
	}
	for bad, want := range map[string]string{
		"*** Update File: f\n":                               `no line is "*** Begin Patch"`,
		"*** Begin Patch\n*** Add File: f\n+x":               `ends without "*** End Patch"`,
		whole("+x"):                                          `line 2, "+x": want *** Update File`,
		whole("*** Update File: f"):                          "f has no hunk",
		whole("*** Update File: f", "@@"):                    "hunk 1 of f has no line",
		whole("*** Update File: f", "@@", "x"):               `line 4, "x": a line of a hunk begins`,
		whole("*** Add File: f", "x"):                        `line 3, "x": each line of an added file begins with +`,
		whole("*** Delete File: f", "-x"):                    "nothing follows the path of a deleted file",
		whole("*** Delete File: f", "*** Add File: f", "+x"): "names this file twice",
	} {
		if _, err := patch.Parse(bad); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}
