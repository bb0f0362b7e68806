package team

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Sandbox is the level to which commands are confined. The zero value asks for none: any other wish holds.
type Sandbox string

// The levels, and the wish for the strongest of them that works.
const (
	SandboxAuto Sandbox = "auto"
	Bubblewrap  Sandbox = "bubblewrap" // separate namespaces: files, processes, network
	Confined    Sandbox = "confined"   // the weaker level: Landlock and a filter of system calls; no network at all
	Unconfined  Sandbox = "none"       // all the rights of the process
)

// strengths orders the levels, the weakest first. An undetermined level is never [Unconfined].
var strengths = []Sandbox{"", Unconfined, SandboxAuto, Confined, Bubblewrap}

// Values returns the levels that can be set.
func (Sandbox) Values() []string { return Strings(SandboxAuto, Bubblewrap, Confined, Unconfined) }

// strength returns the place of s in that order. An unknown level is the strongest, so that it is refused and
// not replaced.
func (s Sandbox) strength() int {
	if i := slices.Index(strengths, s); i >= 0 {
		return i
	}
	return len(strengths)
}

// Stronger returns the stronger of two levels.
func (s Sandbox) Stronger(t Sandbox) Sandbox {
	if t.strength() > s.strength() {
		return t
	}
	return s
}

// Network lists the hosts that commands may reach: none (empty), every public host ([FullNetwork] alone), or
// these. A host is a name, or "*." and a name for all names below it. nil is not set, and by itself means
// none.
type Network []string

// FullNetwork is the only entry of a [Network] with every public host.
const FullNetwork = "full"

// Full reports whether every public host may be reached.
func (n Network) Full() bool { return slices.Equal(n, Network{FullNetwork}) }

// Allows reports whether a host, a name in lower case, may be reached.
func (n Network) Allows(host string) bool {
	return n.Full() || slices.ContainsFunc(n, covers(host))
}

func (n Network) String() string {
	if len(n) == 0 {
		return "none"
	}
	return strings.Join(n, ", ")
}

