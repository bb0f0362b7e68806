package e2e

import (
	"strings"
	"testing"
)

// talkScript has a leader that answers in text only, and for a goal that says "work" leaves a
// task open.
const talkScript = `
agents:
  - match: {role: leader}
    rules:
      - name: work
        since: '<mail from="user"[^>]*>\nwork'
        steps:
          - calls:
              - {tool: create_task, args: {title: for nobody, role: tester}}
          - say: I wait.
      - name: answer
        say: It is 42.
`

// cannotCall has a model that cannot call a tool when it is asked to.
const cannotCall = `
  - match: {role: doctor}
    rules:
      - name: talk
        say: '{"name": "ready", "word": "yes"}'
`

// A goal that ends by text alone is finished if the leader's model can call tools: that was the
// answer. Else it has failed, and so has one whose leader leaves tasks open; each says why.
func TestGoalThatEndsByText(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"can": talkScript, "cannot": talkScript + cannotCall} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := up(t, script, 0)
			code, out, errs := exit(t, c.command("run", "what is it?"))
			if !strings.Contains(out, "\nIt is 42.\n") {
				t.Errorf("the answer is not shown:\n%s", out)
			}
			if name == "can" && (code != 0 || !strings.Contains(out, "\nfinished: ")) {
				t.Errorf("an answer in text: exit status %d\n%s\n%s", code, out, errs)
			}
			const why = "the goal ended as failed: the model called no tool; can it?"
			if name == "cannot" && (code != 1 || !strings.Contains(errs, why) || !strings.Contains(out, "\nfailed: ")) {
				t.Errorf("of a model without tools: exit status %d\n%s\n%s", code, out, errs)
			}
			code, out, errs = exit(t, c.command("run", "work"))
			if want := "the goal ended as failed: the leader ended its turn 4 times with open tasks: T-001\n"; code != 1 || !strings.Contains(errs, want) {
				t.Errorf("with an open task: exit status %d\n%s\n%s", code, out, errs)
			}
		})
	}
}
