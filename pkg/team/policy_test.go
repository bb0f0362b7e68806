package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawPolicy are any hands that may be stored.
func drawPolicy(t *rapid.T, label string) Policy {
	pick := func(of string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label+" "+of) }
	list := func(of string, from ...string) []string {
		all := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID).Draw(t, label+" "+of)
		if len(all) == 0 && rapid.Bool().Draw(t, label+" "+of+" not set") {
			return nil
		}
		return all
	}
	var h Policy
	h.Sandbox = Sandbox(pick("sandbox", "", "none", "auto", "confined", "bubblewrap"))
	if h.Network = list("network", "a.org", "*.a.org", "b.a.org", "c.org"); rapid.Bool().Draw(t, label+" full") {
		h.Network = Network{FullNetwork}
	}
	h.PermissionMode = PermissionMode(pick("mode", append([]string{""}, h.PermissionMode.Values()...)...))
	h.PermissionAsk = PermissionAsk(pick("ask", "", "wait", "deny"))
	h.Permissions = Permissions{Deny: list("deny", "Bash(a)", "Bash(b)"), Ask: list("asked", "Bash(c)"), Allow: list("allow", "Bash(d)", "Bash(e)")}
	h.Credentials = list("credentials", "gh", "aws")
	h.Paths = Paths{Read: list("read", "/a", "/a/b", "~/c"), Write: list("write", "/a", "/d")}
	return h
}

// No role gives its members a weaker sandbox than the team or the leader, who spawns them, has.
// What a role sets goes before the team's, also what it sets to nothing; rules add up.
func TestPolicyOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := Team{Policy: drawPolicy(t, "team"), Roles: map[string]Role{LeaderRole: {Policy: drawPolicy(t, "leader")}, "coder": {Policy: drawPolicy(t, "coder")}}}
		leader, coder, role := of.PolicyOf(LeaderRole), of.PolicyOf("coder"), of.Roles["coder"].Policy
		for _, weaker := range []Sandbox{of.Policy.Sandbox, leader.Sandbox, role.Sandbox} {
			if coder.Sandbox.Stronger(weaker) != coder.Sandbox {
				t.Fatalf("coder has %q, and somebody above it %q", coder.Sandbox, weaker)
			}
		}
		if role.Network != nil && !reflect.DeepEqual(coder.Network, role.Network) || role.Network == nil && !reflect.DeepEqual(coder.Network, of.Policy.Network) {
			t.Fatalf("network %#v of role %#v, team %#v", coder.Network, role.Network, of.Policy.Network)
		}
		if want := slices.Concat(of.Policy.Permissions.Deny, role.Permissions.Deny); !slices.Equal(coder.Permissions.Deny, want) {
			t.Fatalf("deny %q, want %q", coder.Permissions.Deny, want)
		}
		coder.Sandbox = ""
		if beyond := coder.beyond(of.Policy, role); beyond != nil {
			t.Fatalf("coder has what neither team nor role has: %q", beyond)
		}
		if unknown := of.PolicyOf("nobody"); unknown.Sandbox != of.Policy.Sandbox.Stronger(leader.Sandbox) || unknown.PermissionMode != of.Policy.PermissionMode {
			t.Fatalf("a role that is not there: %+v", unknown)
		}
	})
}

// A file that no person has trusted takes from the members of a role that is there, and gives them nothing.
func TestNarrowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := func(label string) []string {
			return rapid.SliceOfDistinct(rapid.SampledFrom([]string{"bash", "read_file", "write_file", "grep"}), rapid.ID[string]).Draw(t, label)
		}
		draw := func(label string) Role {
			return Role{Name: "coder", Tools: tools(label + " tools"), DisallowedTools: tools(label + " without"), Policy: drawPolicy(t, label), Model: label,
				MaxTurns: rapid.IntRange(0, 3).Draw(t, label+" turns"), PlanMode: rapid.Bool().Draw(t, label+" plans"), Instructions: label}
		}
		before, file, wide := draw("before"), draw("file"), drawPolicy(t, "team")
		after := before.Narrowed(file)
		may := func(r Role, tool string) bool {
			return (len(r.Tools) == 0 || slices.Contains(r.Tools, tool)) && !slices.Contains(r.DisallowedTools, tool)
		}
		for _, tool := range []string{"bash", "read_file", "write_file", "grep"} {
			if want := may(before, tool) && may(file, tool); may(after, tool) != want {
				t.Fatalf("%s: %v, want %v, of %+v and %+v", tool, may(after, tool), want, before, file)
			}
		}
		if after.Model != before.Model || after.Instructions != "file" || after.PlanMode != (before.PlanMode || file.PlanMode) || before.MaxTurns > 0 && (after.MaxTurns == 0 || after.MaxTurns > before.MaxTurns) {
			t.Fatalf("%+v of %+v and %+v", after, before, file)
		}
		one := Team{Policy: wide, Roles: map[string]Role{"coder": before}}.PolicyOf("coder")
		two := Team{Policy: wide, Roles: map[string]Role{"coder": after}}.PolicyOf("coder")
		if two.Sandbox.Stronger(one.Sandbox) != two.Sandbox {
			t.Fatalf("the sandbox is %q, and was %q", two.Sandbox, one.Sandbox)
		}
		if two.Sandbox = ""; two.beyond(one, Policy{}) != nil {
			t.Fatalf("it has more: %q", two.beyond(one, Policy{}))
		}
	})
}

