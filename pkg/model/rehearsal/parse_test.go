package rehearsal

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestParseNamesThePlace(t *testing.T) {
	// A line of the rule under test goes in at line 4, column 5 on.
	in := func(rule string) string { return "agents:\n- rules:\n  - name: a\n" + rule }
	for name, tt := range map[string]struct {
		src, want string
	}{
		"empty":                    {"", "x.yaml:1:1: the script lacks the key agents: a list of who does what"},
		"not YAML":                 {"agents:\n\t- a", "x.yaml:2:1: found character that cannot start any token"},
		"two documents":            {"agents: []\n---\nagents: []\n", "x.yaml:2:1: there may be one document only; another one begins here"},
		"not a mapping":            {"- a", "x.yaml:1:1: the script must be a mapping; keys: model, agents"},
		"unknown key":              {"model: m\nagent: []", `x.yaml:2:1: unknown key "agent" in the script; did you mean agents?`},
		"no agents":                {"model: m", "x.yaml:1:1: the script lacks the key agents: a list of who does what"},
		"agents empty":             {"agents: []", "x.yaml:1:9: agents must be a list with at least one entry"},
		"no rules":                 {"agents:\n- match: {role: a}", "x.yaml:2:3: an entry of agents lacks the key rules: a list of what the agent does"},
		"bad pattern":              {"agents:\n- match: {role: '[a'}", `x.yaml:2:17: role: bad pattern "[a": *, ? and [a-z] are understood`},
		"match by what":            {"agents:\n- match: {rank: a}", `x.yaml:2:11: unknown key "rank" in match; allowed: name, role, team`},
		"no name":                  {"agents:\n- rules:\n  - say: x", "x.yaml:3:5: an entry of rules lacks the key name: a text of a-z, 0-9 and -"},
		"bad name":                 {"agents:\n- rules:\n  - name: a_b\n    say: x", `x.yaml:3:11: name: "a_b" may have a-z, 0-9 and - only`},
		"name twice":               {in("    say: x\n  - name: a\n    say: y"), `x.yaml:5:5: a second rule with the name "a"; names are unique in an agent`},
		"key twice":                {in("    say: x\n    say: y"), `x.yaml:5:5: the key "say" comes twice`},
		"neither say nor steps":    {in("    since: x"), "x.yaml:3:5: a rule needs say or steps"},
		"both":                     {in("    say: x\n    steps: [{say: y}]"), "x.yaml:4:10: a rule has say or steps, not both"},
		"bad regexp":               {in("    since: 'a(b'\n    say: x"), "x.yaml:4:12: since: error parsing regexp: missing closing ): `a(b`"},
		"bad template":             {in("    say: 'x {{nope}}'"), `x.yaml:4:10: say: bad template: function "nope" not defined`},
		"bad template in args":     {in("    steps: [{calls: [{tool: t, args: {l: [1, '{{']}}]}]"), "x.yaml:4:46: bad template: unclosed action"},
		"alias":                    {in("    since: &r x\n    unless: *r\n    say: x"), "x.yaml:5:13: a YAML alias such as *x is not understood in a script"},
		"say a list":               {in("    say: [x]"), "x.yaml:4:10: say must be a text"},
		"unknown key in a step":    {in("    steps:\n    - sayy: x"), `x.yaml:5:7: unknown key "sayy" in an entry of steps; did you mean say?`},
		"empty step":               {in("    steps:\n    - await: x"), "x.yaml:5:7: a step needs say or calls"},
		"waiting for nothing":      {in("    steps:\n    - {say: x, waiting: y}"), "x.yaml:5:25: waiting has no meaning without await"},
		"step that is not reached": {in("    steps:\n    - say: x\n    - say: y"), "x.yaml:6:7: this step is never reached: the one before only says something, so this one needs await"},
		"call without tool":        {in("    steps:\n    - calls: [{args: {}}]"), "x.yaml:5:15: an entry of calls lacks the key tool: the name of a tool"},
		"args a list":              {in("    steps:\n    - calls: [{tool: t, args: []}]"), "x.yaml:5:31: args must be a mapping"},
		"args not JSON":            {in("    steps:\n    - calls: [{tool: t, args: {x: .nan}}]"), "x.yaml:5:35: .nan has no place in JSON"},
		"unknown fault":            {in("    steps:\n    - {say: x, fault: {crash: true}}"), `x.yaml:5:24: unknown key "crash" in fault; allowed: status, error, in_stream, retry_after, delay, times, cut, malformed, no_object, odd_ids, empty, length, page`},
		"empty fault":              {in("    steps:\n    - {say: x, fault: {times: 2}}"), "x.yaml:5:23: a fault needs delay or one of status, error, cut, malformed, no_object, odd_ids, empty, length, page"},
		"two faults":               {in("    steps:\n    - {say: x, fault: {cut: true, status: 500}}"), "x.yaml:5:23: a fault has only one of status, error, cut, malformed, no_object, odd_ids, empty, length, page"},
		"bad status":               {in("    steps:\n    - {say: x, fault: {status: 200}}"), `x.yaml:5:32: status: "200" is not a whole number from 400 to 599`},
		"bad duration":             {in("    steps:\n    - {say: x, fault: {delay: 2}}"), `x.yaml:5:31: delay: "2" is not a duration such as 500ms or 2m`},
		"cut: false":               {in("    steps:\n    - {say: x, fault: {cut: false}}"), "x.yaml:5:23: a fault needs delay or one of status, error, cut, malformed, no_object, odd_ids, empty, length, page"},
		"retry_after alone":        {in("    steps:\n    - {say: x, fault: {cut: true, retry_after: 1s}}"), "x.yaml:5:23: retry_after has no meaning without status or error, nor in a stream"},
		"malformed without calls":  {in("    steps:\n    - {say: x, fault: {malformed: true}}"), "x.yaml:5:23: malformed, no_object and odd_ids need a step with calls"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tt.src))
			if !errors.Is(err, team.InvalidArgument) || err.Error() != tt.want {
				t.Errorf("Parse = %v (%s)\nwant    %s", err, team.CodeOf(err), tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("agents: [{rules: [{name: a, steps: [{say: x, calls: [{tool: t, args: {a: [1, '{{.Name}}']}}]}]}]}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Parse("x", src)
		if (s == nil) == (err == nil) {
			t.Fatal("neither a script nor an error, or both")
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "x:") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("the error is not one line with its place: %q", err)
		}
	})
}
