package screen

import (
	"slices"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/team"
)

// What a member has under way beside its conversation stands beneath it, each with how it is.
func TestJobsBeneathTheirOwner(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.room.snapshot.agents[4].Jobs = []team.Job{
		{ID: "a1b2c3d", Kind: team.JobSubagent, Type: "explorer", About: "look for tokens", Since: at(8), Turns: 3},
		{ID: "a2b3c4d", Kind: team.JobSubagent, Type: "coder", About: "push it", Since: at(9), Asked: "C1"},
		{ID: "b3c4d5e", Kind: team.JobCommand, About: "make watch", Background: true, Since: at(4), Still: 120},
		{ID: "b4c5d6f", Kind: team.JobCommand, About: "make", Background: true, Since: at(9), Ended: "exit status 1"},
	}
	rows := p.memberRows()
	zoe := slices.IndexFunc(rows, func(r row) bool { return r.id == "zoe" })
	want := []string{
		"   a1b2c3d explorer (2m): look for tokens",
		"   a2b3c4d coder (1m, waits for a person): push it",
		"   b3c4d5e command (6m, silent for 2m): make watch",
		"   b4c5d6f command (ended: exit status 1): make",
	}
	var got []string
	for _, l := range rows[zoe].lines[2:] {
		got = append(got, ansi.Strip(l))
	}
	if !slices.Equal(got, want) {
		t.Errorf("beneath zoe stands\n%q, want\n%q", got, want)
	}
}
