package plan_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"agentteam/pkg/config/plan"
	"agentteam/pkg/team"
)

func TestParse(t *testing.T) {
	src, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.Parse("release.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	got := read.Tasks
	want := []team.NewTask{
		{Title: "写变更日志 📝", Description: "Read `git log` since the last tag.\nOne line a change.\n", Priority: 1, Role: "coder",
			DeliverableReq: true, Metadata: []byte(`{"issue":17,"labels":["docs","发布 🚀"],"ratio":0.5,"skip":null,"urgent":true}`)},
		{Title: "Run all tests", Priority: 2, Role: "tester", Dependencies: []team.TaskID{"T-001", "T-012"}, Check: "make test"},
		{Title: "Tag the release", Role: "explorer", After: []int{0, 1}, Dependencies: []team.TaskID{"T-007"}},
		{Title: "Tell everybody", After: []int{2}},
	}
	if len(got) != len(want) {
		t.Fatalf("%d tasks, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("task %d is\n%+v, want\n%+v", i+1, got[i], want[i])
		}
	}
	if err := team.ValidatePlan(got); err != nil {
		t.Errorf("the board would refuse it: %v", err)
	}
}

// Every fault is told with its place and what is allowed there.
func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", team.MaxTextBytes+1)
	many := "tasks:\n" + strings.Repeat("  - {title: x}\n", plan.MaxTasks+1)
	for name, tt := range map[string]struct{ src, want string }{
		"empty":                  {"", "p.yaml:1:1: the plan lacks the key tasks: a list of tasks"},
		"comments only":          {"# nothing\n", "p.yaml:1:1: the plan lacks the key tasks: a list of tasks"},
		"not YAML":               {"tasks:\n  - title: [\n", "p.yaml:3:1: did not find"},
		"a list":                 {"- title: x\n", "p.yaml:1:1: the plan must be a mapping with the key tasks, and this is a list"},
		"a text":                 {"x\n", "p.yaml:1:1: the plan must be a mapping; keys: tasks"},
		"no tasks":               {"{}\n", "p.yaml:1:1: the plan lacks the key tasks: a list of tasks"},
		"wrong indent":           {"tasks:\n  - title: x\n    name: y\n   - title: z\n", "p.yaml:4:4: did not find expected '-' indicator"},
		"tasks no list":          {"tasks: {title: x}\n", "p.yaml:1:8: tasks must be a list"},
		"tasks empty":            {"tasks: []\n", "p.yaml:1:8: tasks must be a list with at least one"},
		"two documents":          {"tasks:\n- title: x\n---\ntasks:\n- title: y\n", "p.yaml:3:1: there may be one document only; another one"},
		"second document broken": {"tasks:\n- title: x\n---\n[\n", "p.yaml:5:1: did not find"},
		"task no mapping":        {"tasks:\n- x\n", "p.yaml:2:3: an entry of tasks must be a mapping; keys: name, title,"},
		"unknown key":            {"tasks:\n- title: x\n  after: [y]\n", `p.yaml:3:3: unknown key "after" in an entry of tasks; allowed: name, title, description,`},
		"unknown key above":      {"goal: x\ntasks:\n- title: x\n", `p.yaml:1:1: unknown key "goal" in the plan; allowed: tasks`},
		"key twice":              {"tasks:\n- title: x\n  title: y\n", `p.yaml:3:3: the key "title" comes twice`},
		"no title":               {"tasks:\n- title: x\n- description: y\n", "p.yaml:3:3: an entry of tasks lacks the key title: one line that states"},
		"empty title":            {"tasks:\n- title: ''\n", "p.yaml:2:10: title is empty: it is one line"},
		"title of two lines":     {"tasks:\n- title: \"a\\nb\"\n", "p.yaml:2:10: the title has more than one line"},
		"title a number":         {"tasks:\n- title: 1.10\n", "p.yaml:2:10: title must be a text; put 1.10 in quotes"},
		"title a list":           {"tasks:\n- title: [x]\n", "p.yaml:2:10: title must be a text"},
		"title null":             {"tasks:\n- title:\n", "p.yaml:2:9: title has no value: it is one line"},
		"alias":                  {"tasks:\n- title: &a x\n- title: *a\n", "p.yaml:3:10: a YAML alias such as *x is not understood in a plan"},
		"merge":                  {"tasks:\n- &a {title: x}\n- <<: *a\n", "p.yaml:3:3: a key must be plain text"},
		"long description":       {"tasks:\n- title: x\n  description: " + long + "\n", "p.yaml:3:16: the description is 65537 bytes long, the limit is 65536"},
		"escaped control":        {"tasks:\n- title: \"a\\e[31m\"\n", "p.yaml:2:10: the title holds the control character U+001B"},
		"control":                {"tasks:\n- title: 好\x1b[31m\n", "p.yaml:2:11: here is the control character U+001B"},
		"not UTF-8":              {"tasks:\n- title: \xff\n", "p.yaml:2:10: this is not UTF-8"},
		"priority":               {"tasks:\n- title: x\n  priority: urgent\n", `p.yaml:3:13: priority: "urgent" is not a priority`},
		"priority too high":      {"tasks:\n- title: x\n  priority: 3\n", `p.yaml:3:13: priority: "3" is not a priority`},
		"priority a list":        {"tasks:\n- title: x\n  priority: [1]\n", "p.yaml:3:13: priority must be a text"},
		"role":                   {"tasks:\n- title: x\n  role: Best Coder\n", `p.yaml:3:9: role "Best Coder" is not valid`},
		"role empty":             {"tasks:\n- title: x\n  role: ''\n", "p.yaml:3:9: role is empty; give it one or leave it out"},
		"depends_on a text":      {"tasks:\n- title: x\n  depends_on: T-001\n", "p.yaml:3:15: depends_on must be a list"},
		"depends_on a mapping":   {"tasks:\n- title: x\n  depends_on: [{a: b}]\n", "p.yaml:3:16: an entry of depends_on must be a text"},
		"unknown name":           {"tasks:\n- title: x\n  depends_on: [tests]\n", `p.yaml:3:16: no task of this plan has the name "tests"`},
		"itself":                 {"tasks:\n- name: a\n  title: x\n  depends_on: [a]\n", "p.yaml:4:16: the tasks wait for each other: a -> a"},
		"cycle": {"tasks:\n- {name: a, title: x, depends_on: [b]}\n- {name: b, title: x, depends_on: [c]}\n- {name: c, title: x, depends_on: [a]}\n",
			"p.yaml:4:36: the tasks wait for each other: a -> b -> c -> a"},
		"name twice":           {"tasks:\n- {name: a, title: x}\n- {name: a, title: y}\n", `p.yaml:3:10: a second task with the name "a"`},
		"name like an id":      {"tasks:\n- {name: t-7, title: x}\n", `p.yaml:2:10: name: "t-7" could be the id`},
		"name empty":           {"tasks:\n- {name: ' ', title: x}\n", "p.yaml:2:10: name: want 1 to 128 bytes, in one line"},
		"check a list":         {"tasks:\n- {title: x, check: [make]}\n", "p.yaml:2:21: check must be a text"},
		"check empty":          {"tasks:\n- {title: x, check: ' '}\n", "p.yaml:2:21: check is empty"},
		"deliverable_required": {"tasks:\n- {title: x, deliverable_required: maybe}\n", "p.yaml:2:36: deliverable_required must be true or false"},
		"metadata":             {"tasks:\n- {title: x, metadata: [1]}\n", "p.yaml:2:24: metadata must be a mapping"},
		"metadata infinite":    {"tasks:\n- {title: x, metadata: {a: .inf}}\n", "p.yaml:2:28: .inf has no place in JSON"},
		"metadata a date":      {"tasks:\n- {title: x, metadata: {a: 2026-01-01}}\n", "p.yaml:2:28: metadata.a must be a text; put 2026-01-01 in quotes"},
		"metadata too long":    {"tasks:\n- {title: x, metadata: {a: " + long + "}}\n", "p.yaml:2:24: metadata is 65545 bytes long"},
		"too many tasks":       {many, "p.yaml:1002:5: the plan has 1001 tasks, the limit is 1000"},
		"too many dependencies": {"tasks:\n- title: x\n  depends_on: [" + strings.Repeat("T-001, ", team.MaxDependencies) + "T-002]\n",
			"p.yaml:3:15: 257 dependencies are too many, the limit is 256"},
		"too large": {"tasks:\n- title: x\n#" + strings.Repeat(" ", plan.MaxBytes), "p.yaml:1:1: the plan is larger than the limit of 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := plan.Parse("p.yaml", []byte(tt.src))
			tasks := read.Tasks
			if tasks != nil || team.CodeOf(err) != team.InvalidArgument || !strings.HasPrefix(fmt.Sprint(err), tt.want) {
				t.Errorf("%d tasks, %q; want no task and invalid_argument %q...", len(tasks), err, tt.want)
			}
		})
	}
}

