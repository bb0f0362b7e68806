package rehearsal

import (
	"strings"
	"testing"
)

// play parses the rules of one agent and returns that agent.
func play(t *testing.T, rules string) *actor {
	t.Helper()
	s, err := Parse("test", []byte("agents:\n- rules:\n"+rules))
	if err != nil {
		t.Fatal(err)
	}
	return &actor{script: s, who: asker{"coder-1", "coder", "red"}}
}

func TestFirstFittingAgentPlays(t *testing.T) {
	s, err := Parse("test", []byte(`
agents:
- {match: {name: "scout-*", team: red}, rules: [{name: a, say: red scout}]}
- {match: {role: leader},               rules: [{name: a, say: leader}]}
- {match: {name: "scout-[0-9]"},        rules: [{name: a, say: "{{.Name}} {{.Role}} {{.Team}}"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[asker]string{
		{"scout-1", "explorer", "red"}:  "red scout",
		{"scout-1", "explorer", "blue"}: "scout-1 explorer blue",
		{"leader", "leader", "red"}:     "leader",
		{"coder-1", "coder", "red"}:     "(nothing in the script for coder-1)",
	} {
		a := &actor{script: s, who: who}
		a.hears("hello")
		a.says(t, want)
	}
}

func TestConditions(t *testing.T) {
	a := play(t, `
  - {name: quick, newest: 'ping (?P<n>\d+)', say: 'pong {{.Match.n}}'}
  - {name: quiet, since: 'goal', unless: 'stop', say: working}
  - {name: rest, since: 'goal', say: stopped}
`)
	a.hears("hello")
	a.says(t, "(nothing in the script for coder-1)")
	a.hears("goal 1")
	a.says(t, "working")
	a.hears("ping 1, then ping 2")
	a.hears("ping 3")
	a.says(t, "pong 3") // of several new inputs, the newest that matches
	a.hears("and?")
	a.says(t, "working") // the pings are no longer new
	a.hears("stop")
	a.says(t, "stopped")
	a.hears("goal 2")
	a.says(t, "working") // the stop is before the new scope
}

func TestStepsFollowWhatWasPlayed(t *testing.T) {
	rules := `
  - name: work
    since: 'goal'
    steps:
    - {say: first, calls: [{tool: a}, {tool: b, args: {n: 1, on: true, none: null, list: [x, '{{.Name}}']}}]}
    - {calls: [{tool: c}]}
    - {say: paused}
    - {await: 'go on', waiting: not reached, say: paused again}
    - {await: 'finish', calls: [{tool: d}]}
  - {name: after, say: rest}
`
	a := play(t, rules)
	a.hears("goal")
	a.calls(t, "a {}", `b {"list":["x","coder-1"],"n":1,"none":null,"on":true}`)
	a.answered("go on", "finish") // heard, but before the next turn
	a.calls(t, "c {}")
	a.answered("ok")
	a.says(t, "paused")
	a.hears("hm")
	a.says(t, "paused")
	a.hears("finish") // skips nothing: the step between has not opened
	a.says(t, "paused")
	a.hears("go on")
	a.calls(t, "d {}") // both are heard by now
	a.answered("ok")
	a.says(t, "rest")

	// Another process with the same script and a copy of the conversation, as after
	// a kill, stands at the same place; a new goal begins anew.
	b := play(t, rules)
	b.conv = a.conv[:len(a.conv)-1]
	b.says(t, "rest")
	b.hears("goal again")
	b.calls(t, "a {}", `b {"list":["x","coder-1"],"n":1,"none":null,"on":true}`)
}

func TestAwait(t *testing.T) {
	a := play(t, `
  - {name: question, newest: 'what time', say: late}
  - name: work
    steps:
    - {await: 'task', calls: [{tool: a}]}
    - {await: 'survey', waiting: 'waiting, {{.Name}}', calls: [{tool: b}]}
`)
	a.hears("hello")
	a.says(t, "Waiting.")
	a.hears("the task, and an early survey")
	a.calls(t, "a {}")
	a.answered("ok")
	a.says(t, "waiting, coder-1") // the early one came before the turn
	a.hears("what time is it?")
	a.says(t, "late")
	a.hears("the survey")
	a.calls(t, "b {}")
}

func TestTemplates(t *testing.T) {
	for name, tt := range map[string]struct{ template, want string }{
		"field of a result":       {`{{(result "get" 0).id}}`, "T-001"},
		"index, nested":           {`{{index (result "get" 0).list 1}}`, "b<c"},
		"field function":          {`{{field "odd key" (result "get" 0)}}`, "1234567890123"},
		"second call, plain text": {`{{result "get" 0 1}}`, "line 1\nline 2\n"},
		"json":                    {`{{json (result "get" 0).list}}`, `["a","b\u003cc"]`},
		"shellquote":              {`{{shellquote "it's"}}`, `'it'\''s'`},
		"lines":                   {`{{lines 1 (result "get" 0 1)}}`, "line 1"},
		"more lines than are":     {`{{lines 9 "a"}}`, "a"},
		"trim":                    {`{{result "get" 0 1 | trim}}`, "line 1\nline 2"},
		"regex":                   {`{{regex "(\\d)" (result "get" 0 1)}}`, "1"},
		"regex without a group":   {`{{regex "l..e" "a line"}}`, "line"},
		"regex in an object":      {`{{regex "\"id\":\"(.*?)\"" (result "get" 0)}}`, "T-001"},
		"heard, the newest":       {`{{heard "line (\\d)"}}`, "2"},
		"no such group":           {`{{.Match.nope}}`, `map has no entry for key "nope"`},
		"no such field":           {`{{(result "get" 0).nope}}`, `map has no entry for key "nope"`},
		"no such field, function": {`{{field "nope" (result "get" 0)}}`, `no field "nope"`},
		"field of a text":         {`{{field "id" "text"}}`, "not an object: text"},
		"not played":              {`{{result "get" 3}}`, "step 3 of rule get was not played"},
		"no such call":            {`{{result "get" 0 2}}`, "step 0 of rule get has no call 2"},
		"nothing heard":           {`{{heard "nope"}}`, "nothing heard matches nope"},
		"no match":                {`{{regex "nope" "a"}}`, "no match for nope"},
		"bad pattern":             {`{{regex "(" "a"}}`, "missing closing )"},
	} {
		t.Run(name, func(t *testing.T) {
			a := play(t, `
  - name: get
    steps: [{calls: [{tool: a}, {tool: b}]}]
  - name: speak
    steps: [{calls: [{tool: say, args: {text: ['`+strings.ReplaceAll(tt.template, "'", "''")+`']}}]}]
`)
			a.hears("hello")
			a.calls(t, "a {}", "b {}")
			a.answered(`{"id":"T-001","odd key":1234567890123,"list":["a","b<c"]}`, "line 1\nline 2\n")
			next, err := a.script.next(a.who, a.conv)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "rule speak, step 0: call of say: text: [0]: ") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want one of rule speak, step 0, with %s", err, tt.want)
				}
				return
			}
			if got := next.calls[0].Function.Arguments; got != `{"text":[`+string(encoded(tt.want))+`]}` {
				t.Errorf("arguments %s, want %q", got, tt.want)
			}
		})
	}
}
