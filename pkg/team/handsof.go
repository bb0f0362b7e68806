package team

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

// HandsOf returns what members of that role may do: what the role says, else the team. Of the
// sandbox the strongest holds of what team, role and leader wish for, since the leader spawns the
// others; rules of both hold, the team's first. A role that is not there says nothing.
func (t Team) HandsOf(role string) Hands {
	h := t.Hands
	r, _ := t.Role(role)
	of := r.Hands
	h.Sandbox = h.Sandbox.Stronger(t.Roles[LeaderRole].Hands.Sandbox).Stronger(of.Sandbox)
	if of.Network != nil {
		h.Network = of.Network
	}
	if of.Credentials != nil {
		h.Credentials = of.Credentials
	}
	if of.Paths.Read != nil || of.Paths.Write != nil {
		h.Paths = of.Paths
	}
	if of.Links != nil {
		h.Links = of.Links
	}
	h.PermissionMode = cmp.Or(of.PermissionMode, h.PermissionMode)
	h.PermissionAsk = cmp.Or(of.PermissionAsk, h.PermissionAsk)
	h.Permissions = h.Permissions.And(of.Permissions)
	return h
}

// Lending returns the record by which a subagent of a member of role works, whose type is a role
// with the hands by: what [Team.HandsOf] returns of it for role is what both the member and by allow.
// Of by only what narrows counts, so that its rules of allow add nothing.
func (t Team) Lending(role string, by Hands) Team {
	t.Hands = t.HandsOf(role).narrowed(by)
	t.Roles = maps.Clone(t.Roles)
	for name, r := range t.Roles { // what it states is in there already
		r.Hands = Hands{}
		t.Roles[name] = r
	}
	return t
}

// narrowed returns what both h and by allow; what is not set in by is as h has it.
func (h Hands) narrowed(by Hands) Hands {
	if by.Sandbox != Unconfined { // which is more than no wish
		h.Sandbox = h.Sandbox.Stronger(by.Sandbox)
	}
	if by.Network != nil {
		h.Network = common(h.Network, by.Network, Network.Allows)
	}
	if by.Credentials != nil {
		h.Credentials = common(h.Credentials, by.Credentials, slices.Contains)
	}
	if by.Paths.Read != nil || by.Paths.Write != nil {
		holds := func(dirs []string, p string) bool { return slices.ContainsFunc(dirs, above(p)) }
		read := common(slices.Concat(h.Paths.Read, h.Paths.Write), slices.Concat(by.Paths.Read, by.Paths.Write), holds)
		write := common(h.Paths.Write, by.Paths.Write, holds)
		h.Paths = Paths{Read: slices.DeleteFunc(read, func(p string) bool { return holds(write, p) }), Write: write}
	}
	if by.PermissionMode != "" && by.PermissionMode.rank() < h.PermissionMode.rank() {
		h.PermissionMode = by.PermissionMode
	}
	if by.PermissionAsk == AskDeny {
		h.PermissionAsk = AskDeny
	}
	h.Permissions.Deny = slices.Concat(h.Permissions.Deny, by.Permissions.Deny)
	h.Permissions.Ask = slices.Concat(h.Permissions.Ask, by.Permissions.Ask)
	return h
}