// What only the board can find out is told with its place too.
func TestPlaces(t *testing.T) {
	p, err := plan.Parse("p.yaml", []byte("tasks:\n- {name: T1x, title: x, role: Explore}\n- title: y\n  depends_on: [T1x, '#7', T-8]\n"))
	if err != nil {
		t.Fatal(err)
	}
	missing := team.Errorf(team.NotFound, "it is not there").WithHint("make it")
	for want, got := range map[string]error{
		"p.yaml:2:31: it is not there": p.InRole(0, missing),
		"it is not there":              p.InRole(1, missing),
		"p.yaml:4:21: it is not there": p.InDependency(1, "T-007", missing),
		"p.yaml:4:27: it is not there": p.InDependency(1, "T-008", missing),
	} {
		if got.Error() != want || team.CodeOf(got) != team.NotFound || team.HintOf(got) != "make it" {
			t.Errorf("told %q (%s, hint %q), want %q", got, team.CodeOf(got), team.HintOf(got), want)
		}
	}
	if got := p.InDependency(0, "T-007", missing); got != error(missing) {
		t.Errorf("a dependency that the task does not have is told as %q", got)
	}
}

// A long way through a plan is no cycle, and is told quickly.
func TestParseChain(t *testing.T) {
	var b strings.Builder
	b.WriteString("tasks:\n")
	for i := range plan.MaxTasks {
		fmt.Fprintf(&b, "- {name: n%d, title: x, depends_on: [", i)
		for d := max(0, i-20); d < i; d++ {
			fmt.Fprintf(&b, "n%d, ", d)
		}
		b.WriteString("]}\n")
	}
	read, err := plan.Parse("p.yaml", []byte(b.String()))
	tasks := read.Tasks
	if err != nil || len(tasks) != plan.MaxTasks || len(tasks[999].After) != 20 {
		t.Errorf("%d tasks, %v", len(tasks), err)
	}
}

// What Parse accepts the board can store; what it refuses it refuses with a place.
func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	for _, s := range []string{
		"tasks:\n- {name: 测试, title: 🚀}\n- {title: x, depends_on: [测试, '#3', 4]}\n",
		"tasks:\n- {name: a, title: x, depends_on: [b]}\n- {name: b, title: x, depends_on: [a]}\n",
		"tasks: &a [*a]\n", "tasks: [[[[", "? [a]: b\n", "tasks:\n- {title: !!binary eA==}\n", "tasks:\n- title: |2\n\t x\n", "\xff\xfe", "---\n---\n",
		"tasks:\n- {title: x, metadata: {a: {b: [1e400, ~, !!int x]}}}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		read, err := plan.Parse("p.yaml", src)
		if err != nil {
			var line, column int
			if n, _ := fmt.Sscanf(err.Error(), "p.yaml:%d:%d:", &line, &column); n != 2 || line < 1 || column < 1 || team.CodeOf(err) != team.InvalidArgument {
				t.Errorf("refused with %q (%s), which names no place", err, team.CodeOf(err))
			}
			return
		}
		if err := team.ValidatePlan(read.Tasks); err != nil {
			t.Errorf("accepted what the board refuses: %v", err)
		}
	})
}
