package team

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawHands are any hands that may be stored.
func drawHands(t *rapid.T, label string) Hands {
	pick := func(of string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label+" "+of) }
	list := func(of string, from ...string) []string {
		all := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID).Draw(t, label+" "+of)
		if len(all) == 0 && rapid.Bool().Draw(t, label+" "+of+" not set") {
			return nil
		}
		return all
	}
	var h Hands
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
func TestHandsOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := Team{Hands: drawHands(t, "team"), Roles: map[string]Role{LeaderRole: {Hands: drawHands(t, "leader")}, "coder": {Hands: drawHands(t, "coder")}}}
		leader, coder, role := of.HandsOf(LeaderRole), of.HandsOf("coder"), of.Roles["coder"].Hands
		for _, weaker := range []Sandbox{of.Hands.Sandbox, leader.Sandbox, role.Sandbox} {
			if coder.Sandbox.Stronger(weaker) != coder.Sandbox {
				t.Fatalf("coder has %q, and somebody above it %q", coder.Sandbox, weaker)
			}
		}
		if role.Network != nil && !reflect.DeepEqual(coder.Network, role.Network) || role.Network == nil && !reflect.DeepEqual(coder.Network, of.Hands.Network) {
			t.Fatalf("network %#v of role %#v, team %#v", coder.Network, role.Network, of.Hands.Network)
		}
		if want := slices.Concat(of.Hands.Permissions.Deny, role.Permissions.Deny); !slices.Equal(coder.Permissions.Deny, want) {
			t.Fatalf("deny %q, want %q", coder.Permissions.Deny, want)
		}
		coder.Sandbox = ""
		if beyond := coder.Beyond(of.Hands, role); beyond != nil {
			t.Fatalf("coder has what neither team nor role has: %q", beyond)
		}
		if unknown := of.HandsOf("nobody"); unknown.Sandbox != of.Hands.Sandbox.Stronger(leader.Sandbox) || unknown.PermissionMode != of.Hands.PermissionMode {
			t.Fatalf("a role that is not there: %+v", unknown)
		}
	})
}

// What is left without grants grants nothing; with them, nothing that it was not given.
func TestUngranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, wide := drawHands(t, "file"), drawHands(t, "team")
		strict := h.Ungranted()
		if beyond := strict.Beyond(Hands{}); beyond != nil {
			t.Fatalf("%+v grants %q", strict, beyond)
		}
		if h.Beyond(Hands{}) == nil && len(h.Credentials) == 0 && !reflect.DeepEqual(h.Permissions.Deny, strict.Permissions.Deny) {
			t.Fatalf("%+v becomes %+v", h, strict)
		}
		if h.Beyond(h) != nil {
			t.Fatalf("%+v is beyond itself: %q", h, h.Beyond(h))
		}
		before := Team{Hands: wide, Roles: map[string]Role{"coder": {Hands: h}}}.HandsOf("coder")
		after := Team{Hands: wide, Roles: map[string]Role{"coder": {Hands: strict}}}.HandsOf("coder")
		if after.Sandbox.Stronger(before.Sandbox) != after.Sandbox {
			t.Fatalf("without trust the sandbox is %q, with it %q", after.Sandbox, before.Sandbox)
		}
		if after.Sandbox = ""; after.Beyond(before, Hands{}) != nil {
			t.Fatalf("without trust it has more: %q", after.Beyond(before, Hands{}))
		}
	})
}

// A subagent has what both its owner and its type have: nothing that one of them has not, and what
// either of them denies or asks for.
func TestLending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := Team{Hands: drawHands(t, "team"), Roles: map[string]Role{LeaderRole: {Hands: drawHands(t, "leader")}, "coder": {Name: "coder", Hands: drawHands(t, "coder")}}}
		owner, by := record.HandsOf("coder"), drawHands(t, "type")
		lent := record.Lending("coder", by)
		h := lent.HandsOf("coder")
		if beyond := h.Beyond(owner); beyond != nil {
			t.Fatalf("it has what its owner has not: %q", beyond)
		}
		limit := by
		limit.Permissions.Allow = owner.Permissions.Allow
		if limit.Network == nil {
			limit.Network = owner.Network
		}
		if limit.Credentials == nil {
			limit.Credentials = owner.Credentials
		}
		if limit.Paths.Read == nil && limit.Paths.Write == nil {
			limit.Paths = owner.Paths
		}
		if limit.PermissionMode == "" {
			limit.PermissionMode = owner.PermissionMode
		}
		if limit.Sandbox == "" || limit.Sandbox == Unconfined {
			limit.Sandbox = owner.Sandbox
		}
		if beyond := h.Beyond(limit); beyond != nil {
			t.Fatalf("it has what its type has not: %q", beyond)
		}
		if h.Sandbox.Stronger(owner.Sandbox) != h.Sandbox || by.Sandbox != Unconfined && h.Sandbox.Stronger(by.Sandbox) != h.Sandbox {
			t.Fatalf("its sandbox is %q, of %q and %q", h.Sandbox, owner.Sandbox, by.Sandbox)
		}
		for _, of := range []Hands{owner, by} {
			if of.PermissionAsk == AskDeny && h.PermissionAsk != AskDeny {
				t.Fatalf("it may ask: %+v of %+v and %+v", h, owner, by)
			}
			for _, rule := range slices.Concat(of.Permissions.Deny, of.Permissions.Ask) {
				if !slices.Contains(slices.Concat(h.Permissions.Deny, h.Permissions.Ask), rule) {
					t.Fatalf("%q is lost: %+v", rule, h.Permissions)
				}
			}
		}
		if same := record.Lending("coder", Hands{}).HandsOf("coder"); !reflect.DeepEqual(same, owner) {
			t.Fatalf("a type that states nothing makes %+v of %+v", same, owner)
		}
		if !reflect.DeepEqual(record.HandsOf("coder"), owner) {
			t.Fatal("the record of the team was changed")
		}
	})
}

