package skills_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"agentteam/pkg/agent/skills"
	"agentteam/pkg/execenv/trust"
)

// Of several skills with one name the later place counts: built in, the three folders of the user, the two of the repository.
func TestPlacesOfSkills(t *testing.T) {
	user, dir := home(t), t.TempDir()
	get := func(name string) skills.Skill {
		s, _ := skills.Load(dir, dir, nil).Get(name)
		return s
	}
	if s := get("lead-a-team"); s.Source != skills.BuiltIn || s.Folder != "" {
		t.Errorf("without any other the skill is %+v", s)
	}
	for i, folder := range []string{
		filepath.Join(user, ".claude/skills"), filepath.Join(user, ".agents/skills"), filepath.Join(user, ".config/agentteam/skills"),
		filepath.Join(dir, ".claude/skills"), filepath.Join(dir, ".agents/skills"),
	} {
		source := skills.User
		for _, name := range []string{"lead-a-team", fmt.Sprint("only-", i)} {
			file := filepath.Join(folder, name, skills.FileName)
			write(t, file, fmt.Sprintf("---\nname: %s\ndescription: of %d\n---\n", name, i))
			if i < 3 {
				continue
			}
			source = skills.Project
			w, err := skills.WaitingIn(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := trust.OfUser().Add(t.Context(), *w, false); err != nil {
				t.Fatal(err)
			}
		}
		if s := get("lead-a-team"); s.Description != fmt.Sprint("of ", i) || s.Source != source {
			t.Errorf("with one in %s the skill is %+v", folder, s)
		}
	}
	if got := names(skills.Load(dir, dir, nil).All); !slices.Equal(got, []string{"lead-a-team", "only-0", "only-1", "only-2", "only-3", "only-4"}) {
		t.Errorf("read %v", got)
	}
}