// A subagent has the policy of its owner, or reads only where its type has less in anything: then it has the rules of both
// that deny or ask.
func TestLending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := Team{Policy: drawPolicy(t, "team"), Roles: map[string]Role{LeaderRole: {Policy: drawPolicy(t, "leader")}, "coder": {Name: "coder", Policy: drawPolicy(t, "coder")}}}
		owner, by := record.PolicyOf("coder"), drawPolicy(t, "type")
		lent := record.Lending("coder", by).PolicyOf("coder")
		if beyond := lent.beyond(owner); beyond != nil {
			t.Fatalf("it has what its owner has not: %q", beyond)
		}
		if lent.PermissionMode != ReadOnlyMode {
			limit := owner.Merge(by) // what by states, and else what its owner has
			limit.Permissions.Allow, limit.Sandbox, limit.Isolation = owner.Permissions.Allow, owner.Sandbox, owner.Isolation
			if beyond := lent.beyond(limit); beyond != nil {
				t.Fatalf("it has what its type has not, and does not read only: %q", beyond)
			}
			if by.Sandbox != Unconfined && lent.Sandbox.Stronger(by.Sandbox) != lent.Sandbox {
				t.Fatalf("its sandbox is %q, of %q and %q", lent.Sandbox, owner.Sandbox, by.Sandbox)
			}
		}
		for _, of := range []Policy{owner, by} {
			if of.PermissionAsk == AskDeny && lent.PermissionAsk != AskDeny {
				t.Fatalf("it may ask: %+v of %+v and %+v", lent, owner, by)
			}
			for _, rule := range slices.Concat(of.Permissions.Deny, of.Permissions.Ask) {
				if !slices.Contains(slices.Concat(lent.Permissions.Deny, lent.Permissions.Ask), rule) {
					t.Fatalf("%q is lost: %+v", rule, lent.Permissions)
				}
			}
		}
		runs := func(p Policy) Policy {
			p.Permissions, p.PermissionMode, p.PermissionAsk = Permissions{}, "", ""
			return p
		}
		if !reflect.DeepEqual(runs(lent), runs(owner)) {
			t.Fatalf("its commands do not run as its owner's: %+v, %+v", lent, owner)
		}
		for name, same := range map[string]Policy{"nothing": {}, "what its owner states": owner} {
			if got := record.Lending("coder", same).PolicyOf("coder"); !reflect.DeepEqual(got, owner) {
				t.Fatalf("a type that states %s makes %+v of %+v", name, got, owner)
			}
		}
		if !reflect.DeepEqual(record.PolicyOf("coder"), owner) {
			t.Fatal("the record of the team was changed")
		}
	})
}

// Each field of a policy counts when two are compared, and the values in a list do, not how they print together.
func TestSamePolicy(t *testing.T) {
	var one func(reflect.Value, Policy, *Policy)
	one = func(v reflect.Value, was Policy, p *Policy) {
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
				if !p.same(was) {
					t.Errorf("an empty %s is another than none", v.Type().Field(i).Name)
				}
				f.Set(reflect.Append(f, reflect.ValueOf("a b")))
			case reflect.Map: // by whom a rule was given, which is in its list
				continue
			default:
				one(f, was, p)
				was = *p
				continue
			}
			if p.same(was) || was.same(*p) {
				t.Errorf("%s does not count", v.Type().Field(i).Name)
			}
			was = *p
		}
	}
	var p Policy
	one(reflect.ValueOf(&p).Elem(), p, &p)
}