// common returns what both lists grant: of each the entries that the other one covers.
func common[L ~[]string](a, b L, covers func(L, string) bool) L {
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

// Beyond returns what h grants that none of the limits does, each in a few words, such as
// "network full". Against the zero Hands that is all that it grants.
func (h Hands) Beyond(limits ...Hands) (grants []string) {
	beyond := func(granted bool, format string, args ...any) {
		if !granted {
			grants = append(grants, fmt.Sprintf(format, args...))
		}
	}
	any := func(f func(Hands) bool) bool { return slices.ContainsFunc(limits, f) }
	beyond(any(func(l Hands) bool {
		least := cmp.Or(l.Sandbox, SandboxAuto)
		return h.Sandbox == "" || h.Sandbox.Stronger(least) == h.Sandbox
	}), "sandbox %s", h.Sandbox)
	beyond(h.Isolation != Shared || any(func(l Hands) bool { return l.Isolation == Shared }), "isolation %s", h.Isolation)
	for _, host := range h.Network {
		beyond(any(func(l Hands) bool { return l.Network.Allows(host) }), "network %s", host)
	}
	beyond(any(func(l Hands) bool { return h.PermissionMode.rank() <= l.PermissionMode.rank() }), "permission_mode %s", h.PermissionMode)
	for _, rule := range h.Permissions.Allow {
		beyond(any(func(l Hands) bool { return slices.Contains(l.Permissions.Allow, rule) }), "permissions.allow %s", rule)
	}
	for _, name := range h.Credentials {
		beyond(any(func(l Hands) bool { return slices.Contains(l.Credentials, name) }), "credentials %s", name)
	}
	for _, p := range h.Paths.Read {
		beyond(any(func(l Hands) bool { return slices.ContainsFunc(slices.Concat(l.Paths.Read, l.Paths.Write), above(p)) }), "paths.read %s", p)
	}
	for _, p := range h.Paths.Write {
		beyond(any(func(l Hands) bool { return slices.ContainsFunc(l.Paths.Write, above(p)) }), "paths.write %s", p)
	}
	for _, name := range h.Links {
		beyond(any(func(l Hands) bool { return slices.ContainsFunc(l.Links, above(name)) }), "worktree_links %s", name)
	}
	return grants
}

// Ungranted returns h without what it grants: what held of it for others would hold for nobody.
func (h Hands) Ungranted() Hands {
	grants := func(part Hands) bool { return part.Beyond(Hands{}) != nil }
	if grants(Hands{Sandbox: h.Sandbox}) {
		h.Sandbox = SandboxAuto
	}
	if grants(Hands{Isolation: h.Isolation}) {
		h.Isolation = IsolationAuto
	}
	if grants(Hands{Network: h.Network}) {
		h.Network = Network{}
	}
	if grants(Hands{PermissionMode: h.PermissionMode}) {
		h.PermissionMode = DefaultMode
	}
	if h.Credentials != nil {
		h.Credentials = []string{}
	}
	if grants(Hands{Paths: h.Paths}) {
		h.Paths = Paths{Read: []string{}, Write: []string{}}
	}
	if h.Links != nil {
		h.Links = []string{}
	}
	h.Permissions.Allow = nil
	return h
}

// rank is the place of m in the order of what modes let pass. One that is not known lets pass
// more than any other.
func (m PermissionMode) rank() int {
	if i := slices.Index(modes, cmp.Or(m, DefaultMode)); i >= 0 {
		return i
	}
	return len(modes)
}

// covers returns whether an entry of a Network lets reach all that host stands for.
func covers(host string) func(entry string) bool {
	return func(entry string) bool {
		below, all := strings.CutPrefix(entry, "*")
		return entry == host || all && strings.HasSuffix(host, below)
	}
}

// above returns whether a path holds p.
func above(p string) func(dir string) bool {
	return func(dir string) bool { return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }
}

// Validate refuses what no process would know, but for the syntax of rules, which package
// permission knows. Errors: InvalidArgument.
func (h Hands) Validate() error {
	if err := cmp.Or(oneOf("sandbox", h.Sandbox), oneOf("isolation", h.Isolation),
		oneOf("permission_mode", h.PermissionMode), oneOf("permission_ask", h.PermissionAsk)); err != nil {
		return err
	}
	for _, check := range []struct {
		of    []string
		check func(string) error
	}{
		{h.Network, h.Network.checkHost}, {h.Credentials, CheckCredential}, {h.Paths.Read, CheckPath}, {h.Paths.Write, CheckPath}, {h.Links, CheckLink},
		{h.Permissions.Deny, checkRule}, {h.Permissions.Ask, checkRule}, {h.Permissions.Allow, checkRule},
	} {
		for _, v := range check.of {
			if err := check.check(v); err != nil {
				return err
			}
		}
	}
	return nil
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
	schemePattern     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
)

// mostHost is the length of a name in DNS.
const mostHost = 253

// CheckHost refuses what is no host of a [Network], and says what is meant. Errors:
// InvalidArgument.
func CheckHost(host string) error {
	if hostPattern.MatchString(host) && len(host) <= mostHost {
		return nil
	}
	rest := schemePattern.ReplaceAllString(host, "")
	scheme := rest != host
	name, _, path := strings.Cut(rest, "/")
	_, aerr := netip.ParseAddr(strings.Trim(name, "[]"))
	_, aperr := netip.ParseAddrPort(name)
	name, _, port := strings.Cut(name, ":")
	fault := "is no name of a host"
	switch lower := strings.ToLower(name); {
	case aerr == nil || aperr == nil:
		return Errorf(InvalidArgument, "network: %q is an IP address", Clip(host, 80)).WithHint("name the host, such as example.org")
	case host == FullNetwork || host == "none":
		return Errorf(InvalidArgument, "network: %s stands alone, not in a list", host).WithHint("write network: %s", host)
	case scheme:
		fault = "has a scheme"
	case path:
		fault = "has a path"
	case port:
		fault = "has a port"
	case strings.Contains(strings.TrimPrefix(host, "*."), "*"):
		fault = "has a * that is not the whole first part of the name"
	case lower != name:
		fault = "has upper case"
	case !strings.Contains(strings.Trim(name, "."), "."):
		fault = "has no dot, as the name of a public host has"
	}
	err := Errorf(InvalidArgument, "network: %q %s", Clip(host, 80), fault)
	if name = strings.ToLower(name); hostPattern.MatchString(name) {
		return err.WithHint("write %s", name)
	}
	return err.WithHint("write a name such as example.org, or *.example.org for all names below it")
}

// CheckCredential refuses what cannot be the name of a credential. Errors: InvalidArgument.
func CheckCredential(name string) error {
	if credentialPattern.MatchString(name) {
		return nil
	}
	return Errorf(InvalidArgument, "credentials: %q is no name of a credential", Clip(name, 80)).WithHint("name one, such as gh; its value never stands here")
}

// CheckPath refuses what is no path of [Paths]. Errors: InvalidArgument.
func CheckPath(p string) error {
	switch rest, home := strings.CutPrefix(p, "~/"); {
	case checkText("", p, MaxTitleBytes) != nil || strings.ContainsAny(p, "\n\r\t"):
		return Errorf(InvalidArgument, "paths: %q is no path", Clip(p, 200)).WithHint("write one line of text")
	case !home && !path.IsAbs(p):
		return Errorf(InvalidArgument, "paths: %q is not absolute", Clip(p, 200)).WithHint("begin it with / or with ~/, your home")
	case p == "/" || home && strings.Trim(rest, "/") == "":
		return Errorf(InvalidArgument, "paths: %q is all that there is", p).WithHint("name the folder that is needed")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return Errorf(InvalidArgument, "paths: %q has the part ..", Clip(p, 200)).WithHint("write the path that it leads to")
	}
	return nil
}

// CheckLink refuses what is no path of [Hands].Links. Errors: InvalidArgument.
func CheckLink(p string) error {
	refuse := func(fault, hint string) error {
		return Errorf(InvalidArgument, "worktree_links: %q %s", Clip(p, 200), fault).WithHint("%s", hint)
	}
	parts := strings.Split(p, "/")
	switch {
	case checkText("", p, MaxTitleBytes) != nil || strings.ContainsAny(p, "\n\r\t\\"):
		return refuse("is no path", "write one line of text, with / between folders")
	case path.IsAbs(p) || strings.HasPrefix(p, "~"):
		return refuse("is not relative", "name it from the workspace, such as node_modules")
	case slices.Contains(parts, ".."):
		return refuse("has the part ..", "name what is in the workspace")
	case path.Clean(p) == ".":
		return refuse("is the workspace itself", "name what builds need of it, such as node_modules")
	case slices.ContainsFunc(parts, func(part string) bool { return strings.EqualFold(part, ".git") }):
		return refuse("is git's", "a tree has a repository apart")
	}
	return nil
}

// checkRule refuses what cannot be stored as a rule.
func checkRule(rule string) error {
	if strings.TrimSpace(rule) == "" {
		return Errorf(InvalidArgument, "permissions: a rule is empty").WithHint("write one such as Bash(git push *)")
	}
	return checkText("a rule of permissions", rule, MaxTitleBytes)
}