// Permissions are rules in the form "Tool" or "Tool(specifier)". The lists apply in the order deny, ask,
// allow; in each the first matching rule holds.
type Permissions struct {
	Deny  []string `json:"deny,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Allow []string `json:"allow,omitempty"`

	// Given has those rules of Allow that a person has added by an answer, and the answer.
	Given map[string]Grant `json:"given,omitempty"`
}

// And returns the rules of both; those of p are first in each list. People add rules to one of them only.
func (p Permissions) And(q Permissions) Permissions {
	both := Permissions{Deny: slices.Concat(p.Deny, q.Deny), Ask: slices.Concat(p.Ask, q.Ask), Allow: slices.Concat(p.Allow, q.Allow), Given: p.Given}
	if both.Given == nil {
		both.Given = q.Given
	}
	return both
}

// current returns p without the answers of people whose rules it no longer has.
func (p Permissions) current() Permissions {
	p.Given = maps.Clone(p.Given)
	maps.DeleteFunc(p.Given, func(rule string, _ Grant) bool { return !slices.Contains(p.Allow, rule) })
	if len(p.Given) == 0 {
		p.Given = nil
	}
	return p
}

// PermissionMode decides where no rule matches.
type PermissionMode string

// The modes. The zero value means DefaultMode.
const (
	DefaultMode       PermissionMode = "default"           // allowed in a sandbox, asked without one
	AcceptEdits       PermissionMode = "acceptEdits"       // edits of files are allowed without a sandbox too
	ReadOnlyMode      PermissionMode = "read-only"         // what changes anything is refused
	BypassPermissions PermissionMode = "bypassPermissions" // nothing is asked; deny holds
)

// modes is the order of the modes by what they let pass, the least first.
var modes = []PermissionMode{ReadOnlyMode, DefaultMode, AcceptEdits, BypassPermissions}

// Values returns the modes that can be set.
func (PermissionMode) Values() []string { return Strings(modes...) }

// PermissionAsk decides on a call that a person has to allow.
type PermissionAsk string

// The values. The zero value means AskWait.
const (
	AskWait PermissionAsk = "wait" // the member waits for a person
	AskDeny PermissionAsk = "deny" // it is refused: there is nobody to ask
)

// Values returns the values that can be set.
func (PermissionAsk) Values() []string { return Strings(AskWait, AskDeny) }

// Paths are folders and files outside the workspace, absolute or beginning with "~/".
type Paths struct {
	Read  []string `json:"read,omitzero"`
	Write []string `json:"write,omitzero"`
}

// Isolation states where members work. The zero value asks for none, and by itself means IsolationAuto.
type Isolation string

// The kinds of isolation.
const (
	IsolationAuto Isolation = "auto"     // Worktrees where the workspace can have them, else Shared
	Worktrees     Isolation = "worktree" // each task in a separate tree; what is completed is merged
	Shared        Isolation = "shared"   // all in the workspace itself
)

// Values returns the kinds that can be set.
func (Isolation) Values() []string { return Strings(IsolationAuto, Worktrees, Shared) }

// Policy states what members may do with the machine that they work on. The zero Policy means the strongest
// sandbox that works, no network, and the workspace only. A list that is empty and not nil is set: a role
// with empty Credentials has none, whatever the team has.
type Policy struct {
	Sandbox        Sandbox        `json:"sandbox,omitempty"`
	Isolation      Isolation      `json:"isolation,omitempty"` // the team's counts, no role's
	Network        Network        `json:"network,omitzero"`
	Permissions    Permissions    `json:"permissions,omitzero"`
	PermissionMode PermissionMode `json:"permission_mode,omitempty"`
	PermissionAsk  PermissionAsk  `json:"permission_ask,omitempty"`
	Credentials    []string       `json:"credentials,omitzero"` // by name, such as "gh"; read-only
	Paths          Paths          `json:"paths,omitzero"`
	Links          []string       `json:"worktree_links,omitzero"` // what git ignores of the workspace and trees are to have, relative, with slashes; never written
	OnEdit         []string       `json:"on_edit,omitzero"`        // program and arguments, run in the sandbox after each edit, with the file for {file}
}

// PolicyOf returns the policy of members of that role: the team's, merged with the role's. The strongest
// sandbox of team, role and leader holds, since the leader spawns the others. An unknown role states nothing.
func (t Team) PolicyOf(role string) Policy {
	p := t.Policy
	r, _ := t.Role(role)
	p.Sandbox = p.Sandbox.Stronger(t.Roles[LeaderRole].Policy.Sandbox)
	return p.Merge(r.Policy)
}

// Merge returns what of states, else p: the rules of both hold, those of p first, and the stronger sandbox.
// Only p decides where members work.
func (p Policy) Merge(of Policy) Policy {
	p.Sandbox = p.Sandbox.Stronger(of.Sandbox)
	if of.Network != nil {
		p.Network = of.Network
	}
	if of.Credentials != nil {
		p.Credentials = of.Credentials
	}
	if of.Paths.Read != nil || of.Paths.Write != nil {
		p.Paths = of.Paths
	}
	if of.Links != nil {
		p.Links = of.Links
	}
	if of.OnEdit != nil {
		p.OnEdit = of.OnEdit
	}
	p.PermissionMode = cmp.Or(of.PermissionMode, p.PermissionMode)
	p.PermissionAsk = cmp.Or(of.PermissionAsk, p.PermissionAsk)
	p.Permissions = p.Permissions.And(of.Permissions)
	return p
}

// Lending returns the team as it judges a subagent of a member of role; by is the policy of the subagent's type. The
// subagent has its owner's policy, or reads only if by has less in anything. Its commands run as its owner's do.
func (t Team) Lending(role string, by Policy) Team {
	p := t.PolicyOf(role)
	p.PermissionAsk = p.Restrict(by).PermissionAsk
	whole, less := p.Restrict(p), p.Restrict(p.Merge(by))
	if !less.same(whole) {
		p.Permissions, p.PermissionMode = less.Permissions, ReadOnlyMode
	}
	t.Policy, t.Roles = p, maps.Clone(t.Roles)
	for name, r := range t.Roles { // what it states is in there already
		r.Policy = Policy{}
		t.Roles[name] = r
	}
	return t
}

// same reports whether p and q state the same; an unset list equals an empty one.
func (p Policy) same(q Policy) bool { return fmt.Sprintf("%q", p) == fmt.Sprintf("%q", q) }

// Narrowed returns r with the texts of by and the rights that both have: a file that no person has trusted may change
// the description of a role, but only take rights away.
func (r Role) Narrowed(by Role) Role {
	r.Description, r.Instructions, r.Color = by.Description, by.Instructions, cmp.Or(by.Color, r.Color)
	switch {
	case len(r.Tools) == 0:
		r.Tools = by.Tools
	case len(by.Tools) > 0:
		if r.Tools = common(r.Tools, by.Tools, slices.Contains); len(r.Tools) == 0 {
			r = r.Toolless()
		}
	}
	r.DisallowedTools = union(r.DisallowedTools, by.DisallowedTools)
	least := func(a, b int) int { // 0 is no limit
		if a == 0 || b == 0 {
			return max(a, b)
		}
		return min(a, b)
	}
	r.MaxTurns, r.MaxInstances, r.IdleSeconds = least(r.MaxTurns, by.MaxTurns), least(r.MaxInstances, by.MaxInstances), least(r.IdleSeconds, by.IdleSeconds)
	r.PlanMode = r.PlanMode || by.PlanMode
	if by.Approver == ByHuman {
		r.Approver = ByHuman
	}
	if !by.Claims() {
		r.AutoClaim = by.AutoClaim
	}
	r.Policy = r.Policy.Restrict(by.Policy)
	return r
}

// Restrict returns the rights that both p and by have; a field that by does not set is as in p.
func (p Policy) Restrict(by Policy) Policy {
	if by.Sandbox != Unconfined { // which is more than no wish
		p.Sandbox = p.Sandbox.Stronger(by.Sandbox)
	}
	if by.Network != nil {
		p.Network = common(p.Network, by.Network, Network.Allows)
	}
	if by.Credentials != nil {
		p.Credentials = common(p.Credentials, by.Credentials, slices.Contains)
	}
	if by.Paths.Read != nil || by.Paths.Write != nil {
		holds := func(dirs []string, at string) bool { return slices.ContainsFunc(dirs, above(at)) }
		read := common(slices.Concat(p.Paths.Read, p.Paths.Write), slices.Concat(by.Paths.Read, by.Paths.Write), holds)
		write := common(p.Paths.Write, by.Paths.Write, holds)
		p.Paths = Paths{Read: slices.DeleteFunc(read, func(at string) bool { return holds(write, at) }), Write: write}
	}
	if by.PermissionMode != "" && by.PermissionMode.rank() < p.PermissionMode.rank() {
		p.PermissionMode = by.PermissionMode
	}
	if by.PermissionAsk == AskDeny {
		p.PermissionAsk = AskDeny
	}
	p.Permissions.Deny, p.Permissions.Ask = union(p.Permissions.Deny, by.Permissions.Deny), union(p.Permissions.Ask, by.Permissions.Ask)
	return p
}

// Describe returns the rights in p for people, as pairs of name and value, "" where p states nothing.
func (p Policy) Describe() (rights [][2]string) {
	list := func(all []string) string { return strings.Join(all, ", ") }
	network := ""
	if p.Network != nil {
		network = p.Network.String()
	}
	return [][2]string{
		{"sandbox", string(p.Sandbox)}, {"isolation", string(p.Isolation)}, {"network", network}, {"permission mode", string(p.PermissionMode)}, {"permission ask", string(p.PermissionAsk)},
		{"denied", list(p.Permissions.Deny)}, {"asked for", list(p.Permissions.Ask)}, {"allowed", list(p.Permissions.Allow)}, {"credentials", list(p.Credentials)},
		{"may read", list(p.Paths.Read)}, {"may write", list(p.Paths.Write)}, {"worktree links", list(p.Links)},
		{"on edit", strings.Join(p.OnEdit, " ")},
	}
}

// union returns a with the entries of more that it lacks.
func union(a, more []string) []string {
	for _, v := range more {
		if !slices.Contains(a, v) {
			a = append(slices.Clip(a), v)
		}
	}
	return a
}

// common returns the entries of both lists that the other list covers.
func common[L ~[]string](a, b L, covers func(L, string) bool) L {
	if !slices.ContainsFunc(a, func(v string) bool { return !covers(b, v) }) {
		return append(L{}, a...) // nothing is taken away
	}
	both := L{}
	for _, pair := range [][2]L{{a, b}, {b, a}} {
		for _, v := range pair[0] {
			if covers(pair[1], v) && !slices.Contains(both, v) {
				both = append(both, v)
			}
		}
	}
	return both
}

// rank returns the place of m in the order of the modes. An unknown mode lets pass more than any other.
func (m PermissionMode) rank() int {
	if i := slices.Index(modes, cmp.Or(m, DefaultMode)); i >= 0 {
		return i
	}
	return len(modes)
}

// covers returns whether an entry of a Network covers all that host stands for.
func covers(host string) func(entry string) bool {
	return func(entry string) bool {
		below, all := strings.CutPrefix(entry, "*")
		return entry == host || all && strings.HasSuffix(host, below)
	}
}

// above returns whether a directory is p or contains it.
func above(p string) func(dir string) bool {
	return func(dir string) bool { return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }
}

// Validate refuses unknown values. It does not check the syntax of rules: package permission does. Errors:
// InvalidArgument.
func (p Policy) Validate() error {
	if err := cmp.Or(oneOf("sandbox", p.Sandbox), oneOf("isolation", p.Isolation),
		oneOf("permission_mode", p.PermissionMode), oneOf("permission_ask", p.PermissionAsk)); err != nil {
		return err
	}
	for _, check := range []struct {
		of    []string
		check func(string) error
	}{
		{p.Network, p.Network.checkHost}, {p.Credentials, CheckCredential}, {p.Paths.Read, CheckPath}, {p.Paths.Write, CheckPath}, {p.Links, CheckLink},
		{p.Permissions.Deny, checkRule}, {p.Permissions.Ask, checkRule}, {p.Permissions.Allow, checkRule},
		{p.OnEdit, checkArgument},
	} {
		for _, v := range check.of {
			if err := check.check(v); err != nil {
				return err
			}
		}
	}
	if len(p.OnEdit) > 0 && strings.Contains(p.OnEdit[0], "{file}") {
		return Errorf(InvalidArgument, "on_edit: the edited file is no program to run").WithHint(`write one such as [gofmt, -l, "{file}"]`)
	}
	return nil
}

// checkArgument returns InvalidArgument for a string that cannot be an argument of on_edit.
func checkArgument(s string) error {
	if s == "" {
		return Errorf(InvalidArgument, "on_edit: an argument is empty")
	}
	return checkText("an argument of on_edit", s, MaxTitleBytes)
}

func (n Network) checkHost(host string) error {
	if n.Full() {
		return nil
	}
	return CheckHost(host)
}

var (
	hostPattern       = regexp.MustCompile(`^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	credentialPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	hostPart          = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]*://)?([^/:]*)`)
)

