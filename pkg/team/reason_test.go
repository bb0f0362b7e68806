package team

import "testing"

// The end of a goal names how many of its tasks have failed, and only those since the goal was set count.
func TestEndInWords(t *testing.T) {
	tasks := []Task{{Status: Failed, Revision: 7}, {Status: Failed, Revision: 9}, {Status: Completed, Revision: 10}, {Status: Failed, Revision: 12}, {Status: Cancelled, Revision: 13}}
	for seq, want := range map[uint64]string{6: "finished, 3 tasks failed", 7: "finished, 2 tasks failed", 9: "finished, 1 task failed", 12: "finished"} {
		if got := (Ending{Status: TeamFinished, Failed: Team{GoalSeq: seq}.Failed(tasks)}).InWords(); got != want {
			t.Errorf("since %d: %s, want %s", seq, got, want)
		}
	}
	if got := (Team{Status: Active}).InWords(); got != "active" {
		t.Errorf("a team at work is %s", got)
	}
	ended := Team{Status: TeamStopped, Goal: "g", End: "stopped, 1 task failed"}
	if past := ended.Ended(); ended.InWords() != "stopped, 1 task failed" || past[0].InWords() != ended.InWords() {
		t.Errorf("it ended as %s, and is kept as %+v", ended.InWords(), past)
	}
}
