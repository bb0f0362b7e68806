package team

import (
	"maps"
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
}