// mostHost is the maximal length of a name in DNS.
const mostHost = 253

// CheckHost returns InvalidArgument, with a hint, for a string that is not a host of a [Network].
func CheckHost(host string) error {
	if hostPattern.MatchString(host) && len(host) <= mostHost {
		return nil
	}
	if host == FullNetwork || host == "none" {
		return Errorf(InvalidArgument, "network: %s stands alone, not in a list", host).WithHint("write network: %s", host)
	}
	hint := "example.org, or *.example.org for all names below it: no address, scheme, path or port"
	if name := strings.ToLower(hostPart.FindStringSubmatch(host)[1]); hostPattern.MatchString(name) && len(name) <= mostHost {
		hint = name
	}
	return Errorf(InvalidArgument, "network: %q is no name of a public host", Clip(host, 80)).WithHint("write %s", hint)
}

// CheckCredential returns InvalidArgument for a string that cannot name a credential.
func CheckCredential(name string) error {
	if credentialPattern.MatchString(name) {
		return nil
	}
	return Errorf(InvalidArgument, "credentials: %q is no name of a credential", Clip(name, 80)).WithHint("name one, such as gh; its value never stands here")
}

// CheckPath returns InvalidArgument for a string that is not a path of [Paths].
func CheckPath(p string) error {
	rest, home := strings.CutPrefix(p, "~/")
	if checkText("", p, MaxTitleBytes) == nil && !strings.ContainsAny(p, "\n\r\t") && (home || path.IsAbs(p)) && strings.Trim(rest, "/") != "" && !slices.Contains(strings.Split(p, "/"), "..") {
		return nil
	}
	return Errorf(InvalidArgument, "paths: %q is no path of a folder or file", Clip(p, 200)).WithHint("begin it with / or with ~/, your home; without .., and less than all of either")
}

// CheckLink returns InvalidArgument for a string that is not a path of [Policy].Links.
func CheckLink(p string) error {
	odd := func(part string) bool { return part == ".." || strings.EqualFold(part, ".git") }
	if checkText("", p, MaxTitleBytes) == nil && !strings.ContainsAny(p, "\n\r\t\\") && !path.IsAbs(p) && !strings.HasPrefix(p, "~") && path.Clean(p) != "." && !slices.ContainsFunc(strings.Split(p, "/"), odd) {
		return nil
	}
	return Errorf(InvalidArgument, "worktree_links: %q is no path in the workspace", Clip(p, 200)).WithHint("name it from there, such as node_modules; without .., and not .git")
}

// checkRule returns InvalidArgument for a string that cannot be stored as a rule.
func checkRule(rule string) error {
	if strings.TrimSpace(rule) == "" {
		return Errorf(InvalidArgument, "permissions: a rule is empty").WithHint("write one such as Bash(git push *)")
	}
	return checkText("a rule of permissions", rule, MaxTitleBytes)
}