// beyond returns what h grants that none of the limits does, each in a few words, such as
// "network full". Against the zero Policy that is all that it grants.
func (h Policy) beyond(limits ...Policy) (grants []string) {
	note := func(granted bool, format string, args ...any) {
		if !granted {
			grants = append(grants, fmt.Sprintf(format, args...))
		}
	}
	any := func(f func(Policy) bool) bool { return slices.ContainsFunc(limits, f) }
	note(any(func(l Policy) bool {
		least := cmp.Or(l.Sandbox, SandboxAuto)
		return h.Sandbox == "" || h.Sandbox.Stronger(least) == h.Sandbox
	}), "sandbox %s", h.Sandbox)
	note(h.Isolation != Shared || any(func(l Policy) bool { return l.Isolation == Shared }), "isolation %s", h.Isolation)
	for _, host := range h.Network {
		note(any(func(l Policy) bool { return l.Network.Allows(host) }), "network %s", host)
	}
	note(any(func(l Policy) bool { return h.PermissionMode.rank() <= l.PermissionMode.rank() }), "permission_mode %s", h.PermissionMode)
	for _, rule := range h.Permissions.Allow {
		note(any(func(l Policy) bool { return slices.Contains(l.Permissions.Allow, rule) }), "permissions.allow %s", rule)
	}
	for _, name := range h.Credentials {
		note(any(func(l Policy) bool { return slices.Contains(l.Credentials, name) }), "credentials %s", name)
	}
	for _, p := range h.Paths.Read {
		note(any(func(l Policy) bool { return slices.ContainsFunc(slices.Concat(l.Paths.Read, l.Paths.Write), above(p)) }), "paths.read %s", p)
	}
	for _, p := range h.Paths.Write {
		note(any(func(l Policy) bool { return slices.ContainsFunc(l.Paths.Write, above(p)) }), "paths.write %s", p)
	}
	for _, name := range h.Links {
		note(any(func(l Policy) bool { return slices.ContainsFunc(l.Links, above(name)) }), "worktree_links %s", name)
	}
	return grants
}

// Records without a policy, and those that set a list to nothing, come back as they were.
func TestPolicyOfOldRecords(t *testing.T) {
	var old Team
	if err := json.Unmarshal([]byte(`{"v":2,"id":"t","roles":{"coder":{"name":"coder"}}}`), &old); err != nil || !reflect.DeepEqual(old.PolicyOf("coder"), Policy{}) {
		t.Errorf("an old record: %+v, %v", old.PolicyOf("coder"), err)
	}
	data, err := json.Marshal(old)
	if err != nil || strings.Contains(string(data), "policy") {
		t.Errorf("it is written as %s, %v", data, err)
	}
	none := Policy{Network: Network{}, Credentials: []string{}, Paths: Paths{Read: []string{}}}
	var back Policy
	if data, err = json.Marshal(none); err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || !reflect.DeepEqual(back, none) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestPolicyValidate(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{"sandbox":"bubblewrap","network":["a.org","*.b.example.org"],"permission_mode":"read-only","permission_ask":"deny","credentials":["gh"],"paths":{"read":["/opt/go","~/.cache"]}}`: "",
		`{"network":["full"]}`:                                            "",
		`{"sandbox":"bubblewarp"}`:                                        `sandbox cannot be "bubblewarp" (did you mean bubblewrap? choose auto, bubblewrap, confined, none)`,
		`{"permission_mode":"yolo"}`:                                      `permission_mode cannot be "yolo" (choose read-only, default, acceptEdits, bypassPermissions)`,
		`{"permission_ask":"no"}`:                                         `permission_ask cannot be "no" (choose wait, deny)`,
		`{"network":["https://a.org/x"]}`:                                 `network: "https://a.org/x" is no name of a public host (write a.org)`,
		`{"network":["a.org:443"]}`:                                       `network: "a.org:443" is no name of a public host (write a.org)`,
		`{"network":["a.org/x"]}`:                                         `network: "a.org/x" is no name of a public host (write a.org)`,
		`{"network":["A.org"]}`:                                           `network: "A.org" is no name of a public host (write a.org)`,
		`{"network":["a.*.org"]}`:                                         `network: "a.*.org" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["*"]}`:                                               `network: "*" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["a.org\u0000.b.org"]}`:                               `network: "a.org\x00.b.org" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["10.0.0.1"]}`:                                        `network: "10.0.0.1" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["http://[::1]:80/"]}`:                                `network: "http://[::1]:80/" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["0x7f.1"]}`:                                          `network: "0x7f.1" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["localhost"]}`:                                       `network: "localhost" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"network":["a.org","full"]}`:                                    `network: full stands alone, not in a list (write network: full)`,
		`{"network":["a.org."]}`:                                          `network: "a.org." is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		`{"credentials":["GH_TOKEN=x"]}`:                                  `credentials: "GH_TOKEN=x" is no name of a credential (name one, such as gh; its value never stands here)`,
		`{"paths":{"read":["src"]}}`:                                      `paths: "src" is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
		`{"paths":{"write":["~/"]}}`:                                      `paths: "~/" is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
		`{"paths":{"write":["/a/../.."]}}`:                                `paths: "/a/../.." is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
		`{"paths":{"write":["/a\nb"]}}`:                                   `paths: "/a\nb" is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
		`{"worktree_links":["node_modules",".env.test","a/.gitignored"]}`: "",
		`{"on_edit":["gofmt","-l","{file}"]}`:                             "",
		`{"on_edit":[]}`:                                                  "",
		`{"on_edit":["gofmt",""]}`:                                        `on_edit: an argument is empty`,
		`{"on_edit":["{file}"]}`:                                          "on_edit: the edited file is no program to run (write one such as [gofmt, -l, \"{file}\"])",
		`{"worktree_links":["/etc"]}`:                                     `worktree_links: "/etc" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		`{"worktree_links":["~/x"]}`:                                      `worktree_links: "~/x" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		`{"worktree_links":["a/../../b"]}`:                                `worktree_links: "a/../../b" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		`{"worktree_links":["./"]}`:                                       `worktree_links: "./" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		`{"worktree_links":["sub/.Git/x"]}`:                               `worktree_links: "sub/.Git/x" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		`{"worktree_links":["a\nb"]}`:                                     `worktree_links: "a\nb" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		`{"permissions":{"deny":[" "]}}`:                                  `permissions: a rule is empty (write one such as Bash(git push *))`,
	} {
		var h Policy
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatal(text, err)
		}
		got := ""
		if err := h.Validate(); err != nil {
			if got = Line(err); CodeOf(err) != InvalidArgument {
				t.Errorf("%s: code %s", text, CodeOf(err))
			}
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
		if err := (Team{Policy: h}).Validate(); (err != nil) != (want != "") {
			t.Errorf("%s in a team: %v", text, err)
		}
		if err := (Role{Name: "a", Description: "d", Policy: h}).Validate(); (err != nil) != (want != "") {
			t.Errorf("%s in a role: %v", text, err)
		}
	}
}

