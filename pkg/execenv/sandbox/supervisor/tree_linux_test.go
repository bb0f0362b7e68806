package supervisor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// What is below a process is found in what /proc shows at one time after the other: who was listed may have ended, and its number
// be another's.
func TestBelow(t *testing.T) {
	for name, tt := range map[string]struct {
		children map[int][]int
		stats    map[int]string // "PARENT START", of one look after the other
		want     string         // "PID:START"
	}{
		"none":                      {nil, nil, ""},
		"parents first":             {map[int][]int{1: {2, 3}, 2: {4}}, map[int]string{2: "1 a", 3: "1 b", 4: "2 c"}, "2:a 3:b 4:c"},
		"a bomb":                    {map[int][]int{1: {2, 3, 4}}, nil, "2: 3: 4:"},
		"its parent has ended":      {map[int][]int{1: {2}, 2: {3}, 3: {4}}, map[int]string{2: "1 a; gone", 3: "1 b", 4: "3 c"}, "2:a 3:b 4:c"},
		"another's since listed":    {map[int][]int{1: {2}, 2: {3}}, map[int]string{2: "9 x", 3: "2 y"}, "2:"},
		"another's since looked at": {map[int][]int{1: {2}, 2: {3}}, map[int]string{2: "1 a; 9 x", 3: "2 y"}, "2:a"},
		"used again by the command": {map[int][]int{1: {2, 5}, 2: {3}}, map[int]string{2: "1 a; 5 x", 5: "1 b", 3: "2 y"}, "2:a 5:b"},
	} {
		t.Run(name, func(t *testing.T) {
			looks := map[int]int{}
			stat := func(pid int) (parent int, start string, ok bool) {
				all := strings.Split(tt.stats[pid], "; ")
				n, _ := fmt.Sscan(all[min(looks[pid], len(all)-1)], &parent, &start)
				looks[pid]++
				return parent, start, n == 2
			}
			var got []string
			for p := range below(1, func(pid int) []int { return tt.children[pid] }, stat) {
				got = append(got, fmt.Sprintf("%d:%s", p.pid, p.start))
			}
			if want := strings.Fields(tt.want); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// Memory of a process that has the number of one of the command's is not the command's.
func TestUsage(t *testing.T) {
	_, start, _ := stat(os.Getpid())
	if got := usage([]process{{os.Getpid(), start}}, "status", "VmRSS:"); got == 0 {
		t.Error("this process uses nothing")
	}
	if got := usage([]process{{os.Getpid(), start + "0"}, {os.Getpid(), ""}}, "status", "VmRSS:"); got != 0 {
		t.Errorf("others use %d bytes", got)
	}
}