func TestBeyond(t *testing.T) {
	for name, tt := range map[string]struct {
		h, limit Hands
		want     string
	}{
		"nothing":            {Hands{Sandbox: Bubblewrap, Network: Network{}, PermissionMode: ReadOnlyMode, PermissionAsk: AskDeny, Permissions: Permissions{Deny: []string{"x"}, Ask: []string{"y"}}}, Hands{}, ""},
		"everything":         {Hands{Unconfined, Shared, Network{"full"}, Permissions{Allow: []string{"Bash"}}, AcceptEdits, "", []string{"gh"}, Paths{[]string{"/a"}, []string{"/b"}}, []string{"deps"}}, Hands{}, "sandbox none; isolation shared; network full; permission_mode acceptEdits; permissions.allow Bash; credentials gh; paths.read /a; paths.write /b; worktree_links deps"},
		"none given":         {Hands{Sandbox: Unconfined}, Hands{Sandbox: Unconfined}, ""},
		"weaker than wished": {Hands{Sandbox: SandboxAuto}, Hands{Sandbox: Bubblewrap}, "sandbox auto"},
		"hosts":              {Hands{Network: Network{"a.org", "b.a.org", "x.b.a.org", "ba.org"}}, Hands{Network: Network{"*.a.org"}}, "network a.org; network ba.org"},
		"all of a full one":  {Hands{Network: Network{"a.org", "full"}}, Hands{Network: Network{FullNetwork}}, ""},
		"full of hosts":      {Hands{Network: Network{FullNetwork}}, Hands{Network: Network{"*.org"}}, "network full"},
		"paths below":        {Hands{Paths: Paths{Read: []string{"/a/b", "/ab", "/w/x"}, Write: []string{"/a"}}}, Hands{Paths: Paths{Read: []string{"/a"}, Write: []string{"/w/"}}}, "paths.read /ab; paths.write /a"},
		"links below":        {Hands{Links: []string{"a/b", "ab"}}, Hands{Links: []string{"a"}}, "worktree_links ab"},
		"an unknown mode":    {Hands{PermissionMode: "yolo"}, Hands{PermissionMode: BypassPermissions}, "permission_mode yolo"},
	} {
		if got := strings.Join(tt.h.Beyond(tt.limit), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Records from before hands, and those that set a list to nothing, come back as they were.
func TestHandsOfOldRecords(t *testing.T) {
	var old Team
	if err := json.Unmarshal([]byte(`{"v":1,"id":"t","roles":{"coder":{"name":"coder"}}}`), &old); err != nil || !reflect.DeepEqual(old.HandsOf("coder"), Hands{}) {
		t.Errorf("an old record: %+v, %v", old.HandsOf("coder"), err)
	}
	data, err := json.Marshal(old)
	if err != nil || strings.Contains(string(data), "hands") {
		t.Errorf("it is written as %s, %v", data, err)
	}
	none := Hands{Network: Network{}, Credentials: []string{}, Paths: Paths{Read: []string{}}}
	var back Hands
	if data, err = json.Marshal(none); err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || !reflect.DeepEqual(back, none) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestHandsValidate(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{"sandbox":"bubblewrap","network":["a.org","*.b.example.org"],"permission_mode":"read-only","permission_ask":"deny","credentials":["gh"],"paths":{"read":["/opt/go","~/.cache"]}}`: "",
		`{"network":["full"]}`:                                            "",
		`{"sandbox":"bubblewarp"}`:                                        `sandbox cannot be "bubblewarp" (did you mean bubblewrap? choose auto, bubblewrap, confined, none)`,
		`{"permission_mode":"yolo"}`:                                      `permission_mode cannot be "yolo" (choose read-only, default, acceptEdits, bypassPermissions)`,
		`{"permission_ask":"no"}`:                                         `permission_ask cannot be "no" (choose wait, deny)`,
		`{"network":["https://a.org/x"]}`:                                 `network: "https://a.org/x" has a scheme (write a.org)`,
		`{"network":["a.org:443"]}`:                                       `network: "a.org:443" has a port (write a.org)`,
		`{"network":["a.org/x"]}`:                                         `network: "a.org/x" has a path (write a.org)`,
		`{"network":["A.org"]}`:                                           `network: "A.org" has upper case (write a.org)`,
		`{"network":["a.*.org"]}`:                                         `network: "a.*.org" has a * that is not the whole first part of the name (write a name such as example.org, or *.example.org for all names below it)`,
		`{"network":["*"]}`:                                               `network: "*" has a * that is not the whole first part of the name (write a name such as example.org, or *.example.org for all names below it)`,
		`{"network":["a.org\u0000.b.org"]}`:                               `network: "a.org\x00.b.org" is no name of a host (write a name such as example.org, or *.example.org for all names below it)`,
		`{"network":["10.0.0.1"]}`:                                        `network: "10.0.0.1" is an IP address (name the host, such as example.org)`,
		`{"network":["http://[::1]:80/"]}`:                                `network: "http://[::1]:80/" is an IP address (name the host, such as example.org)`,
		`{"network":["0x7f.1"]}`:                                          `network: "0x7f.1" is no name of a host (write a name such as example.org, or *.example.org for all names below it)`,
		`{"network":["localhost"]}`:                                       `network: "localhost" has no dot, as the name of a public host has (write a name such as example.org, or *.example.org for all names below it)`,
		`{"network":["a.org","full"]}`:                                    `network: full stands alone, not in a list (write network: full)`,
		`{"network":["a.org."]}`:                                          `network: "a.org." is no name of a host (write a name such as example.org, or *.example.org for all names below it)`,
		`{"credentials":["GH_TOKEN=x"]}`:                                  `credentials: "GH_TOKEN=x" is no name of a credential (name one, such as gh; its value never stands here)`,
		`{"paths":{"read":["src"]}}`:                                      `paths: "src" is not absolute (begin it with / or with ~/, your home)`,
		`{"paths":{"write":["~/"]}}`:                                      `paths: "~/" is all that there is (name the folder that is needed)`,
		`{"paths":{"write":["/a/../.."]}}`:                                `paths: "/a/../.." has the part .. (write the path that it leads to)`,
		`{"paths":{"write":["/a\nb"]}}`:                                   `paths: "/a\nb" is no path (write one line of text)`,
		`{"worktree_links":["node_modules",".env.test","a/.gitignored"]}`: "",
		`{"worktree_links":["/etc"]}`:                                     `worktree_links: "/etc" is not relative (name it from the workspace, such as node_modules)`,
		`{"worktree_links":["~/x"]}`:                                      `worktree_links: "~/x" is not relative (name it from the workspace, such as node_modules)`,
		`{"worktree_links":["a/../../b"]}`:                                `worktree_links: "a/../../b" has the part .. (name what is in the workspace)`,
		`{"worktree_links":["./"]}`:                                       `worktree_links: "./" is the workspace itself (name what builds need of it, such as node_modules)`,
		`{"worktree_links":["sub/.Git/x"]}`:                               `worktree_links: "sub/.Git/x" is git's (a tree has a repository apart)`,
		`{"worktree_links":["a\nb"]}`:                                     `worktree_links: "a\nb" is no path (write one line of text, with / between folders)`,
		`{"permissions":{"deny":[" "]}}`:                                  `permissions: a rule is empty (write one such as Bash(git push *))`,
	} {
		var h Hands
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
		if err := (Team{Hands: h}).Validate(); (err != nil) != (want != "") {
			t.Errorf("%s in a team: %v", text, err)
		}
		if err := (Role{Name: "a", Description: "d", Hands: h}).Validate(); (err != nil) != (want != "") {
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
		record := Team{Hands: Hands{Isolation: own}, Roles: map[string]Role{"coder": {Name: "coder", Hands: Hands{Isolation: Shared}}}}
		if got := record.HandsOf("coder").Isolation; got != own {
			t.Errorf("the team has %q, its role %q: %q", own, Shared, got)
		}
	}
	if got := (Hands{Isolation: Shared}).Beyond(Hands{}); len(got) != 1 || got[0] != "isolation shared" {
		t.Errorf("a file that shares the folder grants %q", got)
	}
	if got := (Hands{Isolation: Shared}).Ungranted().Isolation; got != IsolationAuto {
		t.Errorf("untrusted, it has %q", got)
	}
}

// Who has given a rule is known as long as the team has it, and not of one that it gets again from elsewhere.
func TestGivenGoesWithItsRule(t *testing.T) {
	given := map[string]Grant{"Bash(ls)": {Approval: "9f0c", By: "ann"}, "Bash(id)": {Approval: "1234", By: "bob"}}
	record := Team{Hands: Hands{Permissions: Permissions{Allow: []string{"Bash(ls)", "Bash(id)"}, Given: given}}}
	fewer := record.Hands
	fewer.Permissions.Allow = []string{"Bash(ls)"}
	record.Choose(Choices{Hands: &fewer})
	if p := record.Hands.Permissions; len(p.Given) != 1 || p.Given["Bash(ls)"].By != "ann" || len(given) != 2 {
		t.Errorf("without a rule: %+v; the answers before: %+v", p, given)
	}
	again := record.Hands
	again.Permissions.Allow = []string{"Bash(id)"}
	record.Choose(Choices{Hands: &again})
	if p := record.Hands.Permissions; p.Given != nil {
		t.Errorf("with a rule of the settings: %+v", p)
	}
}