// A name is allowed as it is listed, below a listed one, or with the whole network.
func TestNetworkAllows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		network Network
		host    string
		want    bool
	}{
		{nil, "a.org", false}, {Network{}, "a.org", false}, {Network{FullNetwork}, "a.org", true},
		{Network{"b.org", "a.org"}, "a.org", true}, {Network{"a.org"}, "x.a.org", false}, {Network{"a.org"}, "xa.org", false},
		{Network{"*.a.org"}, "x.y.a.org", true}, {Network{"*.a.org"}, "a.org", false}, {Network{"*.a.org"}, "xa.org", false}, {Network{"a.org"}, "", false},
	} {
		if got := tt.network.Allows(tt.host); got != tt.want {
			t.Errorf("%s allows %s: %v", tt.network, tt.host, got)
		}
	}
}

// Where members work is the team's to decide: a role that wants to share the folder changes nothing, trusted or
// not.
func TestIsolationIsTheTeams(t *testing.T) {
	for _, own := range []Isolation{"", IsolationAuto, Worktrees} {
		record := Team{Policy: Policy{Isolation: own}, Roles: map[string]Role{"coder": {Name: "coder", Policy: Policy{Isolation: Shared}}}}
		if got := record.PolicyOf("coder").Isolation; got != own {
			t.Errorf("the team has %q, its role %q: %q", own, Shared, got)
		}
	}
}

// Who has given a rule is known as long as the team has it, and not of one that it gets again from elsewhere.
func TestGivenGoesWithItsRule(t *testing.T) {
	given := map[string]Grant{"Bash(ls)": {Approval: "9f0c", By: "ann"}, "Bash(id)": {Approval: "1234", By: "bob"}}
	record := Team{Policy: Policy{Permissions: Permissions{Allow: []string{"Bash(ls)", "Bash(id)"}, Given: given}}}
	fewer := record.Policy
	fewer.Permissions.Allow = []string{"Bash(ls)"}
	record.Choose(Choices{Policy: &fewer})
	if p := record.Policy.Permissions; len(p.Given) != 1 || p.Given["Bash(ls)"].By != "ann" || len(given) != 2 {
		t.Errorf("without a rule: %+v; the answers before: %+v", p, given)
	}
	again := record.Policy
	again.Permissions.Allow = []string{"Bash(id)"}
	record.Choose(Choices{Policy: &again})
	if p := record.Policy.Permissions; p.Given != nil {
		t.Errorf("with a rule of the settings: %+v", p)
	}
}
