package workspace_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

func patchOf(lines ...string) args {
	return args{"input": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
}

// openKeeping is open for a folder in which no tool may write the file.
func openKeeping(t *testing.T, file string, o workspace.Options) place {
	t.Helper()
	p := open(t, workspace.Options{})
	o.Kept = []string{p.path(file)}
	w, err := workspace.Open(p.dir, command.Plain{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	p.set = newSet(t, w)
	return p
}

// there are the files of the place, by name, without those of git.
func (p place) there() map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			files[e.Name()] = p.get(e.Name())
		}
	}
	return files
}

// A patch changes all its files.
func TestPatch(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("a", "one\ntwo\n")
	p.put("b", "gone\n")
	p.put("c", "moved\n")
	if err := os.Chmod(p.path("c"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := p.ok("apply_patch", patchOf("*** Update File: a", "@@", "-two", "+2", "*** Delete File: b", "*** Update File: c", "*** Move to: d", "@@", " moved", "+on", "*** Add File: e", "+new"))
	if want := map[string]string{"a": "one\n2\n", "d": "moved\non\n", "e": "new\n"}; !reflect.DeepEqual(p.there(), want) {
		t.Errorf("files %q, want %q", p.there(), want)
	}
	for _, line := range []string{"changed a\n", "-two\n+2\n", "deleted b\n", "made d\n", "deleted c\n", "made e"} {
		if !strings.Contains(got, line) {
			t.Errorf("the result lacks %q: %s", line, got)
		}
	}
	if info, err := os.Stat(p.path("d")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the moved file: %v, %v", info.Mode(), err)
	}
	p.ok("edit_file", args{"path": "a", "old_string": "2", "new_string": "3"}) // it knows what it has written
}

// A patch that one of its files refuses changes none, whatever comes first and however late that shows.
func TestPatchOfNone(t *testing.T) {
	for name, tt := range map[string]struct {
		code  team.Code
		lines []string
		says  string
	}{
		"a hunk that does not fit": {team.Conflict, []string{"*** Update File: b", "@@", "-three"}, "hunk 1 of b"},
		"a file that is not there": {team.NotFound, []string{"*** Update File: x", "@@", "-three"}, "x"},
		"one to delete":            {team.NotFound, []string{"*** Delete File: x"}, "x"},
		"one that is there":        {team.Conflict, []string{"*** Add File: b", "+x"}, "b is there already"},
		"a new path that is":       {team.Conflict, []string{"*** Update File: b", "*** Move to: a"}, "a is there already"},
		"of git":                   {team.PermissionDenied, []string{"*** Add File: .git/hooks/x", "+x"}, "belongs to git"},
		"outside":                  {team.PermissionDenied, []string{"*** Add File: ../x", "+x"}, "outside the workspace"},
		"by a link":                {team.PermissionDenied, []string{"*** Add File: out/x", "+x"}, ""},
		"kept":                     {team.PermissionDenied, []string{"*** Update File: kept", "@@", "+x"}, "kept from members"},
		"not for this member":      {team.PermissionDenied, []string{"*** Delete File: not"}, "not yours"},
		"moved where it may not":   {team.PermissionDenied, []string{"*** Update File: b", "*** Move to: not2"}, "not yours"},
		"changed meanwhile":        {team.Conflict, []string{"*** Update File: stale", "@@", "+x"}, "has changed since you read it"},
		"of the cluster":           {team.PermissionDenied, []string{"*** Add File: .agentteam/x", "+x"}, "belongs to the cluster"},
		"not writable":             {team.PermissionDenied, []string{"*** Update File: ro", "@@", "+x"}, "read-only"},
		"below a file":             {team.InvalidArgument, []string{"*** Add File: b/x", "+x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := openKeeping(t, "kept", workspace.Options{Writable: func(name string) error {
				if strings.HasPrefix(name, "not") {
					return team.Errorf(team.PermissionDenied, "%s is not yours", name)
				}
				return nil
			}})
			for _, f := range []string{"a", "b", "c", "kept", "not", "stale", "ro"} {
				p.put(f, "text\n")
			}
			p.link("..", "out")
			p.ok("read_file", args{"path": "stale"})
			p.put("stale", "another's\n")
			if err := os.Chmod(p.path("ro"), 0o444); err != nil {
				t.Fatal(err)
			}
			before := p.there()
			first := []string{"*** Update File: a", "@@", "-text", "*** Delete File: c", "*** Add File: new", "+x"}
			got := p.fails(tt.code, "apply_patch", patchOf(append(first, tt.lines...)...))
			if !reflect.DeepEqual(p.there(), before) || !strings.Contains(got, tt.says) {
				t.Errorf("%s; files %q, want %q", got, p.there(), before)
			}
		})
	}
}

// In a folder that members share, the account of a patch says how to take all of it back.
func TestPatchIsKept(t *testing.T) {
	texts := blob.In(brokertest.Team(t, "t").Files)
	p := open(t, workspace.Options{Keep: texts.Put, Stored: texts.Open, Shared: true})
	p.put("a", "one\n")
	p.put("b", "two\n")
	kept := func(text string) string {
		ref, err := texts.Put(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	r := p.call("apply_patch", patchOf("*** Update File: a", "@@", "-one", "+1", "*** Delete File: b", "*** Add File: c", "+3"))
	want := &team.Change{Path: "a", Before: kept("one\n"), After: team.DigestOf("1\n")}
	also := []team.Change{
		{Path: "b", Before: kept("two\n")}, {Path: "c", New: true, After: team.DigestOf("3\n")},
	}
	if !reflect.DeepEqual(r.Account.Change, want) || !reflect.DeepEqual(r.Account.Also, also) {
		t.Errorf("%s: %+v, want %+v", r.Content, r.Account, want)
	}
}

// Models that prefer patches see one tool in place of edit_file; all may call both.
func TestPatchingSpecs(t *testing.T) {
	p := open(t, workspace.Options{})
	var names []string
	for _, s := range p.set.Speaking(team.Native.Patching()).Specs() {
		names = append(names, s.Name)
		if strings.Contains(s.Description, "edit_file") {
			t.Errorf("%s speaks of edit_file: %s", s.Name, s.Description)
		}
		if schema := string(s.Schema); s.Name == "apply_patch" && (!strings.Contains(schema, `"required":["input"]`) || strings.Contains(schema, "old_string")) {
			t.Errorf("%s takes %s", s.Name, schema)
		}
	}
	if want := "bash read_file write_file apply_patch glob grep"; strings.Join(names, " ") != want {
		t.Errorf("%v, want %s", names, want)
	}
	for _, s := range p.set.Speaking(team.Native).Specs() {
		if s.Name == "apply_patch" || strings.Contains(string(s.Schema), "patch") {
			t.Errorf("%s: %s", s.Name, s.Schema)
		}
	}
	p.fails(team.InvalidArgument, "edit_file", args{"path": "a", "patch": "x", "old_string": "", "new_string": ""})
	p.fails(team.InvalidArgument, "apply_patch", args{})
	p.fails(team.InvalidArgument, "apply_patch", args{"input": ""})
}
